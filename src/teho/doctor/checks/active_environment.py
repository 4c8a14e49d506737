"""The Python that a job finds is that of the environment that was activated."""

from __future__ import annotations

from pathlib import PurePath

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Folder, Python, Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "active-environment"
ABOUT = "conda and virtual environments in batch shells"
DECISIVE = False

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")


def check(snapshot: Snapshot) -> Outcome:
    """Compare what says that an environment is active with the Python that comes first.

    A batch shell inherits the variables of the shell that submitted it, and not its functions:
    `conda activate` fails there unless the shell reads `.bashrc`.
    """
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if snapshot.is_python_named:
        return moot("this Python was named, whatever is active")
    active = {
        name: snapshot.environment[name] for name in _VARIABLES if snapshot.environment.get(name)
    }
    if active:
        if any(_is_in(python, prefix) for prefix in active.values()):
            return fine(f"{python.path} is the active environment's")
        return [_other(python, *next(iter(active.items())))]
    home = snapshot.folders.get("home")
    if not snapshot.in_job:
        return moot("none is active, and this is not a job")
    if isinstance(home, Folder) and home.holds_conda_init and not python.frameworks:
        return [_never(python)]
    return fine(f"{python.path}, without an environment")


def _is_in(python: Python, prefix: str) -> bool:
    return PurePath(python.path).is_relative_to(prefix)


def _other(python: Python, variable: str, prefix: str) -> Symptom:
    name = PurePath(prefix).name
    conda = variable == "CONDA_PREFIX"
    return symptom(
        ID,
        Severity.WARNING,
        f"{variable} says that {name} is active, and `python` is another one, {python.path}.",
        f"Begin the job script with `#!/bin/bash -l`, and activate it there: "
        f"`conda activate {name}`, or `source activate {name}` with the site's module."
        if conda
        else f"`source {prefix}/bin/activate` in the job script, behind all `module load`.",
        (variable, prefix, ""),
        ("Python", python.path, ""),
    )


def _never(python: Python) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        "`conda init` has written to your `.bashrc`, which batch shells do not read: no "
        f"environment is active, and {python.path} has no GPU framework.",
        "Begin the job script with `#!/bin/bash -l`, and `conda activate NAME` before the program.",
        ("Python", python.path, ""),
    )
