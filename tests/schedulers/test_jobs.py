"""Submitting, and finding out what became of a submission whose answer was lost.

The scheduler is a directory: stubs of sbatch, squeue and sacct keep their jobs in it as
the rows that squeue would print.
"""

from __future__ import annotations

import os
import shlex
from datetime import datetime, timedelta, timezone
from pathlib import Path

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
from teho.schedulers.grid_engine.backend import GridEngine
from teho.schedulers.slurm.backend import Slurm

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
    monkeypatch.setattr(command, "_PAUSE_S", 0.01)
    monkeypatch.setattr(jobs, "_PAUSES_S", (0.0, 0.02, 0.05))
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
        SLURM, of, (kept if kept is not None else []).append, pauses_s=(0.0, 0.02, 0.05)
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
        "echo 'sbatch: error: Batch job submission failed: Unspecified error' >&2; exit 1",
        "echo $number; exit 1",
    ],
    ids=["garbage", "nothing", "killed", "transient", "damaged", "number-but-failed"],
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
    with pytest.raises(NotSubmittedError, match=r"signal 9 ended it.*submit again"):
        submit(submission())


def test_a_refusal_is_not_searched_for(site: Site):
    site.stub("squeue", 'touch "$site/looked"')
    words = "sbatch: error: Batch job submission failed: Invalid account or account/partition"
    site.stub("sbatch", f"echo '{words}' >&2; exit 1")
    kept: list[Submission] = []
    with pytest.raises(RefusedError, match=words):
        submit(submission(), kept)
    assert not (site.directory / "looked").exists()
    assert [it.job for it in kept] == [None]


def test_no_command_is_no_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCommandError, match="sbatch"):
        submit(submission())


@pytest.mark.parametrize("silent", ["squeue", "sacct"])
def test_while_the_scheduler_is_away_the_state_is_unknown(site: Site, silent: str):
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
    with pytest.raises(LostSubmissionError, match="job 1 has the same name"):
        submit(submission())


def test_a_job_without_a_name_of_its_own_is_a_doubt_too(site: Site):
    (site.directory / "comments-are-lost").touch()
    site.takes_and("kill -9 $$")
    queue = site.directory / "queue"
    site.stub("squeue", f"""[ -e '{queue}' ] && sed "s/train/job.sh/" '{queue}'; true""")
    with pytest.raises(LostSubmissionError, match="job 1 has the same name"):
        submit(submission(name=""))


def test_a_job_of_grid_engine_that_has_ended_is_a_doubt(site: Site):
    """Only qacct has it by then, which keeps no mark; without a name it is called `job`."""
    now = datetime.now().strftime("%a %b %d %H:%M:%S %Y")  # noqa: DTZ005  as qacct writes it
    site.stub("qsub", "echo 'Unable to run job: got NULL gdi response' >&2; exit 1")
    site.stub("qstat", "echo 'Following jobs do not exist: *' >&2; exit 1")
    site.stub("qacct", f"printf '====\\njobnumber 5\\njobname job\\nqsub_time {now}\\n'")
    with pytest.raises(LostSubmissionError, match="job 5 has the same name"):
        jobs.submit(GridEngine("x"), submission(name=""), lambda _: None, pauses_s=(0.0,))


def test_nothing_in_the_environment_changes_what_the_script_says(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SBATCH_TIMELIMIT", "SBATCH_ARRAY_INX", "SBATCH_EXPORT", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "mine")
    site.stub(
        "sbatch", 'env | grep ^SBATCH_ > "$site/seen"; echo "Job 3 to start at 9" >&2; echo 3'
    )
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --account=p\n")
    submit(submission(script=str(script)))
    assert (site.directory / "seen").read_text() == ""
    assert jobs.estimate(SLURM, script, timeout_s=10) is not None
    assert (site.directory / "seen").read_text() == ""
    script.write_text("#!/bin/bash\n")
    submit(submission(script=str(script)))
    assert (site.directory / "seen").read_text() == "SBATCH_ACCOUNT=mine\n"


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


def test_a_later_search_finds_it(site: Site):
    site.takes_and("kill -9 $$")
    of = submission()
    submit(of)
    assert jobs.find(SLURM, of).job == "1"


def test_a_later_search_that_is_too_early_promises_nothing(site: Site):
    with pytest.raises(LostSubmissionError, match=r"only \d+ s ago"):
        jobs.find(SLURM, submission())
    old = datetime.now(timezone.utc) - timedelta(hours=1)
    with pytest.raises(NotSubmittedError):
        jobs.find(SLURM, submission(submitted_at=old))


def row(job: str, state: str) -> str:
    fixed = [job, state, "None", "gpu", "p", "1", "1", "N/A", "n1", "1", "1", "1", "0:00", "1:00"]
    return "\x1d" + "\x1f\x1e".join([*fixed, "train", "", ""]) + "\n"


def account(job: str, state: str, begin: int = 1, end: int = 1, **more: str) -> str:
    times = [str(begin), str(begin), str(end), more.get("elapsed", "5"), "1", more.get("cpu", "")]
    fixed = [job, state, "0:0", "gpu", "p", "n1", "", "", *times, "", more.get("energy", ""), ""]
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
    with pytest.raises(LostSubmissionError, match="job 1 has the same name"):
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


def test_what_a_job_used_before_it_was_queued_again_counts(site: Site):
    (site.directory / "accounting").write_text(
        account("1", "REQUEUED", 100, 122, elapsed="22", cpu="00:20.500", energy="300")
        + account("2_1", "REQUEUED", 100, 110, elapsed="10", cpu="00:09")
        + account("1", "COMPLETED", 150, 190, elapsed="40", cpu="00:39", energy="500")
        + account("2_1", "FAILED", 150, 155, elapsed="5")
        + account("2_2", "COMPLETED", 100, 107, elapsed="7", cpu="00:06")
    )
    (job,) = jobs.accounting(SLURM, "1")
    assert jobs.states(SLURM, ["1"]) == {"1": (job,)}
    assert (job.state, job.elapsed_s, job.cpu_s) == (JobState.COMPLETED, 62.0, 59.5)
    assert job.energy_j == 800.0
    assert [moment.timestamp() for moment in (job.submitted_at, job.started_at, job.ended_at)] == [
        *(100, 100, 190),
    ]
    first, second = jobs.accounting(SLURM, "2")
    # What is not known of one run is not known of all.
    assert (first.state, first.elapsed_s, first.cpu_s) == (JobState.FAILED, 15.0, None)
    assert (second.elapsed_s, second.cpu_s) == (7.0, 6.0)


def test_a_job_that_waits_to_run_again_has_not_ended(site: Site):
    (site.directory / "accounting").write_text(
        account("1", "REQUEUED", 100, 122, elapsed="22")
        + account("1", "PENDING", 122, 0, elapsed="0")
    )
    (job,) = jobs.accounting(SLURM, "1")
    assert (job.state, job.elapsed_s, job.ended_at) == (JobState.PENDING, 22.0, None)


RECORD = "====\njobnumber 5\n" + "".join(
    f"{name} {{{name}}}\n"
    for name in ("failed", "exit_status", "qsub_time", "start_time", "end_time", "ru_wallclock")
)


def record(begin: str, end: str, used_s: int, failed: int = 0) -> str:
    day = "Fri Nov 20 {} 2026"
    return RECORD.format(
        failed=failed,
        exit_status=0,
        qsub_time=day.format("10:00:00"),
        start_time=day.format(begin),
        end_time=day.format(end),
        ru_wallclock=f"{used_s}s",
    )


def test_so_it_is_on_grid_engine(site: Site):
    again, end = record("10:00:00", "10:00:22", 22, 25), record("10:01:00", "10:01:40", 40)
    site.stub("qacct", f"cat <<'EOF'\n{again}{end}EOF")
    (job,) = jobs.accounting(GridEngine("x"), "5")
    assert (job.state, job.elapsed_s) == (JobState.COMPLETED, 62.0)
    # The record of another host of the same run.
    host = record("10:01:01", "10:01:39", 38)
    site.stub("qacct", f"cat <<'EOF'\n{again}{host}{end}EOF")
    (job,) = jobs.accounting(GridEngine("x"), "5")
    assert job.elapsed_s == 62.0


def test_an_older_job_of_the_same_number_is_another_one(site: Site):
    (site.directory / "accounting").write_text(
        account("1", "FAILED", 1_000_000, 1_000_022, elapsed="22")
        + account("1", "COMPLETED", 2_000_000, 2_000_040, elapsed="40")
    )
    since = datetime.fromtimestamp(2_000_001, timezone.utc)  # of a clock that is ahead
    (job,) = jobs.accounting(SLURM, "1", since)
    assert (job.state, job.elapsed_s) == (JobState.COMPLETED, 40.0)
    assert jobs.states(SLURM, ["1"], {"1": since}) == {"1": (job,)}
    later = since + timedelta(days=1)
    assert jobs.accounting(SLURM, "1", later) == ()
    assert jobs.states(SLURM, ["1"], {"1": later})["1"][0].state is JobState.UNKNOWN
    # In the queue it is the same.
    (site.directory / "queue").write_text(row("1", "RUNNING"))
    assert jobs.states(SLURM, ["1"])["1"][0].state is JobState.RUNNING
    assert jobs.states(SLURM, ["1"], {"1": since}) == {"1": (job,)}


def test_two_clusters_give_the_same_number(site: Site):
    site.stub(
        "squeue",
        f"""case "$*" in
        *--clusters=puhti*) printf '%s\n' {shlex.quote(row("12", "RUNNING"))};;
        *--clusters=mahti*) printf '%s\n' {shlex.quote(row("12", "PENDING"))};;
        *) printf '%s\n' {shlex.quote(row("13", "SUSPENDED"))};;
        esac""",
    )
    found = jobs.states(SLURM, ["12;puhti", "12;mahti", "13"])
    assert {number: job.state for number, (job,) in found.items()} == {
        "12;puhti": JobState.RUNNING,
        "12;mahti": JobState.PENDING,
        "13": JobState.SUSPENDED,
    }


def test_a_cluster_that_is_away_hides_no_other(site: Site):
    site.stub(
        "squeue",
        f"""case "$*" in *--clusters=mahti*) echo "Invalid cluster" >&2; exit 1;; esac
        printf '%s\n' {shlex.quote(row("12", "RUNNING"))}""",
    )
    found = jobs.states(SLURM, ["12;puhti", "12;mahti"])
    assert found["12;puhti"][0].state is JobState.RUNNING
    assert found["12;mahti"][0].state is JobState.UNKNOWN
    assert "Invalid cluster" in found["12;mahti"][0].reason
    with pytest.raises(RefusedError, match="Invalid cluster"):
        jobs.states(SLURM, ["12;mahti"])


def test_one_job_that_cannot_be_asked_for_hides_no_other(site: Site):
    site.stub("qstat", "echo '<a/>'")
    ended = record("10:00:00", "10:00:22", 22)
    site.stub("qacct", f"[ $2 = 6 ] && {{ echo oops >&2; exit 1; }}; cat <<'EOF'\n{ended}EOF")
    found = jobs.states(GridEngine("x"), ["6", "5"])
    assert found["5"][0].state is JobState.COMPLETED
    assert found["6"][0].state is JobState.UNKNOWN
    assert "qacct says: oops" in found["6"][0].reason


def test_tasks_that_left_the_queue_are_not_forgotten_while_the_accounting_is_away(site: Site):
    (site.directory / "queue").write_text(row("3_2", "COMPLETED") + row("3_3", "RUNNING"))
    site.stub("sacct", "echo 'Unable to contact slurm controller' >&2; exit 1")
    second, third, others = jobs.states(SLURM, ["3"])["3"]
    assert (second.state, third.state) == (JobState.COMPLETED, JobState.RUNNING)
    assert (others.id, others.state) == ("3", JobState.UNKNOWN)
    assert "Unable to contact slurm controller" in others.reason
    # Where there is none, nothing is waited for.
    site.stub("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    found = jobs.states(SLURM, ["3"])["3"]
    assert [job.id for job in found] == ["3_2", "3_3"]
    assert all("storage is disabled" in job.reason for job in found)


def test_a_site_without_accounting_still_has_states(site: Site):
    (site.directory / "queue").write_text(row("1", "RUNNING"))
    site.stub("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    found = jobs.states(SLURM, ["1", "2"])
    assert found["1"][0].state is JobState.RUNNING
    assert found["2"][0].state is JobState.UNKNOWN
    assert "Slurm accounting storage is disabled" in found["2"][0].reason
    with pytest.raises(RefusedError, match="disabled"):
        jobs.accounting(SLURM, "2")


def test_an_answer_without_its_columns_is_an_error(site: Site):
    site.stub("squeue", r"printf '\0351\037\036x\n'")
    with pytest.raises(NoAnswerError, match="cannot be read"):
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
    site.stub("sbatch", "echo 'allocation failure: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        jobs.estimate(SLURM, Path("/job.sh"), timeout_s=10)
    assert jobs.estimate(GridEngine("x"), Path("/job.sh"), timeout_s=10) is None


def test_marks_do_not_repeat():
    assert len({jobs.new_mark() for _ in range(100)}) == 100
    assert jobs.new_mark().startswith("teho=")
