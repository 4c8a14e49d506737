"""Build the commands of Slurm 20.11 to 26, and read their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from teho.model.accounted import AccountedJob
from teho.model.job import Job, Submission
from teho.patterns import lazy_pattern
from teho.schedulers.backend import Backend, History, Query, Selection, UseNow
from teho.schedulers.command import Completed, accepted
from teho.schedulers.slurm import text as slurm_text
from teho.schedulers.slurm.accounting import history_of_job, history_since
from teho.schedulers.slurm.quoting import slurm_name
from teho.schedulers.slurm.scheduler import SlurmScheduler
from teho.schedulers.slurm.use_now import use_now
from teho.schedulers.slurm.values import fill_pattern

__all__ = ["Slurm"]

_WOULD_START = lazy_pattern(r"Job \d+ to start at (\S+)", re.ASCII)
# The last line that sbatch(1) prints if a submission failed.
_FAILED = lazy_pattern(r"Batch job submission failed: (.*)")
# Reasons that the controller gives (ESLURM_… of slurm_errno.c, 20.11 to 26.05). After any other
# reason, such as "Unspecified error" or a connection error, there may be a job.
_REFUSED = lazy_pattern(
    r"Invalid (?:account|array|burst|cluster|container|extra|feature|generic|GRES|group id|job "
    r"array|license|mcs_label|node|or unknown assoc|partition|preferred|qos|QOS|time|Trackable"
    r"|user id|wckey|--|configuration for external)"
    r"|Requested (?:account|GRES|node|operation|partition|reservation|time|topology)"
    r"|Required (?:node|partition|ports)|Requires more ports|Access/permission denied"
    r"|Access denied to requested|Burst Buffer (?:permission|request|resource)"
    r"|Cannot request more threads|Circular job dep|CPU count spec|Duplicate (?:generic|job id)"
    r"|Environment is missing|Immediate execution impossible|Insufficient GRES"
    r"|Job (?:--batch option|can ?not (?:start|be submitted)|dependency problem|script not spec"
    r"|size spec|violates accounting/QOS)|Licenses currently|MaxJobCount limit|Memory required by"
    r"|More processors requested|Multiple (?:KNL|partition job)|No (?:eligible|partition spec"
    r"|suitable topology)|Node count spec|Only batch jobs|Partition in DOWN|Pathname of a file"
    r"|Preemption is required|RestrictedCoresPerGPU|System submissions disabled"
    r"|Task (?:count|distribution) spec|Time limit specification required|User's group not"
    r"|X11 forwarding not"
)
# Errors of sbatch about its options, its script or its configuration. It then ends with exit
# code 1 or 255 (-1) and has not contacted the controller.
_NEVER_SENT = lazy_pattern(
    r"^sbatch: (?:(?:unrecognized|invalid) option|option '.*' (?:requires|doesn't|is ambiguous)"
    r"|error: (?:Invalid |Unable to open file |Batch script |This does not look like a batch"
    r"|The Slurm controller does not allow scripts|Bad rlimit|Maximum node count|--|Script arg)"
    r"|fatal: (?:--|.*: line \d|Script |Cannot stat |Invalid |Could not establish a config"
    r"|Unable to process config))",
    re.MULTILINE,
)
_NAMES_ACCOUNT = lazy_pattern(rb"^#SBATCH\b.*\s(?:-A|--accou)", re.MULTILINE)
_ACCOUNTING_TIMEOUT_S = 10.0
# A controller forgets a job MinJobAge (300 s) after its end. Then only the accounting has it.
_NOT_THERE = "Invalid job id specified"


class Slurm(Backend):
    """Build Slurm's command lines and read its answers."""

    name = "slurm"
    title = "Slurm"
    # `123`, `123;cluster` or `Submitted batch job 123`.
    submitted = lazy_pattern(
        r"(?:Submitted batch job )?(\d+)(;[\w.-]+)?(?: on cluster \S+)?", re.ASCII
    )

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the `sbatch` command. Its options override those in the script."""
        return (
            "sbatch",
            "--parsable",
            f"--comment={submission.mark}",
            f"--chdir={submission.directory}",
            *_output_in(submission),
            submission.script,
        )

    def wanted_variables(self, script: Path, account: str = "") -> tuple[str, ...]:
        """Return the account variable if neither the plan nor the script names an account."""
        try:
            named = account or _NAMES_ACCOUNT.search(script.read_bytes())
        except OSError:
            return ()  # sbatch will report it
        return () if named else (SlurmScheduler.account_variable,)

    def job_name(self, submission: Submission) -> str:
        """Return the name. Without one, sbatch takes the script's file name."""
        return slurm_name(submission.name) or Path(submission.script).name

    def is_refusal(self, answer: Completed) -> bool:
        """Compare the last reason with those that the controller gives, or that sbatch gives."""
        reasons = _FAILED.findall(answer.stderr)
        if reasons:
            return _REFUSED.match(reasons[-1]) is not None
        return answer.exit_code in {1, 255} and _NEVER_SENT.search(answer.stderr) is not None

    def queue(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask squeue. It also lists ended jobs while the controller remembers them."""
        return tuple(
            _squeue(*cluster, "--states=all", f"--jobs={_bare(jobs)}", numbers=jobs)
            for cluster, jobs in _by_cluster(numbers)
        )

    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask sacct, also for the steps: only they have the memory that was used."""
        return tuple(
            msgspec.structs.replace(
                _sacct(*cluster, "--duplicates", f"--jobs={_bare(jobs)}", numbers=jobs),
                # A person waits for this answer, and the database may be down.
                timeout_s=_ACCOUNTING_TIMEOUT_S,
                again_if_late=False,
            )
            for cluster, jobs in _by_cluster(numbers)
        )

    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask for this user's jobs: first the queue, then the accounting."""
        hours = int(back_s // 3600) + 1
        return (
            _squeue("--me", "--states=all"),
            _sacct("--allocations", f"--starttime=now-{hours}hours"),
        )

    def account_of(self, job_id: str) -> History | None:
        """Ask sacct, which has jobs that wait or run too."""
        return history_of_job(job_id)

    def account_since(self, selection: Selection) -> History:
        """Ask sacct, which has jobs that wait or run too."""
        return history_since(selection)

    def use_now(self, job: AccountedJob) -> UseNow | None:
        """Ask sstat; sacct has the figures of a step only after its end."""
        return use_now(job)

    def cancel(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return a `scancel` for each cluster."""
        return tuple(
            ("scancel", *cluster, *_bare(ids).split(",")) for cluster, ids in _by_cluster(jobs)
        )

    def read_cancelled(self, answer: Completed) -> None:
        """Accept that a job has already ended."""
        errors = [line for line in answer.stderr.splitlines() if "error" in line]
        if errors and all(_NOT_THERE in line or "already completing" in line for line in errors):
            return
        accepted(answer)

    def estimate(self, script: Path) -> tuple[str, ...] | None:
        """Return `sbatch --test-only`, which does not submit the script."""
        return ("sbatch", "--test-only", str(script))

    def read_estimate(self, answer: Completed) -> datetime | None:
        """Read `sbatch: Job 3 to start at 2026-11-20T14:00:00 using …` from standard error."""
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


def _output_in(submission: Submission) -> tuple[str, ...]:
    """Return `--output` if the name of the log's directory has a `%` that Slurm would replace."""
    if "%" not in submission.directory or submission.log.startswith("/"):
        return ()
    name = submission.log or ("slurm-%A_%a.out" if submission.array else "slurm-%j.out")
    return (f"--output={submission.directory.replace('%', '%%')}/{name}",)


def _squeue(*selection: str, numbers: tuple[str, ...] = ()) -> Query:
    argv = ("squeue", *selection, "--noheader", f"--format={slurm_text.QUEUE_FORMAT}")
    return _query(argv, numbers, slurm_text.read_queue)


def _sacct(*selection: str, numbers: tuple[str, ...] = ()) -> Query:
    argv = ("sacct", *selection, *slurm_text.ACCOUNTING_OPTIONS)
    return _query(argv, numbers, slurm_text.read_accounting)


def _query(
    argv: tuple[str, ...], numbers: tuple[str, ...], read: Callable[[str], tuple[Job, ...]]
) -> Query:
    return Query(argv, numbers, lambda answer: read(_present(answer)), slurm_text.ENVIRONMENT)


def _present(answer: Completed) -> str:
    """Return the answer. squeue fails if it no longer knows the only job that was asked for."""
    if answer.exit_code != 0 and _NOT_THERE in answer.stderr:
        return answer.stdout
    return accepted(answer).stdout


def _bare(numbers: Sequence[str]) -> str:
    return ",".join(number.partition(";")[0] for number in numbers)


def _by_cluster(numbers: Sequence[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the jobs of each cluster, with the option for the cluster if sbatch named one.

    Two clusters may use the same job number, so each cluster is asked separately.
    """
    clusters: dict[str, list[str]] = {}
    for number in numbers:
        clusters.setdefault(number.partition(";")[2], []).append(number)
    for cluster, jobs in clusters.items():
        yield (f"--clusters={cluster}",) if cluster else (), tuple(jobs)
