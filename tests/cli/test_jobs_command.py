"""`teho jobs`, `teho digest` and `teho report JOB`, with a stand-in for sacct that prints rows."""

from __future__ import annotations

import csv
import gc
import getpass
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
import pytest
from metric_store import MetricStore, Truth, served, shape
from sacct_rows import NOW, job, js1, rows, step

from teho.cli import group
from teho.clusters import catalogue
from teho.jobs.js1 import Js1, Js1Node, decode_js1
from teho.units import GIB

Teho = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
STORES = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
CLUSTERS = Path(catalogue.__file__).parent / "files"
SINCE = ("--since", "2026-11-01")
NODE: dict[str, object] = {
    "cpus": 10,
    "total_time": 64800.5,
    "used_memory": 30 * GIB,
    "total_memory": 40 * GIB,
    "gpu_utilization": {"0": 8.1, "2": 0.0},
    "gpu_used_memory": {"0": 31 * GIB, "2": 0},
    "gpu_total_memory": {"0": 32 * GIB, "2": 32 * GIB},
}
TWO_GPUS = job("4711", gpus=2, AdminComment=js1(r01g01=NODE), ConsumedEnergyRaw="5000000")
SERIAL = job("4712", cores=40, TotalCPU="02:00:00", JobName="a|b\nc")


class Site:
    """A directory with a `sacct` that prints the rows of the jobs that it is asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.answers = directory / "answers"
        self.answers.mkdir(parents=True)
        self.stub(
            "sacct",
            f"""printf '%s\\n' "$@" > '{directory}/asked'
for word; do case $word in --jobs=*) cat '{self.answers}'/"${{word#--jobs=}}" 2>/dev/null; exit 0
esac; done
cat '{self.answers}/all'""",
        )
        self.stub("scontrol", "echo 'PrivateData             = none'")
        self.stub("sstat", "echo 'sstat: error: no steps running for job' >&2; exit 1")

    def stub(self, name: str, body: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def has(self, *records: dict[str, str], name: str = "all") -> None:
        (self.answers / name).write_text(rows(*records))

    @property
    def asked(self) -> list[str]:
        return (self.directory / "asked").read_text().splitlines()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    directory = tmp_path / "a site"
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return Site(directory)


@pytest.fixture
def teho(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Teho]:
    """Run `teho` in this process, which is faster; the twins' tests start real processes."""

    def call(
        *arguments: str | os.PathLike[str], env: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.CompletedProcess[str]:
        words = [*map(str, arguments)]
        with monkeypatch.context() as given:
            for name, value in env.items():
                given.setenv(name, value)
            code = group._guarded(words)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    yield call
    gc.enable()  # the commands switch it off


# Reports.


def test_a_job_that_was_not_recorded_has_the_report_of_a_run(teho: Teho, site: Site) -> None:
    site.has(TWO_GPUS, step("4711.batch"), step("4711.extern"), name="4711")
    result = teho("report", "4711")
    assert result.returncode == 0, result.stderr
    text = result.stdout
    assert text.startswith("✗ GPU 2 on r01g01 was never used. 1 more finding below.\n")
    for words in (
        "Figures from sacct and Jobstats", "Time 2 h (of 4 h)", "Waited in the queue 10 min",
        "Cores used 9 (of 10)", "Memory 30.0 GiB (of 40.0 GiB)", "GPU busy 4.0 %",
        "Energy 1.39 kWh", "GPU 0 on r01g01 was busy only 8.1 % of the time.",
    ):  # fmt: skip
        assert words in " ".join(text.split()), words
    assert "not judged: GPU busy" not in text


def test_every_figure_has_its_source(teho: Teho, site: Site) -> None:
    used = "gres/gpumem=1234M,gres/gpuutil=85"
    site.has(TWO_GPUS, step("4711.0", TRESUsageInMax=used), name="4711")
    full = " ".join(teho("report", "4711", "--why").stdout.split())
    for words in ("TotalCPU", "MaxRSS", "AdminComment", "TRESUsageInMax", "ConsumedEnergyRaw"):
        assert words in full
    assert "Teho did not record this job." in full
    assert "GPU use 85 % (highest sample of one task, on all its GPUs)" in full
    assert "“Not judged” (" in " ".join(teho("report", "4711").stdout.split())


def test_the_monitoring_of_the_site_completes_the_report(
    teho: Teho, site: Site, tmp_path: Path
) -> None:
    truth = Truth(job="4715", hosts=("r01g01",), begin_s=NOW - 7200, count=480)
    site.has(job("4711_3", gpus=2, JobIDRaw="4715"), step("4711_3.batch"), name="4711_3")
    (tmp_path / "token").write_text("s3cret")
    token = {"TEHO_MONITORING_TOKEN_FILE": str(tmp_path / "token")}
    with served(MetricStore(shape("jobstats", truth))) as store:
        env = {"TEHO_MONITORING": store.address, **token}
        result = teho("report", "4711_3", "--why", env=env)
        page = teho("report", "4711_3", "--format", "html", env=env).stdout
        short = teho("report", "4711_3", env=env).stdout
        store.answers = [(401, b"", {})]
        refused = teho("report", "4711_3", env=env)
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.startswith("✗ GPU 1 on r01g01 was never used.")
    for words in (
        "Figures from sacct and 127.0.0.1:", "State completed", "Memory 4.47 GiB (of 40.0 GiB)",
        "Jobstats' nvidia_gpu_prometheus_exporter; one sample every 15.0 s",
    ):  # fmt: skip
        assert words in text, words
    assert "heat" in page
    (shown,) = re.findall(r"```text\n(✗.*?)```", STORES, re.DOTALL)
    short = short.replace(store.address.removeprefix("http://"), "metrics.example.org")
    assert " ".join(shown.split()) in " ".join(short.split())
    assert refused.returncode == 2
    assert "it does not accept this token" in refused.stderr
    assert "Figures from sacct" in refused.stdout
    assert "s3cret" not in result.stdout + page + refused.stdout + refused.stderr


def test_the_file_of_the_cluster_names_the_monitoring(teho: Teho, site: Site, home: Path) -> None:
    truth = Truth(hosts=("r01g01",), begin_s=NOW - 7200, count=60)
    site.has(job("4711", gpus=2, JobIDRaw="4711"), name="4711")
    folder = home.parent / "config" / "teho" / "clusters"
    folder.mkdir(parents=True)
    with served(MetricStore(shape("slurm-job-exporter", truth))) as store:
        shipped = (CLUSTERS / "narval.toml").read_text()
        (folder / "narval.toml").write_text(f'monitoring = "{store.address}"\n{shipped}')
        result = teho("report", "4711", env={"CC_CLUSTER": "narval"})
    # The samples end 15 min after the start of this job of 2 h.
    assert "The store has samples of only 12 % of this time." in " ".join(result.stdout.split())


def test_json_has_the_schema_of_every_report(teho: Teho, site: Site) -> None:
    site.has(TWO_GPUS, step("4711.batch"), name="4711")
    report = json.loads(teho("report", "4711", "--format", "json").stdout)
    assert report["schema"] == "teho.report/1"
    facts = {fact["key"]: fact["value"] for fact in report["facts"]}
    assert facts["job_id"] == "4711"
    assert facts["elapsed_s"] == 7200
    gpus = next(table for table in report["tables"] if table["key"] == "gpus")
    assert [row["load_mean"] for row in gpus["rows"]] == [8.1, 0.0]
    assert [row["memory_max"] for row in gpus["rows"]] == [31 * GIB, 0]
    assert gpus["rows"][0]["load_max"]["reason"] == "unrecorded"
    kinds = [finding["kind"] for finding in report["findings"]]
    assert kinds[:2] == ["gpu_never_used", "gpu_low_use"]
    assert "gpu_memory_full" in kinds


def test_html_needs_no_network_and_names_the_job(teho: Teho, site: Site) -> None:
    site.has(TWO_GPUS, step("4711.batch"), name="4711")
    page = teho("report", "4711", "--format", "html").stdout
    assert "<title>job 4711" in page
    assert "http" not in page.partition("<main")[2].partition("</main")[0]


SEFF = """\
Job ID: 4712
Cluster: puhti
State: COMPLETED (exit code 0)
Nodes: 1
Cores per node: 40
CPU Utilized: 02:00:00
CPU Efficiency: 2.50% of 3-08:00:00 core-walltime
Job Wall-clock time: 02:00:00
Memory Utilized: 2.00 GB
Memory Efficiency: 5.00% of 40.00 GB
"""


def test_seff_for_any_job(teho: Teho, site: Site) -> None:
    site.has(SERIAL, step("4712.batch", peak="2G"), name="4712")
    assert teho("report", "4712", "--format", "seff").stdout == SEFF


def test_the_use_of_gpus_without_jobstats_is_not_known(teho: Teho, site: Site) -> None:
    site.has(job("5", gpus=1, TimelimitRaw="150"), step("5.batch"), name="5")
    result = teho("report", "5")
    head = "? Job 5 completed after 2 h of 2 h 30 min. The use of the GPUs is not known."
    assert " ".join(result.stdout.splitlines()[:2]).startswith(head)
    assert "never used" not in result.stdout


def test_slurm_s_zero_is_explained(teho: Teho, site: Site) -> None:
    used = "gres/gpumem=0,gres/gpuutil=0"
    site.has(job("5", gpus=1), step("5.batch", TRESUsageInMax=used), name="5")
    text = " ".join(teho("report", "5").stdout.split())
    assert "GPU use 0.0 % (highest sample of one task, on all its GPUs. Slurm also prints 0" in text
    assert "never used" not in text


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        (js1(r01g01=NODE)[:60], "The summary of Jobstats cannot be read: "),
        ("JS1:Short", "Jobstats has no figures of this job: the job was too short for Jobstats."),
        ("JS1:None", "Jobstats has no figures of this job: Jobstats found no data about the job."),
        ("moved by the support", "Jobstats has no figures of this job: "),
    ],
)
def test_a_comment_without_figures_says_so(
    teho: Teho, site: Site, comment: str, words: str
) -> None:
    site.has(job("5", gpus=1, AdminComment=comment), step("5.batch"), name="5")
    assert words in " ".join(teho("report", "5", "--why").stdout.split())


def test_several_tasks_bound_the_memory_of_a_job(teho: Teho, site: Site) -> None:
    tasks = step("6.0", NTasks="8", peak="3G", AveRSS="2G")
    site.has(job("6"), step("6.batch", peak="1G"), tasks, name="6")
    text = " ".join(teho("report", "6").stdout.split())
    assert "Memory 17.0 GiB (of 40.0 GiB, at most: the sum of the peaks of all tasks)" in text
    assert "Memory of one task 3.00 GiB" in text
    assert "memory that it requested" not in text
    seff = teho("report", "6", "--format", "seff").stdout
    assert "Memory Utilized: 17.00 GB\nMemory Efficiency: 42.50% of 40.00 GB\n" in seff


def test_a_failed_job_says_how_it_ended(teho: Teho, site: Site) -> None:
    failed = {"State": "FAILED", "ExitCode": "3:0"}
    site.has(job("7", elapsed_s=120, **failed), step("7.batch", **failed), name="7")
    text = teho("report", "7").stdout
    assert text.startswith("✗ The job failed after 2 min with exit code 3.")
    assert "`slurm-7.out`" in text
    site.has(job("8", State="OUT_OF_MEMORY", ExitCode="0:125"), step("8.batch"), name="8")
    assert "because memory ran out" in teho("report", "8").stdout
    site.has(job("9", State="TIMEOUT"), step("9.batch"), name="9")
    assert teho("report", "9").stdout.startswith("✗ The job ended at its time limit after 2 h.")


def test_a_job_that_waits_or_runs_is_not_judged(teho: Teho, site: Site) -> None:
    nothing = {"Start": "Unknown", "End": "Unknown", "AllocTRES": "", "ElapsedRaw": "0",
               "TotalCPU": "00:00:00", "NodeList": "None assigned"}  # fmt: skip
    site.has(job("1", State="PENDING", Reason="Priority", **nothing), name="1")
    waits = " ".join(teho("report", "1").stdout.split())
    assert waits.startswith(
        "i Job 1 pending (Priority). Its use of CPU, memory and GPUs is known after its end."
    )
    site.has(job("2", State="RUNNING", End="Unknown", TotalCPU="00:00:00"), name="2")
    runs = teho("report", "2").stdout
    assert runs.startswith("i Job 2 running on r01g01 for 2 h of 4 h.")
    assert "`teho top 2` shows what the job uses now." in runs
    assert "too short" not in waits + runs


RUNNING: dict[str, str] = {"State": "RUNNING", "End": "Unknown", "TotalCPU": "00:00:00"}
BATCH = step("2.batch", peak="", AveRSS="", **RUNNING)
SSTAT = "2.batch|1|10:00:00|3145728K|3145728K|cpu=10:00:00,gres/gpuutil=93|cpu=10:00:00,mem=3G"


def test_a_job_that_runs_has_its_use_until_now(teho: Teho, site: Site) -> None:
    site.has(job("2", gpus=1, **RUNNING), BATCH, name="2")
    site.stub("sstat", f"printf '%s\\n' \"$@\" > '{site.directory}/asked'; echo '{SSTAT}'")
    text = " ".join(teho("report", "2", "--why").stdout.split())
    assert "--jobs=2" in site.asked
    for words in (
        "for 2 h of 4 h. The figures show the use of cores and memory until now.",
        "Figures from sacct and sstat", "Cores used 5 (of 10)", "Memory 3.00 GiB (of 40.0 GiB)",
        "GPU use 93 % (highest sample of one task",
        "sstat: the last sample that Slurm took of each task",
    ):  # fmt: skip
        assert words in text, words
    # What it has used until now is no proof of waste.
    assert "cores were not used" not in text
    assert "CPU Utilized: 10:00:00" in teho("report", "2", "--format", "seff").stdout


def test_other_jobs_are_not_asked_for_their_use_until_now(teho: Teho, site: Site) -> None:
    site.stub("sstat", f"touch '{site.directory}/called'; echo '{SSTAT}'")
    site.has(job("1"), step("1.batch"), name="1")
    site.has(job("3_1", **RUNNING), job("3_2", **RUNNING), name="3")
    for number in ("1", "3"):
        assert teho("report", number).returncode == 0
    assert not (site.directory / "called").exists()


def test_the_summary_for_jobstats_of_any_job(teho: Teho, site: Site) -> None:
    site.has(TWO_GPUS, step("4711.batch"), name="4711")
    assert teho("report", "4711", "--write-js1").stdout == f"{TWO_GPUS['AdminComment']}\n"
    site.has(SERIAL, step("4712.batch", peak="2G"), name="4712")
    made = decode_js1(teho("report", "4712", "--write-js1").stdout)
    node = Js1Node(
        memory_limit_bytes=40 * GIB, memory_peak_bytes=2 * GIB, cpu_s=7200.0, core_count=40
    )
    assert made == Js1(nodes={"r01g01": node}, elapsed_s=7200, gpu_count=0)
    # The use of the GPU is not known: no figure of it is invented.
    site.has(job("5", gpus=1), step("5.batch"), name="5")
    made = decode_js1(teho("report", "5", "--write-js1").stdout)
    assert isinstance(made, Js1)
    assert (made.gpu_count, made.nodes["r01g01"].gpus()) == (1, [])
    tasks = [job("42_1"), job("42_2")]
    site.has(*tasks, name="42")
    assert teho("report", "42", "--write-js1").stdout.count("JS1:") == 2


def test_the_summary_for_jobstats_has_what_the_monitoring_knows(teho: Teho, site: Site) -> None:
    truth = Truth(hosts=("r01g01",), begin_s=NOW - 7200, count=480)
    site.has(job("4711", gpus=2, JobIDRaw="4711"), name="4711")
    with served(MetricStore(shape("jobstats", truth))) as store:
        env = {"TEHO_MONITORING": store.address}
        made = decode_js1(teho("report", "4711", "--write-js1", env=env).stdout)
        store.answers = [(401, b"", {})]
        refused = teho("report", "4711", "--write-js1", env=env)
    assert isinstance(made, Js1)
    busy = made.nodes["r01g01"].gpu_busy_percent
    assert len(busy) == 2
    assert min(busy.values()) == 0 < max(busy.values())
    assert refused.returncode == 2
    assert isinstance(decode_js1(refused.stdout), Js1)


def test_a_job_that_was_queued_again_is_reported_by_its_last_run(teho: Teho, site: Site) -> None:
    first = job("3", State="REQUEUED", elapsed_s=60, End=str(NOW - 8000))
    site.has(first, job("3"), step("3.batch"), name="3")
    text = teho("report", "3").stdout
    assert "Runs of this job" in text
    assert "queued again" in text
    assert "Time 2 h (of 4 h)" in text


def test_an_array_lists_its_tasks_and_a_task_is_reported(teho: Teho, site: Site) -> None:
    tasks = [job("42_1"), job("42_2", State="FAILED", ExitCode="1:0"), job("42_3")]
    site.has(*tasks, name="42")
    site.has(*tasks, name="42_2")
    listed = teho("report", "42").stdout
    assert listed.startswith("! Job 42 has 3 parts: 2 completed, 1 failed.")
    assert "`teho report 42_1` reports on the first of these jobs." in listed
    assert teho("report", "42_2").stdout.startswith("✗ The job failed after 2 h with exit code 1.")
    seff = teho("report", "42", "--format", "seff").stdout
    assert seff.count("Job ID: 42_") == 3


def test_the_two_halves_of_a_heterogeneous_job(teho: Teho, site: Site) -> None:
    site.has(job("49+0"), step("49+0.0"), job("49+1", gpus=1), name="49")
    assert teho("report", "49").stdout.startswith("i Job 49 has 2 parts: 2 completed.")


def test_a_recorded_job_is_still_reported_from_its_recording(
    teho: Teho, site: Site, home: Path
) -> None:
    run = home / "runs" / "20261120-101944-train-aaaa"
    shutil.copytree(EXAMPLE, run)
    content = json.loads((run / "run.json").read_text())
    for path in (run / "run.json", *run.glob("nodes/*.json")):
        part = json.loads(path.read_text())
        for node in part.get("nodes", []) if path.name == "run.json" else [part]:
            node["allocation"] = {"scheduler": "slurm", "job_id": "4711"}
        path.write_text(json.dumps(part))
    site.has(job("4711"), step("4711.batch"), name="4711")
    report = json.loads(teho("report", "4711", "--format", "json").stdout)
    assert report["run_id"] == content["id"]
    began = datetime.fromisoformat(content["started_at"].replace("Z", "+00:00")).timestamp()
    site.has(job("4711", Start=str(int(began)), End=str(int(began) + 7200)))
    (line,) = json.loads(teho("jobs", *SINCE, "--format", "json").stdout)["jobs"]
    assert line["recordings"] == [run.name]


def test_a_job_that_nothing_knows(teho: Teho, site: Site) -> None:
    site.has(name="99")
    result = teho("report", "99")
    assert result.returncode == 2
    assert "Teho has no recording of job 99, and the accounting of Slurm has no such job" in (
        result.stderr
    )
    assert "`teho jobs` lists your jobs" in result.stderr


def test_accounting_that_is_off_names_the_job_and_the_reason(teho: Teho, site: Site) -> None:
    site.stub("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    result = teho("report", "99")
    assert result.returncode == 2
    assert "no recording of job 99, and sacct says: Slurm accounting storage is disabled" in (
        result.stderr
    )
    assert teho("jobs").returncode == 2


def test_a_job_of_another_cluster_of_the_federation(teho: Teho, site: Site) -> None:
    site.has(job("4711", Cluster="mahti"), step("4711.batch"), name="4711")
    result = teho("report", "4711;mahti")
    assert result.returncode == 0, result.stderr
    assert {"--clusters=mahti", "--jobs=4711"} <= set(site.asked)
    assert "Job 4711 · Cluster mahti" in " ".join(result.stdout.split())


def test_what_is_not_the_id_of_a_job_is_not_asked_for(teho: Teho, site: Site) -> None:
    result = teho("report", "no-such-name")
    assert result.returncode == 2
    assert "no run is recorded in" in result.stderr
    assert not (site.directory / "asked").exists()


def test_without_a_scheduler_the_old_error_stays(
    teho: Teho, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    result = teho("report", "4711")
    assert "no run is recorded in" in result.stderr
    listed = teho("jobs")
    assert listed.returncode == 2
    assert "neither Slurm's `sacct` nor Grid Engine's `qacct` is on PATH" in listed.stderr


def test_the_beginning_of_several_ids_is_not_taken_for_a_job(
    teho: Teho, site: Site, home: Path
) -> None:
    for name in ("20261120-101944-a-aaaa", "20261121-101944-b-bbbb"):
        shutil.copytree(EXAMPLE, home / "runs" / name)
    result = teho("report", "2026112")
    assert "the ids of 2 runs begin with '2026112'" in result.stderr
    assert not (site.directory / "asked").exists()


def test_a_scheduler_that_is_only_installed_is_not_mentioned(teho: Teho, site: Site) -> None:
    fatal = "sacct: fatal: Could not establish a configuration source"
    site.stub("sacct", f"echo '{fatal}' >&2; exit 1")
    site.stub("qacct", "echo 'Please set the environment variable SGE_ROOT.' >&2; exit 1")
    assert "no run is recorded in" in teho("report", "4711").stderr
    assert "the scheduler is not configured on this machine" in teho("jobs").stderr


# Lists.


@pytest.fixture
def full(site: Site) -> Site:
    site.has(
        TWO_GPUS, step("4711.batch"),
        SERIAL, step("4712.batch", peak="2G"),
        job("4713", State="FAILED", ExitCode="3:0", elapsed_s=5, User="bo"),
        job("4714", State="CANCELLED by 1234"),
        job("4715", State="PENDING", NodeList="None assigned", Start="Unknown", End="Unknown",
            AllocTRES="", ElapsedRaw="0", TotalCPU="00:00:00", Reason="Priority"),
        job("4716", State="RUNNING", End="Unknown", TotalCPU="00:00:00"),
        job("4717", JobName="=cmd()"),
    )  # fmt: skip
    return site


def test_a_line_for_each_job_with_running_jobs_first(teho: Teho, full: Site) -> None:
    result = teho("jobs", *SINCE, "--all")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    ids = [words[0] for words in lines if words and words[0].isdigit()]
    assert ids[:2] == ["4716", "4715"]
    assert sorted(ids) == [str(number) for number in range(4711, 4718)]
    assert "completed: 1.0 of 40 cores used" in result.stdout
    assert "completed: 1 of 2 GPUs were never used" in result.stdout
    assert "exit code 3 after 5.0 s" in result.stdout
    assert r"a|b\nc" in result.stdout


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("80", ["2 h of 4 h", "2 %", "5 %", "1.0 of 40 cores used"]),
        ("120", ["2 h of 4 h", "1.0 of 40", "5 % of 40.0 GiB", "88 CPU BU", "78 core-h",
                 "completed: 1.0 of 40 co"]),
    ],
)  # fmt: skip
def test_a_job_has_one_line_on_a_terminal(
    teho: Teho, full: Site, columns: str, words: list[str]
) -> None:
    result = teho("jobs", *SINCE, "--all", env={"COLUMNS": columns})
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    (line,) = [line for line in lines if line.startswith("4712 ")]
    for word in words:
        assert f"  {word}" in line, word


NAME = "a-sweep-with-a-long-name"


def test_a_line_has_the_columns_that_fit(teho: Teho, site: Site) -> None:
    """Ids, names, users and times of a large site."""
    jobs = [
        job(f"1727394{n}", gpus=2, elapsed_s=7080 + 900 * n, TimelimitRaw="2160",
            User=f"user00{n}", JobName=NAME, AdminComment=js1(r01g01=NODE))
        for n in range(2)
    ]  # fmt: skip
    site.has(*jobs, job("17273950", TotalCPU="05:00:00", elapsed_s=6000, TimelimitRaw="2160"))
    expected = {
        "80": "17273940 a-sweep-w… user000 2 h 90 % 2 × 4 % 1 of 2 GPUs were never us…",
        "120": "17273940 a-sweep-w… user000 2 h of 1.5 d 90 % 75 % 2 × 4 % 264 GPU BU "
        "3.77 GPU-h 1 of 2 GPUs were never…",
    }
    for columns, line in expected.items():
        result = teho("jobs", *SINCE, "--all", env={"COLUMNS": columns})
        (found,) = [one for one in result.stdout.splitlines() if one.startswith("17273940")]
        assert " ".join(found.split()) == line
        assert max(map(len, result.stdout.splitlines())) <= int(columns)
    whole = teho("jobs", *SINCE, "--all", "--why", env={"COLUMNS": "80"}).stdout
    for words in ("1 h 58 min of 1 d 12 h", "9.0 of 10", "Billing-hours", "GPU BU"):
        assert words in whole, words


WASTED = ("wasted_gpu_hours", "wasted_core_hours", "wasted_gib_hours")


def test_json_csv_and_parquet_have_the_same_figures(teho: Teho, full: Site, tmp_path: Path) -> None:
    found = json.loads(teho("jobs", *SINCE, "--all", "--format", "json").stdout)
    assert found["schema"] == "teho.jobs/1"
    jobs = {line["id"]: line for line in found["jobs"]}
    text = teho("jobs", *SINCE, "--all", "--format", "csv").stdout
    table = {line["id"]: line for line in csv.DictReader(io.StringIO(text))}
    path = tmp_path / "jobs.parquet"
    assert teho("jobs", *SINCE, "--all", "-o", path).returncode == 0
    columns: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    parquet = {line["id"]: line for line in columns}
    assert set(jobs) == set(table) == set(parquet)
    for job_id, line in jobs.items():
        assert parquet[job_id]["name"] == line["name"]
        assert parquet[job_id]["waste"] == line["waste"]
        for name in ("cores_used", "cost", *WASTED):
            assert parquet[job_id][name] == line[name]
            cell = table[job_id][name]
            assert (float(cell) if cell else None) == line[name]
    assert jobs["4712"]["cores_used"] == 1.0
    assert jobs["4715"]["elapsed_s"] is None
    assert jobs["4716"]["cores_used"] is None
    assert (jobs["4711"]["gpu_busy_percent"], jobs["4711"]["gpu_hours"]) == (4.05, 4.0)
    assert [jobs["4711"][name] for name in WASTED] == [3.838, None, None]
    assert [jobs["4712"][name] for name in WASTED] == [0.0, 78.0, 0.0]
    assert (jobs["4712"]["cost"], jobs["4712"]["cost_unit"]) == (88.0, "CPU BU")
    # It failed after 5 s, or did not begin.
    assert [jobs[job_id][name] for job_id in ("4713", "4715") for name in WASTED] == 6 * [None]
    assert jobs["4715"]["cost"] is None
    assert jobs["4712"]["name"] == table["4712"]["name"] == "a|b\nc"
    # A spreadsheet must not run the name of a job.
    assert (jobs["4717"]["name"], table["4717"]["name"]) == ("=cmd()", "'=cmd()")


def test_the_list_has_the_cost_of_the_report(teho: Teho, full: Site) -> None:
    full.has(TWO_GPUS, step("4711.batch"), name="4711")
    full.has(SERIAL, step("4712.batch", peak="2G"), name="4712")
    found = json.loads(teho("jobs", *SINCE, "--all", "--format", "json").stdout)
    costs = {line["id"]: (line["cost"], line["cost_unit"]) for line in found["jobs"]}
    for job_id in ("4711", "4712"):
        report = json.loads(teho("report", job_id, "--format", "json").stdout)
        (cost,) = [fact for fact in report["facts"] if fact["key"] == "cost"]
        assert costs[job_id] == (pytest.approx(cost["value"]), cost["unit"])


def test_states_and_order_are_chosen(teho: Teho, full: Site) -> None:
    def ids(*options: str) -> list[str]:
        found = json.loads(teho("jobs", *SINCE, *options, "--format", "json").stdout)
        return [line["id"] for line in found["jobs"]]

    assert ids("--state", "failed,cancelled") == ["4713", "4714"]
    assert ids("--state", "COMPLETED", "--sort", "cores")[0] == "4712"
    result = teho("jobs", "--state", "faild")
    assert result.returncode == 2
    assert "did you mean" in result.stderr
    shown = teho("jobs", *SINCE, "--last", "2").stdout
    assert "and 5 more jobs: `--last 7` shows all" in " ".join(shown.split())


def test_the_jobs_of_which_users_are_requested(teho: Teho, full: Site) -> None:
    teho("jobs")
    assert f"--user={getpass.getuser()}" in full.asked
    teho("jobs", "--user", "bo")
    assert "--user=bo" in full.asked
    teho("jobs", "--account", "p")
    assert {"--allusers", "--accounts=p"} <= set(full.asked)
    teho("jobs", "--all")
    assert "--allusers" in full.asked
    assert teho("jobs", "--all", "--user", "bo").returncode == 2
    assert teho("jobs", "--since", "soon").returncode == 2


def test_a_site_that_hides_jobs_is_named(teho: Teho, site: Site) -> None:
    site.has(job("1", User=getpass.getuser()))
    hidden = "This site hides the jobs of other users (`PrivateData=jobs`)"
    maybe = "Only your own jobs were found. The accounting may hide the jobs of other users."
    assert maybe in " ".join(teho("jobs", *SINCE, "--all").stdout.split())
    site.stub("scontrol", "echo 'PrivateData             = jobs,usage'")
    for name in ("jobs", "digest"):
        assert hidden in " ".join(teho(name, *SINCE, "--all").stdout.split())
    assert hidden not in teho("jobs", *SINCE).stdout
    site.has(job("1", User="bo"))
    assert hidden not in teho("jobs", *SINCE, "--all").stdout


def test_no_jobs_is_no_error(teho: Teho, site: Site) -> None:
    site.has()
    result = teho("jobs")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "i 0 jobs in the last 7 days.")
    assert "No job of user" in teho("digest").stdout


# Digests.


def test_the_digest_names_the_waste_and_what_to_change(teho: Teho, full: Site) -> None:
    result = teho("digest", *SINCE, "--all")
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.startswith("! 6 jobs used 4 GPU-hours, ")
    assert "Wasted: 3.84 GPU-hours, 78 core-hours (85.8 CPU BU, 257 GPU BU)." in text
    assert "1 job named a|b\\nc: only one core was used, but several were requested." in text
    assert "`--cpus-per-task=1`" in text
    assert "By user" in text
    assert "--duplicates" in full.asked
    full_text = " ".join(teho("digest", *SINCE, "--all", "--why").stdout.split())
    assert "rule serial_program" in full_text
    assert "Jobstats, a job report tool, calls a job serial" in full_text


def test_a_digest_is_a_page_and_a_noun_too(teho: Teho, full: Site, tmp_path: Path) -> None:
    found = json.loads(teho("digest", *SINCE, "--all", "--format", "json").stdout)
    assert found["schema"] == "teho.digest/1"
    assert {one["kind"] for one in found["waste"]} == {
        "gpu_never_used", "gpu_low_use", "serial_program", "time_overasked",
    }  # fmt: skip
    path = tmp_path / "digest.html"
    assert teho("digest", *SINCE, "--all", "-o", path).returncode == 0
    assert "What would save most" in path.read_text()


# Mails.

MAIL = ("digest", *SINCE, "--all", "--mail-to", "{user}@example.org")


@pytest.fixture
def wasteful(site: Site) -> Site:
    idle = js1(r01g01=NODE | {"gpu_utilization": {"0": 0.0, "2": 0.0}})
    site.has(
        job("5001", gpus=2, elapsed_s=48 * 3600, AdminComment=idle, JobName="idle"),
        job("5002", cores=40, elapsed_s=96 * 3600, TotalCPU="4-00:00:00", User="bo"),
        job("5003", gpus=2, elapsed_s=7200, AdminComment=idle, User="cy"),
        job("5004", gpus=2, elapsed_s=48 * 3600, AdminComment=idle, User="d\ne"),
        job("5005", User="eve"),
    )
    site.stub(
        "sendmail",
        f"""[ "$*" = "-t -oi" ] || exit 3
mail=$(cat)
case $mail in *bo@*) [ -e '{site.directory}/works' ] || {{ echo no >&2; exit 75; }};; esac
printf '%s\\n=====\\n' "$mail" >> '{site.directory}/sent'""",
    )
    return site


def mails(result: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    assert result.returncode == 0, result.stderr
    return {
        one["user"]: (one["state"], one.get("reason", ""))
        for one in json.loads(result.stdout)["mails"]
    }


def test_mails_are_only_shown_without_send(teho: Teho, wasteful: Site, home: Path) -> None:
    shown = mails(teho(*MAIL, "--format", "json"))
    assert shown["anna"] == shown["bo"] == ("planned", "")
    assert shown["cy"][1] == "less than 24 GPU-hours and 1000 core-hours"
    assert shown["d\ne"] == ("skipped", "the name cannot be part of an address")
    assert shown["eve"][0] == "skipped"
    text = " ".join(teho(*MAIL).stdout.split())
    assert "2 users would get a mail. No mail was sent: add `--send`." in text
    assert "Dear anna," in text
    assert "wasted 96 GPU-hours" in text
    assert not (wasteful.directory / "sent").exists()
    assert not (home / "mailed.json").exists()


def test_a_user_gets_at_most_one_mail_in_a_period(teho: Teho, wasteful: Site, home: Path) -> None:
    sent = wasteful.directory / "sent"
    first = mails(teho(*MAIL, "--send", "--format", "json"))
    assert first["anna"] == ("sent", "")
    assert first["bo"] == ("failed", "exit code 75: no")
    assert sent.read_text().count("=====") == 1
    assert "To: anna@example.org" in sent.read_text()
    (wasteful.directory / "works").touch()
    second = mails(teho(*MAIL, "--send", "--format", "json"))
    assert second["anna"][1].startswith("got a mail on ")
    assert second["bo"] == ("sent", "")
    refused = teho("digest", "--refuse", "bo")
    assert refused.stderr == "teho: bo gets no more mails of `teho digest`\n"
    third = mails(teho(*MAIL, "--send", "--every", "0s", "--format", "json"))
    assert third["anna"] == ("sent", "")
    assert third["bo"] == ("skipped", "refused these mails")
    assert sent.read_text().count("=====") == 3
    assert set(json.loads((home / "mailed.json").read_text())["last_at"]) == {"anna", "bo"}


def test_a_site_has_its_own_template(
    teho: Teho, wasteful: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "templates" / "digest_mail.txt.j2"
    template.parent.mkdir()
    template.write_text(
        "Hukka: {{ wasted }}\n\nHei {{ user }}!\n{% for one in waste %}{{ one.kind }}\n{% endfor %}"
    )
    monkeypatch.setenv("TEHO_TEMPLATES", str(template.parent))
    found = json.loads(teho(*MAIL, "--format", "json").stdout)
    assert found["example_title"] == "Hukka: 96 GPU-hours (6,432 GPU BU)"
    assert found["example"].startswith("Hei anna!\ngpu_never_used\n")
    template.write_text("{{ nothing }}")
    assert f"{template}:1" in teho(*MAIL).stderr


def test_a_refusal_is_taken_back(teho: Teho, wasteful: Site, home: Path) -> None:
    def refused() -> object:
        return json.loads((home / "mailed.json").read_text())["refused"]

    for name in ("bo", "anna", "bo"):
        assert teho("digest", "--refuse", name).returncode == 0
    assert refused() == ["anna", "bo"]
    assert "bo gets the mails of `teho digest` again" in teho("digest", "--accept", "bo").stderr
    assert refused() == ["anna"]
    again = teho("digest", "--accept", "bo")
    assert (again.returncode, again.stderr) == (0, "teho: bo has not refused these mails\n")
    assert mails(teho(*MAIL, "--format", "json"))["bo"] == ("planned", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--refuse", ""), "--refuse '' is not the name of a user; expected letters"),
        (("--refuse", "a b"), "--refuse 'a b' is not the name of a user"),
        (("--refuse", "bo", "--send"), "--send has no effect with --refuse; expected only"),
        (("--accept", "bo", "--since", "3d"), "--since has no effect with --accept"),
        (("--refuse", "bo", "--accept", "bo"), "--refuse has no effect with --accept"),
        (("--refuse", "bo", "--short"), "--short has no effect with --refuse"),
    ],
)
def test_a_refusal_has_one_name_and_no_other_options(
    teho: Teho, home: Path, options: tuple[str, ...], said: str
) -> None:
    result = teho("digest", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Next: " in result.stderr
    assert not home.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--send",), "--send has no effect without --mail-to"),
        (("--every", "7d"), "--every has no effect without --mail-to"),
        (("--mail-to", "anna@example.org"), "an address with {user}"),
        (("--mail-to", "{user}"), "an address with {user}"),
        (("--mail-to", "{user}@a b"), "an address with {user}"),
        (("--mail-to", "{user}@a", "--every", "often"), "--every"),
    ],
)
def test_options_of_mails_that_make_no_sense(
    teho: Teho, wasteful: Site, options: tuple[str, ...], said: str
) -> None:
    result = teho("digest", "--all", *options)
    assert result.returncode == 2
    assert said in result.stderr


def test_mails_need_sendmail_and_a_readable_list_of_refusals(
    teho: Teho, wasteful: Site, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "mailed.json").write_text('{"refused": "bo"}')
    result = teho(*MAIL)
    assert result.returncode == 2
    assert "mailed.json" in result.stderr
    (wasteful.directory / "sendmail").unlink()
    monkeypatch.setattr("teho.process.sendmail._FOLDERS", "/nowhere")
    monkeypatch.setenv("PATH", str(wasteful.directory))
    assert "this machine has no sendmail command" in teho(*MAIL, "--send").stderr
