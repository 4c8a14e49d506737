"""`teho export`: the values that other tools read are those of the recording."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.imports import LOGS, column, loaded, only, rows, run_of, written
from support import TEHO, wait_for
from teho.jobs.export.openmetrics import Recorded, openmetrics
from teho.jobs.export.parquet import export_parquet
from teho.jobs.js1 import Js1, decode_js1
from teho.model.metric import METRICS
from teho.show.text.js1 import js1_of

Teho = Callable[..., subprocess.CompletedProcess[str]]
PROMETHEUS, PROMTOOL = (shutil.which(name) for name in ("prometheus", "promtool"))
needs_prometheus = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL), reason="no prometheus; tests/debian-packages.sh installs it"
)


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Read times without a zone in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


_HEAD = (
    "timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W], "
    "ecc.errors.corrected.volatile.total"
)


def log(folder: Path, seconds: int = 120, day: int = 18) -> Path:
    """Write two GPUs with a counter and values of many digits."""
    lines = [_HEAD]
    for second in range(seconds):
        at = f"2026/11/{day} 10:{second // 60:02d}:{second % 60:02d}.000"
        for index in (0, 1):
            use = (37 * second + 11 * index) % 101
            power = "[N/A]" if second % 7 == 3 else f"{100 + use * 2.37:.2f} W"
            lines.append(
                f"{at}, {index}, GPU-{index}, {use} %, {9000 + use} MiB, {power}, {second // 9}"
            )
    return written(folder, f"day{day}.csv", "\n".join(lines))


def recorded(directory: Path) -> Recorded:
    return Recorded(run_of(directory), directory, "ana")


def values_of(directory: Path) -> dict[tuple[str, str, float], float]:
    """Return every value of the recording's GPUs by metric, GPU and time in s since 1970."""
    run = run_of(directory)
    found = {}
    for device in run.nodes[0].devices:
        for row in rows(directory, device.id):
            at_s = round(run.started_at.timestamp() + row["elapsed_s"], 3)
            for metric in METRICS:
                if metric.name in row and not metric.per_core:
                    found[metric.name, device.id, at_s] = row[metric.name]
    return found


def test_openmetrics_has_every_value_once(tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    text = "".join(openmetrics([recorded(directory)], []))
    assert text.endswith("# EOF\n")
    pattern = re.compile(r'teho_(\w+)\{node="[^"]+",gpu="\d",uuid="([^"]+)".*\} (\S+) (\S+)')
    found = {
        (match[1].removesuffix("_total"), match[2], float(match[4])): float(match[3])
        for match in pattern.finditer(text)
        if match[1] != "job_info"
    }
    expected = values_of(directory)
    assert len(expected) > 700
    assert found == expected
    families = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
    assert len(set(families)) == len(families)
    assert ("teho_gpu_ecc_corrected", "counter") in families
    assert ("teho_job", "info") in families


def test_openmetrics_has_the_job_only_in_one_series() -> None:
    directory = only(LOGS / "prometheus-slurm-job-exporter.json")
    lines = "".join(openmetrics([recorded(directory)], [])).splitlines()
    with_job = {line.partition("{")[0] for line in lines if 'jobid="4711"' in line}
    assert with_job == {"teho_job_info"}
    assert any('user="ana"' in line for line in lines)
    assert not any(run_of(directory).id in line for line in lines if "_info" not in line)


def test_openmetrics_keeps_the_order_of_time_over_several_runs(tmp_path: Path) -> None:
    later = only(log(tmp_path, day=19), host="g1")
    earlier = only(log(tmp_path, day=18), host="g1")
    lines = "".join(openmetrics([recorded(later), recorded(earlier)], [])).splitlines()
    times = [
        float(line.split()[-1])
        for line in lines
        if line.startswith('teho_gpu_power_w{node="g1",gpu="0"')
    ]
    assert len(times) > 200
    assert times == sorted(times)


def test_quotes_and_line_breaks_in_labels_are_escaped(tmp_path: Path) -> None:
    directory = only(log(tmp_path, 20), name='a "quoted"\nname \\')
    text = "".join(openmetrics([recorded(directory)], []))
    assert 'name="a \\"quoted\\"\\nname \\\\"' in text


def test_parquet_of_several_runs_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    directories = [only(log(tmp_path, day=day), name=f"day {day}") for day in (18, 19)]
    directories.append(only(LOGS / "prometheus-slurm-job-exporter.json"))
    for directory in directories:
        assert export_parquet(run_of(directory), directory, "ana", folder, [])
    table = pq.read_table(folder / "rows")
    assert table.num_rows == sum(
        len(rows(one, device))
        for one in directories
        for device in ("node", *(gpu.id for gpu in run_of(one).nodes[0].devices))
    )
    first = [row for row in table.to_pylist() if row["run"] == directories[0].name]
    power = [row["gpu_power_w"] for row in first if row["gpu"] == 1]
    assert power == column(directories[0], "GPU-1", "gpu_power_w")
    runs = {row["run"]: row for row in pq.read_table(folder / "runs").to_pylist()}
    assert runs[directories[0].name]["name"] == "day 18"
    assert runs[directories[0].name]["cores"] is None
    assert runs[directories[2].name]["job"] == "4711"
    assert {row["imported_from"] for row in runs.values()} == {"nvidia-smi", "Prometheus"}


def test_parquet_is_written_again_only_if_the_run_has_changed(tmp_path: Path) -> None:
    folder, directory = tmp_path / "all", only(log(tmp_path, 20))
    assert export_parquet(run_of(directory), directory, "ana", folder, [])
    path = folder / "rows" / f"{directory.name}.parquet"
    before = path.stat().st_mtime_ns
    assert not export_parquet(run_of(directory), directory, "ana", folder, [])
    assert path.stat().st_mtime_ns == before
    path.write_bytes(path.read_bytes()[:100])  # a copy that was cut off
    assert export_parquet(run_of(directory), directory, "ana", folder, [])
    subprocess.run([*TEHO, "tag", directory.name, "model=big"], check=True, capture_output=True)
    assert export_parquet(run_of(directory), directory, "ana", folder, [])


def test_a_failed_parquet_export_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, directory = tmp_path / "all", only(log(tmp_path, 20))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", refuse)
    with pytest.raises(OSError, match="No space"):
        export_parquet(run_of(directory), directory, "ana", folder, [])
    assert list((folder / "rows").iterdir()) == []


def test_js1_of_a_recording_of_jobstats_is_the_same_summary() -> None:
    directory = only(LOGS / "jobstats.json")
    found = js1_of(loaded(directory).summary)
    expected = json.loads((LOGS / "jobstats.json").read_text())
    ((name, node),) = expected["nodes"].items()
    node["gpu_utilization"] = {"1": 98.6}
    assert found.nodes[name].cpu_s == pytest.approx(node["total_time"], abs=0.1)
    assert found.nodes[name].memory_peak_bytes == node["used_memory"]
    assert found.nodes[name].gpu_memory_peak_bytes == node["gpu_used_memory"]
    assert found.nodes[name].gpu_busy_percent == node["gpu_utilization"]
    assert (found.elapsed_s, found.gpu_count) == (expected["total_time"], expected["gpus"])


def test_js1_of_a_log_has_no_key_for_what_is_missing(tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    (node,) = js1_of(loaded(directory).summary).nodes.values()
    assert (node.cpu_s, node.core_count, node.memory_peak_bytes) == (None, None, None)
    assert node.gpu_memory_peak_bytes == {"0": 9100 * 2**20, "1": 9100 * 2**20}
    assert node.gpu_memory_bytes == {}


def test_js1_of_a_program_that_teho_ran(teho: Teho, home: Path) -> None:
    program = (
        "x = bytearray(40 << 20); import time; e = time.time() + 1.2\nwhile time.time() < e: 1"
    )
    subprocess.run(
        [*TEHO, "run", "-q", "--every", "0.2s", "--", "python3", "-c", program],
        check=True, capture_output=True,
    )  # fmt: skip
    written_ = teho("report", "--write-js1")
    exported = teho("export", "--to", "js1")
    assert written_.stdout == exported.stdout
    summary = decode_js1(written_.stdout)
    assert isinstance(summary, Js1)
    ((_, node),) = summary.nodes.items()
    (run,) = (home / "runs").iterdir()
    end = run_of(run).end
    assert end is not None
    assert node.cpu_s == pytest.approx(end.cpu_s, abs=0.2)
    assert node.memory_peak_bytes is not None
    assert node.memory_peak_bytes > 40 << 20
    assert node.core_count == len(run_of(run).nodes[0].cores)


def test_command_names_what_is_missing(tmp_path: Path) -> None:
    directory = only(log(tmp_path, 20))
    for words, said in (
        (["--to", "parquet"], "`-o FOLDER`"),
        ([directory.name, "--all", "--to", "js1"], "--all cannot be used together with RUN"),
        (["--to", "csv"], "parquet"),
    ):
        done = subprocess.run(
            [*TEHO, "export", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert said in done.stderr


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Check that a command failed with one line, and return this line."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("teho: ")
    assert "Errno" not in line
    return line


@pytest.mark.parametrize("form", ["openmetrics", "js1"])
@pytest.mark.parametrize("place", ["/", ".", "", ".."])
def test_a_folder_is_not_a_file(teho: Teho, tmp_path: Path, form: str, place: str) -> None:
    directory = only(log(tmp_path, 20))
    before = sorted(tmp_path.iterdir())
    line = one_line(teho("export", directory, "--to", form, "-o", place, cwd=tmp_path))
    assert f"-o {place or '.'} is a folder; expected a file. Next: `-o " in line
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("form", ["parquet", "grafana"])
def test_a_file_is_not_a_folder(teho: Teho, tmp_path: Path, form: str) -> None:
    directory, file = only(log(tmp_path, 20)), tmp_path / "file"
    file.write_text("mine")
    runs = [directory] if form == "parquet" else []
    for path in (file, file / "x"):
        line = one_line(teho("export", *runs, "--to", form, "-o", path))
        assert f"{file} is not a folder; expected a folder. Next: `-o FOLDER`" in line
    assert file.read_text() == "mine"


def test_a_place_that_cannot_be_written(teho: Teho, tmp_path: Path) -> None:
    directory, file, folder = only(log(tmp_path, 20)), tmp_path / "file", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "rows").write_text("mine")
    line = one_line(teho("export", directory, "--to", "parquet", "-o", folder))
    assert "expected a folder that can be written. Next: `-o FOLDER`" in line
    line = one_line(teho("export", directory, "--to", "js1", "-o", file / "x"))
    assert f"{file}/x: Not a directory; expected a file that can be written" in line
    assert file.read_text() == (folder / "rows").read_text() == "mine"


def test_a_pipe_is_written_and_not_replaced(teho: Teho, tmp_path: Path) -> None:
    directory, pipe = only(log(tmp_path, 20)), tmp_path / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert teho("export", directory, "--to", "js1", "-o", pipe).returncode == 0
        text = os.read(descriptor, 1 << 16).decode()
    finally:
        os.close(descriptor)
    assert text == teho("export", directory, "--to", "js1").stdout
    assert pipe.is_fifo()


def test_without_a_run_the_newest_run_is_named(teho: Teho, tmp_path: Path) -> None:
    directory = only(log(tmp_path, 20))
    words = f"no RUN was given: the newest run, {directory.name}, is exported"
    for form in ("openmetrics", "js1"):
        done = teho("export", "--to", form)
        assert done.returncode == 0
        assert words in done.stderr
        assert words not in teho("export", "last", "--to", form).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["last", "--to", "grafana", "-o", "x"], "RUN cannot be used with --to grafana"),
        (["--all", "--to", "grafana", "-o", "x"], "--all cannot be used with --to grafana"),
        (["--to", "js1", "--wait", "1s"], "--wait cannot be used with --to js1"),
        (["--to", "otlp", "--store", ""], "--store is empty"),
        (["--to", "otlp", "--store", "http://127.0.0.1:99999"], "the port in the address"),
        (["--to", "otlp", "--store", "http://127.0.0.1:abc"], "from 1 to 65535"),
    ],
)
def test_options_that_have_no_effect_are_refused(
    teho: Teho, tmp_path: Path, words: list[str], said: str
) -> None:
    only(log(tmp_path, 20))
    assert said in one_line(teho("export", *words, cwd=tmp_path))
    assert not (tmp_path / "x").exists()


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Run a Prometheus on a folder of blocks; yield its address."""
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    assert PROMETHEUS
    server = subprocess.Popen(
        [PROMETHEUS, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
         "--storage.tsdb.retention.time=100y", f"--web.listen-address={address}"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: server.poll() is None and answers(f"http://{address}/-/ready"), 60)
        yield f"http://{address}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def answers(address: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def asked(server: str, query: str, **times: float) -> Any:
    words = urllib.parse.urlencode({"query": query, **times})
    kind = "query_range" if "step" in times else "query"
    return answers(f"{server}/api/v1/{kind}?{words}")


@needs_prometheus
def test_a_real_prometheus_returns_every_value(tmp_path: Path) -> None:
    directory = only(log(tmp_path, 600), host="g1")
    other = only(LOGS / "prometheus-slurm-job-exporter.json")
    text = tmp_path / "metrics.txt"
    both = [recorded(directory), recorded(other)]
    text.write_text("".join(openmetrics(both, [])))
    assert PROMTOOL
    subprocess.run(
        [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", text, "data"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    expected = values_of(directory)
    first_s, last_s = min(at for *_, at in expected), max(at for *_, at in expected)
    with prometheus(tmp_path) as server:
        answer = json.loads(asked(server, '{node="g1"}[1h]', time=last_s + 1))
        names = ("__name__", "uuid")
        found = {
            (name.removeprefix("teho_").removesuffix("_total"), uuid, float(at)): float(value)
            for one in answer["data"]["result"]
            for name, uuid in [[one["metric"].get(label, "") for label in names]]
            for at, value in one["values"]
            if name != "teho_job_info"
        }
        assert found == expected
        joined = "teho_gpu_busy_percent * on(node, gpu) group_left(jobid) teho_job_info"
        at_s = run_of(other).started_at.timestamp() + 30
        of_job = json.loads(asked(server, joined, time=at_s))["data"]["result"]
        assert {one["metric"].get("jobid") for one in of_job} == {"4711"}
        range_ = asked(server, '{node="g1"}', start=first_s, end=last_s, step=1)
    # What Prometheus answers can be imported, and has the same figures.
    (tmp_path / "q.json").write_bytes(range_)
    again = only(tmp_path / "q.json")
    for name, stat in loaded(directory).summary.gpus[1].stats.items():
        other_stat = loaded(again).summary.gpus[1].stats[name]
        if hasattr(stat, "max"):
            assert (other_stat.max, other_stat.min) == (stat.max, stat.min)
