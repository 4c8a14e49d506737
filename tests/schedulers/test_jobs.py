"""Submitting, and finding out what became of a submission whose answer was lost.

The scheduler is a directory: stubs of sbatch, squeue and sacct keep their jobs in it as
the rows that squeue would print.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from teho.errors import (
    LostSubmissionError,
    MissingCommandError,
    NoAnswerError,
    NotSubmittedError,
    RefusedError,
)
from teho.model.job import JobState, Submission
from teho.schedulers import command, jobs
from teho.schedulers.slurm import Slurm

SLURM = Slurm()
COLUMN = r"\037\036"
TAKES = r"""
echo x >> "$site/asked"
number=$(wc -l < "$site/asked")
comment=; script=
for word; do
  case $word in --comment=*) comment=${word#--comment=};; --*) ;; *) script=$word;; esac
done
[ -e "$site/comments-are-lost" ] && comment='(null)'
c='@COLUMN@'
printf "\035$number$c%s${c}None${c}gpu${c}p${c}1${c}1${c}N/A${c}n1${c}@NOW@${c}@NOW@${c}N/A" \
  PENDING >> "$site/queue"
printf "${c}0:00${c}1:00${c}train${c}%s${c}%s\n" "$comment" "$script" >> "$site/queue"
"""


class Site:
    """A directory with the commands of a scheduler, and their jobs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stub("squeue", 'cat "$site/queue" 2>/dev/null; true')
        self.stub("sacct", 'cat "$site/accounting" 2>/dev/null; true')
        self.takes_and("echo $number")

    def stub(self, name: str, body: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/bash\nsite='{self.directory}'\n{body}\n")
        path.chmod(0o755)

    def takes_and(self, then: str) -> None:
        """Let sbatch take the job, and then do this."""
        now = str(int(datetime.now(timezone.utc).timestamp()))
        self.stub("sbatch", TAKES.replace("@COLUMN@", COLUMN).replace("@NOW@", now) + then)

    @property
    def asked(self) -> int:
        """How often a job was really submitted."""
        path = self.directory / "asked"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    directory = tmp_path / "a site"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    monkeypatch.setattr(command, "_PAUSES_S", (0.01,))
    monkeypatch.setattr(jobs, "_LOOKS_S", (0.0, 0.02, 0.05))
    return Site(directory)


def submission(**changes: object) -> Submission:
    facts: dict[str, object] = {
        "mark": jobs.new_mark(),
        "scheduler": "slurm",
        "cluster": "puhti",
        "name": "train",
        "submitted_at": datetime.now(timezone.utc),
        "directory": "/scratch",
        "script": "/home/x/job.sh",
    }
    return Submission(**{**facts, **changes})


def submit(of: Submission, kept: list[Submission] | None = None) -> Submission:
    return jobs.submit(
        SLURM, of, (kept if kept is not None else []).append, looks_s=(0.0, 0.02, 0.05)
    )


def test_a_submission_is_kept_before_the_scheduler_is_asked(site: Site):
    kept: list[tuple[str | None, int]] = []
    found = jobs.submit(SLURM, submission(), lambda it: kept.append((it.job, site.asked)))
    assert kept == [(None, 0), ("1", 1)]
    assert found.job == "1"


def test_a_submission_that_cannot_be_kept_is_not_made(site: Site):
    def refuse(_: Submission) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        jobs.submit(SLURM, submission(), refuse)
    assert site.asked == 0


@pytest.mark.parametrize(
    "then",
    [
        "echo 'Ignoring garbage \x01\x02 12x'",
        "",
        "kill -9 $$",
        "echo 'sbatch: error: Batch job submission failed: Socket timed out' >&2; exit 1",
        "echo $number; exit 1",
    ],
    ids=["garbage", "nothing", "killed", "transient", "number-but-failed"],
)
def test_a_lost_answer_is_found_again_and_nothing_is_submitted_twice(site: Site, then: str):
    site.takes_and("echo 7777")
    submit(submission())  # another one, by the same user and of the same name
    site.takes_and(then)
    assert submit(submission()).job == "2"
    assert site.asked == 2


def test_a_command_that_hangs_after_submitting_is_found_again(site: Site, monkeypatch):
    monkeypatch.setattr(jobs, "_SUBMIT_TIMEOUT_S", 3.0)
    site.takes_and("sleep 60")
    assert submit(submission()).job == "1"
    assert site.asked == 1


def test_a_job_that_appears_late_is_waited_for(site: Site):
    site.takes_and("kill -9 $$")
    site.stub(
        "squeue",
        'echo x >> "$site/looks"; [ $(wc -l < "$site/looks") -lt 3 ] || cat "$site/queue"',
    )
    assert submit(submission()).job == "1"


def test_one_that_failed_before_submitting_may_be_repeated(site: Site):
    site.stub("sbatch", "kill -9 $$")
    with pytest.raises(NotSubmittedError, match=r"killed by signal 9.*submit again"):
        submit(submission())


def test_a_refusal_is_not_looked_up(site: Site):
    site.stub("squeue", 'touch "$site/looked"')
    site.stub("sbatch", "echo 'sbatch: error: Invalid account' >&2; exit 1")
    kept: list[Submission] = []
    with pytest.raises(RefusedError, match="sbatch: error: Invalid account"):
        submit(submission(), kept)
    assert not (site.directory / "looked").exists()
    assert [it.job for it in kept] == [None]


def test_no_command_is_no_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCommandError, match="sbatch"):
        submit(submission())


@pytest.mark.parametrize("silent", ["squeue", "sacct"])
def test_while_the_scheduler_is_away_nobody_can_tell(site: Site, silent: str):
    site.stub("sbatch", "exit 1")
    site.stub(silent, "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(LostSubmissionError, match=r"not known.*Unable to contact.*do not submit"):
        submit(submission())


def test_the_script_s_path_finds_a_job_whose_comment_the_site_changed(site: Site):
    (site.directory / "comments-are-lost").touch()
    site.takes_and("kill -9 $$")
    mark = jobs.new_mark()
    unique = mark.removeprefix("teho=")
    assert submit(submission(mark=mark, script=f"/h/{unique}/job.sh")).job == "1"


def test_a_job_that_may_be_the_one_is_a_doubt(site: Site):
    (site.directory / "comments-are-lost").touch()
    site.takes_and("kill -9 $$")
    with pytest.raises(LostSubmissionError, match="job 1 has its name"):
        submit(submission())


def test_others_jobs_are_no_doubt(site: Site):
    (site.directory / "comments-are-lost").touch()
    submit(submission(script="/home/x/other.sh"))
    site.stub("sbatch", "exit 1")
    with pytest.raises(NotSubmittedError):
        submit(submission())
    # Nor one of the same script and name, long ago.
    submitted_at = datetime.now(timezone.utc) + timedelta(hours=1)
    with pytest.raises(NotSubmittedError):
        submit(submission(script="/home/x/other.sh", submitted_at=submitted_at))


def test_a_later_look_finds_it(site: Site):
    site.takes_and("kill -9 $$")
    of = submission()
    submit(of)
    assert jobs.find(SLURM, of).job == "1"


def test_a_later_look_that_is_too_early_promises_nothing(site: Site):
    with pytest.raises(LostSubmissionError, match=r"only \d+ s ago"):
        jobs.find(SLURM, submission())
    old = datetime.now(timezone.utc) - timedelta(hours=1)
    with pytest.raises(NotSubmittedError):
        jobs.find(SLURM, submission(submitted_at=old))


def row(job: str, state: str) -> str:
    fixed = [job, state, "None", "gpu", "p", "1", "1", "N/A", "n1", "1", "1", "1", "0:00", "1:00"]
    return "\x1d" + "\x1f\x1e".join([*fixed, "train", "", ""]) + "\n"


def account(job: str, state: str) -> str:
    fixed = [job, state, "0:0", "gpu", "p", "n1", "", "", "1", "1", "1", "5", "1", "", "", "", ""]
    return "".join(part + "\x1f\x1e" for part in (*fixed, "train", "")) + "\n"


def test_what_the_queue_knows_of_a_job_settles_a_doubt_of_the_accounting(site: Site):
    submit(submission())
    site.stub("sbatch", "exit 1")
    # The accounting of this site keeps no comments.
    now = str(int(datetime.now(timezone.utc).timestamp()))
    accounted = account("1", "COMPLETED").split("\x1f\x1e")
    accounted[8] = now
    (site.directory / "accounting").write_text("\x1f\x1e".join(accounted))
    with pytest.raises(NotSubmittedError):
        submit(submission())
    (site.directory / "queue").unlink()
    with pytest.raises(LostSubmissionError, match="job 1 has its name"):
        submit(submission())


def test_states_come_from_the_queue_and_then_from_the_accounting(site: Site):
    (site.directory / "queue").write_text(
        row("1", "RUNNING") + row("3_2", "RUNNING") + row("3_[4-9]", "PENDING")
    )
    (site.directory / "accounting").write_text(
        account("2", "FAILED")
        + account("3_1", "COMPLETED")
        + account("3_2", "COMPLETED")
        + account("3_[2-9]", "PENDING")
    )
    found = jobs.states(SLURM, ["1", "2;puhti", "3", "9"])
    assert {name: [(job.id, job.state) for job in of] for name, of in found.items()} == {
        "1": [("1", JobState.RUNNING)],
        "2;puhti": [("2", JobState.FAILED)],
        "3": [
            ("3_1", JobState.COMPLETED),
            ("3_2", JobState.RUNNING),
            ("3_[4-9]", JobState.PENDING),
        ],
        "9": [("9", JobState.UNKNOWN)],
    }
    assert "neither in the queue" in found["9"][0].reason
    assert jobs.states(SLURM, []) == {}
    assert [job.id for job in jobs.accounting(SLURM, "2;puhti")] == ["2"]


def test_a_site_without_accounting_still_has_states(site: Site):
    (site.directory / "queue").write_text(row("1", "RUNNING"))
    site.stub("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    found = jobs.states(SLURM, ["1", "2"])
    assert found["1"][0].state is JobState.RUNNING
    assert found["2"][0].state is JobState.UNKNOWN
    assert "Slurm accounting storage is disabled" in found["2"][0].reason
    with pytest.raises(RefusedError, match="disabled"):
        jobs.accounting(SLURM, "2")


def test_columns_that_make_no_sense_are_asked_for_as_json(site: Site):
    answer = msgspec.json.encode({"jobs": [{"job_id": 1, "job_state": "RUNNING"}]}).decode()
    site.stub(
        "squeue",
        f"""case "$*" in *--json*) echo '{answer}';; *) printf '\\0351\\037\\036x\\n';; esac""",
    )
    assert jobs.states(SLURM, ["1"])["1"][0].state is JobState.RUNNING
    site.stub("squeue", r"printf '\0351\037\036x\n'")
    with pytest.raises(NoAnswerError, match="makes no sense"):
        jobs.states(SLURM, ["1"])


def test_cancel_and_estimate(site: Site):
    site.stub("scancel", 'echo "$@" > "$site/cancelled"')
    jobs.cancel(SLURM, ["1", "2_3"])
    assert (site.directory / "cancelled").read_text() == "1 2_3\n"
    site.stub("scancel", "echo 'scancel: error: Access/permission denied' >&2; exit 1")
    jobs.cancel(SLURM, [])
    with pytest.raises(RefusedError, match="denied"):
        jobs.cancel(SLURM, ["1"])
    site.stub("sbatch", "echo 'sbatch: Job 3 to start at 1795182926 using 1' >&2")
    expected = datetime.fromtimestamp(1795182926, timezone.utc)
    assert jobs.estimate(SLURM, Path("/job.sh"), timeout_s=10) == expected


def test_marks_do_not_repeat():
    assert len({jobs.new_mark() for _ in range(100)}) == 100
    assert jobs.new_mark().startswith("teho=")
