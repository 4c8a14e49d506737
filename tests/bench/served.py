"""A program of `teho bench`, asked as the command asks it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from forks import Program, forked
from support import FRAMEWORKS, lacks_framework
from teho import bench

PROGRAMS = Path(bench.__file__).parent / "programs"
Answer = dict[str, Any]


class Served:
    """One process of a program, and what it said of itself first."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.hello = self._next()

    def ask(self, do: str, point: Answer, **more: object) -> list[Answer]:
        """Send a command; return its answers, the last of which ends it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "point": point, **more}) + "\n")
        self.process.stdin.flush()
        answers = [self._next()]
        while answers[-1]["at"] == "times":
            answers.append(self._next())
        return answers

    def figures(self, point: Answer) -> list[float]:
        """Return the figures of a point."""
        (answer,) = self.ask("check", point)
        return figures_in(answer)

    def phases(self, point: Answer) -> dict[str, Answer]:
        """Time a point once; return what was timed, by name."""
        *times, last = self.ask("time", point, seconds=0, samples=1, most_s=1)
        assert last == {"at": "done", "point": point}
        return {answer["phase"]: answer for answer in times}

    def _next(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended, by {self.process.wait()}"
        return json.loads(line)


@contextmanager
def serve(
    name: str, library: str, device: str = "cpu", env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Start a program for one library; skip where that is not installed."""
    python = _python_of(library)
    request = json.dumps({"library": library, "device": device})
    with subprocess.Popen(
        [python, str(PROGRAMS / f"{name}.py"), request],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    ) as process:
        yield Served(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0


class Asked(NamedTuple):
    """A program, and the points whose figures it is asked for."""

    program: str
    points: Sequence[Answer]
    environment: Mapping[str, str] = MappingProxyType({})


def answers_of(
    library: str, folder: Path, asked: Mapping[str, Asked], **others: Program
) -> dict[str, list[Any]]:
    """Return the answers of several programs, for which the library is imported once.

    Args:
        library: skips if it is not installed.
        folder: for files.
        asked: by any name.
        others: programs that are not of `teho bench`, and print other JSON.
    """
    request = json.dumps({"library": library, "device": "cpu"})
    programs = {
        name: Program(
            PROGRAMS / f"{one.program}.py",
            [request],
            "".join(json.dumps({"do": "check", "point": point}) + "\n" for point in one.points),
            one.environment,
        )
        for name, one in asked.items()
    }
    python = [_python_of(library)]
    found = {}
    every = {**programs, **others}
    for name, done in forked(f"import {library}", every, folder, python, os.environ).items():
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        found[name] = answers[1:] if name in asked else answers
    return found


def figures_in(answer: Answer) -> list[float]:
    """Return the figures of an answer."""
    assert answer["at"] == "result", answer
    return list(answer["figures"])


def _python_of(library: str) -> str:
    """Return the Python that has a library; skip where it is not installed."""
    if library not in ("torch", "jax"):
        return sys.executable
    if why := lacks_framework(library):
        pytest.skip(why)
    return str(FRAMEWORKS / "bin" / "python")
