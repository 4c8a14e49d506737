"""Energy with what stands behind it: counter and power against each other, and the baseline."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.explain.energy import (
    COUNTER,
    INTEGRATED,
    EnergyReadings,
    count_once,
    energy_of_node,
    weigh,
)
from teho.explain.summary import summarise
from teho.explain.totals import energy_of
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Absence, End, Node, Run
from teho.model.summary import NodeSummary, Stat
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, new_run_id
from teho.store.pack import seal

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)
H100 = Device(id="GPU-a", index=0, name="NVIDIA H100", vendor="nvidia", architecture="9.0")
GH200 = Device(
    id="GPU-a", index=0, name="NVIDIA GH200 480GB", vendor="nvidia", energy_of="module",
    architecture="9.0",
)  # fmt: skip
APU = Device(id="GPU-a", index=0, name="AMD Instinct MI300A", vendor="amd", energy_of="module")
NO_COUNTER = Missing(Reason.UNSUPPORTED, "this GPU or its driver does not report this metric")
NO_POWER = Missing(Reason.FORBIDDEN, "the driver does not report this metric to this user")


def steady(
    power_w: float, elapsed_s: float = 100.0, counter_w: float | None = None
) -> EnergyReadings:
    """Return what is seen of a GPU that draws the same all the time."""
    counter_w = power_w if counter_w is None else counter_w
    bins = round(elapsed_s)
    return EnergyReadings(
        counter=counter_w * elapsed_s,
        power=Stat(power_w, 0.0, power_w, power_w, elapsed_s),
        rows=bins,
        elapsed_s=elapsed_s,
        unused_w=None,
        counter_bins=[counter_w] * bins,
        power_bins=[power_w] * bins,
        bin_s=1.0,
    )


def test_the_counter_comes_first_with_power_as_its_witness():
    energy_j, source, behind = weigh(H100, steady(400, counter_w=408))
    assert (energy_j, source) == (40_800, COUNTER)
    assert behind.integrated_j == 40_000
    assert behind.difference_percent == pytest.approx(2)
    # Two ticks of 100 ms at most, at what it draws.
    assert behind.uncertainty_j == pytest.approx(40.8)


def test_without_a_counter_power_is_added_up_and_named():
    energy_j, source, behind = weigh(H100, steady(400)._replace(counter=NO_COUNTER))
    assert (energy_j, source) == (40_000, INTEGRATED)
    assert behind.difference_percent == NO_COUNTER
    assert behind.counter_j == NO_COUNTER


def test_with_neither_nothing_is_zero():
    seen = steady(400)._replace(counter=NO_COUNTER, power=NO_POWER)
    energy_j, source, behind = weigh(H100, seen)
    assert (energy_j, source) == (NO_COUNTER, "")
    assert behind.integrated_j == NO_POWER
    assert behind.net_j == behind.idle_j == behind.uncertainty_j == NO_COUNTER


def test_a_counter_without_power_is_taken_and_its_baseline_is_not_known():
    energy_j, source, behind = weigh(H100, steady(400)._replace(power=NO_POWER))
    assert (energy_j, source) == (40_000, COUNTER)
    assert behind.idle_power_w == behind.net_j == behind.difference_percent == NO_POWER
    assert behind.uncertainty_j == pytest.approx(40)


def test_a_counter_that_stopped_is_not_used():
    seen = steady(300)._replace(counter=0.0, counter_bins=[0.0] * 100)
    energy_j, source, behind = weigh(H100, seen)
    assert (energy_j, source) == (30_000, INTEGRATED)
    assert behind.stuck_s == 100
    assert behind.counter_j == 0


def test_a_counter_that_stops_half_way_is_not_believed_either():
    seen = steady(300)._replace(counter=15_000.0, counter_bins=[300.0] * 50 + [0.0] * 50)
    energy_j, source, behind = weigh(H100, seen)
    assert (energy_j, source, behind.stuck_s) == (30_000, INTEGRATED, 50)


def test_a_counter_that_could_not_be_read_for_a_while_is_believed():
    """It stands in the rows as if it stood still, and has caught up in the end."""
    bins = [300.0] * 40 + [0.0] * 30 + [9300.0] + [300.0] * 29
    energy_j, source, behind = weigh(H100, steady(300)._replace(counter_bins=bins))
    assert (energy_j, source, behind.stuck_s) == (30_000, COUNTER, 0)


def test_a_gpu_that_is_lost_is_measured_as_long_as_it_was_there():
    """Its counter stands still in the rows: times the whole run, idling would exceed the energy."""
    lost = steady(400)._replace(
        counter=20_000.0,
        power=Stat(400, 0, 400, 400, 50),
        unused_w=80.0,
        counter_bins=[400.0] * 50 + [0.0] * 48 + [None] * 2,  # another node ran on for 2 s
        power_bins=[400.0] * 50 + [None] * 50,
    )
    energy_j, source, behind = weigh(H100, lost._replace(elapsed_s=98.0))
    assert (energy_j, source, behind.unread_s) == (20_000, COUNTER, 48)
    assert (behind.idle_j, behind.net_j, behind.difference_percent) == (4_000, 16_000, 0)
    assert weigh(H100, steady(400))[2].unread_s == 0


def test_ticks_of_100_ms_are_not_taken_for_standing_still():
    seen = steady(300, elapsed_s=2.0)._replace(
        counter=550.0, counter_bins=[0.0, 600.0] * 20, power_bins=[300.0] * 40, bin_s=0.05
    )
    assert weigh(H100, seen)[1:2] == (COUNTER,)


def test_the_baseline_is_what_the_gpu_draws_without_the_job():
    seen = steady(400)._replace(power=Stat(400, 90, 600, 95, 100), unused_w=70.0)
    _, _, behind = weigh(H100, seen)
    assert (behind.idle_power_w, behind.idle_is_unused) == (70, True)
    assert (behind.idle_j, behind.net_j) == (7_000, 33_000)
    _, _, behind = weigh(H100, seen._replace(unused_w=None))
    assert (behind.idle_power_w, behind.idle_is_unused) == (95, False)
    assert behind.net_j == 40_000 - 9_500


def test_a_card_of_two_dies_is_not_unused_because_one_of_them_is():
    """The power is that of both: while this die has no process the other one may work."""
    seen = steady(400)._replace(power=Stat(400, 90, 560, 95, 100), unused_w=300.0)
    _, _, behind = weigh(die(0, "package", "c1"), seen)
    assert (behind.idle_power_w, behind.idle_is_unused) == (95, False)


def test_power_that_was_seen_for_half_of_the_time_is_no_witness():
    seen = steady(400)._replace(power=Stat(200, 0, 200, 200, 50))
    _, _, behind = weigh(H100, seen)
    assert isinstance(behind.difference_percent, Missing)


def test_power_at_one_instant_is_no_energy():
    seen = steady(400)._replace(power=Stat(400, 0, 400, 400, 0.0))
    assert isinstance(weigh(H100, seen)[2].integrated_j, Missing)
    energy_j, source, _ = weigh(H100, seen._replace(counter=NO_COUNTER))
    assert (energy_j, source) == (NO_COUNTER, "")


def test_a_module_counter_is_not_compared_with_the_power_of_its_gpu():
    """GH200: the naive comparison finds 38 % apart, and takes the CPU's energy for the GPU's."""
    energy_j, source, behind = weigh(GH200, steady(400, counter_w=550))
    assert (energy_j, source) == (55_000, COUNTER)
    assert behind.integrated_j == 40_000
    for figure in (behind.difference_percent, behind.idle_power_w, behind.net_j):
        assert isinstance(figure, Missing)
        assert "module" in figure.detail
    # On an APU both are the whole package's.
    assert weigh(APU, steady(400))[2].difference_percent == 0


def test_integrated_power_is_less_certain_than_a_counter():
    power = Stat(400, 150, 700, 90, 100)
    by_power = weigh(H100, steady(400)._replace(counter=NO_COUNTER, power=power))[2]
    by_counter = weigh(H100, steady(400)._replace(power=power))[2]
    # 2 standard errors of 100 samples, and one window of 25 ms at its ends.
    assert by_power.uncertainty_j == pytest.approx(2 * 150 / 10 * 100 + 0.025 * 700)
    assert by_counter.uncertainty_j == pytest.approx(70)
    ada = msgspec.structs.replace(H100, architecture="8.9")
    slower = weigh(ada, steady(400)._replace(counter=NO_COUNTER, power=power))[2]
    assert slower.uncertainty_j == pytest.approx(3000 + 1.0 * 700)


@settings(max_examples=20)
@given(
    st.lists(st.floats(30, 700, width=32), min_size=2, max_size=60),
    st.sampled_from([0.2, 1.0, 2.0]),
)
def test_figures_of_a_recording_are_those_of_the_trace(powers: list[float], span_s: float):
    rows, counted = [], 0.0
    for number, power in enumerate(powers, start=1):
        counted += power * span_s
        rows.append(gpu_row(number * span_s, span_s, gpu_power_w=power, gpu_energy_j=counted))
    with tempfile.TemporaryDirectory() as home:
        (gpu,) = node_of(rows, Path(home), len(powers) * span_s).gpus
    truth = sum(powers) * span_s
    assert gpu.energy_j == pytest.approx(truth, rel=1e-3)
    assert gpu.energy.integrated_j == pytest.approx(truth, rel=1e-3)
    assert gpu.energy.difference_percent == pytest.approx(0, abs=0.1)
    assert gpu.energy.idle_power_w == pytest.approx(min(powers), rel=1e-3)


def test_the_baseline_in_rows(tmp_path: Path):
    """Lowest while unused; the last row, where nobody knows of processes, does not count."""
    rows = [
        gpu_row(1, gpu_power_w=72.0, gpu_job_processes=0.0),
        gpu_row(2, gpu_power_w=70.0, gpu_job_processes=0.0),
        gpu_row(3, gpu_power_w=65.0, gpu_job_processes=1.0),
        # Sixteen samples of which one had a process: the mean is rounded to 0.
        gpu_row(19, 16.0, gpu_power_w=64.0, gpu_job_processes=0.0, gpu_job_processes_max=1.0),
        gpu_row(20, gpu_power_w=60.0),
    ]
    (gpu,) = node_of(rows, tmp_path, 20).gpus
    assert (gpu.energy.idle_power_w, gpu.energy.idle_is_unused) == (70, True)


def test_two_dies_of_a_card_are_counted_once(tmp_path: Path):
    """MI250X: a sum of all GPUs lacks the silent ones, a sum of zeros would count right only so."""
    rows = [
        gpu_row(t, device=f"GPU-{die}", gpu_energy_j=500.0 * t, gpu_power_w=500.0)
        for die in (0, 2)
        for t in range(1, 11)
    ]
    rows += [
        gpu_row(t, device=f"GPU-{die}", gpu_busy_percent=90.0)
        for die in (1, 3)
        for t in range(1, 11)
    ]
    devices = [die(0, "package", "c1"), die(1, "device", "c1"), die(2, "package", "c9"),
               die(3, "device", "c9")]  # fmt: skip
    gpus = node_of(rows, tmp_path, 10, devices).gpus
    assert [gpu.energy.counted_with for gpu in gpus] == [None, 0, None, 2]
    assert [gpu.energy.shares_with for gpu in gpus] == [(1,), (), (3,), ()]
    assert energy_of(gpus) == 10_000
    assert isinstance(gpus[1].energy_j, Missing)
    assert "other GPU of its card" in gpus[1].energy_j.detail
    # Alone, a silent die has no figure, and neither has the job.
    (silent,) = node_of(rows, tmp_path / "b", 10, [devices[1]]).gpus
    assert isinstance(energy_of([silent]), Missing)
    # Two nodes have packages of the same name: each is counted.
    assert energy_of([*gpus, *gpus]) == 20_000


def test_two_that_both_report_one_package_are_counted_once():
    both = [die(0, "package", "c1"), die(1, "package", "c1")]
    rows = [
        gpu_row(t, device=device.id, gpu_energy_j=500.0 * t, gpu_power_w=500.0)
        for device in both
        for t in range(1, 11)
    ]
    with tempfile.TemporaryDirectory() as home:
        gpus = node_of(rows, Path(home), 10, both).gpus
    assert energy_of(gpus) == 5_000
    assert count_once(gpus)[1].energy.counted_with == 0


def test_a_node_counts_or_its_power_is_added_up(tmp_path: Path):
    counted = node_of(
        [node_row(t, node_energy_j=900.0 * t, node_power_w=905.0) for t in range(1, 11)],
        tmp_path / "a", 10,
    )  # fmt: skip
    assert energy_of_node(counted) == (9_000, COUNTER)
    measured = node_of([node_row(t, node_power_w=905.0) for t in range(1, 11)], tmp_path / "b", 10)
    assert energy_of_node(measured) == (pytest.approx(9_050), INTEGRATED)
    energy_j, source = energy_of_node(node_of([], tmp_path / "c", 10))
    assert isinstance(energy_j, Missing)
    assert source == ""


def test_a_counter_that_may_have_turned_over_has_no_total(tmp_path: Path):
    """Naive: what it showed before and after, which may be nothing at all."""
    rows = [node_row(t, cpu_energy_j=0.0, memory_energy_j=5.0) for t in range(1, 4)]
    lost = Missing(Reason.UNRECORDED, "too long between two samples")
    stale = Missing(Reason.FAILED, "stood still for a while, and caught up")
    node = node_of(
        rows,
        tmp_path,
        3,
        absences=(
            Absence(device="node", metric="cpu_energy_j", missing=lost, since_s=2),
            Absence(device="node", metric="memory_energy_j", missing=stale, since_s=2),
        ),
    )
    assert node.totals["cpu_energy_j"] == lost
    assert node.totals["memory_energy_j"] == 5


def test_a_gpu_at_work_is_not_idle_in_any_allocation(tmp_path: Path) -> None:
    """In a container the job's processes may be hidden: no process is no proof of idling."""
    idle = [
        gpu_row(end_s, gpu_power_w=80.0, gpu_busy_percent=0, gpu_job_processes=0)
        for end_s in range(1, 4)
    ]
    busy = [
        gpu_row(end_s, gpu_power_w=60.0, gpu_busy_percent=99, gpu_job_processes=0)
        for end_s in range(4, 7)
    ]
    node = node_of(idle + busy, tmp_path, 6)
    assert node.gpus[0].energy.idle_power_w == 80
    assert node.gpus[0].energy.idle_is_unused
    node = node_of(busy, tmp_path / "other", 6)
    assert not node.gpus[0].energy.idle_is_unused


def die(index: int, energy_of: str, package: str) -> Device:
    return Device(
        id=f"GPU-{index}", index=index, name="AMD Instinct MI250X", vendor="amd",
        package_id=package, energy_of=energy_of,
    )  # fmt: skip


def gpu_row(end_s: float, span_s: float = 1.0, device: str = "GPU-a", **values: float) -> dict:
    return _row(end_s, span_s, "gpu", device, values)


def node_row(end_s: float, **values: float) -> dict:
    return _row(end_s, 1.0, "node", "node", values)


def _row(end_s: float, span_s: float, kind: str, device: str, values: dict) -> dict:
    return {
        "elapsed_s": end_s, "span_s": span_s, "time": START + timedelta(seconds=end_s),
        "node": "n1", "kind": kind, "device": device, **values,
    }  # fmt: skip


def node_of(
    rows: list[dict], home: Path, elapsed_s: float, devices: Sequence[Device] = (H100,),
    absences: tuple[Absence, ...] = (),
) -> NodeSummary:  # fmt: skip
    """Record rows and summarise the one node that they are of."""
    directory = create_run_directory(home, new_run_id(START, "x"), b"{}")
    journal = Journal(directory, "n1")
    journal.append(sorted(rows, key=lambda row: row["elapsed_s"]))
    journal.flush()
    journal.close()
    seal(directory, "n1")
    end = End(at=START, elapsed_s=elapsed_s, exit_code=0, cpu_s=1.0, peak_process_bytes=1)
    node = Node(
        name="n1",
        started_at=START,
        period_s=1.0,
        cores=(0,),
        devices=tuple(devices),
        absences=absences,
    )
    run = Run(
        format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n1", end=end,
        nodes=(node,),
    )  # fmt: skip
    problems: list[str] = []
    (summary,) = summarise(run, directory, problems).nodes
    assert problems == []
    return summary
