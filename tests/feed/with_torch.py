"""Runs programs with the real PyTorch, which import teho.feed from the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import teho
from support import FRAMEWORKS, lacks_framework

PROGRAMS = Path(__file__).parent / "programs"
needs_torch = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))


def run_program(name: str, folder: Path, *arguments: str) -> str:
    """Run a program of this folder; return what it prints."""
    # The Python with PyTorch has none of Teho's requirements. The feed needs one of them.
    library = folder / "library"
    library.mkdir(exist_ok=True)
    link = library / "msgspec"
    if not link.exists():
        link.symlink_to(Path(msgspec.__file__).parent)
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", PROGRAMS / f"{name}.py", *arguments],
        env={**os.environ, "PYTHONPATH": f"{Path(teho.__file__).parents[1]}:{library}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stderr.write(done.stderr)
    return done.stdout
