"""What Teho asks of a scheduler, whichever it is: argv to run, and how to read the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from teho.model.job import Job, Submission
from teho.schedulers.command import Completed

__all__ = ["Backend", "Query"]


class Query(msgspec.Struct, frozen=True):
    """A question that may be repeated."""

    argv: tuple[str, ...]
    numbers: tuple[str, ...]
    """The jobs that it is about, as they were asked for; none: whatever there is."""
    read: Callable[[Completed], tuple[Job, ...]]
    """Raises RefusedError where the scheduler says no, ValueError where the answer makes no
    sense."""
    environment: Mapping[str, str] = {}
    """Variables that the command needs."""
    timeout_s: float = 60.0
    """For each attempt."""
    again_if_late: bool = True
    """Whether it is asked again if it did not end in time."""
    otherwise: Query | None = None
    """The same question in a form that is dearer, for an answer that made no sense."""


class Backend(Protocol):
    """One kind of scheduler. Nothing here runs a command."""

    name: str
    """The folder's, such as `slurm`, as in the catalogue."""

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the command that submits, once and for all."""

    def wanted_variables(self, script: Path, account: str = "") -> tuple[str, ...]:
        """Return those of the user's variables that may add to a script; others change it.

        Args:
            script: what is submitted.
            account: whom it is charged to by the plan; empty: the plan names none.
        """

    def job_name(self, submission: Submission) -> str:
        """Return the name under which the scheduler lists the job."""

    def read_submitted(self, answer: Completed) -> str | None:
        """Return the job's number; None: the answer names none.

        Raises:
            RefusedError: it is certain, from its words, that the scheduler did not take the job.
        """

    def queue(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask for jobs that wait, run, or ended just now; a job that is not there is left out."""

    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask for what jobs used, each run of one that ran again; none of one not there (yet)."""

    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask for this user's jobs of the last `back_s` seconds, everywhere they can be."""

    def cancel(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the commands that cancel jobs, or tasks of arrays, by their ids."""

    def read_cancelled(self, answer: Completed) -> None:
        """Return where the jobs are cancelled or had ended.

        Raises:
            RefusedError: the scheduler says no.
        """

    def estimate(self, script: Path) -> tuple[str, ...] | None:
        """Return the command that asks when a script would start; None: cannot be asked."""

    def read_estimate(self, answer: Completed) -> datetime | None:
        """Return the time, UTC; None: the scheduler cannot report.

        Raises:
            RefusedError: the scheduler would refuse the script.
        """

    def log_path(self, submission: Submission, job: Job) -> Path:
        """Return where the job, or this task of it, writes its output."""
