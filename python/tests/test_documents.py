"""The pages do what they say: their programs run, one after the other in a folder of each page, and the notebook holds output."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("SVML_COMMAND") or shutil.which("svml")

# Pages whose programs need the package alone, and those that use the command as well.
PYTHON = [
    "README.md",
    "python/README.md",
    "docs/python.md",
    "docs/from-metric-learn.md",
    "docs/from-svc.md",
    "docs/when-not.md",
]
BOTH = ["docs/start.md", "docs/from-libsvm.md", "docs/recipes.md"]


def blocks(page, *kinds):
    found = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)
    found = [(kind, block) for kind, block in found if kind in kinds]
    assert found, page
    return found


@pytest.mark.parametrize("page", PYTHON)
def test_python_in_the_documentation(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "page"}
    for _, block in blocks(page, "python"):
        exec(compile(block, page, "exec"), scope)


@pytest.mark.skipif(COMMAND is None, reason="the command svml is not there; set SVML_COMMAND")
@pytest.mark.parametrize("page", BOTH)
def test_programs_in_the_documentation(page, tmp_path, monkeypatch):
    """Blocks whose programs are not installed, such as LIBSVM's, are left out, and nothing else."""
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "svml").symlink_to(Path(COMMAND).resolve())
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    scope = {"__name__": "page"}
    for kind, block in blocks(page, "python", "sh"):
        if kind == "python":
            exec(compile(block, page, "exec"), scope)
            continue
        programs = {line.split()[0] for line in block.splitlines()}
        if any(name.startswith("svm-") and shutil.which(name) is None for name in programs):
            continue
        done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True)
        assert done.returncode == 0, block + done.stdout + done.stderr


def test_the_guide_has_the_example_of_the_readme():
    first = [blocks(page, "python")[0] for page in ("README.md", "python/README.md", "docs/python.md")]
    assert first[0] == first[1] == first[2]


def test_a_program_that_fails_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("```python\nraise ValueError('wrong')\n```\n")
    with pytest.raises(ValueError, match="wrong"):
        test_python_in_the_documentation("page.md", tmp_path, monkeypatch)
    (tmp_path / "page.md").write_text("```text\nnothing to run\n```\n")
    with pytest.raises(AssertionError):
        test_python_in_the_documentation("page.md", tmp_path, monkeypatch)


def test_the_notebook_holds_its_output():
    """The build of the site runs it; this is about what is seen on GitHub and by those who open it."""
    path = ROOT / "docs" / "notebook.ipynb"
    assert path.stat().st_size < 500_000
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] == place for place, cell in enumerate(cells, 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert kinds.count("display_data") >= 3 and "stream" in kinds and "error" not in kinds
