"""A real Prometheus and a real VictoriaMetrics: reports from them, exports to them, dashboards."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from metric_store import BEGIN_S, SHAPES, One, Truth, shape

from jobs.imports import LOGS, loaded, only, run_of
from jobs.test_export import log, recorded, values_of
from jobs.test_monitoring import content, job, reference
from support import wait_for
from teho.config.settings import Settings, load_settings
from teho.jobs.export.dashboards import dashboards
from teho.jobs.export.formats import FORMATS
from teho.jobs.export.parts import parts_of
from teho.jobs.export.push import _has, push
from teho.jobs.http import Store, request
from teho.show.accounted import report_on

PROGRAMS = {"prometheus": "prometheus", "victoriametrics": "victoria-metrics"}
TRUTHS = {
    name: Truth(job=str(4711 + place), begin_s=BEGIN_S + 3600 * place)
    for place, name in enumerate(SHAPES)
}
"""The jobs follow each other on the same nodes."""


class Running(NamedTuple):
    """A store that runs."""

    kind: str
    store: Store

    def asked(self, query: str, at_s: float) -> Any:
        body = urllib.parse.urlencode({"query": query, "time": at_s}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = json.loads(request(self.store, "/api/v1/query", body, headers))
        assert answer["status"] == "success"
        return answer["data"]["result"]

    def flush(self) -> None:
        if self.kind == "victoriametrics":
            request(self.store, "/internal/force_flush", method="GET")


def openmetrics_of(series: list[One]) -> str:
    """Return series as a text for promtool, in the order that the format demands."""
    by_name: dict[str, list[One]] = {}
    for one in series:
        by_name.setdefault(one.labels["__name__"], []).append(one)
    lines = []
    for name, own in by_name.items():
        for one in own:
            labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items() if k != "__name__")
            lines += [f"{name}{{{labels}}} {value!r} {at}" for at, value in one.values]
    return "\n".join([*lines, "# EOF\n"])


def lines_of(series: list[One]) -> bytes:
    """Return series as JSON lines for VictoriaMetrics."""
    return "\n".join(
        json.dumps(
            {
                "metric": one.labels,
                "values": [value for _, value in one.values],
                "timestamps": [round(1000 * at) for at, _ in one.values],
            }
        )
        for one in series
    ).encode()


@contextmanager
def served(kind: str, folder: Path, series: list[One]) -> Iterator[Running]:
    """Run a store that has these series."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    if kind == "prometheus":
        (folder / "text").write_text(openmetrics_of(series))
        words = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "text", "data"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        window = "storage: {tsdb: {out_of_order_time_window: 3000d}}\n"
        (folder / "prometheus.yml").write_text(f"global: {{scrape_interval: 1h}}\n{window}")
        words = [
            "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
            "--storage.tsdb.retention.time=100y", f"--web.listen-address={address}",
            "--web.enable-remote-write-receiver",
        ]  # fmt: skip
        ready = "/-/ready"
    else:
        words = [
            "victoria-metrics", "-storageDataPath=data", f"-httpListenAddr={address}",
            "-retentionPeriod=100y",
        ]  # fmt: skip
        ready = "/health"
    server = subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    running = Running(kind, Store(f"http://{address}"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def is_ready() -> bool:
        assert server.poll() is None
        try:
            with opener.open(f"http://{address}{ready}", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        wait_for(is_ready, 60)
        if kind == "victoriametrics":
            request(running.store, "/api/v1/import", lines_of(series))
            running.flush()
        yield running
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


@pytest.fixture(scope="module", params=list(PROGRAMS))
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run a store that has a job in the shape of each exporter."""
    kind = request.param
    if not shutil.which(PROGRAMS[kind]):
        pytest.skip(f"no {PROGRAMS[kind]}; tests/debian-packages.sh installs it")
    series = [one for name in SHAPES for one in shape(name, TRUTHS[name])]
    with served(kind, tmp_path_factory.mktemp(kind), series) as running:
        yield running


@pytest.mark.parametrize("exporter", SHAPES)
def test_the_report_is_that_of_the_same_values(real: Running, exporter: str) -> None:
    truth = TRUTHS[exporter]
    report = report_on([job(truth)], Settings(), store=real.store)
    expected = reference(exporter, truth, job(truth))
    assert content(report, real.store.host) == expected
    assert report.heat_map is not None


@pytest.mark.parametrize("form", ["remote-write", "victoriametrics"])
def test_the_store_returns_every_exported_value(
    real: Running, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "victoriametrics" and real.kind == "prometheus":
        pytest.skip("Prometheus does not accept the format of VictoriaMetrics")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    directory = only(log(tmp_path, 600), host=f"h-{form}")
    home = load_settings().home_directory
    done = push([recorded(directory)], real.store, form, home, 0.0, [])
    real.flush()
    expected = values_of(directory)
    last_s = max(at for *_, at in expected)
    answer = real.asked(f'{{node="h-{form}",__name__!="teho_job_info"}}[1h]', last_s + 1)
    found = {
        (
            one["metric"]["__name__"].removeprefix("teho_").removesuffix("_total"),
            one["metric"]["uuid"],
            round(float(at), 3),
        ): float(value)
        for one in answer
        for at, value in one["values"]
    }
    assert found == expected
    assert sum(len(one["values"]) for one in answer) == len(expected)
    # After a lost answer, the store says that it has the part; nothing is sent again.
    (part,) = parts_of(recorded(directory), {}, [])
    assert done.values == part.value_count
    assert _has(real.store, FORMATS[form], part)
    later = part._replace(
        series=[one._replace(labels={**one.labels, "node": "other"}) for one in part.series]
    )
    assert not _has(real.store, FORMATS[form], later)


def test_the_job_of_an_exported_recording_has_its_report(real: Running) -> None:
    directory = only(LOGS / "prometheus-slurm-job-exporter.json")
    home = load_settings().home_directory
    push([recorded(directory)], real.store, "remote-write", home, 0.0, [])
    real.flush()
    summary = loaded(directory).summary
    run = run_of(directory)
    truth = Truth(begin_s=run.started_at.timestamp(), hosts=("ng10601",), every_s=30.0, count=3)
    one = job(truth, node_list="ng10601", nodes=1, gpus=2)
    report = report_on([one], Settings(), store=real.store)
    (table,) = [table for table in report.tables if table.key == "gpus"]
    means = [gpu.stats["gpu_busy_percent"].mean for gpu in summary.gpus]  # type: ignore[union-attr]
    assert [row["busy_mean"] for row in table.rows] == pytest.approx(means)


def test_every_panel_has_an_answer(real: Running) -> None:
    directory = only(LOGS / "prometheus-slurm-job-exporter.json")
    home = load_settings().home_directory
    push([recorded(directory)], real.store, "remote-write", home, 0.0, [])
    real.flush()
    at_s = run_of(directory).started_at.timestamp() + 60
    names = {one["metric"]["__name__"] for one in real.asked('{node="ng10601"}', at_s)}
    answered = 0
    for name, own in dashboards().items():
        for panel in own.panels:
            query = panel.query.replace("$jobid", "4711").replace("$node", ".*")
            result = real.asked(query, at_s)
            used = set(re.findall(r"teho_\w+", query))
            if used <= names:
                assert result, (name, panel.title)
                answered += 1
        for query in own.variables.values():
            label = re.fullmatch(r"label_values\(teho_job_info, (\w+)\)", query)
            assert label
            assert any(label[1] in one["metric"] for one in real.asked("teho_job_info", at_s))
    assert answered >= 10
