"""Each figure of a frame is the figure that the report of the same rows has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from teho.config.settings import Settings
from teho.explain.now import NewestValues
from teho.explain.program import program_of
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.document import Report
from teho.model.live import LiveSample
from teho.model.metric import METRICS, METRICS_BY_NAME, Metric
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Clock, Node, Run
from teho.observe.sampler import SignalSampler
from teho.observe.viewer import Received
from teho.show.build.report.time import time_tables
from teho.show.build.top import top_document
from teho.show.cells import cell_text, quantity
from teho.show.loaded import LoadedRun
from teho.show.top.frame import CURVES, Frame
from teho.show.top.gpu import gpu_view
from teho.show.top.head import head
from teho.show.top.job import JobLines
from teho.show.top.live import LiveSource
from teho.show.top.node import node_view
from teho.show.top.process import process_view
from teho.show.top.replay import ReplaySource
from teho.show.top.rows import View
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, node_file
from teho.store.read import supervisor_stamp
from teho.units import GIB
from top.frames import WATCHED, frame

SECONDS = 20
GPUS = 3
LATER_S = 1.5
"""The second node starts later than the first, and its clock is ahead."""
AHEAD_S = 40.0
NO_FP64 = Missing(Reason.UNSUPPORTED, "this GPU has no such counter")
MISSING = "gpu_fp64_percent"


def value_of(metric: Metric, device: int) -> float:
    """Return a value that no other metric and no other device has; a counter has it per second."""
    number = METRICS.index(metric)
    if metric.unit == "%":
        return 1.5 + (number * 13 + device * 7) % 90
    if metric.unit == "bytes":
        return int((1 + number + 0.217 * device) * GIB)
    return 10.0 + 3 * number + device


def readings(node: int, at_s: float) -> dict[str, dict[str, Any]]:
    """Return the values of a node, which never change, and the counters at a moment."""

    def of(scope: str, device: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for metric in METRICS:
            if metric.scope == scope and not metric.per_core:
                value = value_of(metric, 10 * node + device)
                found[metric.name] = value * at_s if metric.kind == "counter" else value
        return found

    gpus = {f"GPU-{node}-{place}": of("gpu", place) for place in range(GPUS)}
    for gpu in gpus.values():
        gpu[MISSING] = NO_FP64
    return {"node": {**of("node", 5), "core_busy_percent": [15.0, 85.0]}, **gpus}


class Recorded:
    """A run that goes on, as it is on disk, and the newest samples of its recorders."""

    def __init__(self, home: Path) -> None:
        self.began = datetime.now(timezone.utc) - timedelta(seconds=SECONDS)
        names = ("n0", "n1")
        self.run = Run(
            format=FORMAT_VERSION, id="20261126-080000-same-aaaa", name="same", command=("x",),
            started_at=self.began, host=os.uname().nodename, supervisor_pid=os.getpid(),
            supervisor_stamp=supervisor_stamp(os.getpid()),
        )  # fmt: skip
        self.directory = create_run_directory(home, self.run.id, msgspec.json.encode(self.run))
        self.newest: dict[str, Received] = {}
        nodes = tuple(self._record(number, name) for number, name in enumerate(names))
        self.run = msgspec.structs.replace(self.run, nodes=nodes)

    def _record(self, number: int, name: str) -> Node:
        later_s = number * (LATER_S + AHEAD_S)
        started_at = self.began + timedelta(seconds=later_s)
        sampler, journal = SignalSampler(name, started_at, 1.0), Journal(self.directory, name)
        sampler.begin(readings(number, 0.0), 0.0)
        samples = []
        for second in range(1, SECONDS + 1):
            read = readings(number, second)
            journal.append(sampler.add(read, second))
            rows = sampler.newest(read)
            samples.append(LiveSample(node=name, elapsed_s=float(second), rows=rows))
        journal.close()
        self.newest[name] = Received(samples[-1], 1000.0, samples[-2], "connection")
        node = Node(
            name=name, started_at=started_at, period_s=1.0, cores=(0, 1),
            allocation=Allocation(memory_limit_bytes=500 * GIB, job_id="4711", scheduler="slurm",
                                  time_limit_s=3600.0),
            devices=tuple(
                Device(id=f"GPU-{number}-{place}", index=place, name="NVIDIA H100",
                       vendor="nvidia", memory_bytes=160 * GIB)
                for place in range(GPUS)
            ),
            absences=tuple(sampler.absences.values()),
            clock=Clock(ahead_s=AHEAD_S, uncertainty_s=0.001) if number else None,
        )  # fmt: skip
        node_file(self.directory, name).write_bytes(msgspec.json.encode(node))
        return node


class Figures:
    """The figures of the report, as the report writes them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.plots = {plot.key: plot for plot in report.plots}

    def value(self, metric: str, node: str, gpu: int | None) -> float:
        """Return the newest value of a plot."""
        label = node if gpu is None else f"{node} GPU {gpu}"
        (line,) = [one for one in self.plots[metric].series if one.label == label]
        values = [value for value in line.values if value is not None]
        return values[-1]

    def text(self, metric: str, node: str, gpu: int | None = None) -> str:
        """Return it with its unit."""
        return quantity(self.value(metric, node, gpu), self.plots[metric].unit)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def figures(recorded: Recorded) -> Figures:
    return Figures(LoadedRun(recorded.directory, Settings()).view)


@pytest.fixture(scope="module", params=["connection", "recording", "replay"])
def shown(recorded: Recorded, figures: Figures, request: pytest.FixtureRequest) -> Iterator[Frame]:
    """A frame from samples of a connection, from the rows of a run, and of a replay."""
    if request.param == "connection":
        nodes = NewestValues().nodes(recorded.run, recorded.newest, 1001.0)
        yield Frame(figures.report, nodes, recorded.run.limit_s)
        return
    source = (
        LiveSource(recorded.directory, Settings())
        if request.param == "recording"
        else ReplaySource(recorded.directory, Settings(), 1e6)
    )
    source.poll()
    yield source.frame()
    source.close()


def text_of(view: View) -> list[str]:
    return [row.line.plain for row in view.rows]


NODES = ["n0", "n1"]
GPU_COLUMNS = {
    "busy": "gpu_busy_percent",
    "sm_active": "gpu_sm_active_percent",
    "tensor": "gpu_tensor_percent",
    "memory": "gpu_memory_used_bytes",
    "power": "gpu_power_w",
    "temperature": "gpu_temperature_c",
}
MORE_COLUMNS = {
    "clock": "gpu_sm_clock_mhz",
    "heat": "gpu_thermal_throttle_percent",
    "cap": "gpu_power_throttle_percent",
    "pcie_in": "gpu_pcie_receive_bytes_per_s",
    "pcie_out": "gpu_pcie_send_bytes_per_s",
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("gpu", range(GPUS))
def test_a_gpu(shown: Frame, figures: Figures, name: str, gpu: int) -> None:
    lines = text_of(gpu_view(shown, name, gpu, (), 200, 100))
    found = {line[:32].rstrip(): line[32:] for line in lines}
    for metric in METRICS:
        if metric.scope == "gpu" and metric.name not in {MISSING, "gpu_energy_j"}:
            label = metric.label[:1].upper() + metric.label[1:]
            text = found[label].partition(" of ")[0]
            assert text == figures.text(metric.name, name, gpu), metric.name
    assert MISSING not in figures.plots
    assert any(line.startswith("not offered: this GPU has no such counter") for line in lines)


HOST = {
    "Cores busy": "cpu_busy_percent",
    "Cores used by the program": "job_cpu_s",
    "I/O wait": "cpu_iowait_percent",
    "Memory": "job_memory_bytes",
    "Threads": "job_threads",
    "Read by the program": "job_read_bytes",
    "Written by the program": "job_write_bytes",
    "Read from network file systems": "netfs_read_bytes",
    "Network in": "net_receive_bytes",
    "Network out": "net_send_bytes",
}


@pytest.mark.parametrize("name", NODES)
def test_a_node(shown: Frame, figures: Figures, name: str) -> None:
    lines = text_of(node_view(shown, name, 200))
    for gpu in range(GPUS):
        _, *words = re.split(r" {2,}", re.sub("[━─]", " ", lines[1 + gpu]).strip())
        more = {key: figures.text(metric, name, gpu) for key, metric in MORE_COLUMNS.items()}
        slowed = {why: figures.value(MORE_COLUMNS[why], name, gpu) for why in ("heat", "cap")}
        why = max(slowed, key=lambda one: slowed[one])
        assert words == [
            *(figures.text(metric, name, gpu) for metric in GPU_COLUMNS.values()), "–",
            f"{why} {more[why]}", more["clock"], words[-4], more["pcie_in"], more["pcie_out"],
            "NVIDIA H100",
        ]  # fmt: skip
        # A plot shows a counter as its increase per second. This one is the number of errors.
        per_s = figures.value("gpu_ecc_uncorrected", name, gpu)
        assert float(words[-4]) == pytest.approx(per_s * SECONDS, abs=1.0)
    of_host = {line[:32].rstrip(): line[32:] for line in lines[1 + GPUS :] if line}
    why = of_host.pop("Driver, platform, compute mode")
    assert why.startswith("not recorded: an older version of Teho made this recording")
    assert {label: of_host[label].partition(" of ")[0] for label in HOST} == {
        label: figures.text(metric, name) for label, metric in HOST.items()
    }
    for label in ("Uncorrected memory errors", "Xid errors"):
        assert len(re.findall(r"\d+ \(GPU \d\)", of_host.pop(label))) == GPUS
    limit = next(fact for fact in figures.report.facts if fact.key == "memory_limit_bytes")
    assert of_host["Memory"].endswith(f" of {cell_text(limit.value, limit.unit)}")
    assert of_host["Each core, ×10 %"] == "18"
    assert set(of_host) == {*HOST, "Each core, ×10 %"}


@pytest.mark.parametrize("name", NODES)
def test_the_line_of_a_node(shown: Frame, figures: Figures, name: str) -> None:
    lines = text_of(JobLines().view(shown.nodes, 200))
    (line,) = [line for line in lines if line.startswith(f"{name}!")]  # a GPU has a fault
    _, cells, memory, power, cores, used, share, _ = re.split(r" {2,}", line.strip())
    busy, of_gpu, watts = (
        [figures.value(metric, name, gpu) for gpu in range(GPUS)]
        for metric in ("gpu_busy_percent", "gpu_memory_used_bytes", "gpu_power_w")
    )
    assert cells.split() == [str(int(value // 10)) for value in busy]
    assert memory == quantity(100 * max(of_gpu) / (160 * GIB), "%")
    assert power == quantity(sum(watts), "W")
    assert cores == figures.text("cpu_busy_percent", name)
    assert used == figures.text("job_memory_bytes", name)
    assert share == quantity(figures.value("job_memory_bytes", name, None) / (5 * GIB), "%")


def test_the_head(recorded: Recorded, shown: Frame, figures: Figures) -> None:
    facts = {fact.key: fact for fact in figures.report.facts}
    text = head(shown, 400)[-1].plain
    assert f" · {cell_text(facts['elapsed_s'].value, 's')} · " in text
    assert f" · job {facts['job_id'].value}" in text
    if shown.replayed_s is None:
        found = re.match(r".* \d+ more findings", figures.report.verdict)
        assert found is not None
        assert head(shown, 400)[0].plain.partition(" ")[2].startswith(found[0])
        for key in ("cost", "gpu_energy_j"):
            if key in facts and not isinstance(facts[key].value, Missing):
                fact = facts[key]
                assert f"{fact.label} {cell_text(fact.value, fact.unit)}".lower() in text.lower()
        left_s = 3600.0 - float(str(facts["elapsed_s"].value))
        assert f" · {cell_text(left_s, 's')} until the time limit" in text


NODE_COLUMNS = {
    "cpu": "cpu_busy_percent",
    "used": "job_cpu_s",
    "memory": "job_memory_bytes",
    "read": "job_read_bytes",
    "written": "job_write_bytes",
    "received": "net_receive_bytes",
}


def test_the_tables_without_a_terminal(shown: Frame, figures: Figures) -> None:
    document = top_document(shown.report, shown.nodes)
    tables = {table.key: table for table in document.tables}
    for row in tables["gpus_now"].rows:
        node, gpu = str(row["node"]), int(str(row["gpu"]))
        facts = {"p_state", "driver", "platform", "compute_mode", "slice_of", "uncorrected"}
        assert row.keys() == {"node", "gpu", *GPU_COLUMNS, *MORE_COLUMNS, *facts}
        for key, metric in {**GPU_COLUMNS, **MORE_COLUMNS}.items():
            assert row[key] == pytest.approx(figures.value(metric, node, gpu), rel=1e-4)
    for row in tables["nodes_now"].rows:
        assert row.keys() == {"node", "age", "way", *NODE_COLUMNS}
        for key, metric in NODE_COLUMNS.items():
            expected = figures.value(metric, str(row["node"]), None)
            assert row[key] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("length_s", "until_s", "title"),
    [
        (46.2, 100.0, "Main thread in the last 46.0 s, % of the time"),
        (600.0, 95.0, "Main thread in the last 10 min, % of the time"),
        (600.0, -140.0, "Main thread in 10 min, until about 4 min ago, % of the time"),
    ],
)
def test_a_process_says_of_which_time_its_shares_are(
    length_s: float, until_s: float, title: str
) -> None:
    watched = msgspec.structs.replace(WATCHED, at_end_s=length_s, at_end_until_s=until_s)
    lines = text_of(process_view(frame({"n1": [50.0]}), "n1", 4711, watched, 200))
    assert title in lines


def test_the_curves_end_with_the_figures(recorded: Recorded, figures: Figures) -> None:
    for source in (
        LiveSource(recorded.directory, Settings()),
        ReplaySource(recorded.directory, Settings(), 1e6),
    ):
        source.poll()
        curves = source.curves("n1", 1)
        lines = text_of(gpu_view(source.frame(), "n1", 1, curves, 100, 20))
        source.close()
        assert [curve.metric for curve in curves] == list(CURVES)
        for place, metric in enumerate(CURVES):
            label = METRICS_BY_NAME[metric].label[:16]
            assert lines[2 * place].lower().startswith(label.lower())
            assert lines[2 * place + 1].startswith(figures.text(metric, "n1", 1) + " ")


def test_a_process() -> None:
    """The shares of a process are those of the tables of the time and of the lines."""
    watched = msgspec.structs.replace(WATCHED, stacks=WATCHED.at_end, at_end=())
    program = program_of([watched])
    tables = {table.key: table for table in time_tables(program, 1)}
    lines = text_of(process_view(frame({"n1": [50.0]}), "n1", 4711, watched, 200))
    shares = {words[2]: words[0].strip() for line in lines if "━" in line
              for words in [re.split(r" {2,}", line.strip())]}  # fmt: skip
    expected: dict[str, Mapping[str, Any]] = {
        str(row["doing"]): row for row in tables["time"].rows
    } | {str(row["line"]).strip(): row for row in tables["lines"].rows if row["share_percent"]}
    assert len(expected) >= 4
    assert shares == {key: quantity(row["share_percent"], "%") for key, row in expected.items()}
