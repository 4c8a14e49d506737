"""Programs that the tests start and then look into."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from probe.test_probe import found_pythons, pythons
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Key, Unwinder

LIMIT_S = 20.0
"""Longest wait for something that a program is about to do."""

Found = TypeVar("Found")


def versions() -> dict[str, tuple[int, int]]:
    """Return each Python that can be read, and its version."""
    readable = set(pythons())
    return {path: (version[0], version[1]) for version, path in found_pythons().items()
            if path in readable}  # fmt: skip


PYTHONS = versions()
EACH = [(path, version) for path, version in PYTHONS.items()]
NAMES = [f"{version[0]}.{version[1]}" for version in PYTHONS.values()]
each_python = pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
THIS = (sys.version_info[0], sys.version_info[1])

Places = list[tuple[str, str, int]]
"""File, function and line, the innermost first."""

STOP = "tell(); time.sleep(600)"
"""A program prints its stack, and goes to sleep in the same line."""

PRELUDE = """\
import json, os, sys, time
def tell(*more):
    frame, stack = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append([code.co_filename, name, frame.f_lineno])
        frame = frame.f_back
    print(json.dumps([stack, *more]), flush=True)
def say(*words):
    print(json.dumps(words), flush=True)
"""


class Program:
    """A program that was started, and what it prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid

    def line(self) -> Any:
        """Return the next line that it prints, which is JSON."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, "the program ended before it printed its line"
        return json.loads(text)

    def stack(self) -> list[tuple[str, str, int]]:
        """Return the stack that it prints: file, function and line, the innermost first."""
        return [tuple(one) for one in self.line()[0]]

    def send(self, text: str = "\n") -> None:
        """Write to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def end(self) -> None:
        """End it and every process that it started, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def start(
    code: str, folder: Path, *, python: str = sys.executable, name: str = "program.py",
    environment: dict[str, str] | None = None, prelude: str = PRELUDE,
) -> Program:  # fmt: skip
    """Start a program in a process group of its own."""
    script = folder / name
    script.write_text(prelude + code, encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    process = subprocess.Popen(
        [python, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**env, **(environment or {})},
        start_new_session=True,
    )
    return Program(process)


def wait_for(sample: Callable[[], Found], is_it: Callable[[Found], bool]) -> Found:
    """Look again and again until it is as wanted or the time is up; return the last look."""
    until = time.monotonic() + LIMIT_S
    while True:
        found = sample()
        if is_it(found) or time.monotonic() > until:
            return found
        time.sleep(0.005)


@contextlib.contextmanager
def closing(thing: Found) -> Iterator[Found]:
    """Close an object of the package at the end."""
    try:
        yield thing
    finally:
        thing.close()  # type: ignore[attr-defined]


def places_of(stack: Key) -> Places:
    return [(code.file, code.function, code.place(offset)[0]) for code, offset in stack]


def sample(unwinder: Unwinder) -> Places | str:
    try:
        return places_of(unwinder.sample())
    except UnwindError as error:
        return str(error)


def await_stack(unwinder: Unwinder, wanted: Places) -> None:
    """Look until the program is where it said that it was about to be."""
    assert wait_for(lambda: sample(unwinder), lambda found: found == wanted) == wanted
