"""Asks the user's Python for its frameworks, and each framework for the GPUs that it sees."""

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

__all__ = ["or_missing", "read_python", "see"]

_T = TypeVar("_T")

_SEES = Path(__file__).with_name("programs") / "sees.py"
_START_S = 15.0
_SEE_S = 30.0
"""PyTorch takes this long to load from a network file system that has not cached it."""


def read_python(path: str, environment: Mapping[str, str]) -> IsolatedCall:
    """Start a call that reads a Python's frameworks from their files. It returns a `Python`.

    Args:
        path: empty: the first `python` or `python3` on PATH.
        environment: has PATH.
    """
    names = [path] if path else ["python", "python3"]
    return IsolatedCall(
        path or "Python", answering(partial(_installed, names, environment)), _START_S
    )


def _installed(names: Sequence[str], environment: Mapping[str, str]) -> Python:
    """Return what the first existing Python of these reports, without a time limit.

    Raises:
        InputError: none of them exists, or the first is too old or is not a Python.
    """
    search = environment.get("PATH")
    found = next((one for name in names if (one := shutil.which(name, path=search))), None)
    if found is None:
        raise InputError(f"no command {' or '.join(names)}")
    # It must not import from the program's folder.
    safe = {**environment, "PYTHONSAFEPATH": "1"}
    done = subprocess.run([found, PROGRAM], env=safe, capture_output=True, check=False)
    try:
        answer = read_answer(done.stdout)
    except msgspec.MsgspecError as error:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        why = last[0] if last else f"the command ended with exit code {done.returncode}"
        raise InputError(f"{found} does not list the installed packages: {why}") from error
    return Python(
        path=found,
        version=answer.python,
        machine=answer.machine,
        packages=tuple(answer.packages),
        facts=answer.facts,
        frameworks=_one_of_each(builds_of(answer.packages, answer.facts)),
    )


def _one_of_each(builds: Sequence[Build]) -> tuple[Build, ...]:
    """Return one build of each framework: the first with a known kind, if there are several."""
    found: dict[str, Build] = {}
    for build in builds:
        known = found.setdefault(build.framework, build)
        if known.kind == "unknown":
            found[build.framework] = build
    return tuple(found.values())


def see(python: Python, environment: Mapping[str, str]) -> Python:
    """Import each framework in a separate process, and return `python` with what they see.

    A framework whose files say that it is built for CPUs is not asked.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    calls = {
        one.framework: IsolatedCall(
            f"{one.package} in {python.path}",
            executing([python.path, str(_SEES), one.framework], quiet),
            _SEE_S,
        )
        for one in python.frameworks
        if one.kind != "cpu"
    }
    reports = {name: or_missing(call.answer(FrameworkReport)) for name, call in calls.items()}
    return msgspec.structs.replace(python, framework_reports=reports)


def or_missing(answer: _T | NoAnswer) -> _T | Missing:
    """Return an answer, or why there is none, as a snapshot keeps it."""
    return Missing(Reason.FAILED, answer.why) if isinstance(answer, NoAnswer) else answer
