"""The description of this machine as a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teho.schedulers.scheduler import Scheduler

if TYPE_CHECKING:
    from pathlib import Path

    from teho.schedulers.local.backend import Local
    from teho.schedulers.variables import Variables

__all__ = ["LOCAL_JOB", "LocalScheduler"]

LOCAL_JOB = "TEHO_LOCAL_JOB"
"""Variable with the id of a job that `teho submit --local` runs."""


class LocalScheduler(Scheduler):
    """This machine."""

    title = "local"
    precedence = 200  # such a job may run inside another scheduler's
    is_this_machine = True

    def backend(self, home: Path) -> Local:
        """Return the builder of the runner's commands. Its jobs are in `home`."""
        from teho.schedulers.local.backend import Local

        return Local(home)

    def allocation(self, variables: Variables) -> tuple[dict[str, Any], int | None] | None:
        """Read the job's id. The runner does not limit the share of the machine."""
        job = variables.text(LOCAL_JOB)
        return None if job is None else ({"scheduler": self.name, "job_id": job}, None)
