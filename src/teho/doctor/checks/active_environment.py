"""Is the first `python` on PATH the one of the active environment?"""

from __future__ import annotations

from pathlib import PurePath

from teho.doctor.outcome import Outcome, fine, needs_python, not_applicable, warning
from teho.doctor.snapshot import Folder, Python, Snapshot

__all__ = ["ABOUT", "check"]

ABOUT = "conda and virtual environments in batch shells"

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Compare the variables of an active environment with the first Python on PATH.

    A batch shell inherits the variables of the shell that submitted it, but not its functions.
    So `conda activate` fails there unless the shell reads `.bashrc`.
    """
    if snapshot.is_python_named:
        return not_applicable(
            "you named this Python, so it does not matter which environment is active"
        )
    active = {
        name: snapshot.environment[name] for name in _VARIABLES if snapshot.environment.get(name)
    }
    path = PurePath(python.path)
    if any(path.is_relative_to(prefix) for prefix in active.values()):
        return fine(f"{python.path} belongs to the active environment")
    for variable, prefix in active.items():
        name = PurePath(prefix).name
        return warning(
            f"{variable} says that {name} is active, but `python` is {python.path}, which is not "
            "part of it.",
            "Begin the job script with `#!/bin/bash -l`, then run "
            f"`conda activate {name}`. If the cluster provides conda as a module, run "
            f"`source activate {name}` instead."
            if variable == "CONDA_PREFIX"
            else f"Run `source {prefix}/bin/activate` in the job script, after all `module load` "
            "commands.",
            (variable, prefix, ""),
            ("Python", python.path, ""),
        )
    if not snapshot.in_job:
        return not_applicable("no environment is active, and this is not a job")
    home = snapshot.folders.get("home")
    if isinstance(home, Folder) and home.has_conda_init and not python.frameworks:
        return warning(
            f"No environment is active, and {python.path} has no GPU framework. Batch shells do "
            "not read your `.bashrc`, which contains the lines of `conda init`.",
            "Begin the job script with `#!/bin/bash -l`, and run `conda activate NAME` before the "
            "program.",
            ("Python", python.path, ""),
        )
    return fine(f"no environment is active; programs use {python.path}")
