"""Build the commands of Grid Engine 8.1 and its relatives, and read their answers."""

from __future__ import annotations

import getpass
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from teho.errors import RefusedError
from teho.model.accounted import AccountedJob
from teho.model.job import Job, Submission
from teho.patterns import lazy_pattern
from teho.schedulers.backend import Backend, History, Query, Selection, UseNow
from teho.schedulers.command import Completed, accepted, message_of
from teho.schedulers.grid_engine import text as texts
from teho.schedulers.grid_engine.accounting import NOT_THERE, history_of_job, history_since
from teho.schedulers.grid_engine.quoting import grid_engine_name
from teho.schedulers.grid_engine.use_now import use_now

__all__ = ["GridEngine"]

# Messages of qsub if it, or qmaster, certainly did not take the job (msg_qmaster.h,
# msg_common.h). The messages of a verifier are not known. After a connection error there may be
# a job.
_REFUSED = lazy_pattern(
    r"^(?:Unable to run job: )?(?:error: )?(?:job (?:\d+ was )?rejected|denied: |no suitable queues"
    r"|unknown resource |JSV (?:\".*\" |temporarily )?rejected|verification: no suitable"
    r"|Unable to read script file|qsub: (?:ERROR! |invalid option|Unknown option)|ERROR! )",
    re.MULTILINE | re.IGNORECASE,
)
_BEFORE_REASON = lazy_pattern(r"^(?:Unable to run job: )?(?:Job \d+ )?")
_NO_REASON = lazy_pattern(r"hard queue list|^verification:|^Exiting")
# This may come between warnings.
_TAKEN = "has been submitted"
# A local time is ambiguous for one hour when the clocks are set back.
_CLOCK_CHANGE = timedelta(hours=1)


class GridEngine(Backend):
    """Build Grid Engine's command lines and read its answers.

    Args:
        user: owner of the jobs; None: the user of this process.
    """

    name = "grid_engine"
    title = "Grid Engine"
    # `5`, `123.1-10:1` or `Your job 5 ("x") has been submitted`.
    submitted = lazy_pattern(
        r"(?:(\d+)(?:\.\d+-\d+:\d+)?"
        r'|Your job(?:-array)? (\d+)(?:\.\S+)? \(".*"\) has been submitted)',
        re.ASCII,
    )
    after_refusal = "change the request; `qsub -w v` prints details, `teho plan` shows what fits"

    def __init__(self, user: str | None = None) -> None:
        self._user = user or getpass.getuser()

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Return the `qsub` command. Its options override those in the script."""
        return (
            *("qsub", "-terse", "-ac", submission.mark),
            *("-wd", submission.directory, submission.script),
        )

    def job_name(self, submission: Submission) -> str:
        """Return the name that the script gives the job."""
        return grid_engine_name(submission.name or "job")

    def is_refusal(self, answer: Completed) -> bool:
        """Search for a message of qsub or qmaster, unless another one says that the job exists."""
        if _TAKEN in answer.stdout + answer.stderr:
            return False
        return _REFUSED.search(answer.stderr) is not None

    def queue(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask qstat for all jobs of the user: for a single job it does not report a state."""
        argv = ("qstat", "-xml", "-r", "-u", self._user)
        return (Query(argv, tuple(numbers), lambda one: texts.read_queue(accepted(one).stdout)),)

    def accounting(self, numbers: Sequence[str]) -> tuple[Query, ...]:
        """Ask qacct, once for each job. It has a job some seconds after its end."""
        return tuple(Query(("qacct", "-j", number), (number,), _accounted) for number in numbers)

    def recent(self, back_s: float) -> tuple[Query, ...]:
        """Ask qstat for the contexts of all jobs, then qacct, which does not have contexts."""
        since = datetime.now(timezone.utc) - timedelta(seconds=back_s) - _CLOCK_CHANGE
        begin = f"{since.astimezone():%Y%m%d%H%M}"
        return (
            Query(("qstat", "-j", "*"), (), lambda answer: texts.read_contexts(_present(answer))),
            Query(("qacct", "-o", self._user, "-b", begin, "-j", "*"), (), _accounted),
        )

    def account_of(self, job_id: str) -> History | None:
        """Ask qacct, which has a job some seconds after its end."""
        return history_of_job(job_id, self._user)

    def use_now(self, job: AccountedJob) -> UseNow | None:
        """Ask qstat, which has the CPU time of a running job."""
        return use_now(job)

    def account_since(self, selection: Selection) -> History:
        """Ask qacct, which has only jobs that have ended."""
        return history_since(selection)

    def cancel(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the `qdel` command."""
        return (("qdel", *jobs),)

    def read_cancelled(self, answer: Completed) -> None:
        """Accept that a job has already ended."""
        _present(answer)

    def estimate(self, script: Path) -> tuple[str, ...]:
        """Return `qsub -w v`, which checks if an empty cluster could run it. It does not submit."""
        return ("qsub", "-w", "v", str(script))

    def read_estimate(self, answer: Completed) -> datetime | None:
        """Return None: Grid Engine does not report when a job would start.

        Raises:
            RefusedError: no queue could run it.
        """
        if self.refuses(answer):
            raise RefusedError(f"qsub says: {_reasons(message_of(answer))}")
        return None

    def log_path(self, submission: Submission, job: Job) -> Path:
        """Fill in the pattern (qsub(1), -o). Default: `NAME.oNUMBER` or `NAME.oNUMBER.TASK`."""
        name = job.name or self.job_name(submission)
        default = f"{name}.o{job.number}" + (f".{job.task}" if job.task else "")
        values = {
            "JOB_ID": job.number,
            "JOB_NAME": name,
            "TASK_ID": job.task or "undefined",
            "USER": self._user,
            "HOSTNAME": job.node_list,
            "HOME": str(Path.home()),
        }
        path = str(Path(submission.directory, submission.log))
        filled = Path(
            re.sub(rf"\$({'|'.join(values)})\b", lambda match: values[match.group(1)], path)
        )
        return filled / default if not submission.log or filled.is_dir() else filled


def _accounted(answer: Completed) -> tuple[Job, ...]:
    return texts.read_accounting(_present(answer))


def _reasons(text: str) -> str:
    """Return why no queue could run a job, without the reasons of queues outside its request."""
    lines = (_BEFORE_REASON.sub("", line) for line in text.splitlines())
    own = [line for line in lines if line and not _NO_REASON.search(line)]
    return "; ".join(own) or "no suitable queue"


def _present(answer: Completed) -> str:
    """Return the answer; empty: Grid Engine does not know the job."""
    text = answer.stderr + answer.stdout
    if answer.exit_code != 0 and any(words in text for words in NOT_THERE):
        return ""
    return accepted(answer).stdout
