"""The libraries of CUDA that come as packages of pip.

The core finds the libraries of a system by their names. ``pip install nvidia-cublas`` and the like put them where no
system looks, so that they are loaded here, by their paths, before the core asks for them: a library that a process has
loaded is found by its name. Nothing is loaded where there is no driver, and nothing that the system has itself.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

# The driver, which comes with the card and never from pip.
DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
# What the core asks for, each after what it needs itself.
LIBRARIES = ("nvJitLink", "cublasLt", "cublas", "cusparse", "cusolver", "nvrtc-builtins", "nvrtc")
# Versions of CUDA, by which systems name their libraries; cuSOLVER is one behind.
VERSIONS = (13, 12, 11)
# Where the toolkit is, which the core looks at too.
TOOLKIT = "/usr/local/cuda/lib64/"

_lock = threading.Lock()
_asked = False


def prepare() -> list[Path]:
    """Load what pip has installed and the system has not, once in a process: the files that were loaded."""
    global _asked
    with _lock:
        if _asked or not _loads(DRIVER):
            return []
        _asked = True
        return load(folders())


def folders() -> list[Path]:
    """Folders of libraries in the packages of NVIDIA, wherever Python looks for packages."""
    places = [*sys.path, *site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")]
    inner = "bin" if sys.platform == "win32" else "lib"
    found: dict[Path, None] = {}
    for place in dict.fromkeys(filter(None, places)):
        # nvidia/cu13/lib, and nvidia/cublas/lib of former versions.
        found.update(dict.fromkeys(sorted(Path(place).glob(f"nvidia/*/{inner}"))))
    return list(found)


def load(where: Iterable[Path]) -> list[Path]:
    """Load the libraries in these folders that the system does not have by name."""
    where = list(where)
    loaded = []
    for library in LIBRARIES:
        if any(_loads(name) for name in _names(library)):
            continue
        for file in _files(library, where):
            if _loads(str(file)):
                loaded.append(file)
                break
    return loaded


def _names(library: str) -> list[str]:
    """What a system may call a library."""
    if sys.platform == "win32":
        return [f"{library}64_{version}.dll" for version in VERSIONS]
    names = [*(f"lib{library}.so.{version}" for version in VERSIONS), f"lib{library}.so"]
    return [*names, *(TOOLKIT + name for name in names)]


def _files(library: str, where: Iterable[Path]) -> Iterator[Path]:
    """The files of a library, those of the newest version first."""
    pattern = f"{library}*.dll" if sys.platform == "win32" else f"lib{library}.so*"
    for folder in where:
        yield from sorted((file for file in folder.glob(pattern) if file.is_file()), reverse=True)


def _loads(name: str) -> bool:
    """Whether a library can be loaded. It stays in the process."""
    try:
        # For all that come after it, which is what the core needs.
        ctypes.CDLL(name, mode=getattr(os, "RTLD_GLOBAL", 0))
    except OSError:
        return False
    return True
