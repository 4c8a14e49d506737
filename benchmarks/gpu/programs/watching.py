"""What PyTorch's profiler says of some steps: by part, by call of the driver, by thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["MOST_STEPS", "account"]

MOST_STEPS = 30
"""That are looked at: the profiler takes a minute to sort the events of some hundreds."""

_PART = "part: "
_CALLS = {
    "waiting for the device": ("Synchronize",),
    "copying": ("Memcpy",),
    "starting kernels": ("LaunchKernel", "GraphLaunch"),
}
"""Calls of CUDA's runtime, by what their names have in them."""


@contextmanager
def account(told: dict[str, Any], *, watched: bool) -> Iterator[None]:
    """Look at what runs inside, and put the profiler's account into `told`; or do nothing."""
    if not watched:
        yield
        return
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as profile:
        yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    told["profiler"] = _figures(profile.events())


def _figures(events: Any) -> dict[str, dict[str, float]]:
    """Return seconds of the main thread by part, of calls by kind, and of operators by thread."""
    on_cpu = [event for event in events if "CPU" in str(event.device_type)]
    main = next((event.thread for event in on_cpu if event.name.startswith(_PART)), None)
    if main is None and on_cpu:
        main = on_cpu[0].thread
    parts: dict[str, float] = {}
    calls: dict[str, float] = {}
    threads = {"main thread": 0.0, "other threads": 0.0}
    for event in on_cpu:
        if event.name.startswith(_PART):
            kind = event.name.removeprefix(_PART)
            parts[kind] = parts.get(kind, 0.0) + event.cpu_time_total / 1e6
            continue
        whose = "main thread" if event.thread == main else "other threads"
        threads[whose] += event.self_cpu_time_total / 1e6
        for kind, words in _CALLS.items():
            if event.name.startswith(("cuda", "cu")) and any(word in event.name for word in words):
                key = f"{kind}, {whose}"
                calls[key] = calls.get(key, 0.0) + event.self_cpu_time_total / 1e6
    kernels = [event for event in events if "CUDA" in str(event.device_type)]
    busy_s = _union_s([(one.time_range.start, one.time_range.end) for one in kernels])
    return {"parts": parts, "calls": calls, "threads": threads, "device": {"busy": busy_s}}


def _union_s(spans: list[tuple[float, float]]) -> float:
    """Return for how long at least one of some spans [us] lasted [s]."""
    total, last = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, last))
        last = max(last, ended)
    return total / 1e6
