"""`teho log`: what each tracker gets; the real packages read it back, without a network."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from step_tasks import start, wait
from support import FRAMEWORKS, TEHO, lacks_framework, wait_for
from teho.cli import log
from teho.errors import InputError
from teho.model.document import Plot, PlotSeries, Report
from teho.show.loaded import LoadedRun
from teho.show.trackers.of_wandb import Wandb
from teho.show.trackers.tensorboard import checksum
from teho.show.trackers.tracker import Wish, facts_of, imported, points_of, prose_of

ROOT = Path(__file__).parents[2]
RUN = ROOT / "examples" / "learn" / "runs" / "20261122-100700-tiny-kernels-83zy"
BUSY = "teho/gpu_busy_percent/GPU 0"


def report_with(*plots: Plot) -> Report:
    return Report(
        run_id="a", name="", command="", state="finished", facts=(), tables=(), findings=(),
        abstentions=(), verdict="", verdict_severity="good", plots=plots,
    )  # fmt: skip


def plot(key: str, *lines: PlotSeries) -> Plot:
    return Plot(key=key, title=key, unit="", meaning="", group="GPU", elapsed_s=[0.5, 1.5, 2.5],
                series=lines)  # fmt: skip


def test_points_have_the_values_that_are_not_missing() -> None:
    report = report_with(
        plot("gpu_busy_percent", PlotSeries("g1 GPU 0", [0.0, None, 3.0])),
        plot("gpu_energy_j", PlotSeries("g1 GPU 0", [None, None, 250.0])),
    )
    busy, power = "teho/gpu_busy_percent/g1 GPU 0", "teho/gpu_energy_j_per_s/g1 GPU 0"
    assert list(points_of(report, -1, 99)) == [(0.5, {busy: 0.0}), (2.5, {busy: 3.0, power: 250.0})]
    assert list(points_of(report, 0.5, 99)) == [(2.5, {busy: 3.0, power: 250.0})]
    assert list(points_of(report, -1, 2.9)) == [(0.5, {busy: 0.0})]
    assert list(points_of(report_with(), -1, 99)) == []


def test_facts_and_prose_of_a_run() -> None:
    report = LoadedRun.open(str(RUN)).view
    numbers, words = facts_of(report)
    assert numbers["teho/run/gpu_busy_percent"] == pytest.approx(96, abs=0.5)
    assert words["teho/run/verdict"] == report.verdict
    text = prose_of(report)
    assert text.startswith(f"**{report.verdict}**")
    assert all(finding.action in text for finding in report.findings)
    assert "| GPU busy | 96 % |" in text


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match=r"cannot import this package .*`pip install wandb`"):
        imported("wandb")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "mlflow", "-o", "a"], "-o has no effect with --to mlflow"),
        (["--to", "tensorboard", "--into", "a"], "--into has no effect with --to tensorboard"),
        (["--to", "tensorboard", "--project", "a"], "--project has no effect"),
        (["--to", "tensorboard", "-o", "/dev/null/a"], "Not a directory"),
    ],
)
def test_errors_are_one_line(teho, arguments: list[str], words: str) -> None:
    answer = teho("log", *arguments, RUN)
    assert (answer.returncode, answer.stdout) == (2, "")
    (line,) = answer.stderr.splitlines()
    assert words in line


def events_of(path: Path) -> list[bytes]:
    """Return the events of an event file; each record has two checksums."""
    data, found = path.read_bytes(), []
    while data:
        (length, first) = struct.unpack_from("<QI", data)
        event, (second,) = data[12 : 12 + length], struct.unpack_from("<I", data, 12 + length)
        for part, masked in ((data[:8], first), (event, second)):
            crc = checksum(part)
            assert masked == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
        found.append(event)
        data = data[16 + length :]
    return found


def test_the_checksum_is_that_of_the_standard() -> None:
    assert checksum(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert checksum(b"") == 0


def test_the_event_file(teho, tmp_path: Path) -> None:
    answer = teho("log", "--to", "tensorboard", "-o", tmp_path / "a b", RUN)
    assert answer.stderr == f"teho: `tensorboard --logdir '{tmp_path}/a b'` shows it\n"
    (folder,) = (tmp_path / "a b").iterdir()
    events, page, numbers = sorted(folder.iterdir())
    found = events_of(events)
    assert b"brain.Event:2" in found[0]
    points = list(points_of(LoadedRun.open(str(RUN)).view, -1, 1e9))
    assert len(found) == 2 + len(points)
    assert "<html" in page.read_text()
    assert json.loads(numbers.read_text())["run_id"] == RUN.name
    again = teho("log", "--to", "tensorboard", "-o", tmp_path / "a b", RUN)
    assert again.returncode == 0
    assert events_of(events) == found


def test_the_event_file_has_the_metrics_of_each_node(teho, tmp_path: Path) -> None:
    home = Path(os.environ["TEHO_HOME"])
    codes, said = wait(start(home, ["import time; time.sleep(2)"] * 2, nodes=2))
    assert codes == [0, 0], said
    answer = teho("log", "--to", "tensorboard", "-o", tmp_path / "tb", "last")
    assert answer.returncode == 0, answer.stderr
    (path,) = tmp_path.glob("tb/*/events*")
    nodes = [node.name for node in LoadedRun.open("last").run.nodes]
    assert len(nodes) == 2
    for node in nodes:
        assert f"teho/cpu_busy_percent/{node}".encode() in path.read_bytes()


@contextmanager
def running(stop: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a run that ends when a file exists; yield its recorder and its directory."""
    program = f"import os, time\nwhile not os.path.exists({str(stop)!r}): time.sleep(0.02)"
    with subprocess.Popen(
        [*TEHO, "run", "-q", "--every", "0.1s", "--", sys.executable, "-S", "-c", program],
        stderr=subprocess.DEVNULL,
    ) as recorder:
        try:
            runs = Path(os.environ["TEHO_HOME"]) / "runs"
            wait_for(lambda: list(runs.glob("[!.]*")))
            (directory,) = runs.glob("[!.]*")
            yield recorder, directory
        finally:
            stop.touch()


def test_a_run_that_continues_is_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = tmp_path / "stop"
    with running(stop) as (recorder, directory):
        looks = []

        def look(_: float) -> None:
            (path,) = tmp_path.glob("tb/*/events*")
            looks.append(len(events_of(path)))
            if looks[-1] > 1:
                stop.touch()
                recorder.wait()
            assert len(looks) < 1000
            sleep(0.02)

        sleep = time.sleep
        monkeypatch.setattr(log, "time", SimpleNamespace(sleep=look))
        loaded = LoadedRun.open(str(directory))
        log._log(loaded, "tensorboard", Wish("", "", tmp_path / "tb"), follow=True)
    assert looks[0] == 1
    (path,) = tmp_path.glob("tb/*/events*")
    steps = [struct.unpack_from("<d", event, 1)[0] for event in events_of(path)[1:-1]]
    assert steps == sorted(set(steps))
    assert len(steps) > looks[-1] - 1  # the first event is the head of the file
    assert b"teho/cpu_busy_percent" in path.read_bytes()


def with_package(
    name: str, code: str, folder: Path, *arguments: str, run: Path = RUN, before: str = "",
    exit_code: int = 0, **variables: str,
) -> str:  # fmt: skip
    """Run `teho log`, then some code, in the Python of the tests' frameworks; return its output.

    Args:
        name: the tracker.
        code: what to run then.
        folder: in which all of this runs.
        arguments: of `teho log`.
        run: the recording.
        before: what to run first; it can add to `sys.argv`.
        exit_code: of `teho log`.
        variables: of the environment.
    """
    if reason := lacks_framework(name):
        pytest.skip(reason)
    # Teho's own packages come last, so that they replace none of the tracker's.
    paths = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    start = (
        f"import sys; sys.path += {paths!r}\nfrom teho.cli import main\n"
        f"sys.argv = ['teho', 'log', '--to', {name!r}, {str(run)!r}, *{list(arguments)!r}]\n"
    )
    call = (
        "\ntry: main()\n"
        f"except SystemExit as error: assert (error.code or 0) == {exit_code}, error\n"
        "for name in ('numpy', 'pandas'): sys.modules.get(name, 0) or sys.modules.pop(name, 0)\n"
    )
    answer = subprocess.run(
        [FRAMEWORKS / "bin" / "python", "-W", "ignore", "-c", start + before + call + code],
        cwd=folder, env={**os.environ, "HOME": str(folder), **variables}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def busy_values() -> list[float]:
    return [
        values[BUSY] for _, values in points_of(LoadedRun.open(str(RUN)).view, -1, 1e9)
        if BUSY in values
    ]  # fmt: skip


@pytest.mark.drawn(2, tests="packages")
def test_tensorboard_reads_the_event_file(tmp_path: Path) -> None:
    answer = json.loads(with_package("tensorboard", f"""
import glob, json, sys
sys.modules["tensorflow"] = None  # TensorBoard does without, and to import it takes five seconds
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
(path,) = glob.glob('runs/*/events*')
read = EventAccumulator(path, size_guidance={{'scalars': 0, 'tensors': 0}}); read.Reload()
(text,) = read.Tensors('teho/report')
print(json.dumps([
    [one.value for one in read.Scalars({BUSY!r})],
    [one.wall_time for one in read.Scalars({BUSY!r})],
    text.tensor_proto.string_val[0].decode(),
]))
""", tmp_path))  # fmt: skip
    values, times_s, text = answer
    run = LoadedRun.open(str(RUN))
    assert values == pytest.approx(busy_values(), rel=1e-6)
    began_s = run.run.started_at.timestamp()
    points = [elapsed_s for elapsed_s, found in points_of(run.view, -1, 1e9) if BUSY in found]
    assert times_s == pytest.approx([began_s + elapsed_s for elapsed_s in points])
    assert text == prose_of(run.view)


def mlflow_files(folder: Path) -> dict[str, str]:
    """Return the variables with which MLflow writes into a folder."""
    return {"MLFLOW_TRACKING_URI": f"file:{folder}/a", "MLFLOW_ALLOW_FILE_STORE": "true"}


@pytest.mark.drawn(2, tests="packages")
def test_mlflow_has_the_run(tmp_path: Path) -> None:
    answer = json.loads(with_package("mlflow", f"""
import json, mlflow
client = mlflow.MlflowClient()
(run,) = client.search_runs([client.get_experiment_by_name('cats').experiment_id])
print(json.dumps([
    [one.value for one in client.get_metric_history(run.info.run_id, {BUSY!r})],
    run.data.tags, run.info.status,
    sorted(one.path for one in client.list_artifacts(run.info.run_id, 'teho')),
]))
""", tmp_path, "--project", "cats", **mlflow_files(tmp_path)))  # fmt: skip
    values, tags, status, files = answer
    assert values == pytest.approx(busy_values())
    assert tags["teho/run/verdict"].startswith("GPU 0 on c1 was busy with small kernels")
    assert (status, files) == ("FINISHED", ["teho/teho-report.html", "teho/teho-report.json"])
    assert tags["mlflow.note.content"] == prose_of(LoadedRun.open(str(RUN)).view)


@pytest.mark.drawn(2, tests="packages")
def test_wandb_writes_the_run(tmp_path: Path) -> None:
    answer = with_package("wandb", """
import glob, json, struct
from wandb.proto import wandb_internal_pb2
(path,) = glob.glob('wandb/offline-run-*/*.wandb')
data, place, part, found = open(path, 'rb').read(), 7, b'', []
while place + 7 <= len(data):  # blocks of 32 KiB with parts of records
    if 32768 - place % 32768 < 7:
        place += 32768 - place % 32768
        continue
    length, kind = struct.unpack_from('<HB', data, place + 4)
    part += data[place + 7 : place + 7 + length]
    place += 7 + length
    if kind in (1, 4):  # a whole record, or its last part
        record, part = wandb_internal_pb2.Record.FromString(part), b''
        found.append(record)
items = [{one.nested_key[0]: json.loads(one.value_json) for one in record.history.item}
         for record in found if record.WhichOneof('record_type') == 'history']
print(json.dumps([
    [one for one in items if 'teho/gpu_busy_percent/GPU 0' in one],
    {record.artifact.type: [one.path for one in record.artifact.manifest.contents]
     for record in found if record.WhichOneof('record_type') == 'artifact'},
    [record.run.project for record in found if record.WhichOneof('record_type') == 'run'],
    [json.load(open(path)) for path in glob.glob('wandb/offline-run-*/files/**/*.table.json',
                                                 recursive=True)],
]))
""", tmp_path, "--project", "cats", WANDB_MODE="offline")  # fmt: skip
    items, artifacts, projects, tables = json.loads(answer)
    assert [one[BUSY] for one in items] == pytest.approx(busy_values())
    assert [one["teho/elapsed_s"] for one in items] == sorted(
        one["teho/elapsed_s"] for one in items
    )
    assert artifacts["report"] == ["teho-report.html", "teho-report.json"]
    assert set(projects) == {"cats"}
    (table,) = tables
    found = LoadedRun.open(str(RUN)).view.findings
    assert [row[1] for row in table["data"]] == [finding.sentence for finding in found]


@pytest.mark.drawn(2, tests="packages")
def test_trackio_has_the_run(tmp_path: Path) -> None:
    answer = with_package("trackio", """
import json
from trackio.sqlite_storage import SQLiteStorage
(name,) = SQLiteStorage.get_runs('cats')
print(json.dumps([name, SQLiteStorage.get_logs('cats', name), SQLiteStorage.list_artifacts('cats')],
                 default=str))
""", tmp_path, "--project", "cats", TRACKIO_DIR=str(tmp_path / "trackio"))  # fmt: skip
    name, logs, artifacts = json.loads(answer)
    assert name == "tiny-kernels"
    assert [one[BUSY] for one in logs if BUSY in one] == pytest.approx(busy_values())
    assert logs[-1]["teho/finding/gpu_launch_bound"].startswith("GPU 0 on c1 was busy with small")
    assert RUN.name in json.dumps(artifacts)


@pytest.mark.drawn(2, tests="packages")
def test_mlflow_adds_to_the_run_of_the_training(tmp_path: Path) -> None:
    before = """
import mlflow
client = mlflow.MlflowClient()
training = client.create_run(client.create_experiment('cats')).info
client.log_metric(training.run_id, 'loss', 0.5)
client.set_tag(training.run_id, 'mlflow.note.content', 'mine')
sys.argv += ['--into', training.run_id]
"""
    answer = json.loads(with_package("mlflow", f"""
import json
(run,) = client.search_runs([training.experiment_id])
print(json.dumps([
    [one.value for one in client.get_metric_history(training.run_id, {BUSY!r})],
    run.data.metrics['loss'], run.data.tags, run.info.status,
]))
""", tmp_path, before=before, **mlflow_files(tmp_path)))  # fmt: skip
    values, loss, tags, status = answer
    assert values == pytest.approx(busy_values())
    assert (loss, status) == (0.5, "RUNNING")  # the program that trains may continue
    assert tags["mlflow.note.content"] == "mine"
    assert tags["teho/run/verdict"].startswith("GPU 0 on c1 was busy with small kernels")


@pytest.mark.drawn(2, tests="packages")
def test_trackio_adds_to_the_run_of_the_training(tmp_path: Path) -> None:
    before = """
import contextlib, trackio
with contextlib.redirect_stdout(sys.stderr):
    training = trackio.init(project='cats', name='training', auto_log_gpu=False,
                            auto_log_cpu=False)
    training.log({'loss': 0.5}, step=1000)
    trackio.finish()
"""
    answer = with_package("trackio", """
import json
from trackio.sqlite_storage import SQLiteStorage
(name,) = SQLiteStorage.get_runs('cats')
print(json.dumps([name, SQLiteStorage.get_logs('cats', name)], default=str))
""", tmp_path, "--project", "cats", "--into", "training", before=before,
        TRACKIO_DIR=str(tmp_path / "trackio"))  # fmt: skip
    name, logs = json.loads(answer)
    assert name == "training"
    assert [one["loss"] for one in logs if "loss" in one] == [0.5]
    assert [one[BUSY] for one in logs if BUSY in one] == pytest.approx(busy_values())


@pytest.mark.drawn(2, tests="packages")
def test_wandb_offline_does_not_replace_the_run_of_the_training(tmp_path: Path) -> None:
    answer = with_package(
        "wandb", "print(os.listdir())", tmp_path, "--into", "3f9c2e", exit_code=2,
        before="import os; os.dup2(1, 2)", WANDB_MODE="offline",
    )  # fmt: skip
    assert "W&B is offline, and cannot add to an existing run" in answer
    assert "wandb'" not in answer


def test_wandb_adds_to_the_run_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package: the real one asks W&B for the run."""
    package = MagicMock()
    run = package.init.return_value
    run.notes = "mine"
    monkeypatch.setitem(sys.modules, "wandb", package)
    loaded = LoadedRun.open(str(RUN))
    Wandb(loaded.run, Wish("", "3f9c2e", None)).end(loaded.view, {})
    given = package.init.call_args.kwargs
    assert (given["id"], given["resume"], given["name"]) == ("3f9c2e", "must", None)
    assert run.notes == "mine"
    Wandb(loaded.run, Wish("", "", None)).end(loaded.view, {})
    assert run.notes == prose_of(loaded.view)


@pytest.mark.drawn(2, tests="packages")
def test_mlflow_follows_a_run_that_continues(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    before = f"""
import time
from pathlib import Path
from types import SimpleNamespace
from teho.cli import log
from teho.show.trackers.of_mlflow import TRACKER
added, add = [], TRACKER.add
def noted(self, points):
    added.append(len(points))
    add(self, points)
def look(_):
    if len(added) > 1: Path({str(stop)!r}).touch()
    time.sleep(0.02)
TRACKER.add, log.time = noted, SimpleNamespace(sleep=look)
"""
    with running(stop) as (_, directory):
        answer = json.loads(with_package("mlflow", """
import json, mlflow
client = mlflow.MlflowClient()
(run,) = client.search_runs([client.get_experiment_by_name('teho').experiment_id])
(name,) = [one for one in run.data.metrics if one.startswith('teho/cpu_busy_percent/')]
times = [one.timestamp for one in client.get_metric_history(run.info.run_id, name)]
print(json.dumps([added, times, run.info.status]))
""", tmp_path, "--follow", run=directory, before=before, **mlflow_files(tmp_path)))  # fmt: skip
    added, times, status = answer
    *added, facts = added
    assert len(added) > 1
    assert facts == 1
    assert times == sorted(set(times))
    assert len(times) >= len(added)
    assert status == "FINISHED"
