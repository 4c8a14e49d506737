"""Recordings that are written at once, for lists of many runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.run import FORMAT_VERSION, End, Node, Run

BEGAN = datetime(2026, 11, 1, 8, 0, tzinfo=timezone.utc)


def make_run(
    home: Path,
    number: int,
    *,
    command: tuple[str, ...] = ("python", "train.py"),
    elapsed_s: float | None = 60.0,
    exit_code: int = 0,
    gpus: int = 0,
    gpu: str = "NVIDIA A100-SXM4-80GB",
    cluster: str = "",
    partition: str = "gpu",
    account: str = "",
    node: str = "g1",
    **changed: object,
) -> Path:
    """Write the description of a run that began `number` hours after `BEGAN`; no samples."""
    began = BEGAN + timedelta(hours=number)
    run_id = f"{began:%Y%m%d-%H%M%S}-made-{number:04d}"
    end = None
    if elapsed_s is not None:
        end = End(at=began + timedelta(seconds=elapsed_s), elapsed_s=elapsed_s, exit_code=exit_code)
    values = {
        "format": FORMAT_VERSION,
        "id": run_id,
        "command": command,
        "started_at": began,
        "host": node,
        "end": end,
        **changed,
    }
    run = Run(**values)  # type: ignore[arg-type]
    directory = home / "runs" / run_id
    (directory / "nodes").mkdir(parents=True)
    (directory / "run.json").write_bytes(msgspec.json.encode(run))
    allocation = Allocation()
    if cluster:
        allocation = Allocation(
            scheduler="slurm", job_id=str(4000 + number), cluster=cluster, partition=partition,
            account=account or None,
        )  # fmt: skip
    devices = tuple(
        Device(id=f"GPU-{number}-{i}", index=i, name=gpu, vendor="nvidia") for i in range(gpus)
    )
    described = Node(
        name=node, started_at=began, period_s=1.0, allocation=allocation, devices=devices,
        sealed=True,
    )  # fmt: skip
    (directory / "nodes" / f"{node}.json").write_bytes(msgspec.json.encode(described))
    return directory
