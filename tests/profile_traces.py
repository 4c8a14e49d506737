"""Real traces, and the pieces of which tests make small traces with known answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "traces"
REAL = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.json.gz"))
ON_GPU = [name for name in REAL if not name.endswith("-cpu")]
MAIN, ENGINE = 10, 11
"""Threads: of the program, and of the backward pass."""


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json.gz"


def document_of(name: str) -> dict[str, Any]:
    """Return a trace as the json module reads it; decimals stay exact."""
    with gzip.open(path_of(name)) as file:
        return json.load(file, parse_float=Decimal)


def events_of(name: str, *categories: str) -> list[dict[str, Any]]:
    return [
        event
        for event in document_of(name)["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") in categories
    ]


def ns(value: Decimal) -> int:
    """Return µs as ns; exact."""
    whole = value * 1000
    assert whole == int(whole)
    return int(whole)


def ends(event: dict[str, Any]) -> tuple[int, int]:
    return ns(event["ts"]), ns(event["ts"] + event["dur"])


def event(cat: str, name: str, start, end, *, pid: object = 1, tid: object = MAIN, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start,
            "dur": end - start, "args": args}  # fmt: skip


def step(number: int, start, end):
    return event("user_annotation", f"ProfilerStep#{number}", start, end)


def mark(name: str, start, end, tid: int = MAIN):
    return event("user_annotation", name, start, end, tid=tid)


def operator(name: str, start, end, tid: int = MAIN):
    return event("cpu_op", name, start, end, tid=tid)


def call(number: int, start, end, name: str = "cudaLaunchKernel", tid: int = MAIN):
    return event("cuda_runtime", name, start, end, tid=tid, correlation=number)


def kernel(number: int, start, end, name: str = "gemm", device: int = 0, stream: int = 7):
    return event("kernel", name, start, end, pid=device, tid=stream, device=device, stream=stream,
                 correlation=number)  # fmt: skip


def copy(number: int, start, end, name: str = "Memcpy HtoD (Pinned -> Device)"):
    return {**kernel(number, start, end, name), "cat": "gpu_memcpy"}


def memory(
    at,
    size: int,
    address: int,
    total: int | None = None,
    *,
    device: int = 0,
    kind: int = 1,
    reserved: int = 0,
    tid: int = MAIN,
):
    """Return an event as Kineto writes it for an allocation, or if the size is negative, a free.

    Types of devices: 0 is the CPU, whose number is -1, and 1 is CUDA.
    """
    totals = {} if total is None else {"Total Allocated": total, "Total Reserved": reserved}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1,
            "tid": tid, "ts": at, "args": {
                **totals, "Bytes": size, "Addr": address, "Device Id": device if kind else -1,
                "Device Type": kind, "Ev Idx": 7}}  # fmt: skip


def write(folder: Path, events: Iterable[dict[str, Any]], **values: object) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **values, "traceEvents": list(events)}))
    return path
