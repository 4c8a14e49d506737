"""Asks the user's Python which frameworks it has, and the frameworks which GPUs they see."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from teho.doctor.snapshot import FrameworkReport, Python
from teho.errors import InputError
from teho.model.missing import Missing, Reason
from teho.model.software import Build
from teho.process.isolated_call import IsolatedCall, NoAnswer, answering, executing
from teho.software.builds import builds_of
from teho.software.live import PROGRAM, read_answer

__all__ = ["look_into", "or_missing", "see"]

_T = TypeVar("_T")

_SEES = Path(__file__).with_name("programs") / "sees.py"
_START_S = 15.0
_SEE_S = 30.0
"""PyTorch takes that long on a network file system that nobody has read it from for a while."""


def look_into(path: str, environment: Mapping[str, str]) -> IsolatedCall:
    """Begin to ask a Python for its frameworks, by what their files say; the answer is a `Python`.

    Args:
        path: empty: the first `python`, or `python3`, on PATH.
        environment: where PATH is.
    """
    names = [path] if path else ["python", "python3"]
    return IsolatedCall(
        path or "Python", answering(partial(_installed, names, environment)), _START_S
    )


def _installed(names: Sequence[str], environment: Mapping[str, str]) -> Python:
    """Ask the first Python of these that there is, waiting for as long as it takes.

    Raises:
        InputError: there is none, or it is too old to be asked, or none at all.
    """
    search = environment.get("PATH")
    found = next((one for name in names if (one := shutil.which(name, path=search))), None)
    if found is None:
        raise InputError(f"no command {' or '.join(names)}")
    # Where the program lies is no place to import from.
    safe = {**environment, "PYTHONSAFEPATH": "1"}
    said = subprocess.run([found, PROGRAM], env=safe, capture_output=True, check=False)
    try:
        told = read_answer(said.stdout)
    except msgspec.MsgspecError as error:
        last = said.stderr.decode(errors="replace").strip().splitlines()[-1:]
        why = last[0] if last else f"it ended with exit code {said.returncode}"
        raise InputError(f"{found} does not list what is installed: {why}") from error
    return Python(
        path=found,
        version=told.python,
        machine=told.machine,
        packages=tuple(told.packages),
        facts=told.facts,
        frameworks=_one_of_each(builds_of(told.packages, told.facts)),
    )


def _one_of_each(builds: Sequence[Build]) -> tuple[Build, ...]:
    """Return one build of each framework: where two packages are one, that which tells most."""
    found: dict[str, Build] = {}
    for build in builds:
        known = found.setdefault(build.framework, build)
        if known.kind == "unknown":
            found[build.framework] = build
    return tuple(found.values())


def see(python: Python, environment: Mapping[str, str]) -> Python:
    """Import frameworks, each in a process of its own, and return what they see.

    One that is built for CPUs, by its own files' word, has nothing to say.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    asked = {
        one.framework: IsolatedCall(
            f"{one.package} in {python.path}",
            executing([python.path, str(_SEES), one.framework], quiet),
            _SEE_S,
        )
        for one in python.frameworks
        if one.kind != "cpu"
    }
    framework_reports = {
        name: or_missing(call.answer(FrameworkReport)) for name, call in asked.items()
    }
    return msgspec.structs.replace(python, framework_reports=framework_reports)


def or_missing(answer: _T | NoAnswer) -> _T | Missing:
    """Return an answer as a snapshot keeps it: if there is none, it is missing."""
    return Missing(Reason.FAILED, answer.why) if isinstance(answer, NoAnswer) else answer
