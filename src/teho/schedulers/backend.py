"""The interface to a scheduler's commands: argv to run, and functions that read the answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from teho.errors import RefusedError
from teho.model.accounted import AccountedJob
from teho.model.job import Job, Submission
from teho.schedulers.command import Completed, accepted, message_of, unreachable

__all__ = ["Backend", "History", "Query", "Selection", "UseNow"]


class Query(msgspec.Struct, frozen=True):
    """A command that only asks, so it may be repeated."""

    argv: tuple[str, ...]
    numbers: tuple[str, ...]
    """The jobs that it asks about, as the caller named them; empty: all jobs."""
    read: Callable[[Completed], tuple[Job, ...]]
    """Raises RefusedError if the scheduler refuses, ValueError if the answer cannot be read."""
    environment: Mapping[str, str] = {}
    """Variables that the command needs."""
    timeout_s: float = 60.0
    """For each attempt."""
    again_if_late: bool = True
    """Whether the command is repeated if it did not end in time."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list from the accounting."""

    since: datetime
    """Jobs that were waiting or running at this time, or began later."""
    user: str = ""
    """Only jobs of this user; empty: of every user, if the site shows them."""
    account: str = ""
    """Only jobs of this account; empty: of every account."""
    every_run: bool = False
    """Whether a job that was queued again is listed once for each run; if not, only its last run is
    listed."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A command that lists jobs of the accounting. Its lines are read while it prints them."""

    argv: tuple[str, ...]
    read: Callable[[Iterable[str]], Iterator[AccountedJob]]
    """Raises ValueError if the lines cannot be read."""
    environment: Mapping[str, str] = {}
    not_there: tuple[str, ...] = ()
    """Parts of messages with which the command fails if it has no such job."""
    queue: Query | None = None
    """Question for the jobs that wait or run, if the accounting does not have them; it reads
    `AccountedJob`s."""
    private_command: tuple[str, ...] = ()
    """Command that shows whether the site hides the jobs of other users; empty: not known."""
    is_private: Callable[[str], bool] = lambda _: False
    """Returns from the output of this command whether it does."""


class UseNow(msgspec.Struct, frozen=True, kw_only=True):
    """A command that asks what a running job has used until now."""

    argv: tuple[str, ...]
    read: Callable[[str, AccountedJob], AccountedJob | None]
    """Returns from the output of the command the job with these figures; None: it has none."""
    timeout_s: float


class Backend(ABC):
    """The commands of one scheduler. A backend does not run them."""

    name: str
    """Name of the scheduler's folder, such as `slurm`, as in the catalogue."""
    title: str
    """Name of the scheduler in sentences, such as `Slurm`."""
    submitted: re.Pattern[str]
    """The line that reports a submitted job. Its groups are the job's number."""
    after_refusal: str = "change the request; `teho plan` shows what fits"
    """Next step after a refused submission."""

    @abstractmethod
    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the command that submits. It must run only once."""

    def wanted_variables(self, script: Path, account: str = "") -> tuple[str, ...]:
        """Return the user's variables that the command may see although they add options.

        Args:
            script: the script that is submitted.
            account: the account in the plan; empty: the plan names none.
        """
        return ()

    def job_name(self, submission: Submission) -> str:
        """Return the name under which the scheduler lists the job."""
        return submission.name

    def read_submitted(self, answer: Completed) -> str | None:
        """Return the job's number; None: the answer has no number.

        Raises:
            RefusedError: the answer shows that the scheduler certainly did not take the job.
        """
        if answer.exit_code == 0:
            # Warnings may come before it.
            for line in answer.stdout.splitlines():
                if match := self.submitted.fullmatch(line.strip()):
                    return "".join(filter(None, match.groups()))
        elif self.refuses(answer):
            raise RefusedError(
                f"{self.title} did not accept the job; {answer.argv[0]} says: {message_of(answer)}",
                "",
                self.after_refusal,
            )
        return None

    def refuses(self, answer: Completed) -> bool:
        """Return whether the scheduler certainly did not take the job."""
        return answer.exit_code > 0 and not unreachable(answer) and self.is_refusal(answer)

    def is_refusal(self, answer: Completed) -> bool:
        """Return whether a submission that failed has a message that means: there is no job."""
        return False

    @abstractmethod
    def queue(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask for jobs that wait, run, or have just ended. Unknown jobs are left out."""

    @abstractmethod
    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask what jobs used, for each run of a job. Jobs without a record are left out."""

    @abstractmethod
    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask queue and accounting for this user's jobs of the last `back_s` seconds."""

    def account_of(self, job_id: str) -> History | None:
        """Ask the accounting for all runs, tasks and components of one job; None: not possible.

        Args:
            job_id: such as `123`, `123_4`, `123+0` or `123;puhti`.
        """
        return None

    def account_since(self, selection: Selection) -> History | None:
        """Ask the accounting for many jobs; None: not possible."""
        return None

    def use_now(self, job: AccountedJob) -> UseNow | None:
        """Ask what a job of the accounting has used until now; None: it does not run.

        None also if the accounting itself has these figures, or if no command has them.
        """
        return None

    @abstractmethod
    def cancel(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the commands that cancel jobs, or tasks of arrays, by their ids."""

    def read_cancelled(self, answer: Completed) -> None:
        """Return if the jobs are cancelled or had already ended.

        Raises:
            RefusedError: the scheduler refuses.
        """
        accepted(answer)

    def estimate(self, script: Path) -> tuple[str, ...] | None:
        """Return the command that asks when a script would start; None: there is none."""
        return None

    def read_estimate(self, answer: Completed) -> datetime | None:
        """Return the time, UTC; None: the scheduler cannot report.

        Raises:
            RefusedError: the scheduler would refuse the script.
        """
        return None

    @abstractmethod
    def log_path(self, submission: Submission, job: Job) -> Path:
        """Return the file to which the job, or this task of an array, writes its output."""
