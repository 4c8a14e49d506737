"""A real Prometheus and a real VictoriaMetrics: reports from them, exports to them, dashboards."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest
from metric_store import BEGIN_S, SHAPES, Truth, shape
from real_stores import KINDS, Running, lacks, running

from jobs.imports import LOGS, loaded, only, rows, run_of
from jobs.test_export import log, recorded, values_of
from jobs.test_monitoring import content, job, reference
from support import TEHO, wait_for
from teho.config.settings import Settings, load_settings
from teho.errors import StoreBusyError
from teho.jobs.export import push as push_module
from teho.jobs.export.dashboards import dashboards
from teho.jobs.export.formats import FORMATS
from teho.jobs.export.parts import parts_of
from teho.jobs.export.push import _has, push
from teho.jobs.http import request
from teho.show.accounted import report_on

TRUTHS = {
    name: Truth(job=str(4711 + place), begin_s=BEGIN_S + 3600 * place)
    for place, name in enumerate(SHAPES)
}
"""The jobs follow each other on the same nodes."""


@pytest.fixture(scope="module", params=KINDS)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run a store that has a job in the shape of each exporter."""
    kind = request.param
    if why := lacks(kind):
        pytest.skip(why)
    series = [one for name in SHAPES for one in shape(name, TRUTHS[name])]
    with running(kind, tmp_path_factory.mktemp(kind), series) as started:
        yield started


def as_recorded(value: float) -> float:
    """Return a value with the digits of a gauge in a recording: VictoriaMetrics keeps 13 digits."""
    number: float = struct.unpack("f", struct.pack("f", value))[0]
    return number


@pytest.mark.parametrize("exporter", SHAPES)
def test_the_report_is_that_of_the_same_values(real: Running, exporter: str) -> None:
    truth = TRUTHS[exporter]
    report = report_on([job(truth)], Settings(), store=real.store)
    expected = reference(exporter, truth, job(truth))
    assert content(report, real.store.host) == expected
    assert report.heat_map is not None


def test_the_store_returns_every_exported_value(
    real: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    # Prometheus does not accept the format of VictoriaMetrics.
    for form in {"remote-write", real.kind} & set(FORMATS):
        compare(real, form, tmp_path)


def compare(real: Running, form: str, tmp_path: Path) -> None:
    """Export a recording, and compare each value with the values that the store returns."""
    directory = only(log(tmp_path, 600), host=f"h-{form}")
    home = load_settings().home_directory
    done = push([recorded(directory)], real.store, form, home, 0.0, [])
    real.flush()
    expected = values_of(directory)
    assert {as_recorded(value) for value in expected.values()} == set(expected.values())
    last_s = max(at for *_, at in expected)
    answer = real.asked(f'{{node="h-{form}",__name__!="teho_job_info"}}[1h]', last_s + 1)
    found = {
        (
            one["metric"]["__name__"].removeprefix("teho_").removesuffix("_total"),
            one["metric"]["uuid"],
            round(float(at), 3),
        ): as_recorded(float(value))
        for one in answer
        for at, value in one["values"]
    }
    assert found == expected
    assert sum(len(one["values"]) for one in answer) == len(expected)
    # After a lost answer, the store says that it has the part; nothing is sent again.
    (part,) = parts_of(recorded(directory), {}, [], 10**6)
    assert done.values == part.value_count
    assert _has(real.store, FORMATS[form], part)
    later = part._replace(
        series=[one._replace(labels={**one.labels, "node": "other"}) for one in part.series]
    )
    assert not _has(real.store, FORMATS[form], later)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_down_for_a_while_loses_and_doubles_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := lacks(kind):
        pytest.skip(why)
    directory = only(log(tmp_path, 200), host="g1")
    every = [recorded(directory)]
    home, form = load_settings().home_directory, "remote-write"
    few = {name: one._replace(values=400) for name, one in FORMATS.items()}
    monkeypatch.setattr(push_module, "FORMATS", few)
    calls = []
    with running(kind, tmp_path, ()) as store:

        def stop_at_third(*words: Any, **options: Any) -> bytes:
            calls.append(words)
            if len(calls) == 3:
                store.stop()
            return request(*words, **options)

        with monkeypatch.context() as patch:
            patch.setattr(push_module, "request", stop_at_third)
            with pytest.raises(StoreBusyError, match="Connection refused"):
                push(every, store.store, form, home, 0.0, [])
        port = int(store.store.host.partition(":")[2])
    with running(kind, tmp_path, (), port) as again:
        done = push(every, again.store, form, home, 0.0, [])
        again.flush()
        expected = values_of(directory)
        last_s = max(at for *_, at in expected)
        answer = again.asked('{node="g1",__name__!="teho_job_info"}[1h]', last_s + 1)
    assert sum(len(one["values"]) for one in answer) == len(expected)
    (whole,) = parts_of(every[0], {}, [], 10**6)
    assert 0 < done.values < whole.value_count


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_reads_the_values_of_a_running_run(kind: str, tmp_path: Path, home: Path) -> None:
    if why := lacks(kind):
        pytest.skip(why)
    token, folder = tmp_path / "token", tmp_path / "store"
    token.write_text("s3cret")
    token.chmod(0o600)
    folder.mkdir()
    program = "import time\nwhile True: sum(range(10**6)); time.sleep(0.1)"
    words = ["run", "--every", "0.1s", "--probe", "off", "--", sys.executable, "-c", program]
    with ended(subprocess.Popen([*TEHO, *words], stdout=DEVNULL, stderr=DEVNULL)), ended(
        subprocess.Popen(
            [*TEHO, "serve-metrics", "--port", "0", "--token-file", str(token)],
            stdout=subprocess.PIPE, text=True,
        )
    ) as server:  # fmt: skip
        assert server.stdout
        target = server.stdout.readline().split()[4].removeprefix("http://").partition("/")[0]
        scrape = {
            "job_name": "teho",
            "scrape_interval": "1s",
            "authorization": {"credentials_file": str(token)},
            "static_configs": [{"targets": [target]}],
        }
        with running(kind, folder, (), scrape=[scrape]) as store:

            def values() -> set[float]:
                answer = store.asked("teho_job_cpu_s_total[1h]", time.time())
                return {float(value) for one in answer for _, value in one["values"]}

            wait_for(lambda: len(values()) > 2, 60)
            found = values()
            (info,) = store.asked("teho_job_info[1h]", time.time())
    (directory,) = home.glob("runs/[!.]*")
    run = run_of(directory)
    assert info["metric"]["run"] == run.id
    assert info["metric"]["node"] == run.nodes[0].name
    known = [row["job_cpu_s"] for row in rows(directory, "node") if "job_cpu_s" in row]
    for value in found:
        assert any(isclose(value, one, rel_tol=1e-12) for one in known), value


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """End a program with SIGTERM at last."""
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


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
    assert [row["load_mean"] for row in table.rows] == pytest.approx(means)


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
