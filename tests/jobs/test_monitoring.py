"""`teho report JOB` with a store: the report is that of a recording of the same values."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from metric_store import (
    BEGIN_S,
    GPU_BYTES,
    SHAPES,
    MetricStore,
    One,
    Truth,
    served,
    shape,
    uuid,
)

from teho.config.settings import Settings
from teho.errors import InputError, StoreBusyError, StoreError
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.summary import summarise
from teho.jobs import http as store_http
from teho.jobs import monitoring
from teho.jobs.exporters import exporters
from teho.jobs.http import Store, store_at
from teho.jobs.log import NODE, Log, Sample, Source
from teho.jobs.make_recording import ImportWish, make_recordings
from teho.jobs.monitoring import Monitored, ask_store
from teho.model.accounted import AccountedJob
from teho.model.document import Report
from teho.model.job import JobState
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.show.accounted import report_on
from teho.show.json.report import render_json
from teho.store.read import read_run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.0)


def job(truth: Truth, **changes: Any) -> AccountedJob:
    """Return the accounting of the job of a truth."""
    began = datetime.fromtimestamp(truth.begin_s, timezone.utc)
    elapsed_s = truth.every_s * truth.count
    facts: dict[str, Any] = {
        "id": truth.job, "number": truth.job, "raw_id": truth.job, "name": "train",
        "state": JobState.COMPLETED, "exit_code": 0, "scheduler": "slurm", "source": "sacct",
        "cluster": "puhti", "node_list": "g[1-2]", "nodes": len(truth.hosts), "cores": 20,
        "gpus": truth.gpus * len(truth.hosts), "memory_bytes": 64 << 30, "elapsed_s": elapsed_s,
        "started_at": began, "ended_at": began + timedelta(seconds=elapsed_s),
        "time_limit_s": 2 * elapsed_s, "gpu_type": "a100",
    }  # fmt: skip
    return AccountedJob(**(facts | changes))


def truth_log(truth: Truth, signals: set[str]) -> Log:
    """Return the truth as a log, without any exporter."""
    log = Log(tool="the store truth", is_whole=True)
    for number, at_s in enumerate(truth.times):
        for host in truth.hosts:
            own = {name: values[number] for name, values in truth.node(host).items()}
            own = {name: value for name, value in own.items() if name in signals}
            if own:
                log.samples.append(Sample.of(at_s, host, NODE, own))
            for index in range(truth.gpus):
                of_gpu = {n: values[number] for n, values in truth.gpu(host, index).items()}
                of_gpu = {name: value for name, value in of_gpu.items() if name in signals}
                log.samples.append(Sample.of(at_s, host, str(index), of_gpu))
    return log


def signals_of(series: list[One]) -> set[str]:
    known = {row.name: row.signal for one in exporters().values() for row in one.metrics}
    return {known[one.labels["__name__"]] for one in series if one.labels["__name__"] in known}


def content(report: Report, host: str) -> str:
    """Return all of a report but its notes and the sources, without the address of the store."""
    own = msgspec.structs.replace(
        report,
        notes=(),
        facts=tuple(fact for fact in report.facts if fact.key != "source"),
        tables=tuple(table for table in report.tables if table.key != "sources"),
    )
    return msgspec.json.format(render_json(own)).replace(host, "truth")


def reference(exporter: str, truth: Truth, one: AccountedJob) -> str:
    """Return the content of the report if the same values come without a store."""
    signals = signals_of(shape(exporter, truth))
    log = truth_log(truth, signals)
    for host in truth.hosts:
        for index in range(truth.gpus):
            facts = log.gpu(host, str(index))
            facts.index, facts.memory_bytes = index, GPU_BYTES
            facts.name = "NVIDIA A100" if exporters()[exporter].model else ""
            facts.vendor = "amd" if exporter == "omnistat" else "nvidia"
            facts.uuid = (
                uuid(host, index) if "uuid" in str(exporters()[exporter].gpu).lower() else ""
            )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitoring, "ask_store", lambda *_: Monitored(log, ("the truth",), ()))
        return content(report_on([one], Settings(), store=Store("http://truth")), "truth")


@pytest.mark.parametrize("exporter", SHAPES)
def test_each_exporter_gives_the_report_of_its_values(exporter: str) -> None:
    truth = Truth()
    with served(MetricStore(shape(exporter, truth))) as store:
        report = report_on([job(truth)], Settings(), store=Store(store.address))
    host = store.address.removeprefix("http://")
    assert content(report, host) == reference(exporter, truth, job(truth))
    assert report.heat_map is not None
    assert len(report.plots) > 2
    assert report.verdict == "GPU 1 on g2 was never used."
    assert host in str(report.facts[0].value)


@pytest.mark.parametrize("exporter", SHAPES)
def test_the_figures_are_those_of_a_recording(exporter: str, home: Path) -> None:
    truth = Truth()
    series = shape(exporter, truth)
    signals = signals_of(series) & set(METRICS_BY_NAME)
    log = truth_log(truth, signals)
    (directory,) = make_recordings([(Source(Path("x"), "", 0.0), log)], ImportWish(), home)
    run = read_run(directory)
    summary = summarise(run, directory, [])
    with served(MetricStore(series)) as store:
        monitored = ask_store(Store(store.address), job(truth))
    (other,) = make_recordings([(Source(Path("y"), "", 0.0), monitored.log)], ImportWish(), home)
    asked = summarise(read_run(other), other, [])
    for mine, theirs in zip(summary.nodes, asked.nodes, strict=True):
        assert mine.name == theirs.name
        assert mine.stats == theirs.stats or {
            name: stat for name, stat in mine.stats.items() if name in signals
        } == {name: stat for name, stat in theirs.stats.items() if name in signals}
        for gpu, same in zip(mine.gpus, theirs.gpus, strict=True):
            for signal in signals & {m for m in METRICS_BY_NAME if m.startswith("gpu_")}:
                assert gpu.stats[signal] == same.stats[signal]
    kinds = [
        {one.kind for one in judge_all(run_, summary_, load_policy())[0]}
        for run_, summary_ in ((run, summary), (read_run(other), asked))
    ]
    assert kinds[0] == kinds[1]


# Which values are of the job


def test_jobs_of_the_same_number_on_another_cluster_are_left_out() -> None:
    truth = Truth()
    series = shape("slurm-job-exporter", truth)
    other = shape("slurm-job-exporter", truth._replace(hosts=("nid01", "nid02")))
    with served(MetricStore(series + other)) as store:
        log = ask_store(Store(store.address), job(truth)).log
    assert {one.node for one in log.samples} == {"g1", "g2"}


@pytest.mark.parametrize(("cluster", "is_used"), [("puhti", True), ("lumi", False)])
def test_nodes_of_the_same_name_on_another_cluster_are_left_out(
    cluster: str, is_used: bool
) -> None:
    truth = Truth()
    series = shape("jobstats", truth)
    other = [
        One({**one.labels, "cluster": "mahti"}, [(at, 1.0) for at, _ in one.values])
        for one in series
        if one.labels["__name__"] in {"nvidia_gpu_duty_cycle", "cgroup_memory_rss_bytes"}
    ]
    own = [One({**one.labels, "cluster": "puhti"}, one.values) for one in series]
    with served(MetricStore(other + own)) as store:
        found = ask_store(Store(store.address), job(truth, cluster=cluster))
    assert bool(found.log.samples) is is_used
    assert any("on 2 clusters: mahti, puhti" in note for note in found.notes) is not is_used
    if is_used:
        first = next(one for one in found.log.samples if one.device == uuid("g1", 0))
        assert first.values["gpu_busy_percent"] == truth.gpu("g1", 0)["gpu_busy_percent"][0]


def test_a_job_that_runs_has_its_figures_until_now() -> None:
    truth = Truth()
    runs = job(truth, state=JobState.RUNNING, ended_at=None, exit_code=None, elapsed_s=900.0)
    with served(MetricStore(shape("jobstats", truth))) as store:
        report = report_on([runs], Settings(), store=Store(store.address))
    assert report.state == "running"
    assert "gpu_never_used" in {one.kind for one in report.findings}


def test_a_gpu_counts_only_while_the_job_has_it() -> None:
    truth = Truth(hosts=("g1",))
    series = shape("jobstats", truth)
    for one in series:
        if one.labels["__name__"] == "nvidia_gpu_jobId":
            # The second half belongs to another job, and one sample is lost.
            one.values[30:] = [(at, 4712.0) for at, _ in one.values[30:]]
            del one.values[10]
    with served(MetricStore(series)) as store:
        log = ask_store(Store(store.address), job(truth, node_list="g1", gpus=2)).log
    times = {one.at_s for one in log.samples if one.device != NODE}
    assert times == set(truth.times[:30])


@pytest.mark.parametrize(("gpus", "is_used"), [(4, True), (2, False)])
def test_gpus_without_a_job_count_only_if_the_job_has_the_whole_node(
    gpus: int, is_used: bool
) -> None:
    truth = Truth()
    series = shape("dcgm-exporter", truth)
    for one in series:
        one.labels.pop("hpc_job", None)
    with served(MetricStore(series)) as store:
        found = ask_store(Store(store.address), job(truth, gpus=gpus))
    assert bool(found.log.samples) is is_used
    assert ("does not say which of them this job had" in " ".join(found.notes)) is not is_used


@pytest.mark.parametrize("named", [1, 2])
def test_gpus_that_name_another_job_do_not_count(named: int) -> None:
    truth = Truth(gpus=2)
    series = shape("dcgm-exporter", truth._replace(job="9999"))
    for one in series:
        if int(one.labels["gpu"]) >= named:
            del one.labels["hpc_job"]
    with served(MetricStore(series)) as store:
        found = ask_store(Store(store.address), job(truth))
    assert not found.log.samples


def test_a_job_without_gpus_has_no_gpus_of_its_nodes() -> None:
    truth = Truth()
    series = shape("dcgm-exporter", truth) + shape("omnistat", truth)
    for one in series:
        one.labels.pop("hpc_job", None)
    with served(MetricStore(series)) as store:
        found = ask_store(Store(store.address), job(truth, gpus=0))
    assert (found.log.samples, found.notes) == ([], ())


def test_tasks_of_an_array_have_their_own_number() -> None:
    truth = Truth(job="4713")
    task = job(truth, id="4700_3", number="4700", raw_id="4713")
    with served(MetricStore(shape("slurm-job-exporter", truth))) as store:
        assert ask_store(Store(store.address), task).log.samples


def test_one_exporter_counts_if_two_have_the_same_gpus() -> None:
    truth = Truth()
    both = shape("slurm-job-exporter", truth) + shape("dcgm-exporter", truth)
    with served(MetricStore(both)) as store:
        report = report_on([job(truth)], Settings(), store=Store(store.address))
    counts = [fact.value for fact in report.facts if fact.key == "gpu_count"]
    assert counts == [4]


def test_with_dcgm_the_activity_is_not_shown_as_use() -> None:
    truth = Truth()
    series = shape("slurm-job-exporter", truth)
    extra = [
        One({**one.labels, "__name__": "slurm_job_sm_occupancy_gpu"}, one.values)
        for one in series
        if one.labels["__name__"] == "slurm_job_utilization_gpu"
    ]
    with served(MetricStore(series + extra)) as store:
        log = ask_store(Store(store.address), job(truth)).log
    names = {name for one in log.samples for name in one.metrics}
    assert "gpu_busy_percent" not in names
    assert {"gpu_sm_active_percent", "gpu_sm_occupancy_percent"} <= names


def test_allocated_gpus_without_samples_are_named_and_not_judged() -> None:
    truth = Truth(hosts=("g1",))
    eight = job(truth, node_list="g1", nodes=1, gpus=4)
    with served(MetricStore(shape("slurm-job-exporter", truth))) as store:
        report = report_on([eight], Settings(), store=Store(store.address))
    assert [fact.value for fact in report.facts if fact.key == "gpu_count"] == [4]
    assert "gpu_invisible" not in {one.kind for one in report.findings}
    about = [one.sentence for one in report.findings if one.kind == "gpu_never_used"]
    assert about == ["GPU 1 on g1 was never used."]


# Bad values


def test_series_twice_in_the_store_count_once() -> None:
    truth = Truth()
    series = shape("slurm-job-exporter", truth)
    copies = [
        One({**one.labels, "replica": "b"}, [(at + 4, value) for at, value in one.values[1:-1]])
        for one in series
    ]
    with served(MetricStore(copies + series)) as store:
        report = report_on([job(truth)], Settings(), store=Store(store.address))
    host = store.address.removeprefix("http://")
    assert content(report, host) == reference("slurm-job-exporter", truth, job(truth))
    assert any("had values of the same time as another series" in one for one in report.notes)


def test_holes_are_holes() -> None:
    truth = Truth(hosts=("g1",))
    series = shape("jobstats", truth)
    for one in series:
        del one.values[20:40]
    with served(MetricStore(series)) as store:
        found = ask_store(Store(store.address), job(truth, node_list="g1", gpus=2)).log
    times = {one.at_s for one in found.samples}
    assert times == {*truth.times[:20], *truth.times[40:]}


def test_counters_that_begin_again_lose_nothing() -> None:
    truth = Truth(hosts=("g1",))
    series = shape("slurm-job-exporter", truth)
    for one in series:
        if one.labels["__name__"] == "slurm_job_core_usage_total":
            half = one.values[30][1]
            one.values[30:] = [(at, value - half) for at, value in one.values[30:]]
    with served(MetricStore(series)) as store:
        found = ask_store(Store(store.address), job(truth, node_list="g1")).log
    used = [one.values["job_cpu_s"] for one in found.samples if one.device == NODE]
    total = truth.node("g1")["job_cpu_s"][-1]
    # One sampling period between the reset and the sample before it is not known.
    assert used[-1] == pytest.approx(total, abs=4 * truth.every_s)
    assert used == sorted(used)


def test_numbers_that_are_none_are_missing() -> None:
    truth = Truth(hosts=("g1",))
    series = shape("jobstats", truth)
    for one in series:
        if one.labels["__name__"] == "nvidia_gpu_power_usage_milliwatts":
            one.values[5] = (one.values[5][0], math.nan)
            one.values[6] = (one.values[6][0], math.inf)
    with served(MetricStore(series)) as store:
        log = ask_store(Store(store.address), job(truth, node_list="g1", gpus=2)).log
    power = [one.values["gpu_power_w"] for one in log.samples if one.device == uuid("g1", 0)]
    assert [number for number, one in enumerate(power) if isinstance(one, Missing)] == [5, 6]
    assert power[7] == truth.gpu("g1", 0)["gpu_power_w"][7]


@pytest.mark.parametrize("blank", [9223372036854775794.0, 140737488355330.0])
def test_the_numbers_by_which_dcgm_means_no_value_are_missing(blank: float) -> None:
    """The page of dcgm-exporter shows 9223372036854775794 as the temperature of a memory."""
    truth = Truth(hosts=("g1",))
    series = shape("dcgm-exporter", truth)
    for one in series:
        if one.labels["__name__"] == "DCGM_FI_DEV_POWER_USAGE":
            one.values[5] = (one.values[5][0], blank)
    with served(MetricStore(series)) as store:
        log = ask_store(Store(store.address), job(truth, node_list="g1", gpus=2)).log
    for gpu in range(2):
        power = [one.values["gpu_power_w"] for one in log.samples if one.device == uuid("g1", gpu)]
        assert [number for number, one in enumerate(power) if isinstance(one, Missing)] == [5]


@pytest.mark.parametrize("ahead_s", [-240, 240])
def test_clocks_that_differ_are_named(ahead_s: int) -> None:
    truth = Truth()
    late = job(truth, started_at=datetime.fromtimestamp(BEGIN_S - ahead_s, timezone.utc),
               ended_at=datetime.fromtimestamp(BEGIN_S - ahead_s + 900, timezone.utc))  # fmt: skip
    with served(MetricStore(shape("jobstats", truth))) as store:
        report = report_on([late], Settings(), store=Store(store.address))
    about = "The clocks of the nodes and of the scheduler differ by 3 min 45 s"
    about = about if ahead_s < 0 else "differ by 4 min"
    assert any(about in note for note in report.notes)
    facts = {fact.key: fact.value for fact in report.facts}
    assert facts["elapsed_s"] == 900
    assert facts["cores_used"] == pytest.approx(59 * 15.0 * (4 + 5) / 900, rel=1e-3)
    assert facts["gpu_busy_percent"] == pytest.approx(
        sum(sum(truth.gpu(h, i)["gpu_busy_percent"]) for h in truth.hosts for i in (0, 1)) / 240,
        abs=0.5,
    )


def test_another_version_of_an_exporter() -> None:
    truth = Truth()
    # The new version of Jobstats' exporter names the job in each series.
    series = [
        One({**one.labels, "jobid": "4711"}, one.values)
        if one.labels["__name__"].startswith("nvidia_")
        else one
        for one in shape("jobstats", truth)
    ]
    strange = One({"__name__": "nvidia_gpu_fanspeed_percent", "instance": "g1:9445"}, [])
    with served(MetricStore([*series, strange])) as store:
        report = report_on([job(truth)], Settings(), store=Store(store.address))
    assert "gpu_never_used" in {one.kind for one in report.findings}


def test_a_large_job_has_values_at_regular_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "_ROWS_MOST", 100)
    truth = Truth()
    with served(MetricStore(shape("jobstats", truth))) as store:
        found = ask_store(Store(store.address), job(truth))
    assert {path for path, _, _ in store.asked} == {"/api/v1/query_range"}
    times = sorted({one.at_s for one in found.log.samples if one.at_s is not None})
    assert {later - earlier for earlier, later in pairwise(times)} == {60}
    assert any("one value of each series every 1 min" in note for note in found.notes)
    of_gpu = [one for one in found.log.samples if one.device == uuid("g1", 0)]
    busy = dict(zip(truth.times, truth.gpu("g1", 0)["gpu_busy_percent"], strict=True))
    inside = [one for one in of_gpu if one.at_s in busy]
    assert len(inside) > 10
    assert all(one.values["gpu_busy_percent"] == busy[one.at_s or 0] for one in inside)


def test_a_long_job_is_asked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Truth()
    series = shape("slurm-job-exporter", truth)
    with served(MetricStore(series)) as store:
        whole = ask_store(Store(store.address), job(truth)).log
        monkeypatch.setattr(monitoring, "_ROWS_PER_ANSWER", 100)
        store.asked.clear()
        parts = ask_store(Store(store.address), job(truth)).log
    assert parts.samples == whole.samples
    assert len({words["time"] for _, words, _ in store.asked}) > 2


# Stores that do not answer


ANSWERS = {
    "login": ((200, b"<!DOCTYPE html><title>Log in</title>", {}), "answers with a web page"),
    "no JSON": ((200, b"ok", {}), "answers with 'ok'"),
    "not a store": ((501, b"<p>no", {}), "answers 501 Not Implemented"),
    "error": ((400, b'{"status":"error","error":"bad data"}', {}), "answers 400 Bad Request"),
    "no token": ((401, b"no", {}), "answers 401: it does not accept a request without a token"),
    "redirect": ((302, b"", {"Location": "https://sso.example.org/"}), "redirects to sso"),
    "other": ((200, b'{"status":"error","error":"query timed out"}', {}), "query timed out"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_report_of_the_accounting_names_the_problem(name: str) -> None:
    answer, words = ANSWERS[name]
    problems: list[str] = []
    with served(MetricStore([])) as store:
        store.answers = [answer]
        report = report_on(
            [job(Truth())], Settings(), store=Store(store.address), problems=problems
        )
    assert any(words in note for note in report.notes)
    assert words in problems[0]
    assert {fact.key: fact.value for fact in report.facts}["elapsed_s"] == 900


def test_a_busy_store_is_asked_again() -> None:
    truth = Truth()
    with served(MetricStore(shape("jobstats", truth))) as store:
        store.answers = [(429, b"slow down", {}), (503, b"", {})]
        assert ask_store(Store(store.address), job(truth)).log.samples
        store.answers = [(503, b"", {})] * 4
        with pytest.raises(StoreBusyError, match="answers 503"):
            ask_store(Store(store.address), job(truth))


def test_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_http, "_SILENCE_S", 0.05)
    with served(MetricStore([])) as store:
        store.silent.set()
        with pytest.raises(StoreBusyError, match=r"nothing within 0\.05 s"):
            ask_store(Store(store.address), job(Truth()))


def test_a_store_that_is_not_there() -> None:
    with served(MetricStore([])) as store:
        address = store.address
    with pytest.raises(StoreBusyError, match="Connection refused"):
        ask_store(Store(address), job(Truth()))


def test_a_connection_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(MetricStore([])) as store:
        store.answers = [(200, b'{"status":', {"Content-Length": "100"})] * 4
        with pytest.raises(StoreError):
            ask_store(Store(store.address), job(Truth()))


# Addresses and tokens


def test_the_token_is_sent_and_never_shown(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with served(MetricStore([])) as store:
        for text, header in (("s3cret\n", "Bearer s3cret"), ("ana:pw", "Basic YW5hOnB3")):
            token.write_text(text)
            own = store_at(store.address, token)
            store.asked.clear()
            ask_store(own, job(Truth()))
            assert {headers["Authorization"] for _, _, headers in store.asked} == {header}
            assert header.split()[1] not in repr(own)
            store.answers = [(401, b"", {})]
            with pytest.raises(StoreError, match="this token") as caught:
                ask_store(own, job(Truth()))
            assert header.split()[1] not in str(caught.value)


def test_a_redirect_does_not_get_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    with served(MetricStore([])) as other, served(MetricStore([])) as store:
        store.answers = [(307, b"", {"Location": f"{other.address}/api/v1/query"})]
        with pytest.raises(StoreError, match="redirects to"):
            ask_store(store_at(store.address, tmp_path / "token"), job(Truth()))
        assert not other.asked


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("file:///etc/passwd", "is not an HTTP address"),
        ("metrics.example.org", "is not an HTTP address"),
        ("http://[::1", "is not an HTTP address"),
        ("http://metrics.example.org:99999", "the port in the address of the store metrics"),
        ("http://metrics.example.org:pw", "a number from 1 to 65535"),
        ("http://metrics.example.org:0", "a number from 1 to 65535"),
        ("https://ana:pw@metrics.example.org", "has a user name or a password"),
        ("https://metrics.example.org/?x=1", "has a part after"),
        ("http://metrics.example.org", "without encryption"),
    ],
)
def test_addresses_that_are_refused(address: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    with pytest.raises(InputError, match=words) as caught:
        store_at(address, tmp_path / "token")
    assert "pw" not in str(caught.value).replace("`NAME:PASSWORD`", "")


@pytest.mark.parametrize("text", ["", "two words", "line\nline", "nön-ascii"])
def test_files_that_have_no_token(text: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(InputError, match="is not one word"):
        store_at("https://metrics.example.org", tmp_path / "token")


def test_a_site_can_add_an_exporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
    (text,) = re.findall(r"```toml\n(\[our-exporter\].*?)```", page, re.DOTALL)
    (tmp_path / "own.toml").write_text(text)
    monkeypatch.setenv("TEHO_MONITORING_EXPORTERS", str(tmp_path / "own.toml"))
    labels = {"__name__": "our_gpu_load", "instance": "g1:1", "uuid": "GPU-1", "jobid": "4711"}
    series = One(labels, [(BEGIN_S + 15 * n, 0.5) for n in range(60)])
    with served(MetricStore([series])) as store:
        found = ask_store(Store(store.address), job(Truth()))
    assert found.exporters == ("our exporter",)
    assert {one.values["gpu_busy_percent"] for one in found.log.samples} == {50.0}
    for right, wrong in (("ratio", "ration"), ("gpu_busy_percent", "gpu_busy_percents")):
        (tmp_path / wrong).write_text(text.replace(right, wrong))
        monkeypatch.setenv("TEHO_MONITORING_EXPORTERS", str(tmp_path / wrong))
        with pytest.raises(InputError, match=f"'{wrong}' is not known, did you mean '{right}'"):
            exporters()


def test_every_signal_and_unit_is_known() -> None:
    facts = {"gpu_memory_total_bytes", "memory_limit_bytes", "cores"}
    for exporter in exporters().values():
        for row in exporter.metrics:
            assert row.signal in facts | set(METRICS_BY_NAME)
            assert row.factor > 0
            assert not row.if_metric or row.then in METRICS_BY_NAME
