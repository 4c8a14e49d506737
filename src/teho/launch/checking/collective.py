"""Run the collective of the check: torch's all_reduce, as in training.

It runs in a separate process. Its standard input and output are messages from and to rank 0. The
process is killed at the end, because a collective may hang.
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median
from typing import Any

from teho.launch.checking.task import CheckTask
from teho.launch.checking.wire import Wire

__all__ = ["perform"]

_WARM_UPS = 2
_CPU_MATRIX = 512
_GPU_MATRIX = 4096
"""Rows of the matrix: a product takes some milliseconds on a CPU and on a GPU."""
_LONGEST_REASON = 300


def perform(task: CheckTask, timeout_s: float) -> None:
    """Follow the orders of rank 0 until killed.

    Args:
        task: this rank.
        timeout_s: how long rank 0 waits for one stage.
    """
    channel = _Channel()
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # noqa: BLE001 - a library may raise any exception while it loads
        channel.ask("torch", version="", why=_reason(error))
        return
    try:
        _Collective(torch, task, channel, timeout_s).run()
    except Exception as error:  # noqa: BLE001 - so may a network
        channel.ask("failed", why=_reason(error))


class _Channel:
    """Messages to and from rank 0, which the first process of this rank passes on."""

    def __init__(self) -> None:
        # Libraries print to standard output. Their text must not mix with the messages.
        self._wire = Wire(0, os.dup(1))
        os.dup2(2, 1)
        self._orders: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, about: str, **data: Any) -> dict[str, Any]:
        """Send a message and return the answer of rank 0."""
        self._wire.send(about, **data)
        return self._orders.get()

    def _listen(self) -> None:
        """Read orders. If the connection closes, end the process at once."""
        while not self._wire.closed:
            for order in self._wire.take():
                self._orders.put(order)
        os._exit(1)


class _Collective:
    def __init__(self, torch: Any, task: CheckTask, channel: _Channel, timeout_s: float) -> None:
        self._torch = torch
        self._dist = importlib.import_module("torch.distributed")
        self._task = task
        self._channel = channel
        # Rank 0 has the shorter timeout, so it reports the stage.
        self._timeout = timedelta(seconds=2 * timeout_s)
        self._device = torch.device("cpu")

    def run(self) -> None:
        """Join the process group, then reduce and work in the order of rank 0."""
        backend = self._channel.ask("torch", **self._describe())["backend"]
        if backend == "nccl":
            self._device = self._torch.device("cuda", self._index())
            self._torch.cuda.set_device(self._device)
        self._join(backend)
        order = self._channel.ask("joined")
        while True:
            if order["about"] == "reduce":
                order = self._channel.ask("reduced", **self._reduce(order))
            else:
                order = self._channel.ask("worked", **self._work(order["rounds"]))

    def _describe(self) -> dict[str, Any]:
        """Return the version of torch, and the device on which this rank would train."""
        torch, dist = self._torch, self._dist
        found = {"version": str(torch.__version__), "gpu": "", "device": "CPU", "library": "NCCL"}
        if not dist.is_available():
            return {"version": "", "why": "this torch was built without torch.distributed"}
        if torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(self._index())
            found["device"] = torch.cuda.get_device_name(self._index())
            found["gpu"] = self._identify(properties)
            if torch.version.hip:
                found["library"] = "RCCL"
        return {**found, "nccl": dist.is_nccl_available(), "gloo": dist.is_gloo_available()}

    def _identify(self, properties: Any) -> str:
        """Return an identifier of this rank's GPU, unique on the node as far as torch knows."""
        # Both dies of an MI250X may have the same UUID, and all slices of a GPU the same address.
        names = ("pci_domain_id", "pci_bus_id", "pci_device_id", "uuid")
        known = [str(getattr(properties, name)) for name in names if hasattr(properties, name)]
        if known:
            return ":".join(known)
        for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
            listed = os.environ.get(name, "").split(",")
            if len(listed) > self._index() and listed[self._index()]:
                return f"{name} {listed[self._index()]}"
        return f"device {self._index()}"

    def _index(self) -> int:
        return self._task.local_rank % int(self._torch.cuda.device_count())

    def _join(self, backend: str) -> None:
        """Join the other ranks through a store of torch, on a free port that torch chooses."""
        task, make = self._task, self._dist.TCPStore
        store = None
        if task.rank == 0:
            store = make(
                task.address, 0, task.world_size, True, self._timeout, wait_for_workers=False
            )
        port = self._channel.ask("ready", port=store.port if store else None)["port"]
        if store is None:
            store = make(task.address, port, task.world_size, False, self._timeout)
        self._dist.init_process_group(
            backend,
            store=store,
            rank=task.rank,
            world_size=task.world_size,
            timeout=self._timeout,
        )

    def _reduce(self, order: dict[str, Any]) -> dict[str, Any]:
        """Sum the ranks, counted from 1, to check the result. Sum zeros to measure the time."""
        torch = self._torch
        shape = order["size_bytes"] // 4
        ones = torch.full((shape,), float(self._task.rank + 1), device=self._device)
        self._dist.all_reduce(ones)
        expected = self._task.world_size * (self._task.world_size + 1) / 2
        wrong = ones[ones != expected]
        zeros = torch.zeros(shape, device=self._device)

        def once() -> None:
            self._dist.all_reduce(zeros)

        for _ in range(_WARM_UPS):
            self._time(once)
        times_s = [self._time(once) for _ in range(order["times"])]
        return {
            "sum": float(wrong[0]) if len(wrong) else expected,
            "elapsed_s": median(times_s),
        }

    def _work(self, rounds: int) -> dict[str, float]:
        """Measure the time of the same work on every rank, then the time spent waiting."""
        torch = self._torch
        size = _CPU_MATRIX if self._device.type == "cpu" else _GPU_MATRIX
        matrix = torch.rand(size, size, device=self._device)
        numbers = torch.zeros(1, device=self._device)
        work_s, wait_s = [], []
        for turn in range(_WARM_UPS + rounds):
            spent_s = self._time(lambda: torch.mm(matrix, matrix))
            waited_s = self._time(lambda: self._dist.all_reduce(numbers))
            if turn >= _WARM_UPS:
                work_s.append(spent_s)
                wait_s.append(waited_s)
        return {"work_s": median(work_s), "wait_s": median(wait_s)}

    def _time(self, do: Callable[[], object]) -> float:
        began_s = time.perf_counter()
        do()
        if self._device.type == "cuda":
            self._torch.cuda.synchronize()  # the GPU still works after the call returns
        return time.perf_counter() - began_s


def _reason(error: BaseException) -> str:
    """Return the first and the last line of an error: NCCL gives the cause in the last one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    text = lines[0] if len(lines) == 1 else f"{lines[0]} … {lines[-1]}"
    return text[:_LONGEST_REASON]
