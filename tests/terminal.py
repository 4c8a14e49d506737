"""A real terminal, by tmux: what a program shows, and keys for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

__all__ = ["keys", "screen", "terminal"]


@contextmanager
def terminal(
    command: str, columns: int, lines: int, environment: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """Run a command in a terminal; yield the words that begin each command of tmux."""
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed: tests/debian-packages.sh installs it")
    pytest.importorskip("textual", reason="textual is not installed")
    tmux = ["tmux", "-L", f"teho-test-{os.getpid()}"]
    size = ["-x", str(columns), "-y", str(lines)]
    # The server gives the terminal the environment of its own start.
    subprocess.run(
        [*tmux, "new-session", "-d", *size, f"{command}; sleep 60"], check=True, env=environment
    )
    try:
        yield tmux
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def screen(tmux: list[str]) -> str:
    """Return what the terminal shows."""
    return subprocess.run(
        [*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
    ).stdout


def keys(tmux: list[str], *names: str) -> None:
    """Press keys."""
    subprocess.run([*tmux, "send-keys", *names], check=True)
