from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teho.errors import RefusedError
from teho.model.job import Job, JobState, Submission
from teho.schedulers.command import Completed
from teho.schedulers.grid_engine import text as texts
from teho.schedulers.grid_engine.backend import GridEngine

DATA = Path(__file__).parents[2] / "data" / "schedulers" / "grid-engine-8.1"
MIB = 1024**2
ENGINE = GridEngine("user")


@pytest.fixture(autouse=True)
def _in_helsinki(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Helsinki")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def said(stdout: str = "", stderr: str = "", code: int = 0) -> Completed:
    return Completed(("qsub",), code, stdout, stderr)


def queue() -> dict[str, Job]:
    return {job.id: job for job in texts.read_queue((DATA / "qstat.xml").read_text())}


def accounting(name: str) -> tuple[Job, ...]:
    return texts.read_accounting((DATA / f"{name}.txt").read_text())


def submission(log: str = "", directory: str = "/d", name: str = "train") -> Submission:
    return Submission(
        mark="teho=m",
        scheduler="grid_engine",
        cluster="arc4",
        name=name,
        submitted_at=datetime(2026, 11, 20, tzinfo=timezone.utc),
        directory=directory,
        script="/home/x/job.sh",
        log=log,
    )


def test_the_command_that_submits():
    assert ENGINE.submit(submission()) == (
        *("qsub", "-terse", "-ac", "teho=m", "-wd", "/d", "/home/x/job.sh"),
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("29\n", "29"),
        ("31.1-4:1\n", "31"),
        ('Your job 5 ("x") has been submitted\n', "5"),
        ('Your job-array 123.1-10:1 ("a (b) "c"") has been submitted\n', "123"),
        ('warning: no h_rt, 1 h is taken\n\nYour job 5 ("x") has been submitted\n', "5"),
        ("Your job is nowhere\n", None),
        ("", None),
    ],
)
def test_the_answer_to_a_submission(text, number):
    assert ENGINE.read_submitted(said(text)) == number


def test_a_refusal_is_reported_in_its_own_words():
    words = 'Unable to run job: unknown resource "coproc_k80"\nExiting.'
    with pytest.raises(RefusedError) as caught:
        ENGINE.read_submitted(said(stderr=words, code=1))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("error: commlib error: got select error (Connection refused)", 1),
        ('Unable to run job: unable to send message to qmaster using port 1 on host "a"', 1),
        ("", -15),
        ("", 1),
    ],
)
def test_an_answer_that_is_neither_yes_nor_no(stderr, code):
    assert ENGINE.read_submitted(said("29\n", stderr, code)) is None


def test_questions():
    (asked,) = ENGINE.queue(["5", "6"])
    assert asked.argv == ("qstat", "-xml", "-r", "-u", "user")
    assert asked.numbers == ("5", "6")
    assert [query.argv for query in ENGINE.accounting(["5", "6"])] == [
        ("qacct", "-j", "5"),
        ("qacct", "-j", "6"),
    ]
    contexts, ended = ENGINE.recent(60.0)
    assert contexts.argv == ("qstat", "-j", "*")
    begin = datetime.strptime(ended.argv[4], "%Y%m%d%H%M")  # noqa: DTZ007
    assert 3600 <= (datetime.now() - begin).total_seconds() < 3800  # noqa: DTZ005
    assert ENGINE.cancel(["5", "6.2"]) == (("qdel", "5", "6.2"),)
    assert ENGINE.wanted_variables(Path("x")) == ()
    # The script names it so, in the words that Grid Engine takes.
    assert ENGINE.job_name(submission()) == "train"
    assert ENGINE.job_name(submission(name="")) == "job"
    assert ENGINE.job_name(submission(name="my job")) == "my_job"
    assert ENGINE.estimate(Path("x")) == ("qsub", "-w", "v", "x")
    assert ENGINE.read_estimate(said("verification: found suitable queue(s)\n")) is None
    refused = """\
Unable to run job: Job 17 cannot run in queue "gpu.q" because it is not contained in its hard queue list (-q)
Job 17 cannot run in queue instance "batch@d2s.local" because it is not of type batch
verification: no suitable queues
Exiting.
"""  # noqa: E501 - Grid Engine's
    with pytest.raises(RefusedError) as error:
        ENGINE.read_estimate(said(stderr=refused, code=1))
    assert error.value.found == (
        'qsub says: cannot run in queue instance "batch@d2s.local" because it is not of type batch'
    )
    # What does not answer refuses nothing.
    lost = said(stderr="error: commlib error: got select error", code=1)
    assert ENGINE.read_estimate(lost) is None


def test_a_job_that_is_gone_is_no_error():
    contexts, ended = ENGINE.recent(60.0)
    gone = said(stderr="Following jobs do not exist: \n*\n", code=1)
    assert contexts.read(gone) == ()
    assert ended.read(said(stderr="error: job name * not found", code=1)) == ()
    assert ENGINE.accounting(["5"])[0].read(said(stderr="error: job id 5 not found", code=1)) == ()
    ENGINE.read_cancelled(said('denied: job "5" does not exist', code=1))
    with pytest.raises(RefusedError, match="not the owner"):
        ENGINE.read_cancelled(said("denied: you are not the owner of job 5", code=1))
    with pytest.raises(RefusedError, match="no permission"):
        ENGINE.queue(["5"])[0].read(said(stderr="no permission", code=1))


def test_the_queue():
    jobs = queue()
    assert jobs["28"] == Job(
        id="28",
        number="28",
        name="train",
        state=JobState.RUNNING,
        state_as_written="r",
        partition="gpu.q",
        node_list="node1",
        cores=10,
        gpus=1,
        memory_bytes=49150 * MIB,
        # Local time, and two hours before UTC in November.
        started_at=datetime(2026, 11, 20, 11, 46, 13, tzinfo=timezone.utc),
        elapsed_s=jobs["28"].elapsed_s,
        time_limit_s=1800.0,
    )
    assert {name for name, job in jobs.items() if job.number == "30"} == {"30.1", "30.4", "30.7,10"}
    assert (jobs["31.1-4:1"].task, jobs["31.1-4:1"].state) == ("1-4:1", JobState.PENDING)
    assert (jobs["34"].gpus, jobs["34"].memory_bytes) == (0, None)
    assert jobs["31.1-4:1"].elapsed_s is None
    # Both are `hqw`; only one needs somebody.
    assert (jobs["32"].state, jobs["32"].reason) == (JobState.PENDING, "waits for job 29")
    assert (jobs["33"].state, jobs["33"].reason) == (JobState.HELD, "")


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", JobState.PENDING),
        ("hqw", JobState.HELD),
        ("hRwq", JobState.HELD),
        ("Rq", JobState.PENDING),
        ("r", JobState.RUNNING),
        ("t", JobState.RUNNING),
        ("Rr", JobState.RUNNING),
        ("hr", JobState.RUNNING),
        ("dr", JobState.COMPLETING),
        ("dRr", JobState.COMPLETING),
        ("Eqw", JobState.HELD),
        ("Ehqw", JobState.HELD),
        ("s", JobState.SUSPENDED),
        ("S", JobState.SUSPENDED),
        ("tS", JobState.SUSPENDED),
        ("T", JobState.SUSPENDED),
        ("Z!", JobState.UNKNOWN),
        ("", JobState.UNKNOWN),
    ],
)
def test_states(letters, state):
    text = f"<a><job_list><JB_job_number>1</JB_job_number><state>{letters}</state></job_list></a>"
    (job,) = texts.read_queue(text)
    assert (job.state, job.state_as_written) == (state, letters)
    assert ("qmod -cj" in job.reason) == letters.startswith("E")


@pytest.mark.parametrize(("ago_s", "elapsed_s"), [(90, 90), (-30, 0)])
def test_a_running_job_has_used_the_time_since_its_start(ago_s, elapsed_s):
    start = datetime.now() - timedelta(seconds=ago_s)  # noqa: DTZ005  as qstat writes it
    (job,) = texts.read_queue(
        "<a><job_list><JB_job_number>1</JB_job_number><state>r</state>"
        f"<JAT_start_time>{start:%Y-%m-%dT%H:%M:%S}</JAT_start_time></job_list></a>"
    )
    assert job.elapsed_s is not None
    assert elapsed_s <= job.elapsed_s < elapsed_s + 10


@pytest.mark.parametrize("text", ["", "<a>", "qstat: command", "<a><job_list></job_list></a>"])
def test_what_is_not_from_qstat_is_reported(text):
    with pytest.raises(ValueError, match=r"XML|job number"):
        texts.read_queue(text)


def test_a_control_character_in_a_name_spoils_nothing():
    text = "<a><job_list><JB_job_number>1</JB_job_number><JB_name>a\x1fb</JB_name></job_list></a>"
    assert texts.read_queue(text)[0].name == "a?b"


def test_contexts():
    jobs = {job.number: job for job in texts.read_contexts((DATA / "qstat-j.txt").read_text())}
    assert jobs["29"].comment == "teho=4f0c6b8e-5a33-4a5e-9d6e-000000000001"
    assert (jobs["28"].comment, jobs["28"].name) == ("", "train")
    assert jobs["29"].submitted_at == datetime(2026, 11, 20, 11, 46, 13, tzinfo=timezone.utc)
    assert len(jobs) >= 5
    with pytest.raises(ValueError, match="job_number"):
        texts.read_contexts("====\nnonsense\n")


def test_the_accounting():
    (job,) = accounting("qacct")
    assert job == Job(
        id="40",
        number="40",
        name="train",
        state=JobState.COMPLETED,
        state_as_written="failed 0, exit_status 0",
        partition="gpu.q",
        account="sge",
        node_list="node1",
        cores=10,
        gpus=1,
        memory_bytes=49150 * MIB,
        submitted_at=datetime(2026, 11, 20, 11, 46, 18, tzinfo=timezone.utc),
        started_at=datetime(2026, 11, 20, 11, 46, 23, tzinfo=timezone.utc),
        ended_at=datetime(2026, 11, 20, 11, 46, 24, tzinfo=timezone.utc),
        elapsed_s=1.0,
        time_limit_s=1800.0,
        exit_code=0,
        # 4.391KB as qacct has it: its KB are MiB.
        memory_peak_bytes=round(4.391 * 1024) * 1024,
        cpu_s=0.007,
    )


def test_ends():
    (failed,) = accounting("qacct-exit3")
    assert (failed.state, failed.exit_code) == (JobState.FAILED, 3)
    (killed,) = accounting("qacct-killed")
    assert (killed.state, killed.exit_code, killed.signal) == (JobState.FAILED, None, 9)
    assert killed.reason == "100 : assumedly after job"
    first, again = accounting("qacct-again")
    assert (first.state, first.exit_code, first.elapsed_s) == (JobState.PENDING, None, 1.0)
    assert (again.state, again.exit_code, again.nodes) == (JobState.COMPLETED, 0, 1)
    assert [job.id for job in accounting("qacct-array")][:2] == ["43.1", "43.2"]


RECORD = (DATA / "qacct-killed.txt").read_text()


@pytest.mark.parametrize(
    ("changes", "state", "exit_code", "signal"),
    [
        ({"ru_wallclock": "1801s"}, JobState.TIMED_OUT, None, 9),
        (
            {"failed": "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"},
            JobState.TIMED_OUT,
            None,
            None,
        ),
        (
            {"failed": "26  : opening input/output file", "exit_status": "0"},
            JobState.FAILED,
            None,
            None,
        ),
        ({"failed": "0", "exit_status": "137"}, JobState.FAILED, 137, None),
        ({"failed": "?"}, JobState.UNKNOWN, None, None),
        ({"exit_status": "?"}, JobState.UNKNOWN, None, None),
    ],
)
def test_other_ends(changes, state, exit_code, signal):
    lines = [
        f"{key:13}{changes.get(key, value.strip())}"
        for key, _, value in (line.partition(" ") for line in RECORD.splitlines()[1:])
    ]
    (job,) = texts.read_accounting("\n".join(["====", *lines]) + "\n")
    assert (job.state, job.exit_code, job.signal) == (state, exit_code, signal)


def test_a_job_that_was_only_rescheduled_is_not_over():
    record = RECORD.replace("100 : assumedly after job", "25  : rescheduling")
    (job,) = texts.read_accounting(record)
    assert (job.state, job.exit_code, job.signal) == (JobState.PENDING, None, None)
    assert job.reason == "25  : rescheduling"


def test_1970_is_no_time():
    """So 8.1.9 writes the submission of a job that `qmod -rj` sent back."""
    (job,) = texts.read_accounting("====\njobnumber 5\nqsub_time Thu Jan  1 02:00:00 1970\n")
    assert job.submitted_at is None


def test_what_is_missing_is_not_zero():
    (job,) = texts.read_accounting("====\njobnumber 5\nstart_time -/-\nru_maxrss 0\n")
    assert (job.gpus, job.cpu_s, job.memory_peak_bytes, job.started_at) == (None,) * 4
    with pytest.raises(ValueError, match="jobnumber"):
        texts.read_accounting("====\nqname x\n")


ELEMENTS = st.tuples(
    st.sampled_from(["JB_job_number", "state", "slots", "tasks", "JAT_start_time", "queue_name"]),
    st.one_of(st.integers(-9, 99).map(str), st.sampled_from(["r", "qw", "1-9:2", "all.q@n1", "&"])),
).map(lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0]}>")
ANSWERS = st.one_of(
    st.tuples(
        st.sampled_from(["", "====\njobnumber 5\n", "<a><job_list>"]), st.text(max_size=80)
    ).map("".join),
    st.lists(ELEMENTS, max_size=6).map(
        lambda parts: f"<a><job_list>{''.join(parts)}</job_list></a>"
    ),
)


@given(ANSWERS)
@example("====\njobnumber 5\n" + "\U0002ebe1" * 20)
def test_any_text_is_jobs_or_a_plain_error(text):
    for parse in (texts.read_queue, texts.read_contexts, texts.read_accounting):
        jobs, why = (), "-"
        try:
            jobs = parse(text)
        except ValueError as error:
            why = str(error)
        assert 0 < len(why) < 200
        for job in jobs:
            assert job.number.isdigit()
            assert job.id.split(".")[0] == job.number
            assert isinstance(job.state, JobState)
            assert (job.elapsed_s or 0) >= 0


def test_where_the_log_is(tmp_path: Path):
    job = Job(id="5", number="5", name="x y", state=JobState.RUNNING)
    task = Job(id="5.2", number="5", task="2", state=JobState.RUNNING)
    assert ENGINE.log_path(submission(), job) == Path("/d/x y.o5")
    assert ENGINE.log_path(submission(), task) == Path("/d/train.o5.2")
    assert ENGINE.log_path(submission(name=""), task) == Path("/d/job.o5.2")
    assert ENGINE.log_path(submission("$JOB_NAME.$JOB_ID.$TASK_ID"), task) == Path("/d/train.5.2")
    assert ENGINE.log_path(submission(str(tmp_path)), task) == tmp_path / "train.o5.2"


def test_memory_that_is_no_amount_is_none():
    (job,) = texts.read_accounting("====\njobnumber 5\nru_maxrss lots\n")
    assert job.memory_peak_bytes is None
