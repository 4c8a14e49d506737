"""Generate recordings that look like a training, with Teho's own sampler and journal.

`generate.py HOME --days D --nodes N` writes one run. For the first node, the program calls
`Sampler.add` for each second of the run. If a row covers more than 32 samples, the program
generates only 32 samples, spread over the time of the row. To generate 64 nodes in this way would
take an hour. So the rows of the other nodes are changed copies of the first node's rows: for each
device, gauges are moved in time and counters are scaled, by random amounts. The rows of each node
are sealed in the same way as by a recorder. With `--distinct M`, only M nodes have rows of their
own, and the files of the other nodes are links to these.

With `--bad B`, the last 3 B nodes are not healthy. B of them are slow: their GPUs are half as busy.
B of them died in the middle of the run: their rows end there, and are not sealed. The last B nodes
have no recording.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from math import sin
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teho.model.allocation import Allocation
from teho.model.device import Device, Readings
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import FORMAT_VERSION, Clock, End, Node, Run, Step
from teho.observe.sampler import SignalSampler, samples_per_row
from teho.store.journal import Journal
from teho.store.layout import (
    create_run_directory,
    node_file,
    overview_file,
    replace_file,
    sealed_file,
)
from teho.store.pack import seal

_GPUS, _CORES = 8, 40
_GIB = 1024**3
_FLUSH_ROWS = 10 * (_GPUS + 1)
_SUBSAMPLES = 32
_STARTED_AT = datetime(2026, 11, 16, 8, 0, tzinfo=timezone.utc)
_FIRST = "r01g00"
_SLOWER = frozenset(
    f"gpu_{name}"
    for name in ("busy_percent", "sm_active_percent", "tensor_percent", "power_w", "dram_percent")
)
"""The metrics of a GPU that are lower on a slow node."""


class _Node:
    """A node with 8 GPUs in training: steps, an evaluation every 20 minutes, noise in all."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counters: dict[str, float] = dict.fromkeys(
            (name for name, metric in METRICS_BY_NAME.items() if metric.kind == "counter"), 0
        )
        self._energy_mj = [1e9 * gpu for gpu in range(_GPUS)]
        self._temperature = [55.0] * _GPUS

    def read(self, second: int, step_s: int) -> Readings:
        """Return the readings at one second, `step_s` after the previous readings."""
        evaluating = second % 1200 > 1100
        load = 0.35 if evaluating else 0.93
        readings: Readings = {"node": self._host(second, step_s, evaluating=evaluating)}
        for gpu in range(_GPUS):
            readings[f"GPU-{gpu}"] = self._gpu(gpu, second, step_s, load)
        return readings

    def _gpu(self, gpu: int, second: int, step_s: int, load: float) -> dict[str, Any]:
        noise, gauss = self._random.random, self._random.gauss
        busy = min(100, max(0, round(100 * load + gauss(0, 4))))
        power_mw = round(120_000 + 5200 * busy + gauss(0, 18_000))
        self._energy_mj[gpu] += power_mw * step_s
        self._temperature[gpu] += 0.02 * (40 + power_mw / 25_000 - self._temperature[gpu])
        memory = 60 * _GIB + (4 * _GIB if second > 300 else 0) + 2**21 * (second // 600 % 7)
        hot = self._temperature[gpu] > 66.5
        return {
            "gpu_busy_percent": busy,
            "gpu_memory_busy_percent": round(0.6 * busy + 6 * noise()),
            "gpu_sm_active_percent": busy * (0.78 + 0.08 * noise()),
            "gpu_sm_occupancy_percent": busy * (0.3 + 0.04 * noise()),
            "gpu_tensor_percent": busy * (0.4 + 0.06 * noise()),
            "gpu_fp64_percent": 0.0,
            "gpu_fp32_percent": busy * (0.08 + 0.02 * noise()),
            "gpu_fp16_percent": busy * (0.05 + 0.01 * noise()),
            "gpu_integer_percent": busy * (0.1 + 0.02 * noise()),
            "gpu_dram_percent": busy * (0.35 + 0.06 * noise()),
            "gpu_memory_used_bytes": memory,
            "gpu_power_w": power_mw / 1000,
            "gpu_energy_j": self._energy_mj[gpu] / 1000,
            "gpu_sm_clock_mhz": 1980 - 15 * int(10 * noise()) if busy > 60 else 1980,
            "gpu_memory_clock_mhz": 2619,
            "gpu_temperature_c": round(self._temperature[gpu]),
            "gpu_thermal_throttle_percent": 0,
            "gpu_power_throttle_percent": 100 if hot and noise() < 0.2 else 0,
            "gpu_pcie_receive_bytes_per_s": 1e7 * busy * (0.8 + 0.4 * noise()),
            "gpu_pcie_send_bytes_per_s": 2e6 * busy * (0.8 + 0.4 * noise()),
            "gpu_nvlink_receive_bytes_per_s": 4e8 * busy * (0.8 + 0.4 * noise()),
            "gpu_nvlink_send_bytes_per_s": 4e8 * busy * (0.8 + 0.4 * noise()),
            "gpu_ecc_corrected": 0,
            "gpu_ecc_uncorrected": 0,
            "gpu_nvlink_errors": 0,
            "gpu_xid_errors": 0,
            "gpu_job_busy_percent": max(0, busy - 1),
            "gpu_job_processes": 1,
            "gpu_job_memory_bytes": memory - 600 * 2**20,
        }

    def _host(self, second: int, step_s: int, *, evaluating: bool) -> dict[str, Any]:
        noise, gauss = self._random.random, self._random.gauss
        base = 30 if evaluating else 55
        cores = [min(100.0, max(0.0, gauss(base + core % 7, 14))) for core in range(_CORES)]
        busy = sum(cores) / _CORES
        private = 90 * _GIB + 4096 * int(2e5 * (1 + sin(second / 900) + noise()))
        cache = min(300 * _GIB, 40 * _GIB + second * 2**21)
        steps = {
            "context_switches": 24_000 + int(4000 * noise()),
            "job_cpu_s": round(busy * _CORES / 100 - 0.1 * noise(), 2),
            "job_read_bytes": 4096 * int(60_000 * noise()),
            "job_write_bytes": 4096 * int(80 * noise()) + (6 * _GIB if second % 3600 == 0 else 0),
            "job_read_calls_bytes": int(4e8 * (0.5 + noise())),
            "job_write_calls_bytes": int(1e6 * noise()),
            "disk_read_bytes": 512 * int(4000 * noise()),
            "disk_write_bytes": 512 * int(9000 * noise()),
            "netfs_read_bytes": int(2.4e8 * (0.5 + noise())),
            "netfs_write_bytes": int(4e5 * noise()),
            "net_receive_bytes": int(2.9e8 * (0.5 + noise())),
            "net_send_bytes": int(3e7 * (0.5 + noise())),
            "oom_kills": 0,
        }
        for name, step in steps.items():
            self._counters[name] += step * step_s
        return {
            **{name: self._counters[name] for name in steps},
            "core_busy_percent": cores,
            "cpu_busy_percent": busy,
            "cpu_iowait_percent": max(0.0, gauss(2, 1)),
            "load_1min": round(24 + 4 * sin(second / 60) + noise(), 2),
            "runnable_tasks": int(20 + 8 * noise()),
            "job_processes": 41,
            "job_threads": 700 + int(20 * noise()),
            "job_runnable_threads": int(20 + 8 * noise()),
            "job_open_files": 3100 + int(40 * noise()),
            "job_memory_bytes": private,
            "job_resident_bytes": private + 30 * _GIB,
            "job_shared_bytes": 30 * _GIB + 4096 * int(900 * noise()),
            "job_cache_bytes": cache - 4096 * int(1e4 * noise()),
            "node_memory_used_bytes": private + 9 * _GIB + 4096 * int(1e5 * noise()),
            "node_cache_bytes": cache + 20 * _GIB - 4096 * int(1e5 * noise()),
        }


def generate(home: Path, days: float, nodes: int, distinct: int = 0, bad: int = 0) -> Path:
    """Write one sealed run into a home and return its directory.

    Args:
        home: where.
        days: length of the run.
        nodes: number of nodes.
        distinct: number of healthy nodes with rows of their own; 0: all.
        bad: number of slow nodes, of nodes that died, and of nodes without a recording.
    """
    seconds = round(days * 86400)
    names = [_name(number) for number in range(nodes)]
    step = Step(
        key="slurm-generated-123456.0", started_by="Slurm", began_on=_FIRST, task_count=1,
        node_count=nodes, hosts=tuple(names),
    )  # fmt: skip
    run = Run(
        format=FORMAT_VERSION,
        id="20261116-080000-generated-aaaa",
        name="generated",
        command=("python", "train.py"),
        started_at=_STARTED_AT,
        host=_FIRST,
        step=step if bad else None,
        end=End(
            at=_STARTED_AT + timedelta(seconds=seconds),
            elapsed_s=seconds,
            exit_code=0,
            cpu_s=0.5 * _CORES * seconds * nodes,
            peak_process_bytes=20 * _GIB,
        ),
    )
    directory = create_run_directory(home, run.id, msgspec.json.encode(run))
    _write_node(directory, _FIRST)
    journal = Journal(directory, _FIRST)
    with patch("teho.observe.sampler.samples_per_row", thinning := _Thinning()):
        _sample(_FIRST, seconds, journal, thinning)
    journal.close()
    seal(directory, _FIRST)
    healthy = nodes - 3 * bad
    own = min(healthy, distinct or healthy)
    if nodes > 1:
        _write_copies(directory, names[1:own], names[healthy : healthy + bad], seconds,
                      names[healthy + bad : healthy + 2 * bad])  # fmt: skip
    for number in range(own, healthy):
        _write_link(directory, names[number], names[number % own])
    return directory


class _Thinning:
    """The sampler's own `samples_per_row`, but never more than `_SUBSAMPLES`."""

    step_s = 1
    """Time from one sample to the next, so that a row covers the same time as without the limit."""

    def __call__(self, rows_written: int, values_per_row: int) -> int:
        whole = samples_per_row(rows_written, values_per_row)
        self.step_s = max(1, whole // _SUBSAMPLES)
        return min(whole, _SUBSAMPLES)


def _sample(name: str, seconds: int, journal: Journal, thinning: _Thinning) -> None:
    # The sampler assumes a gap after a long time between two samples; here are no gaps.
    sampler = SignalSampler(name, _STARTED_AT, period_s=86400)
    source, jitter = _Node(seed=1), random.Random(2)
    sampler.begin(source.read(0, 1), 0.0)
    second, waiting = 0, 0
    while second < seconds:
        step_s = min(thinning.step_s, seconds - second)
        second += step_s
        # A recorder wakes up a little late, by a different time each time.
        rows = sampler.add(source.read(second, step_s), second + jitter.uniform(1e-4, 9e-4))
        journal.append(rows)
        waiting += len(rows)
        if waiting >= _FLUSH_ROWS:
            journal.flush()
            waiting = 0
    journal.append(sampler.finish(seconds + 1e-3))


def _write_link(directory: Path, name: str, other: str) -> None:
    """Write a node whose rows are those of another node."""
    for path in (sealed_file(directory, name), overview_file(directory, name)):
        path.hardlink_to(path.with_name(path.name.replace(name, other)))
    _write_node(directory, name, other)


def _name(number: int) -> str:
    return f"r01g{number:02d}"


def _write_node(directory: Path, name: str, rows_of: str = "", *, sealed: bool = True) -> None:
    node = Node(
        name=name,
        started_at=_STARTED_AT,
        period_s=1.0,
        cores=tuple(range(_CORES)),
        core_count_node=_CORES,
        memory_node_bytes=512 * _GIB,
        allocation=Allocation(
            scheduler="slurm",
            job_id="123456",
            cores=tuple(range(_CORES)),
            memory_limit_bytes=480 * _GIB,
            memory_limit_source="scheduler",
            gpus_held=_GPUS,
        ),
        devices=tuple(
            Device(
                id=_device(rows_of or name, gpu),
                index=gpu,
                name="NVIDIA H100 80GB HBM3",
                vendor="nvidia",
                memory_bytes=80 * _GIB,
            )
            for gpu in range(_GPUS)
        ),
        clock=Clock(ahead_s=0.0, uncertainty_s=0.001),
        sealed=sealed,
    )
    replace_file(node_file(directory, name), msgspec.json.encode(node))


def _device(node: str, gpu: int) -> str:
    return f"GPU-{gpu}" if node == _FIRST else f"GPU-{node}-{gpu}"


def _write_copies(
    directory: Path,
    healthy: Sequence[str],
    slow: Sequence[str],
    seconds: float,
    dead: Sequence[str],
) -> None:
    """Write nodes with changed copies of the first node's rows."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(directory / "samples" / f"{_FIRST}.parquet").read()
    devices = pc.unique(table["device"]).to_pylist()
    parts = [table.filter(pc.equal(table["device"], device)) for device in devices]
    for number, name in enumerate((*healthy, *slow, *dead), 1):
        varied = random.Random(number)
        factor = 0.5 if name in slow else 1.0
        rows = pa.concat_tables([_variant(part, name, varied, factor) for part in parts])
        if name in dead:
            rows = rows.filter(pc.less(rows["elapsed_s"], seconds / 2))
        # A stream with one batch for each device, sealed in the same way as a recorder's stream.
        path = str(directory / "live" / f"{name}.0000.arrows")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows.combine_chunks())
        if name not in dead:
            seal(directory, name)
        _write_node(directory, name, sealed=name not in dead)


def _variant(part: pa.Table, node: str, varied: random.Random, factor: float) -> pa.Table:
    """Return rows of a device on another node: gauges moved in time, counters scaled.

    Args:
        part: the rows of the device.
        node: name of the other node.
        varied: source of chance.
        factor: by which the activity of GPUs is multiplied.
    """
    shift = varied.randrange(1, part.num_rows)
    columns: dict[str, Any] = {}
    for field in part.schema:
        column = part[field.name].combine_chunks()
        metric = METRICS_BY_NAME.get(field.name.removesuffix("_max"))
        if field.name == "node":
            column = pa.repeat(node, len(column)).cast(field.type)
        elif field.name == "device" and column[0].as_py() != "node":
            gpu = int(column[0].as_py().rpartition("-")[2])
            column = pa.repeat(_device(node, gpu), len(column)).cast(field.type)
        elif metric is not None and metric.kind == "gauge":
            column = pa.concat_arrays([column[shift:], column[:shift]])
            if factor != 1 and metric.name in _SLOWER:
                column = pc.cast(pc.multiply(column, factor), field.type, safe=False)
        elif metric is not None and metric.kind == "counter":
            scaled = pc.multiply(pc.cast(column, pa.float64()), varied.uniform(0.9, 1.1))
            column = pc.cast(pc.round(scaled, 3), field.type, safe=False)
        columns[field.name] = column
    return pa.table(columns, schema=part.schema)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--days", type=float, required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--distinct", type=int, default=0)
    parser.add_argument("--bad", type=int, default=0)
    options = parser.parse_args()
    generate(options.home, options.days, options.nodes, options.distinct, options.bad)


if __name__ == "__main__":
    main()
