"""Which worker of pytest-xdist runs which file: files that wait run beside files that compute.

A file that waits (for a scheduler's jobs, for a program that sleeps) leaves its core to others.
With two such files and two that compute, four workers keep two cores in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["COMPUTING", "WAITING", "FilesOfWorkers", "next_file"]

WAITING = (
    "experiment/test_scale.py",
)  # fmt: skip
"""Files that wait for more than half of their time, the longest first."""
COMPUTING = (
    "twins/test_launchers.py",
)  # fmt: skip
"""Other files of half a minute or more, the longest first: they must not be the last to begin."""


class FilesOfWorkers(LoadFileScheduling):
    """Hand out whole files: to every second worker those that wait, as long as there are some."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        prefers_waiting = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        chosen = next_file(self.workqueue, prefers_waiting=prefers_waiting)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def next_file(files: Iterable[str], *, prefers_waiting: bool) -> str:
    """Return the file that a worker runs next, of those that are left.

    Args:
        files: their paths, as `tests/test_run.py`; at least one.
        prefers_waiting: whether this worker begins with files that wait; others end with them.
    """
    left = {Path(path).relative_to("tests").as_posix(): path for path in files}
    listed = {*WAITING, *COMPUTING}
    others = [name for name in left if name not in listed]
    order = [*WAITING, *COMPUTING, *others] if prefers_waiting else [*COMPUTING, *others, *WAITING]
    return next(left[name] for name in order if name in left)
