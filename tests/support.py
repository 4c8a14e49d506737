"""What tests import by name."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import teho

TEHO = [sys.executable, "-m", "teho"]
"""The command under test, whatever is on the PATH."""
FRAMEWORKS = Path(__file__).parents[1] / ".frameworks"
"""A Python with PyTorch and others, where tests/frameworks.sh could install them."""

_LAUNCHERS = Path(__file__).parent / "launchers"
WITHOUT_COMPILER = f"""\
import sys
sys.path.insert(0, {str(_LAUNCHERS)!r})
import without_compiler
"""
"""The first lines of a program with an optimizer of PyTorch, or DDP, that compiles nothing: to
import the compiler takes two seconds of a core."""

SOAK = os.environ.get("TEHO_SOAK") == "1"
"""Whether random tests run with their full numbers, as `make soak` asks for."""


def lacks_framework(name: str) -> str:
    """Return why the tests of a framework cannot run here; empty where they can."""
    if any(FRAMEWORKS.glob(f"lib/python*/site-packages/{name}/__init__.py")):
        return ""
    return f"no {name} in .frameworks; tests/frameworks.sh installs it where it can"


def path_of_teho(folder: Path) -> str:
    """Return a PYTHONPATH with which the Python of the frameworks can import `teho.feed`.

    Args:
        folder: for a link to the one library that the feed needs, and that this Python lacks.
    """
    link = folder / "library" / "msgspec"
    link.parent.mkdir(exist_ok=True)
    if not link.exists():
        link.symlink_to(Path(msgspec.__file__).parent)
    return f"{Path(teho.__file__).parents[1]}:{link.parent}"


def check_golden(path: Path, text: str) -> None:
    """Compare with a file that holds the expected text; TEHO_UPDATE_GOLDEN=1 writes it anew."""
    if os.environ.get("TEHO_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def wait_for(condition: Callable[[], object], within_s: float = 30) -> None:
    """Wait until something is true, but not for longer than the given time."""
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, also if its parent has not asked for its exit code."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
