"""The overview of many rows gives the figures of all of them, and curves that are close."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from teho.explain import summary
from teho.explain.summary import summarise
from teho.model.device import Device
from teho.model.run import FORMAT_VERSION, End, Node, Run
from teho.model.summary import NodeSummary, Stat
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, new_run_id, overview_file, sealed_file
from teho.store.overview import OVERVIEW_ROWS
from teho.store.pack import seal
from teho.store.schema import max_column

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)
GPUS = tuple(
    Device(id=f"GPU-{n}", index=n, name="H100", vendor="nvidia", memory_bytes=80 * 2**30)
    for n in range(3)
)
ROWS = 3000


def rows(count: int) -> Iterator[dict]:
    """Yield rows as a recorder writes them: longer and longer ones, with gaps of every kind."""
    dice = random.Random(7)
    end_s, ticks, joules = 0.0, 0.0, {gpu.id: 0.0 for gpu in GPUS}
    for number in range(count):
        samples = 1 << (number * 4 // count)
        end_s += samples + (500.0 if number == count // 2 else 0.0)  # a stop in the midst
        base = {
            "elapsed_s": end_s, "span_s": float(samples), "node": "n1",
            "time": START + timedelta(seconds=end_s),
        }  # fmt: skip
        ticks += samples * dice.random()
        host = {"cpu_busy_percent": dice.uniform(0, 100), "job_threads": dice.randrange(9)}
        if samples > 1:
            host |= {max_column(name): 1.5 * value for name, value in host.items()}
        host |= {"job_cpu_s": ticks, "core_busy_percent": [dice.randrange(101) for _ in range(2)]}
        yield base | {"kind": "node", "device": "node"} | host
        for gpu in GPUS:
            # A load that lasts, as loads do: a curve of nothing but noise has no shape to keep.
            busy = 60 + 40 * math.sin(end_s / 900) + dice.uniform(-5, 5)
            joules[gpu.id] += samples * dice.uniform(200, 700)
            values = {"gpu_power_w": 200 + busy, "gpu_energy_j": joules[gpu.id]}
            if dice.random() < 0.8:
                values["gpu_busy_percent"] = max(0, round(busy))
            if gpu.index == 1 and number > count // 3:
                del values["gpu_energy_j"]
            if gpu.index != 2:
                values["gpu_job_processes"] = int(number % 50 > 3)
            yield base | {"kind": "gpu", "device": gpu.id} | values


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    directory = create_run_directory(home, new_run_id(START, "x"), b"{}")
    journal = Journal(directory, "n1")
    journal.append(list(rows(ROWS)))
    journal.close()
    seal(directory, "n1")
    return directory


@pytest.fixture
def recorded(written: Path, tmp_path: Path) -> Path:
    """Return a copy, for tests to damage."""
    return shutil.copytree(written, tmp_path / "run")


NODE = Node(name="n1", started_at=START, period_s=1.0, cores=(0, 1), devices=GPUS)


def summarised(directory: Path, monkeypatch: pytest.MonkeyPatch, values: int) -> NodeSummary:
    """Summarise a run as if it were one of so many nodes that so many values are left for it."""
    elapsed_s = max(row["elapsed_s"] for row in rows(ROWS)) + 0.001
    end = End(at=START, elapsed_s=elapsed_s, exit_code=0, cpu_s=1.0, peak_process_bytes=1)
    run = Run(
        format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n1", end=end,
        nodes=(NODE,),
    )  # fmt: skip
    monkeypatch.setattr(summary, "_SERIES_VALUES", values)
    problems: list[str] = []
    (node,) = summarise(run, directory, problems).nodes
    assert problems == []
    return node


def both_ways(directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[NodeSummary, NodeSummary]:
    few = summarised(directory, monkeypatch, 1)
    path = overview_file(directory, "n1")
    path.rename(path.with_suffix(".away"))
    every = summarised(directory, monkeypatch, 1)
    path.with_suffix(".away").rename(path)
    return few, every


def check_alike(one: object, other: object) -> None:
    if isinstance(one, Stat) and isinstance(other, Stat):
        # The deviation comes from the difference of two large numbers.
        assert one.std == pytest.approx(other.std, rel=1e-4)
        plain = [msgspec.structs.astuple(msgspec.structs.replace(s, std=0.0)) for s in (one, other)]
        assert plain[0] == pytest.approx(plain[1], rel=1e-9)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9)
    else:
        assert one == other


def test_figures_are_those_of_all_rows(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.ipc.open_file(overview_file(recorded, "n1").read_bytes()).read_all()
    assert table.num_rows <= OVERVIEW_ROWS * (1 + len(GPUS)) < ROWS * (1 + len(GPUS))
    few, every = both_ways(recorded, monkeypatch)
    assert few.series != every.series
    for name, stat in every.stats.items():
        check_alike(few.stats[name], stat)
    for name, total in every.totals.items():
        check_alike(few.totals[name], total)
    assert few.core_mean_percent == pytest.approx(every.core_mean_percent)
    assert (few.first_s, few.last_s) == pytest.approx((every.first_s, every.last_s))
    for mine, theirs in zip(few.gpus, every.gpus, strict=True):
        for name, stat in theirs.stats.items():
            check_alike(mine.stats[name], stat)
        check_alike(mine.energy_j, theirs.energy_j)
        check_alike(mine.energy.uncertainty_j, theirs.energy.uncertainty_j)
        assert mine.energy_source == theirs.energy_source
        assert mine.energy.idle_is_unused == theirs.energy.idle_is_unused
        check_alike(mine.energy.idle_power_w, theirs.energy.idle_power_w)


def test_curves_are_close(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, every = both_ways(recorded, monkeypatch)
    for mine, theirs in zip(few.gpus, every.gpus, strict=True):
        assert mine.series.keys() == theirs.series.keys()
        for name, expected in theirs.series.items():
            known = [value for value in expected if value is not None]
            for value, truth in zip(mine.series[name], expected, strict=True):
                assert (value is None) == (truth is None)
                assert value == pytest.approx(truth, abs=0.1 * max(map(abs, known)))


def test_few_devices_are_read_in_full(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = summarised(recorded, monkeypatch, 300_000)
    overview_file(recorded, "n1").unlink()
    assert summarised(recorded, monkeypatch, 300_000) == with_it


@pytest.mark.parametrize("content", [b"", b"PAR1 nothing of the kind PAR1", None])
def test_an_unreadable_overview_costs_only_time(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = overview_file(recorded, "n1")
    _, every = both_ways(recorded, monkeypatch)
    # None: a file of rows, without the figures.
    path.write_bytes(sealed_file(recorded, "n1").read_bytes() if content is None else content)
    assert summarised(recorded, monkeypatch, 1) == every


def test_an_overview_of_an_older_teho_lacks_a_metric(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = summarised(recorded, monkeypatch, 1)
    path = overview_file(recorded, "n1")
    reader = pa.ipc.open_file(path.read_bytes())
    # One that this run did not record, so that the places of the later columns change.
    names = [name for name in reader.schema.names if name != "disk_read_bytes"]
    assert names != reader.schema.names
    schema = pa.schema([reader.schema.field(name) for name in names], reader.schema.metadata)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as older:
        for number in range(reader.num_record_batches):
            older.write_batch(reader.get_batch(number).select(names))
    # Without the overview, the curves would be those of all rows.
    assert summarised(recorded, monkeypatch, 1) == before


def test_a_short_run_has_none(home: Path) -> None:
    directory = create_run_directory(home, new_run_id(START, "x"), b"{}")
    journal = Journal(directory, "n1")
    journal.append(list(rows(2 * OVERVIEW_ROWS - 1)))
    journal.close()
    assert seal(directory, "n1")
    assert not overview_file(directory, "n1").exists()
