"""Memory that a request took is the system's again after it."""

import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hf_storyend.demo import generator as generator_module
from hf_storyend.demo.generator import EndingGenerator
from hf_storyend.demo.memory import release_free_memory
from hf_storyend.demo.requests import EndingRequest, parse_story

NUM_BLOCKS, BLOCK_BYTES = 20_000, 5_000


def memory_of_this_process() -> int:
    """Megabytes that are not of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon:"))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="Other C libraries have other heaps.")
def test_what_a_thread_has_freed_is_given_back():
    """One block that is in use, at the end, keeps a hundred megabytes below it."""

    def allocate_and_free() -> bytes:
        return [bytes(BLOCK_BYTES) for _ in range(NUM_BLOCKS)][-1]

    before = memory_of_this_process()
    with ThreadPoolExecutor(1) as threads:
        kept = threads.submit(allocate_and_free).result()
        held = memory_of_this_process() - before
        release_free_memory()
        assert held > 60 and memory_of_this_process() - before < held / 3 and len(kept) == BLOCK_BYTES


def test_memory_is_given_back_after_each_request(model_directory, monkeypatch):
    released = []
    monkeypatch.setattr(generator_module, "release_free_memory", lambda: released.append(True))
    generator = EndingGenerator([model_directory])
    request = EndingRequest(generator.systems[0], parse_story("Anna put a cake in the oven."))
    generator.generate(request)
    generator.generate(request)
    assert len(released) == 1, "The second answer is that of the cache."
    with pytest.raises(ValueError, match="There is no system"):
        generator.generate(EndingRequest("none", request.sentences))
    assert len(released) == 2, "After one that failed, too."
