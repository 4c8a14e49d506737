from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import RefusedError
from teho.model.job import Job, JobState, Submission
from teho.schedulers.command import Completed
from teho.schedulers.slurm import text as slurm_text
from teho.schedulers.slurm import values
from teho.schedulers.slurm.backend import Slurm

DATA = Path(__file__).parents[2] / "data" / "schedulers"
GIB = 1024**3
SLURM = Slurm()


def said(stdout: str = "", stderr: str = "", code: int = 0) -> Completed:
    return Completed(("sbatch",), code, stdout, stderr)


def read(version: str, name: str) -> dict[str, Job]:
    text = (DATA / f"slurm-{version}" / name).read_text()
    parse = {
        "squeue.txt": slurm_text.read_queue,
        "sacct.txt": slurm_text.read_accounting,
    }[name]
    return {job.id: job for job in parse(text)}


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def submission(**changes: str) -> Submission:
    facts = {
        "mark": "teho=m",
        "scheduler": "slurm",
        "cluster": "puhti",
        "name": "train",
        "submitted_at": at(1700000000),
        "directory": "/scratch/a dir",
        "script": "/home/x/job.sh",
    }
    return Submission(**{**facts, **changes})


# Submitting.


def test_the_command_that_submits():
    assert SLURM.submit(submission()) == (
        "sbatch",
        "--parsable",
        "--comment=teho=m",
        "--chdir=/scratch/a dir",
        "/home/x/job.sh",
    )


@pytest.mark.parametrize(
    ("log", "array", "output"),
    [
        ("", "", "/a/100%% of %%j/slurm-%j.out"),
        ("", "1-3", "/a/100%% of %%j/slurm-%A_%a.out"),
        ("log-%j.txt", "", "/a/100%% of %%j/log-%j.txt"),
        ("/b/log.txt", "", None),
    ],
)
def test_signs_in_a_directorys_name_are_not_filled_in(log, array, output):
    sent = msgspec.structs.replace(submission(), directory="/a/100% of %j", log=log, array=array)
    argv = SLURM.submit(sent)
    assert [word for word in argv if word.startswith("--output")] == (
        [f"--output={output}"] if output else []
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("123\n", "123"),
        ("123;puhti\n", "123;puhti"),
        ("Submitted batch job 123\n", "123"),
        ("Submitted batch job 123 on cluster puhti\n", "123"),
        ("sbatch: a message of the site\n\n 123\n", "123"),
        ("12x\n", None),
        ("", None),
        ("job 123 queued\n", None),
    ],
)
def test_the_answer_to_a_submission(text, number):
    assert SLURM.read_submitted(said(text)) == number


def test_a_refusal_is_reported_in_slurm_s_words():
    words = (
        "sbatch: error: QOSMaxGRESPerNode\nsbatch: error: Batch job submission failed: "
        "Job violates accounting/QOS policy"
    )
    with pytest.raises(RefusedError) as caught:
        SLURM.read_submitted(said(stderr=words, code=1))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", 1),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller", 1),
        ("", -9),
        ("error: half a mess", 137),
        ("", 1),
        ("Killed", 1),
    ],
)
def test_an_answer_that_is_neither_yes_nor_no(stderr, code):
    assert SLURM.read_submitted(said("123\n", stderr, code)) is None


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("#SBATCH --account=p", True),
        ("#SBATCH --time=3 -A p", True),
        ("#SBATCH -Ap", True),
        ("#SBATCH --acctg-freq=30 --time=3", False),
        ("# SBATCH --account=p", False),
        ("echo --account", False),
        ("", False),
    ],
)
def test_the_user_s_own_account_is_for_a_script_that_names_none(tmp_path, line, names):
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\n{line}\n")
    assert SLURM.wanted_variables(script) == (() if names else ("SBATCH_ACCOUNT",))
    assert SLURM.wanted_variables(script, "project_1") == ()
    assert SLURM.wanted_variables(tmp_path / "none.sh") == ()


def test_the_name_that_the_job_has():
    assert SLURM.job_name(submission()) == "train"
    assert SLURM.job_name(submission(name="")) == "job.sh"
    assert SLURM.job_name(submission(name="a\tb")) == "a_b"


def test_an_estimate():
    text = "sbatch: Job 3 to start at {} using 10 processors on nodes r01g01 in partition gpu\n"
    assert SLURM.read_estimate(said(stderr=text.format("1795182926"))) == at(1795182926)
    local = at(1795182926).astimezone().replace(tzinfo=None).isoformat()
    assert SLURM.read_estimate(said(stderr=text.format(local))) == at(1795182926)
    assert SLURM.read_estimate(said(stderr=text.format("Unknown"))) is None
    assert SLURM.read_estimate(said(stderr="allocation granted")) is None
    with pytest.raises(RefusedError, match="Invalid account"):
        SLURM.read_estimate(said(stderr="sbatch: error: Invalid account", code=1))


# Asking.


def test_questions_name_jobs_and_clusters():
    here, puhti = SLURM.queue(["1", "2;puhti", "3"])
    assert here.argv[:4] == ("squeue", "--states=all", "--jobs=1,3", "--noheader")
    assert puhti.argv[:4] == ("squeue", "--clusters=puhti", "--states=all", "--jobs=2")
    assert (here.numbers, puhti.numbers) == (("1", "3"), ("2;puhti",))
    (query,) = SLURM.accounting(["7"])
    assert query.argv[:3] == ("sacct", "--duplicates", "--jobs=7")
    assert "SLURM_TIME_FORMAT" in query.environment
    # A person waits for this answer.
    assert (query.timeout_s, query.again_if_late) == (10.0, False)
    assert SLURM.recent(7300.0)[1].argv[2] == "--starttime=now-3hours"
    # One for each cluster: job 1_4 of puhti is another one.
    assert SLURM.cancel(["1_4", "2;puhti", "3"]) == (
        ("scancel", "1_4", "3"),
        ("scancel", "--clusters=puhti", "2"),
    )


def test_a_job_that_is_gone_is_no_error():
    gone = said(stderr="slurm_load_jobs error: Invalid job id specified", code=1)
    assert SLURM.queue(["1"])[0].read(gone) == ()
    SLURM.read_cancelled(
        said(stderr="scancel: error: Kill job error on job id 1: Invalid job id specified", code=1)
    )
    with pytest.raises(RefusedError, match="Access"):
        SLURM.read_cancelled(said(stderr="scancel: error: Access/permission denied", code=1))
    with pytest.raises(RefusedError, match="disabled"):
        SLURM.accounting(["1"])[0].read(said(stderr="Slurm accounting storage is disabled", code=1))


def test_the_queue_as_text():
    jobs = read("22.05", "squeue.txt")
    assert jobs["48"] == Job(
        id="48",
        number="48",
        name="train",
        state=JobState.RUNNING,
        state_as_written="RUNNING",
        partition="gpu",
        account="project_2001234",
        node_list="gpu-n[1-2]",
        nodes=2,
        cores=20,
        gpus=4,
        submitted_at=at(1795183665),
        started_at=at(1795183666),
        elapsed_s=jobs["48"].elapsed_s,
        time_limit_s=900.0,
        script="/scratch/train/job.sh 200",
    )
    assert jobs["44"].expected_start_at == at(1795187262)
    assert jobs["44"].started_at is None
    assert (jobs["45"].expected_start_at, jobs["45"].reason) == (None, "DependencyNeverSatisfied")
    assert jobs["43"].state is JobState.HELD
    assert (jobs["39"].state, jobs["39"].reason) == (JobState.FAILED, "NonZeroExitCode")
    assert jobs["38"].comment == "teho=6f1c2d7e-0000-4000-8000-000000000001"
    assert (jobs["40"].name, jobs["40"].comment) == ("a|b\nc\x1fd", "x\ny|z")
    assert (jobs["42_7"].number, jobs["42_7"].task) == ("42", "7")
    assert (jobs["49+1"].number, jobs["49+1"].gpus, jobs["49+0"].gpus) == ("49", 1, None)


def test_the_accounting_as_text():
    jobs = read("22.05", "sacct.txt")
    assert jobs["41"] == Job(
        id="41",
        number="41",
        name="train",
        state=JobState.CANCELLED,
        state_as_written="CANCELLED by 0",
        partition="gpu",
        account="project_2001234",
        node_list="gpu-n1",
        nodes=1,
        cores=10,
        gpus=1,
        memory_bytes=80 * GIB,
        submitted_at=at(1795183662),
        started_at=at(1795183663),
        ended_at=at(1795183669),
        elapsed_s=6.0,
        time_limit_s=900.0,
        memory_peak_bytes=4997120,
        cpu_s=0.003,
        billing=10,
    )
    assert (jobs["38"].exit_code, jobs["38"].signal) == (0, None)
    assert (jobs["39"].exit_code, jobs["39"].signal) == (3, None)
    assert (jobs["46"].exit_code, jobs["46"].signal, jobs["46"].gpus) == (None, 9, 0)
    assert jobs["40"].name == "a|b\nc\x1fd"
    assert jobs["43"].state is JobState.HELD
    assert jobs["43"].elapsed_s is None
    assert jobs["48"].gpus == 4
    assert jobs["48"].exit_code is None
    assert {job.number for job in jobs.values() if job.task} == {"42"}


def in_json(name: str) -> dict[str, dict[str, Any]]:
    """Return the jobs of Slurm's JSON by number: an independent record of the same jobs."""
    jobs = msgspec.json.decode((DATA / "slurm-22.05" / name).read_bytes())["jobs"]
    return {str(job["job_id"]): job for job in jobs}


def seconds(moment: datetime | None) -> int:
    return int(moment.timestamp()) if moment else 0


def test_the_queue_s_text_agrees_with_its_json():
    text, json = read("22.05", "squeue.txt"), in_json("squeue.json")
    both = text.keys() & json.keys()
    assert len(both) >= 6
    for number in both:
        job, record = text[number], json[number]
        assert job.state_as_written == record["job_state"]
        assert (job.partition, job.account) == (record["partition"], record["account"])
        assert job.node_list == (record["nodes"] or "")
        assert job.nodes == record["node_count"]
        assert seconds(job.submitted_at) == record["submit_time"]
        assert seconds(job.started_at or job.expected_start_at) == record["start_time"]
        assert (job.time_limit_s or 0) == record["time_limit"] * 60


def test_the_accounting_s_text_agrees_with_its_json():
    text, json = read("22.05", "sacct.txt"), in_json("sacct.json")
    both = text.keys() & json.keys()
    assert len(both) >= 6
    for number in both:
        job, record = text[number], json[number]
        if job.state is JobState.RUNNING:
            continue  # They were asked for one after the other.
        assert job.state_as_written.split()[0] == record["state"]["current"]
        assert (job.partition, job.account) == (record["partition"], record["account"])
        times = record["time"]
        assert seconds(job.submitted_at) == times["submission"]
        assert seconds(job.ended_at) == times["end"]
        assert (job.elapsed_s or 0) == times["elapsed"]
        tres = {item["name"] or item["type"]: item["count"] for item in record["tres"]["allocated"]}
        if tres:
            assert (job.nodes, job.cores, job.gpus or 0) == (
                tres["node"], tres["cpu"], tres.get("gpu", 0))  # fmt: skip
            assert job.memory_bytes == tres["mem"] * 1024**2


# The columns hold, whatever a text holds.

FREE = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("|\n\x1e\x1f\x1d, _[")),
    max_size=20,
).filter(lambda text: "\x1f\x1e" not in text and "\x1d" not in text)
COLUMN, ROW = "\x1f\x1e", "\x1d"


def queue_row(number: int, name: str, comment: str) -> str:
    fixed = [str(number), "RUNNING", "None", "gpu", "p", "2", "20", "gres/gpu:v100:2", "n[1-2]"]
    times = ["1700000000", "1700000100", "1700001000", "1-02:03:04", "UNLIMITED"]
    return ROW + COLUMN.join([*fixed, *times, name, comment, "/job.sh"]) + "\n"


@given(st.lists(st.tuples(FREE, FREE), max_size=4))
def test_no_name_shifts_squeue_s_columns(texts):
    text = "CLUSTER: puhti\n" + "".join(
        queue_row(number, name, comment) for number, (name, comment) in enumerate(texts, 1)
    )
    jobs = slurm_text.read_queue(text)
    assert [job.id for job in jobs] == [str(n) for n in range(1, len(texts) + 1)]
    for job, (name, _) in zip(jobs, texts, strict=True):
        assert job.name == name
        assert (job.gpus, job.elapsed_s, job.time_limit_s, job.script) == (
            4,
            93784.0,
            None,
            "/job.sh",
        )


@given(st.lists(st.tuples(FREE, FREE), max_size=4))
def test_no_name_shifts_sacct_s_columns(texts):
    def row(job: str, rss: str, name: str, comment: str) -> str:
        fixed = [job, "COMPLETED", "0:0", "gpu", "p", "n1", "cpu=1,mem=4G,node=1", "", "1700000000"]
        more = ["1700000100", "1700000200", "100", "15", "01:40.500", rss, "360", "None"]
        return "".join(part + COLUMN for part in (*fixed, *more, name, comment)) + "\n"

    text = "".join(
        row(str(number), "", name, comment) + row(f"{number}.batch", "2048K", "batch", "")
        for number, (name, comment) in enumerate(texts, 1)
    )
    jobs = slurm_text.read_accounting(text)
    assert [(job.id, job.name) for job in jobs] == [
        (str(number), name) for number, (name, _) in enumerate(texts, 1)
    ]
    for job in jobs:
        assert (job.memory_peak_bytes, job.cpu_s, job.energy_j, job.gpus) == (
            2 << 20,
            100.5,
            360.0,
            0,
        )


def test_a_separator_in_a_name_does_not_shift_a_column():
    odd = f"a{COLUMN}b\n7{COLUMN}c"
    (job,) = slurm_text.read_queue(queue_row(1, odd, "teho=m"))
    assert (job.name, job.comment, job.script) == (odd, "teho=m", "/job.sh")
    fixed = ["1", "COMPLETED", "0:0", "gpu", "p", "n1", "cpu=1", "", "100", "101", "102", "1", "15"]
    cells = [*fixed, "00:01", "", "0", "None", odd, "teho=m"]
    text = "".join(cell + COLUMN for cell in cells) + "\n"
    first, second = slurm_text.read_accounting(text + text)
    assert (first.name, first.comment) == (second.name, second.comment) == (odd, "teho=m")


def test_a_sites_greeting_before_the_accounting_is_passed_over():
    text = (DATA / "slurm-22.05" / "sacct.txt").read_text()
    greeted = slurm_text.read_accounting("Welcome to Oak!\nMaintenance on Friday.\n" + text)
    assert greeted == slurm_text.read_accounting(text)


def test_a_row_that_cannot_be_split_is_reported():
    with pytest.raises(ValueError, match="columns instead of"):
        slurm_text.read_queue(f"{ROW}1{COLUMN}RUNNING\n")
    with pytest.raises(ValueError, match="not a table of"):
        slurm_text.read_accounting(f"1{COLUMN}RUNNING{COLUMN}\n")
    assert slurm_text.read_accounting("") == slurm_text.read_queue("") == ()
    with pytest.raises(ValueError, match="columns instead of"):
        slurm_text.read_accounting(f"1{COLUMN}RUNNING{COLUMN}0:0{COLUMN}\n")
    with pytest.raises(ValueError, match="not a table of"):
        slurm_text.read_accounting(COLUMN.join(["x"] * 19) + COLUMN)
    with pytest.raises(ValueError, match="not a job id"):
        slurm_text.read_accounting(COLUMN.join(["%", "RUNNING", "0:0", *["x"] * 16]) + COLUMN)


def test_each_run_of_a_job_that_was_queued_again():
    """As sacct 22.05 --duplicates has it: one after the other, each with its steps."""
    text = "".join(
        part + COLUMN
        for row in (
            "1,REQUEUED,0:0,gpu,p,n1,cpu=1,,100,100,106,6,10,00:00.004,,0,None,train,teho=m",
            "\n1.batch,CANCELLED,0:15,,p,n1,cpu=1,,100,100,106,6,,00:00.002,13124K,0,,batch,",
            "\n1,COMPLETED,0:0,gpu,p,n1,cpu=1,,106,111,118,7,10,00:00.019,,0,None,train,teho=m",
            "\n1.batch,COMPLETED,0:0,,p,n1,cpu=1,,111,111,118,7,,00:00.017,12856K,0,,batch,",
        )
        for part in row.split(",")
    )
    first, second = slurm_text.read_accounting(text + "\n")
    assert (first.state, first.elapsed_s, first.cpu_s) == (JobState.PENDING, 6.0, 0.004)
    assert (first.started_at, first.ended_at) == (at(100), at(106))
    assert (second.state, second.elapsed_s, second.cpu_s) == (JobState.COMPLETED, 7.0, 0.019)
    assert first.memory_peak_bytes == 13124 << 10
    assert second.memory_peak_bytes == 12856 << 10


def test_a_queue_s_row_always_has_its_comment_and_its_submission():
    bare, marked = slurm_text.read_queue(queue_row(1, "n", "(null)") + queue_row(2, "n", "teho=m"))
    assert (bare.comment, marked.comment) == ("", "teho=m")
    assert bare.submitted_at == marked.submitted_at == at(1700000000)
    assert all(job.submitted_at is not None for job in read("22.05", "squeue.txt").values())


CELLS = st.one_of(
    st.text(max_size=8), st.sampled_from(["1", "RUNNING", "0:0", "1.batch", "-1", "(null)", "x\n"])
)
ANSWERS = st.one_of(
    st.tuples(st.sampled_from(["", ROW + "1" + COLUMN]), st.text(max_size=60)).map("".join),
    st.lists(CELLS, min_size=18, max_size=21).map(
        lambda cells: "".join(f"{cell}{COLUMN}" for cell in ["7", "RUNNING", "0:0", *cells])
    ),
)


@given(ANSWERS)
def test_any_text_is_rows_or_a_plain_error(text):
    for parse in (slurm_text.read_queue, slurm_text.read_accounting):
        jobs, why = (), "-"
        try:
            jobs = parse(text)
        except ValueError as error:
            why = str(error)
        assert 0 < len(why) < 300
        for job in jobs:
            assert job.number.isdigit()
            assert job.id.startswith(job.number)
            assert isinstance(job.state, JobState)
            assert (job.elapsed_s or 0) >= 0


# Words and numbers.


@pytest.mark.parametrize(
    ("written", "reason", "state"),
    [
        ("PENDING", "Priority", JobState.PENDING),
        ("PENDING", "JobHeldUser", JobState.HELD),
        ("PENDING", "JobHeldAdmin", JobState.HELD),
        ("PENDING", "JobHoldMaxRequeue", JobState.HELD),
        ("PENDING", "job requeued in held state", JobState.HELD),
        ("CANCELLED by 1000", "", JobState.CANCELLED),
        ("CANCELLED+", "", JobState.CANCELLED),
        ("RUNNING,COMPLETING", "", JobState.COMPLETING),
        ("COMPLETED", "", JobState.COMPLETED),
        ("CONFIGURING", "", JobState.RUNNING),
        ("OUT_OF_MEMORY", "", JobState.OUT_OF_MEMORY),
        ("TIMEOUT", "", JobState.TIMED_OUT),
        ("NODE_FAIL", "", JobState.NODE_FAILED),
        ("PREEMPTED", "", JobState.PREEMPTED),
        ("TELEPORTED", "", JobState.UNKNOWN),
        ("", "", JobState.UNKNOWN),
        (" , ", "", JobState.UNKNOWN),
    ],
)
def test_states(written, reason, state):
    assert values.state(written, reason) is state


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("123", ("123", None)),
        ("123_4", ("123", "4")),
        ("123_[1-10%2]", ("123", "1-10%2")),
        ("123+0", ("123", None)),
        ("123.batch", None),
        ("x", None),
        ("", None),
    ],
)
def test_job_ids(written, found):
    assert values.job_id(written) == found


@given(st.integers(0, 10**9), st.one_of(st.none(), st.integers(0, 10**6)))
def test_ids_come_back(number, task):
    written = f"{number}" if task is None else f"{number}_{task}"
    assert values.job_id(written) == (str(number), None if task is None else str(task))


@pytest.mark.parametrize(
    ("tres", "resources"),
    [
        (
            "billing=78,cpu=10,gres/gpu:v100=1,gres/gpu=1,mem=80G,node=1",
            (1, 10, 1, 80 * GIB, 78),
        ),
        ("cpu=1,gres/gpu:a100=3,gres/gpu:h100=1", (None, 1, 4, None, None)),
        ("cpu=1", (None, 1, 0, None, None)),
        ("", (None, None, None, None, None)),
    ],
)
def test_resources(tres: str, resources: tuple[int | None, ...]):
    before = ["1", "COMPLETED", "0:0", "gpu", "p", "n1", tres, "", "100", "101", "102", "1", "15"]
    after = ["00:01", "", "0", "None", "train", "teho=m"]
    (job,) = slurm_text.read_accounting("".join(cell + COLUMN for cell in [*before, *after]))
    assert (job.nodes, job.cores, job.gpus, job.memory_bytes, job.billing) == resources


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:01", 1), ("01:40.500", 100.5), ("1-02:03:04", 93784), ("", None), ("x", None)],
)
def test_cpu_time(text, seconds):
    assert values.cpu_seconds(text) == seconds


@pytest.mark.parametrize(
    ("state", "code", "signal", "ending"),
    [
        (JobState.COMPLETED, 0, 0, (0, None)),
        (JobState.FAILED, 1, 0, (1, None)),
        (JobState.FAILED, 0, 9, (None, 9)),
        (JobState.FAILED, 0, 0, (None, None)),
        (JobState.TIMED_OUT, 0, 0, (None, None)),
        (JobState.CANCELLED, 0, 15, (None, 15)),
        (JobState.OUT_OF_MEMORY, 0, 125, (None, None)),
        (JobState.RUNNING, 0, 0, (None, None)),
        (JobState.COMPLETED, None, None, (None, None)),
    ],
)
def test_how_a_program_ended(state, code, signal, ending):
    assert values.ending(state, code, signal) == ending


@pytest.mark.parametrize("text", ["", "Unknown", "-1", "4294967294", "18446744073709551614", "٣"])
def test_marks_for_no_number(text):
    assert values.count(text) is None
    assert values.energy(text) is None
    assert values.moment(text) is None


@pytest.mark.parametrize("number", [0, 65533, 65534, 65535])
def test_numbers_that_a_job_can_have(number):
    """A job can take 65,534 s, which is Slurm's mark for no number of 16 bits."""
    assert values.count(str(number)) == number


def test_nothing_measured_is_not_zero_energy():
    assert values.energy("0") is None
    assert values.energy("360") == 360.0


# Logs.


@pytest.mark.parametrize(
    ("pattern", "job", "path"),
    [
        ("", Job(id="5", number="5", state=JobState.RUNNING), "/d/slurm-5.out"),
        ("", Job(id="5_2", number="5", task="2", state=JobState.RUNNING), "/d/slurm-5_2.out"),
        ("%x-%j.log", Job(id="5", number="5", state=JobState.RUNNING), "/d/train-5.log"),
        (
            "/l/%A_%3a.log",
            Job(id="5_2", number="5", task="2", state=JobState.RUNNING),
            "/l/5_002.log",
        ),
        ("100%%/%q", Job(id="5", number="5", state=JobState.RUNNING), "/d/100%/%q"),
        (r"\%j", Job(id="5", number="5", state=JobState.RUNNING), "/d/%j"),
        ("%N", Job(id="5", number="5", state=JobState.RUNNING, node_list="a[1-2]"), "/d/a"),
    ],
)
def test_where_the_log_is(pattern, job, path):
    assert SLURM.log_path(submission(log=pattern, directory="/d"), job) == Path(path)


def test_times_are_utc():
    assert values.moment("1700000000").utcoffset() == timedelta(0)


def test_numbers_out_of_all_bounds_are_none():
    assert values.moment("99999999999999999") is None
    assert values.limit_seconds("1:2:3:4") is None
    assert values.size("lots") is None
