"""Frames of `teho top` as a test needs them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec

from teho.explain.now import NewestValues
from teho.model.allocation import Allocation
from teho.model.device import Device, DeviceFact, ProcessType
from teho.model.document import Report
from teho.model.live import LiveSample, ProcessNow
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Absence, Node, Run
from teho.model.stack import Frame as CodeFrame
from teho.model.stack import Seen, State
from teho.model.watched import WatchedProcess
from teho.observe.viewer import Received
from teho.show.top.frame import Curve, Frame
from teho.units import GIB

AT = datetime(2026, 11, 26, tzinfo=timezone.utc)
REPORT = Report(
    title="training", run_id="20261126-080000-training-abcd", name="training",
    command="python train.py", state="running", verdict="The GPUs were busy 90 % of the time.",
    verdict_severity="good", facts=(), tables=(), findings=(), abstentions=(),
)  # fmt: skip
NO_SM = Missing(Reason.UNSUPPORTED, "not offered under MIG")


def gpu(number: int, node: str) -> Device:
    return Device(
        id=f"GPU-{node}-{number}", index=number, name="NVIDIA H100", vendor="nvidia",
        memory_bytes=80 * GIB, power_limit_w=700.0,
    )  # fmt: skip


def node(name: str, gpus: int = 4, cores: int = 8) -> Node:
    devices = tuple(gpu(number, name) for number in range(gpus))
    return Node(
        name=name, started_at=AT, period_s=1.0, cores=tuple(range(cores)), devices=devices,
        allocation=Allocation(memory_limit_bytes=100 * GIB, time_limit_s=3600.0),
        absences=tuple(
            Absence(device=one.id, metric="gpu_sm_active_percent", missing=NO_SM, since_s=0.0)
            for one in devices
        ),
    )  # fmt: skip


def sample(described: Node, elapsed_s: float, busy: Sequence[float | None]) -> LiveSample:
    host = {
        "kind": "node", "device": "node", "cpu_busy_percent": 75.0, "job_cpu_s": 6 * elapsed_s,
        "job_memory_bytes": 50 * GIB, "core_busy_percent": [75] * len(described.cores),
    }  # fmt: skip
    rows = [
        {
            "kind": "gpu", "device": device.id, "gpu_power_w": 600.0,
            "gpu_memory_used_bytes": 40 * GIB,
            **({} if share is None else {"gpu_busy_percent": share}),
        }
        for device, share in zip(described.devices, busy, strict=True)
    ]  # fmt: skip
    processes = [
        ProcessNow(pid=4711, parent=1, command="python train.py", cpu_percent=250.0,
                   resident_bytes=3 * GIB, threads=9),
        ProcessNow(pid=4712, parent=4711, command="python worker", resident_bytes=GIB, threads=1),
    ]  # fmt: skip
    return LiveSample(
        node=described.name, elapsed_s=elapsed_s, rows=[host, *rows], processes=processes
    )


def frame(busy: dict[str, Sequence[float | None]], *, ages_s: dict[str, float] | None = None,
          report: Report = REPORT, missing: Sequence[str] = ()) -> Frame:  # fmt: skip
    """Return a frame whose samples are 1 s old.

    Args:
        busy: node -> busy share of each of its GPUs.
        ages_s: other ages.
        report: on the run.
        missing: nodes without any sample.
    """
    nodes = [node(name, len(shares)) for name, shares in busy.items()]
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="n1",
              nodes=(*nodes, *map(node, missing)))  # fmt: skip
    newest = {
        one.name: Received(
            sample(one, 100.0, busy[one.name]), 1000.0 - (ages_s or {}).get(one.name, 1.0),
            sample(one, 98.0, busy[one.name]), "connection",
        )
        for one in nodes
    }  # fmt: skip
    return Frame(report, NewestValues().nodes(run, newest, 1000.0), 3600.0)


def with_processes(shown: Frame) -> Frame:
    """Return a frame with three processes on its first node, two of them on GPUs."""
    gpus = [device.id for device in shown.nodes[0].node.devices]
    computes: tuple[ProcessType, ...] = ("compute",)
    processes = (
        process(
            11,
            80.0,
            2,
            rank=0,
            gpu_memory_bytes={gpus[2]: None},
            gpu_types={gpus[2]: computes},
            owner="other",
        ),
        process(
            12,
            90.0,
            1,
            rank=1,
            gpu_memory_bytes={gpus[0]: 10 * GIB, gpus[1]: 20 * GIB},
            gpu_types={gpus[0]: ("MPS", "compute"), gpus[1]: computes},
            owner="own",
        ),
        process(13, 1.0, 3, command="cp big /scratch"),
    )
    first = msgspec.structs.replace(shown.nodes[0], processes=processes)
    return shown._replace(nodes=(first, *shown.nodes[1:]), owner="ann")


def detailed(shown: Frame, *, p_states: Sequence[int | Missing] = (), **facts: DeviceFact) -> Frame:
    """Return a frame whose GPUs have the facts of their driver, and P-states.

    Args:
        shown: the frame.
        p_states: of each GPU of a node; the others have 0.
        facts: other facts of all GPUs.
    """
    known = {"driver": "550.54.15", "platform": "CUDA 12.4", "compute_mode": "default", **facts}
    nodes = []
    for one in shown.nodes:
        gpus = [
            msgspec.structs.replace(
                gpu, device=msgspec.structs.replace(gpu.device, **known),
                p_state=p_states[gpu.position] if gpu.position < len(p_states) else 0,
            )
            for gpu in one.gpus
        ]  # fmt: skip
        nodes.append(msgspec.structs.replace(one, gpus=tuple(gpus)))
    return shown._replace(nodes=tuple(nodes))


def process(pid: int, cpu_percent: float, memory_gib: int, **others: Any) -> ProcessNow:
    about = {"command": "python train.py", **others}
    return ProcessNow(
        pid=pid, parent=1, cpu_percent=cpu_percent, resident_bytes=memory_gib * GIB, threads=1,
        **about,
    )  # fmt: skip


WATCHED = WatchedProcess(
    node="n1", pid=4711, python="3.11", began_s=0.0, until_s=100.0, stacks=(),
    at_end_s=60.0, at_end_until_s=100.0,
    at_end=(
        Seen(
            frames=(CodeFrame("/home/ann/train.py", "step", 12, "loss.backward()"),),
            state=State.NATIVE, samples=60, wall_s=45.0,
        ),
        Seen(
            frames=(CodeFrame("/home/ann/train.py", "main", 30, "open(path)"),),
            state=State.DISK, samples=20, wall_s=15.0,
        ),
    ),
)  # fmt: skip


class StillSource:
    """One frame for ever."""

    def __init__(self, shown: Frame) -> None:
        self.shown = shown
        self.polls = 0

    def poll(self, *, reads_all: bool = False) -> None:
        self.polls += 1

    def frame(self) -> Frame:
        return self.shown

    def curves(self, name: str, position: int) -> Sequence[Curve]:
        times = [float(second) for second in range(60)]
        return [Curve("gpu_busy_percent", times, [second % 100 for second in range(60)])]

    def process(self, name: str, pid: int) -> WatchedProcess | None:
        return WATCHED if pid == 4711 else None

    def close(self) -> None:
        pass
