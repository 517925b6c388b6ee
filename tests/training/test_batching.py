"""Every update reads the same stories, for any number of processes and after resuming."""

from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.training.batching import UpdateLoader


def rows_of(features: list[dict]) -> dict:
    return {"rows": torch.tensor([feature["row"] for feature in features])}


def plan(num_stories: int, process: int = 0, num_processes: int = 1, batch: int = 4, accumulation: int = 1):
    data = Dataset.from_dict(
        {
            "row": list(range(num_stories)),
            "length": [row % 7 + 1 for row in range(num_stories)],
            "labels": [[0] * (row % 3 + 1) for row in range(num_stories)],
        }
    )
    accelerator = SimpleNamespace(
        num_processes=num_processes, process_index=process, device=torch.device("cpu"), no_sync=None
    )
    return UpdateLoader(
        data,
        rows_of,
        accelerator,
        per_device_batch_size=batch // num_processes,
        accumulation_steps=accumulation,
        seed=3,
    )


def epoch(plan: UpdateLoader, number: int = 0, skipped: int = 0) -> list[list[dict]]:
    return [update.tensors for update in plan.updates(None, number, skipped)]


@pytest.mark.parametrize("num_stories", [16, 13, 9, 3])
@pytest.mark.parametrize("accumulation", [1, 3])
def test_processes_together_read_what_one_would(num_stories, accumulation):
    alone = epoch(plan(num_stories, accumulation=accumulation))
    shared = [epoch(plan(num_stories, process, num_processes=4, accumulation=accumulation)) for process in range(4)]
    for number, update in enumerate(alone):
        for place, batch in enumerate(update):
            parts = [process[number][place] for process in shared]
            # A process without a story reads one all the same, with a weight of nothing.
            counted = [part["rows"] for part in parts if part["num_items_in_batch"] != float("inf")]
            assert sorted(torch.cat(counted).tolist()) == sorted(batch["rows"].tolist())
            words = {part["num_items_in_batch"] for part in parts} - {float("inf")}
            assert words == {batch["num_items_in_batch"] / 4}


@settings(deadline=None)
@given(num_stories=st.integers(1, 40), accumulation=st.integers(1, 4), skipped=st.integers(0, 3))
def test_an_epoch_has_every_story_once_and_resumes_anywhere(num_stories, accumulation, skipped):
    whole = plan(num_stories, accumulation=accumulation)
    updates = epoch(whole, number=5)
    assert len(updates) == whole.updates_per_epoch
    rows = [row for update in updates for batch in update for row in batch["rows"].tolist()]
    assert sorted(rows) == list(range(num_stories))
    rest = epoch(plan(num_stories, accumulation=accumulation), 5, skipped)
    assert str(rest) == str(updates[skipped:])


def test_an_update_divides_by_the_ending_words_of_all_its_batches():
    whole = plan(12, accumulation=2)
    for update in whole.updates(None, 0):
        rows = [row for batch in update.tensors for row in batch["rows"].tolist()]
        words = sum(row % 3 + 1 for row in rows)
        assert {batch["num_items_in_batch"] for batch in update.tensors} == {words}
        assert update.num_stories == len(rows)


def test_epochs_differ():
    assert str(epoch(plan(30), 0)) != str(epoch(plan(30), 1))
