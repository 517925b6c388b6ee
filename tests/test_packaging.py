"""The built wheel holds all that the package needs, modeling/ included, and works without the source tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_wheel(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        names = set(archive.namelist())
    assert {f"hf_storyend/modeling/{path.name}" for path in (ROOT / "modeling").glob("*.py")} <= names
    assert {"hf_storyend/assets/stories.jsonl", "hf_storyend/assets/triples.tsv", "hf_storyend/py.typed"} <= names
    assert "storyend_cli/main.py" in names
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "hf_storyend").rglob("*.py") if "cli" not in path.parts}
    assert modules <= names
    assert {
        f"hf_storyend/annotation/{name}" for name in ("page.html", "page.css", "page.js", "guidelines.md")
    } <= names
    code = f"""
import sys
sys.path = [{str(tmp_path / "site")!r}] + [path for path in sys.path if path != {str(ROOT)!r}]
import hf_storyend, hf_storyend.modeling.lstm
from hf_storyend.data.embedded import embedded_tokenizer
assert {str(tmp_path)!r} in hf_storyend.modeling.lstm.__file__, hf_storyend.modeling.lstm.__file__
assert len(embedded_tokenizer()) > 2000
"""
    # -S leaves out the editable install, whose finder would come first.
    packages = [path for path in sys.path if path.endswith("site-packages")]
    prelude = f"import sys; sys.path += {packages!r}\n"
    subprocess.run([sys.executable, "-S", "-I", "-c", prelude + code], check=True, cwd=tmp_path)


def test_commands_do_not_import_torch_to_show_help():
    code = "import sys, storyend_cli.main; sys.exit('torch' in sys.modules or 'hf_storyend' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
