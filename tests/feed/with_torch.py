"""Runs programs with the real PyTorch, which import teho.feed from the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import FRAMEWORKS, lacks_framework, path_of_teho

PROGRAMS = Path(__file__).parent / "programs"
needs_torch = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))


def run_program(name: str, folder: Path, *arguments: str) -> str:
    """Run a program of this folder; return what it prints."""
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", PROGRAMS / f"{name}.py", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": path_of_teho(folder),
            # Otherwise the C library sometimes keeps freed memory: a program's peak varies.
            "MALLOC_MMAP_THRESHOLD_": str(1024**2),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stderr.write(done.stderr)
    return done.stdout
