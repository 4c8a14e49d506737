"""Several nodes in one summary: one time axis, and figures that a plain witness finds too."""

from __future__ import annotations

import math
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.explain.summary import summarise
from teho.explain.totals import energy_of, mean_of
from teho.model.device import Device
from teho.model.missing import Missing
from teho.model.run import FORMAT_VERSION, Clock, End, Node, Run, Step, Task
from teho.model.summary import Stat, Summary
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, new_run_id
from teho.store.pack import seal

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)


class Recorded:
    """One node: when it really began, what its clock said, and its rows by device."""

    def __init__(self, name, *, began_s=0.0, ahead_s=0.0, cores=4, sealed=True):
        self.name, self.began_s, self.ahead_s = name, began_s, ahead_s
        self.cores, self.sealed = cores, sealed
        self.rows: dict[str, list[dict]] = {}

    def add(self, device, span_s, **values):
        rows = self.rows.setdefault(device, [])
        end_s = (rows[-1]["elapsed_s"] if rows else 0.0) + span_s
        rows.append({"elapsed_s": end_s, "span_s": span_s, **values})
        return self

    def write(self, directory):
        journal = Journal(directory, self.name)
        for device, rows in self.rows.items():
            kind = "node" if device == "node" else "gpu"
            journal.append(
                [
                    {
                        "time": START + timedelta(seconds=row["elapsed_s"]),
                        "node": self.name, "kind": kind, "device": device, **row,
                    }
                    for row in rows
                ]
            )  # fmt: skip
        journal.flush()
        journal.close()
        if self.sealed:
            seal(directory, self.name)

    def node(self, first):
        return Node(
            name=self.name,
            started_at=START + timedelta(seconds=self.began_s + self.ahead_s),
            period_s=1.0,
            cores=tuple(range(self.cores)),
            devices=tuple(
                Device(id=device, index=place, name="H100", vendor="nvidia")
                for place, device in enumerate(sorted(set(self.rows) - {"node"}))
            ),
            clock=None if first else Clock(ahead_s=self.ahead_s, uncertainty_s=0.001),
            sealed=self.sealed,
        )


def summary_of(*nodes, elapsed_s=None, **given) -> Summary:
    end = None
    if elapsed_s is not None:
        end = End(at=START, elapsed_s=elapsed_s, exit_code=0, cpu_s=1.0, peak_process_bytes=1)
    with tempfile.TemporaryDirectory() as home:
        directory = create_run_directory(Path(home), new_run_id(START, "x"), b"{}")
        for node in nodes:
            node.write(directory)
        run = Run(
            format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n0", end=end,
            nodes=tuple(node.node(not place) for place, node in enumerate(nodes)), **given,
        )  # fmt: skip
        problems: list[str] = []
        summary = summarise(run, directory, problems)
    assert problems == []
    return summary


def busy(node, *values, span_s=1.0, device="g0"):
    for value in values:
        node.add(device, span_s, gpu_busy_percent=value)
    return node


def test_nodes_that_began_one_after_the_other_share_one_axis():
    first = busy(Recorded("n0"), *[90] * 10)
    late = busy(Recorded("n1", began_s=4.0), *[50] * 6)
    lines = [gpu.series["gpu_busy_percent"] for gpu in summary_of(first, late, elapsed_s=10).gpus]
    assert lines == [[90] * 10, [None] * 4 + [50] * 6]


@pytest.mark.parametrize("ahead_s", [-3600.0, -2.5, 0.0, 2.5, 86_400.0])
def test_a_clock_that_is_wrong_moves_nothing(ahead_s):
    first = busy(Recorded("n0"), *[90] * 10)
    other = busy(Recorded("n1", began_s=2.0, ahead_s=ahead_s), *[50] * 5)
    summary = summary_of(first, other, elapsed_s=10)
    assert summary.gpus[1].series["gpu_busy_percent"] == [None] * 2 + [50] * 5 + [None] * 3


def test_a_node_that_died_leaves_a_gap_and_its_mean_is_that_of_its_time():
    first = busy(Recorded("n0"), *[90] * 10)
    dead = busy(Recorded("n1", sealed=False), 30, 30)
    summary = summary_of(first, dead, elapsed_s=10)
    assert summary.gpus[1].series["gpu_busy_percent"] == [30] * 2 + [None] * 8
    assert summary.gpus[1].stats["gpu_busy_percent"].covered_s == 2
    assert mean_of(summary.gpus, "gpu_busy_percent") == pytest.approx((90 * 10 + 30 * 2) / 12)


def test_a_node_says_from_when_to_when_it_was_recorded():
    late = Recorded("n1", began_s=4.0, ahead_s=-7.0).add("node", 2.0).add("node", 1.0)
    summary = summary_of(Recorded("n0").add("node", 10.0), late, elapsed_s=10)
    assert (summary.nodes[0].first_s, summary.nodes[0].last_s) == (0, 10)
    assert (summary.nodes[1].first_s, summary.nodes[1].last_s) == (4, 7)
    assert summary.nodes[1].covered_s == 3


def test_a_node_without_rows_was_recorded_at_no_time():
    summary = summary_of(Recorded("n0").add("node", 10.0), Recorded("n1"), elapsed_s=10)
    assert (summary.nodes[1].first_s, summary.nodes[1].last_s) == (None, None)
    assert summary.nodes[1].covered_s == 0


def test_without_an_end_the_last_row_of_any_node_is_it():
    first = Recorded("n0").add("node", 8.0)
    late = Recorded("n1", began_s=5.0, ahead_s=90.0).add("node", 6.0)
    assert summary_of(first, late).elapsed_s == pytest.approx(11)


def test_rows_from_before_the_start_are_not_lost():
    early = busy(Recorded("n1", began_s=-2.0), *[10, 20, 30, 40])
    summary = summary_of(busy(Recorded("n0"), *[90] * 4), early, elapsed_s=4)
    # The first bin takes in what lies before it.
    assert summary.gpus[1].series["gpu_busy_percent"] == [20, 40, None, None]
    assert summary.gpus[1].stats["gpu_busy_percent"].mean == 25


def test_a_single_instant_is_placed_at_its_time():
    seen = Recorded("n1", began_s=3.2)
    seen.rows["g0"] = [{"elapsed_s": 0.1, "span_s": 0.0, "gpu_busy_percent": 7.0}]
    summary = summary_of(busy(Recorded("n0"), *[90] * 5), seen, elapsed_s=5)
    assert summary.gpus[1].series["gpu_busy_percent"] == [None, None, None, 7, None]


def test_rates_of_a_late_node_give_back_its_total():
    late = Recorded("n1", began_s=3.0, ahead_s=1.5)
    for second in range(1, 6):
        late.add("node", 1.0, job_cpu_s=2.0 * second, net_send_bytes=100 * second)
    node = summary_of(Recorded("n0").add("node", 8.0), late, elapsed_s=8).nodes[1]
    assert node.totals["job_cpu_s"] == 10
    assert node.series["job_cpu_s"] == [None] * 3 + [2] * 5
    assert sum(rate or 0 for rate in node.series["net_send_bytes"]) == pytest.approx(500)


# CPU time of steps


def of_step(tasks, *hosts, end=True):
    step = Step(
        key="s", started_by="Slurm", began_on="n0", task_count=tasks, node_count=len(hosts),
        hosts=hosts,
    )  # fmt: skip
    ends = End(at=START, elapsed_s=10.0, exit_code=0, cpu_s=20.0, peak_process_bytes=1)
    told = tuple(
        Task(rank=rank, local_rank=0, node="n0", pid=1, started_at=START, end=ends)
        for rank in range(tasks if end else tasks - 1)
    )
    return {"step": step, "tasks": told}


def cpu(name, cpu_s):
    return Recorded(name).add("node", 10.0, job_cpu_s=cpu_s)


def test_cpu_time_of_a_step_is_that_of_its_tasks_or_of_the_rows_if_they_saw_more():
    given = of_step(4, "n0", "n1")
    end = End(at=START, elapsed_s=10.0, exit_code=0, cpu_s=80.0, peak_process_bytes=1)
    for seen, total in ((30.0, 80.0), (50.0, 100.0)):
        with tempfile.TemporaryDirectory() as home:
            directory = create_run_directory(Path(home), new_run_id(START, "x"), b"{}")
            nodes = [cpu("n0", seen), cpu("n1", seen)]
            for node in nodes:
                node.write(directory)
            run = Run(
                format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n0",
                end=end, nodes=tuple(node.node(first=False) for node in nodes), **given,
            )  # fmt: skip
            assert summarise(run, directory, []).cpu_s == total


def test_cpu_time_of_a_step_that_lacks_a_node_is_missing():
    summary = summary_of(cpu("n0", 30.0), **of_step(4, "n0", "n1", end=False))
    assert isinstance(summary.cpu_s, Missing)
    assert summary.cpu_s.detail == "n1 left no recording"


def test_one_recorded_node_of_two_is_not_the_whole_step():
    summary = summary_of(cpu("n0", 30.0), elapsed_s=10.0, **of_step(4, "n0", "n1"))
    assert summary.nodes[0].cpu_cores_used == 3.0


# Any recording, against a witness


SPANS = st.sampled_from([0.5, 1.0, 2.0, 8.0])
PERCENT = st.none() | st.floats(0, 100, width=32)


@st.composite
def recordings(draw):
    """Nodes of different lengths, starts and clocks, with different numbers of GPUs."""
    nodes = []
    for number in range(draw(st.integers(1, 4))):
        node = Recorded(
            f"n{number}",
            began_s=draw(st.sampled_from([0.0, 0.123, 3.217, 40.611])) if number else 0.0,
            ahead_s=draw(st.sampled_from([-500.003, 0.0, 0.017, 7.7])) if number else 0.0,
            sealed=draw(st.booleans()),
        )
        for gpu in range(draw(st.integers(0, 3))):
            energy_j = 0.0
            counted = draw(st.booleans())
            for value, span_s in draw(st.lists(st.tuples(PERCENT, SPANS), min_size=1, max_size=8)):
                energy_j += 32.0 * span_s
                extra = {"gpu_energy_j": energy_j} if counted else {"gpu_power_w": 32.0}
                node.add(f"g{number}{gpu}", span_s, gpu_busy_percent=value, **extra)
        cpu_s = 0.0
        for used, span_s in draw(
            st.lists(st.tuples(st.floats(0, 4), SPANS), min_size=1, max_size=8)
        ):
            cpu_s += round(used * span_s * 64) / 64
            node.add("node", span_s, job_cpu_s=cpu_s)
        nodes.append(node)
    return nodes


def last_s(nodes):
    return max(node.began_s + node.rows["node"][-1]["elapsed_s"] for node in nodes)


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_totals_are_those_of_the_witness(nodes):
    summary = summary_of(*nodes)
    assert summary.elapsed_s == pytest.approx(last_s(nodes), abs=1e-5)
    area = time = 0.0
    energies = []
    for node in nodes:
        for device, rows in node.rows.items():
            if device != "node":
                energies.append(32.0 * sum(row["span_s"] for row in rows))
                for row in rows:
                    if row["gpu_busy_percent"] is not None:
                        area += row["gpu_busy_percent"] * row["span_s"]
                        time += row["span_s"]
    mean = mean_of(summary.gpus, "gpu_busy_percent")
    if time:
        assert mean == pytest.approx(area / time, rel=1e-5, abs=1e-5)
    else:
        assert isinstance(mean, Missing)
    if energies:
        assert energy_of(summary.gpus) == pytest.approx(math.fsum(energies), rel=1e-6)
    if len(nodes) > 1:
        assert summary.cpu_s == pytest.approx(
            math.fsum(node.rows["node"][-1]["job_cpu_s"] for node in nodes)
        )


def bins_of_witness(node, rows, metric, summary):
    """Return a gauge's mean in each bin, by the middle of each row; None near a bin's edge."""
    sums = [[0.0, 0.0] for _ in range(summary.bin_count)]
    for row in rows:
        middle = (node.began_s + row["elapsed_s"] - row["span_s"] / 2) / summary.bin_s
        if abs(middle - round(middle)) < 1e-3 and 0 < round(middle) < summary.bin_count:
            return None
        place = max(0, min(summary.bin_count - 1, math.floor(middle)))
        if row[metric] is not None:
            sums[place][0] += row[metric] * row["span_s"]
            sums[place][1] += row["span_s"]
    return [total / span if span else None for total, span in sums]


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_bins_are_those_of_the_witness(nodes):
    summary = summary_of(*nodes)
    for node, found in zip(nodes, summary.nodes, strict=True):
        devices = sorted(set(node.rows) - {"node"})
        assert [gpu.device.id for gpu in found.gpus] == devices
        for gpu in found.gpus:
            rows = node.rows[gpu.device.id]
            expected = bins_of_witness(node, rows, "gpu_busy_percent", summary)
            stat = gpu.stats["gpu_busy_percent"]
            if not isinstance(stat, Stat) or expected is None:
                continue
            for value, witness in zip(gpu.series["gpu_busy_percent"], expected, strict=True):
                assert (value is None) is (witness is None)
                # A bin's mean has five digits.
                assert value is None or value == pytest.approx(witness, rel=5.1e-5, abs=1e-4)
