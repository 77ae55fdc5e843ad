"""What the programs of the study share: a virtual environment of their own, and the name of the processor."""

import platform
import subprocess
import venv
from pathlib import Path


def environment(folder, packages):
    """The Python of the virtual environment in a folder, made with these packages on the first call."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "ready").touch()
    return python


def processor():
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
