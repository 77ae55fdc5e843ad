"""The package as such: examples, types, documentation."""

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import svml
import svml.dask
from svml import _core, _displays, _itml, _lmnn, _load, _measures, _nca, _progress, _svml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@pytest.mark.parametrize(
    "module", [svml, svml.dask, _svml, _nca, _lmnn, _itml, _load, _measures, _displays, _progress], ids=lambda module: module.__name__
)
def test_examples_of_docstrings(module):
    with np.printoptions(legacy="1.25"):
        result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0 and result.attempted > 2


@pytest.mark.parametrize("module", [svml, svml.dask], ids=lambda module: module.__name__)
def test_every_public_name_is_documented(module):
    for name in module.__all__:
        item = getattr(module, name)
        assert len(inspect.getdoc(item) or "") > 30, name
        if not inspect.isclass(item) or issubclass(item, Exception):
            continue
        doc = inspect.getdoc(item)
        assert "See Also\n--------" in doc and ("Display" in name or "References\n----------" in doc), name
        for parameter in inspect.signature(item).parameters:
            if "Display" not in name:
                assert re.search(rf"^{parameter} : ", doc, re.M), f"{name}: {parameter}"
        for attribute, value in inspect.getmembers(item):
            if attribute.startswith("_"):
                continue
            if isinstance(value, property) or inspect.isfunction(value):
                assert inspect.getdoc(value), f"{name}.{attribute}"
            if isinstance(value, property):
                assert re.search(rf"\b{attribute}\b", doc), f"{name}: {attribute}"


def test_types(tmp_path):
    """The package is typed strictly, and the stub says what the binding has."""
    config = HERE.parent / "pyproject.toml"
    for command in (
        ["mypy", "--config-file", str(config), "--cache-dir", str(tmp_path), "-p", "svml"],
        ["mypy.stubtest", "--mypy-config-file", str(config), "svml._core"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    package = Path(svml.__file__).parent
    assert (package / "py.typed").exists() and (package / "_core.pyi").exists()


def test_the_version_is_that_of_the_library():
    text = (ROOT / "Cargo.toml").read_text()
    assert re.search(r'^version = "(.*)"', text, re.M).group(1) == svml.__version__


def test_the_binding_is_this_package_s():
    assert Path(_core.__file__).parent == Path(svml.__file__).parent


@pytest.mark.parametrize("example", sorted((HERE.parent / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example_programs(example, tmp_path):
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
