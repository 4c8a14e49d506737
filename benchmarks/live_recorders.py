"""Plays the recorders of many nodes: `live_recorders.py RUN NODES GPUS SECONDS RECORDED BAD WAY`.

It writes a run with these nodes into the folder RUN, with RECORDED seconds of rows, and prints
`ready`. Then it publishes a sample of each node per second, as a recorder does. The host memory of
each sample is the time of the sample: 1 GiB for each second of the monotonic clock since the start.

The first BAD nodes are dead: they send nothing after their recorded rows. The next BAD nodes are
slow: they send a sample only every 8 s. Their GPUs are less busy, so that they are on the first
page of the screen.

If WAY is `file`, no recorder can connect to a viewer, as behind a firewall.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from teho.model.allocation import Allocation
from teho.model.device import Device, GpuState
from teho.model.live import LiveSample, ProcessNow
from teho.model.metric import metrics_of
from teho.model.run import FORMAT_VERSION, Node, Run
from teho.observe.publisher import Publisher
from teho.store.journal import Journal
from teho.store.layout import NODES, lease_folder, node_file, replace_file, run_file

GIB = 1 << 30
SLOW_S = 8
"""Time between two samples of a slow node."""
_FAULTS = (
    "gpu_ecc_corrected",
    "gpu_ecc_uncorrected",
    "gpu_nvlink_errors",
    "gpu_power_throttle_percent",
    "gpu_thermal_throttle_percent",
    "gpu_xid_errors",
)
_BUSY_PERCENT, _SLOW_BUSY_PERCENT = 85.0, 25.0


def name_of(number: int) -> str:
    """Return the name of a node: an address of this machine."""
    return f"127.0.{number // 250}.{number % 250 + 1}"


def describe(run: Path, nodes: int, gpus: int, recorded_s: int) -> list[Node]:
    """Write a run that began some seconds ago, and return its nodes."""
    for folder in (run / NODES, run / "live", run / "samples", lease_folder(run)):
        folder.mkdir(parents=True, exist_ok=True)
    started_at = datetime.now(timezone.utc) - timedelta(seconds=recorded_s)
    made = [
        Node(
            name=name_of(number),
            started_at=started_at,
            period_s=1.0,
            cores=tuple(range(64)),
            devices=tuple(
                Device(
                    id=f"GPU-{number}-{gpu}",
                    index=gpu,
                    name="NVIDIA H100 80GB HBM3",
                    vendor="nvidia",
                    memory_bytes=80 * GIB,
                    power_limit_w=700.0,
                    driver="550.54.15",
                    platform="CUDA 12.4",
                    compute_mode="default",
                )
                for gpu in range(gpus)
            ),
            allocation=Allocation(memory_limit_bytes=100_000 * GIB, time_limit_s=86400.0),
        )
        for number in range(nodes)
    ]
    for node in made:
        journal = Journal(run, node.name)
        for second in range(1, recorded_s + 1):
            common = {"elapsed_s": float(second), "span_s": 1.0, "node": node.name,
                      "time": started_at + timedelta(seconds=second)}  # fmt: skip
            journal.append([common | row for row in sample(node, float(second), 0.0).rows])
        journal.flush()
    # Writing the rows took some seconds.
    started_at = datetime.now(timezone.utc) - timedelta(seconds=recorded_s)
    made = [msgspec.structs.replace(node, started_at=started_at) for node in made]
    description = Run(
        format=FORMAT_VERSION,
        id=run.name,
        name="live",
        command=("python", "train.py"),
        started_at=started_at,
        host=os.uname().nodename,
        supervisor_pid=os.getpid(),
        supervisor_stamp=Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19],
    )
    for node in made:
        replace_file(node_file(run, node.name), msgspec.json.encode(node))
    replace_file(run_file(run), msgspec.json.encode(description))
    return made


def sample(
    node: Node, elapsed_s: float, memory_gib: float, busy_percent: float = _BUSY_PERCENT
) -> LiveSample:
    """Return a sample of healthy GPUs, with a value for every metric."""
    host: dict[str, Any] = {metric.name: round(3 * elapsed_s) for metric in metrics_of("node")}
    host |= {"cpu_busy_percent": 75.0, "job_memory_bytes": round(memory_gib * GIB)}
    host |= {"cpu_iowait_percent": 1.0, "oom_kills": 0}
    rows = [{"kind": "node", "device": "node", **host, "core_busy_percent": [75] * len(node.cores)}]
    for device in node.devices:
        row: dict[str, Any] = {metric.name: 50 for metric in metrics_of("gpu")}
        row |= {"gpu_busy_percent": random.gauss(busy_percent, 5)}
        row |= {"gpu_power_w": random.gauss(600, 20)}
        row |= {"gpu_memory_used_bytes": 40 * GIB}
        row |= dict.fromkeys(_FAULTS, 0)
        rows.append({"kind": "gpu", "device": device.id, **row})
    processes = [
        ProcessNow(pid=1000 + number, parent=1, command="python train.py --epochs 90",
                   cpu_percent=99.0, resident_bytes=GIB, threads=12, owner="own",
                   gpu_memory_bytes={device.id: 40 * GIB}, gpu_types={device.id: ("compute",)})
        for number, device in enumerate(node.devices)
    ]  # fmt: skip
    gpus = {device.id: GpuState(p_state=0) for device in node.devices}
    return LiveSample(
        node=node.name, elapsed_s=elapsed_s, rows=rows, processes=processes, gpus=gpus
    )


def refuse(*_: object, **__: object) -> NoReturn:
    """Refuse a connection."""
    raise ConnectionRefusedError


def main(run: Path, nodes: int, gpus: int, seconds: float, recorded_s: int, bad: int) -> None:
    made = describe(run, nodes, gpus, recorded_s)
    publishers = [Publisher(run, node.name, nodes) for node in made]
    began_s = time.monotonic()
    (run / "began").write_text(repr(began_s))
    print("ready", flush=True)
    second = 0
    while (now_s := time.monotonic()) < began_s + seconds:
        # Recorders of different nodes do not sample at the same moment.
        for number, (node, publisher) in enumerate(zip(made, publishers, strict=True)):
            is_slow = bad <= number < 2 * bad
            if number < bad or (is_slow and (second + number) % SLOW_S):
                continue
            due_s = began_s + second + number / nodes
            time.sleep(max(0.0, due_s - time.monotonic()))
            now_s = time.monotonic()
            if publisher.watching(now_s):
                since_s = now_s - began_s
                busy_percent = _SLOW_BUSY_PERCENT if is_slow else _BUSY_PERCENT
                new = sample(node, recorded_s + since_s, since_s, busy_percent)
                publisher.publish(new, now_s)
        second += 1
    for publisher in publishers:
        publisher.close()


if __name__ == "__main__":
    if sys.argv[7] == "file":
        socket.create_connection = refuse
    counts = [int(word) for word in sys.argv[2:4]]
    main(Path(sys.argv[1]), *counts, float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
