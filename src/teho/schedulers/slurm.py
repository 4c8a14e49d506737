"""Slurm: 20.11 to 26.

Questions are asked as text, whose columns have not changed since 20.11. JSON costs
several times as much, is missing from many installations, and tells nothing that the
columns do not; it is asked for where the columns make no sense, such as after a control
character in a job's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from teho.errors import RefusedError
from teho.model.job import Job, Submission
from teho.schedulers import slurm_json, slurm_text
from teho.schedulers.backend import Query
from teho.schedulers.command import Completed, accepted, said, unreachable
from teho.schedulers.slurm_values import fill_pattern

__all__ = ["Slurm"]

_SUBMITTED = re.compile(
    r"^(?:Submitted batch job )?(\d+)(;[\w.-]+)?(?: on cluster \S+)?$", re.ASCII
)
_WOULD_START = re.compile(r"Job \d+ to start at (\S+)", re.ASCII)
# sbatch(1) ends with 1 and one of these where the controller has answered no.
_REFUSED = ("Batch job submission failed", "error: ", "fatal: ")
# Controllers forget a job MinJobAge (300 s) after its end; then only the accounting has it.
_NOT_THERE = "Invalid job id specified"


class Slurm:
    """Build Slurm's command lines and read its answers."""

    name = "slurm"

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the `sbatch` command; its options win over those in the script."""
        return (
            "sbatch",
            "--parsable",
            f"--comment={submission.mark}",
            f"--chdir={submission.directory}",
            submission.script,
        )

    def read_submitted(self, answer: Completed) -> str | None:
        """Return the number of `123`, `123;cluster` or `Submitted batch job 123`."""
        if answer.exit_code == 0:
            for line in answer.stdout.splitlines():
                if match := _SUBMITTED.fullmatch(line.strip()):
                    return match.group(1) + (match.group(2) or "")
            return None
        refused = any(words in answer.stderr for words in _REFUSED)
        if 0 < answer.exit_code < 128 and refused and not unreachable(answer):
            raise RefusedError(
                f"Slurm did not take the job; sbatch says: {said(answer)}",
                "",
                "change the request; `teho plan` shows what fits",
            )
        return None

    def queue(self, numbers: Sequence[str]) -> Query:
        """Ask squeue, for ended jobs too as long as the controller remembers them."""
        selection = (*_where(numbers), "--states=all", f"--jobs={_numbers(numbers)}")
        return _either(
            ("squeue", *selection),
            ("--noheader", f"--format={slurm_text.QUEUE_FORMAT}"),
            slurm_text.read_queue,
            slurm_json.read_queue,
        )

    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask sacct, with the steps, which alone know the memory."""
        return (
            _either(
                ("sacct", *_where(numbers), f"--jobs={_numbers(numbers)}"),
                slurm_text.ACCOUNTING_OPTIONS,
                slurm_text.read_accounting,
                slurm_json.read_accounting,
            ),
        )

    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask for this user's jobs: in the queue, then in the accounting."""
        hours = int(back_s // 3600) + 1
        return (
            _either(
                ("squeue", "--me", "--states=all"),
                ("--noheader", f"--format={slurm_text.QUEUE_FORMAT}"),
                slurm_text.read_queue,
                slurm_json.read_queue,
            ),
            _either(
                ("sacct", "--allocations", f"--starttime=now-{hours}hours"),
                slurm_text.ACCOUNTING_OPTIONS,
                slurm_text.read_accounting,
                slurm_json.read_accounting,
            ),
        )

    def cancel(self, jobs: Sequence[str]) -> tuple[str, ...]:
        """Return the `scancel` command."""
        return ("scancel", *_where(jobs), *(job.partition(";")[0] for job in jobs))

    def read_cancelled(self, answer: Completed) -> None:
        """Accept that a job has ended before."""
        errors = [line for line in answer.stderr.splitlines() if "error" in line]
        if errors and all(_NOT_THERE in line or "already completing" in line for line in errors):
            return
        accepted(answer)

    def estimate(self, script: Path) -> tuple[str, ...] | None:
        """Return `sbatch --test-only`, which submits nothing."""
        return ("sbatch", "--test-only", str(script))

    def read_estimate(self, answer: Completed) -> datetime | None:
        """Read `sbatch: Job 3 to start at 2026-11-20T14:00:00 using …` (on standard error)."""
        match = _WOULD_START.search(accepted(answer).stderr)
        if match is None:
            return None
        if match.group(1).isdigit():
            return datetime.fromtimestamp(int(match.group(1)), timezone.utc)
        try:
            return datetime.fromisoformat(match.group(1)).astimezone(timezone.utc)
        except ValueError:
            return None

    def log_path(self, submission: Submission, job: Job) -> Path:
        """Fill in the pattern (sbatch(1), FILENAME PATTERN)."""
        pattern = submission.log or ("slurm-%A_%a.out" if job.task else "slurm-%j.out")
        return Path(submission.directory, fill_pattern(pattern, submission, job))


def _either(
    selection: tuple[str, ...],
    columns: tuple[str, ...],
    read_text: Callable[[str], tuple[Job, ...]],
    read_json: Callable[[str], tuple[Job, ...]],
) -> Query:
    return Query(
        (*selection, *columns),
        lambda answer: read_text(_present(answer)),
        slurm_text.ENVIRONMENT,
        Query((*selection, "--json"), lambda answer: read_json(_present(answer))),
    )


def _present(answer: Completed) -> str:
    """Return the answer; squeue fails where the only job that it was asked for is gone."""
    if answer.exit_code != 0 and _NOT_THERE in answer.stderr:
        return answer.stdout
    return accepted(answer).stdout


def _numbers(numbers: Sequence[str]) -> str:
    return ",".join(number.partition(";")[0] for number in numbers)


def _where(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the option that names the clusters, where sbatch's answer named one."""
    clusters = sorted({number.partition(";")[2] for number in numbers} - {""})
    return (f"--clusters={','.join(clusters)}",) if clusters else ()
