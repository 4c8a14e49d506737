"""Starts a recorder in each Grid Engine job, through the variable `BASH_ENV`.

qsub reads `~/.sge_request` and sets the variable in the job (sge_request(5)). A bash that runs a
script expands the variable (bash(1)), which starts the recorder in the background.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teho.errors import InputError
from teho.model.always import Hook
from teho.model.job import RunningJob
from teho.schedulers.task import job_id

__all__ = ["grid_engine_hook", "job_here"]


def grid_engine_hook(start: str, home: Path) -> Hook:
    """Return the lines for `~/.sge_request`.

    Raises:
        InputError: the file sets `BASH_ENV` already.
    """
    file = home / ".sge_request"
    # Without spaces and commas: they would end the value.
    line = f"-v BASH_ENV=$({start}&>/dev/null&)"
    try:
        known = file.read_text(errors="replace").splitlines()
    except OSError:
        known = []
    if any("BASH_ENV=" in one and one != line for one in known if not one.startswith("#")):
        raise InputError(
            f"{file} sets BASH_ENV already", "no other BASH_ENV", "delete that option from the file"
        )
    return Hook(scheduler="Grid Engine", file=str(file), lines=(line,))


def job_here(environment: Mapping[str, str], machine: str) -> RunningJob | None:
    """Return the job of Grid Engine that runs this process; None: there is none."""
    number, task = environment.get("JOB_ID", ""), environment.get("SGE_TASK_ID", "undefined")
    if not number.isdecimal() or "SGE_ROOT" not in environment:
        return None
    return RunningJob(
        number=number,
        key=job_id(environment),
        hosts=(machine,),
        host=machine,
        name=environment.get("JOB_NAME", ""),
        variables={"JOB_ID": number, "SGE_TASK_ID": task},
    )
