"""What sacct prints of jobs, with everything that breaks its lines."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacct_rows import NOW, job, lines, rows, step

from teho.model.accounted import AccountedJob
from teho.model.job import Job, JobState
from teho.schedulers.backend import Selection
from teho.schedulers.slurm import text as slurm_text
from teho.schedulers.slurm.accounting import history_of_job, history_since, read_jobs
from teho.schedulers.slurm.backend import Slurm
from teho.units import GIB

DATA = Path(__file__).parents[1] / "data" / "schedulers"


def read(*records: dict[str, str]) -> list[AccountedJob]:
    return list(read_jobs(lines(rows(*records))))


def test_a_job_has_its_steps_and_what_they_used() -> None:
    (found,) = read(
        job(
            "4711", gpus=2, AllocTRES="billing=130,cpu=10,gres/gpu:v100=2,gres/gpu=2,mem=40G,node=1"
        ),
        step("4711.batch"),
        step("4711.extern", peak="100K"),
        step("4711.0", JobName="python", NTasks="2", peak="2000M", AveRSS="1500M"),
    )
    assert (found.id, found.user, found.cluster, found.qos) == ("4711", "anna", "puhti", "normal")
    assert (found.cores, found.gpus, found.gpu_type, found.billing) == (10, 2, "v100", 130)
    assert (found.elapsed_s, found.time_limit_s, found.wait_s) == (7200, 14400, 600)
    assert found.cpu_s == 10 * 7200 * 0.9
    assert found.memory_peak_bytes == 30_000_000 * 1024
    assert [one.name for one in found.steps] == ["batch", "extern", "0"]
    python = found.steps[2]
    assert (python.title, python.tasks, python.memory_peak_bytes) == ("python", 2, 2000 * 1024**2)
    assert python.memory_mean_bytes == 1500 * 1024**2


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "two\nlines",
        "4711\x1f\x1eCOMPLETED",
        "\x1f\x1e\n\n\x1f\x1e",
        "tab\there",
        "",
        "ä\udcff",
    ],
)
def test_a_name_cannot_break_a_row(name: str) -> None:
    found = read(job("1", JobName=name), step("1.batch"), job("2", JobName="after"))
    assert [(one.id, one.name) for one in found] == [("1", name), ("2", "after")]
    assert len(found[0].steps) == 1


def test_a_step_without_an_exit_code_is_no_part_of_the_name() -> None:
    """Slurm prints none for the step of a node that failed."""
    batch = step("1.batch", State="CANCELLED", ExitCode="")
    found = read(job("1", State="NODE_FAIL", JobName="lost"), batch, job("2", JobName="after"))
    assert [(one.id, one.name) for one in found] == [("1", "lost"), ("2", "after")]
    ((only,), _) = (one.steps for one in found)
    assert (only.name, only.exit_code, only.signal) == ("batch", None, None)


def test_a_job_that_waits_has_used_nothing() -> None:
    (found,) = read(
        job("7", State="PENDING", NodeList="None assigned", Start="Unknown", End="Unknown",
            AllocTRES="", ElapsedRaw="0", TotalCPU="00:00:00", Reason="Priority")
    )  # fmt: skip
    assert found.state is JobState.PENDING
    assert (found.reason, found.node_list, found.started_at, found.ended_at) == (
        "Priority", "", None, None,
    )  # fmt: skip
    assert (found.elapsed_s, found.cpu_s, found.memory_peak_bytes) == (None, None, None)


def test_a_user_s_number_after_cancelled_is_no_other_state() -> None:
    (found,) = read(job("8", State="CANCELLED by 1234"))
    assert (found.state, found.state_as_written) == (JobState.CANCELLED, "CANCELLED by 1234")
    assert found.exit_code is None


def test_an_unknown_state_is_kept_as_it_is_written() -> None:
    (found,) = read(job("8", State="TELEPORTED"))
    assert (found.state, found.state_as_written) == (JobState.UNKNOWN, "TELEPORTED")


def test_no_cpu_time_is_not_zero() -> None:
    unmeasured, not_yet, short = read(
        job("1", TotalCPU="00:00:00"),
        job("2", State="RUNNING", End="Unknown", TotalCPU="00:00:00"),
        job("3", TotalCPU="00:00.003", elapsed_s=2),
    )
    assert unmeasured.cpu_s is None
    assert not_yet.cpu_s is None
    assert short.cpu_s == pytest.approx(0.003)


def test_a_node_that_failed_cannot_report_what_was_used() -> None:
    (found,) = read(job("1", State="NODE_FAIL"))
    assert found.state is JobState.NODE_FAILED
    assert found.cpu_s is None


def test_the_request_is_kept_with_the_allocation() -> None:
    (found,) = read(job("1", AllocTRES="cpu=128,mem=240G,node=1", ReqTRES="cpu=1,mem=2G,node=1"))
    assert (found.cores, found.cores_requested) == (128, 1)
    assert (found.memory_bytes, found.memory_requested_bytes) == (240 * GIB, 2 * GIB)


def test_tasks_components_and_runs_are_jobs_of_their_own() -> None:
    found = read(
        job("42_1"), step("42_1.batch"),
        job("42_2", State="FAILED", ExitCode="1:0"),
        job("42_[3-9%2]", State="PENDING", Start="Unknown", End="Unknown"),
        job("49+0"), step("49+0.0"),
        job("49+1"),
        job("50", State="REQUEUED"),
        job("50"),
    )  # fmt: skip
    assert [one.id for one in found] == [
        "42_1", "42_2", "42_[3-9%2]", "49+0", "49+1", "50", "50",
    ]  # fmt: skip
    assert [len(one.steps) for one in found] == [1, 0, 0, 1, 0, 0, 0]
    assert {one.number for one in found} == {"42", "49", "50"}


def test_gpu_figures_of_slurm_are_of_one_task() -> None:
    used = "cpu=00:00:01,gres/gpumem=1234M,gres/gpuutil=85,mem=4880K"
    (found,) = read(job("1", gpus=1), step("1.0", TRESUsageInMax=used))
    assert found.steps[0].gpu_peak_percent == 85
    assert found.steps[0].gpu_memory_peak_bytes == 1234 * 1024**2


@pytest.mark.parametrize(
    "used",
    [
        "cpu=00:00:01,mem=4880K",
        "gres/gpumem=17592186044416M,gres/gpuutil=18446744073709551614",
        "gres/gpumem=,gres/gpuutil=?",
    ],
)
def test_gpu_figures_that_slurm_could_not_take_are_missing(used: str) -> None:
    (found,) = read(job("1", gpus=1), step("1.0", TRESUsageInMax=used))
    assert found.steps[0].gpu_peak_percent is None
    assert found.steps[0].gpu_memory_peak_bytes is None


def test_what_is_no_table_is_an_error() -> None:
    assert list(read_jobs(["Welcome to the cluster\n", "\n"])) == []
    with pytest.raises(ValueError, match="not a table"):
        list(read_jobs(["123|COMPLETED\x1f\x1e\n"]))
    with pytest.raises(ValueError, match="columns instead of"):
        list(read_jobs(["1\x1f\x1eCOMPLETED\x1f\x1e0:0\x1f\x1e\n"]))


def test_a_greeting_of_the_site_comes_before_the_rows() -> None:
    text = ["Welcome!\n", *lines(rows(job("1")))]
    assert [one.id for one in read_jobs(text)] == ["1"]


def test_the_last_row_may_be_cut() -> None:
    half = rows(job("2"))[:120]
    with pytest.raises(ValueError, match="columns instead of"):
        list(read_jobs([*lines(rows(job("1"))), half]))


def test_the_real_output_of_sacct_gives_the_same_jobs_as_before() -> None:
    """The reader of `teho status` and this one share what they read: on real output of 22.05."""
    text = (DATA / "slurm-22.05" / "sacct.txt").read_text()
    jobs = {job.id: job for job in slurm_text.read_accounting(text)}
    assert all(type(one) is Job for one in jobs.values())
    assert jobs["40"].name == "a|b\nc\x1fd"
    assert jobs["41"].state is JobState.CANCELLED


def test_questions() -> None:
    one = history_of_job("4711_3;puhti")
    assert one is not None
    assert one.argv[:5] == (
        "sacct", "--clusters=puhti", "--allusers", "--duplicates", "--jobs=4711_3",
    )  # fmt: skip
    assert history_of_job("4711.batch").argv[3] == "--jobs=4711"  # type: ignore[union-attr]
    assert history_of_job("train") is None
    since = datetime.fromtimestamp(NOW, timezone.utc)
    begin = f"--starttime={since.astimezone():%Y-%m-%dT%H:%M:%S}"
    mine = history_since(Selection(since=since, user="anna"))
    assert mine.argv[1:3] == ("--user=anna", begin)
    every = history_since(Selection(since=since, account="p", every_run=True))
    assert every.argv[1:5] == ("--allusers", "--accounts=p", "--duplicates", begin)
    assert Slurm().account_of("12") == history_of_job("12")


def test_a_site_that_hides_jobs_is_recognised() -> None:
    history = history_since(Selection(since=datetime.now(timezone.utc)))
    config = "Prolog                  = (null)\nPrivateData             = {}\n"
    assert history.is_private(config.format("accounts,jobs,usage"))
    assert not history.is_private(config.format("none"))
    assert not history.is_private(config.format("cloud,nodes"))


def test_memory_of_the_job_is_what_it_was_allocated() -> None:
    (found,) = read(job("1", AllocTRES="billing=4,cpu=4,mem=7680M,node=1"))
    assert found.memory_bytes == 7.5 * GIB


@given(
    st.lists(
        st.tuples(
            st.text(alphabet=st.sampled_from("ab|\n\x1f\x1e ,=äé0123_.[]")),
            st.text(alphabet=st.sampled_from("JS1:abc=/+ |\x1f")),
        ),
        max_size=6,
    )
)
def test_any_names_and_comments_keep_the_rows_separate(texts: list[tuple[str, str]]) -> None:
    """Only a name that imitates a whole row, with id, state and exit code, could break one."""
    records = []
    for number, (name, comment) in enumerate(texts):
        records += [
            job(str(number), JobName=name, AdminComment=comment.replace("\x1f", "")),
            step(f"{number}.batch"),
        ]
    found = read(*records)
    assert [one.id for one in found] == [str(number) for number in range(len(texts))]
    assert all(len(one.steps) == 1 and one.cores == 10 for one in found)
