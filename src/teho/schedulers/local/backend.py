"""Build the command lines of the local runner, and read its answers.

The runner starts a plan's script on this machine, without a queue. It only enforces the time limit
of a request.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.model.job import Job, Submission
from teho.schedulers.backend import Backend, Query
from teho.schedulers.command import Completed, accepted
from teho.schedulers.slurm.values import fill_pattern

__all__ = ["Local"]

# Use the same modules as this process, and none from the current directory.
_START = (
    "import sys; sys.path[:] = sys.argv.pop(1).split(':');"
    " from teho.schedulers.local.runner import main; sys.exit(main(sys.argv[1:]))"
)


class Local(Backend):
    """Build the runner's command lines and read its answers.

    Args:
        home: the directory with the jobs.
    """

    name = "local"

    def __init__(self, home: Path) -> None:
        self._home = home

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the command that starts a runner."""
        return self._runner("submit", msgspec.json.encode(submission).decode())

    def read_submitted(self, answer: Completed) -> str | None:
        """Return the number that the runner printed."""
        if answer.exit_code < 0:
            return None  # It was killed, perhaps after it had started the job.
        text = accepted(answer).stdout.strip()
        return text if text.isdigit() else None

    def queue(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask for jobs, running or ended."""
        return (Query(self._runner("show", *numbers), tuple(numbers), _read),)

    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask the same question: the answer also has what a job used."""
        return self.queue(numbers)

    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask for all jobs."""
        return (Query(self._runner("show", "all"), (), _read),)

    def cancel(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the command that ends jobs."""
        return (self._runner("cancel", *jobs),)

    def log_path(self, submission: Submission, job: Job) -> Path:
        """Fill in the pattern, which has Slurm's symbols."""
        return log_path(submission, job)

    def _runner(self, *words: str) -> tuple[str, ...]:
        path = ":".join(str(Path(entry).absolute()) for entry in sys.path if entry)
        return (sys.executable, "-I", "-c", _START, path, str(self._home / "local"), *words)


def log_path(submission: Submission, job: Job) -> Path:
    """Return the file to which a local job writes its output."""
    pattern = submission.log or ("local-%A_%a.out" if job.task else "local-%j.out")
    return Path(submission.directory, fill_pattern(pattern, submission, job))


def _read(answer: Completed) -> tuple[Job, ...]:
    try:
        return msgspec.json.decode(accepted(answer).stdout, type=tuple[Job, ...])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
