"""Small workloads whose effect on a GPU is known beforehand.

python workload.py NAME SECONDS

Prints `begins` when it is warm, and at the end one line of JSON: when it began and ended [s, Unix
time], and what it did by its own count. Without a GPU the same is done on the CPU.
"""

from __future__ import annotations

import json
import sys
import time

_PRECISIONS = {
    "matmul-bf16": "bfloat16",
    "matmul-tf32": "float32",
    "matmul-fp32": "float32",
    "matmul-fp64": "float64",
}


class Work:
    """A workload: `once` is some milliseconds of it, `told` what it has done."""

    def __init__(self, name: str) -> None:
        import torch

        self.torch = torch
        self.name = name
        self.has_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.has_gpu else "cpu")
        self.count = 0
        self.busy_s = 0.0
        self.told: dict[str, float] = {}
        if self.has_gpu:
            parts = torch.cuda.get_device_properties(0)
            self.told["multiprocessors"] = parts.multi_processor_count
        self.once = getattr(self, f"_{name.partition('-')[0]}")()

    def wait(self) -> None:
        if self.has_gpu:
            self.torch.cuda.synchronize()

    def _matmul(self):
        torch = self.torch
        size = 8192 if self.has_gpu else 256
        dtype = getattr(torch, _PRECISIONS[self.name])
        torch.backends.cuda.matmul.allow_tf32 = self.name == "matmul-tf32"
        a, b = (torch.randn(size, size, device=self.device, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        self.told["flop_a_call"] = 2 * size**3

        def once() -> None:
            for _ in range(4):
                torch.mm(a, b, out=out)
                self.count += 1

        return once

    def _block(self):
        def once() -> None:
            if self.has_gpu:
                # A kernel of one block, whose one thread counts clock cycles.
                self.torch.cuda._sleep(20_000_000)
            else:
                time.sleep(0.01)
            self.count += 1

        return once

    def _copy(self):
        torch = self.torch
        count = 2**32 if self.has_gpu else 2**22
        source = torch.ones(count, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        self.told["bytes_a_call"] = 2 * count

        def once() -> None:
            target.copy_(source)
            self.count += 1

        return once

    def _stream(self):
        torch = self.torch
        count = 2**30 if self.has_gpu else 2**22
        source = torch.ones(count, dtype=torch.uint8, pin_memory=self.has_gpu)
        target = torch.empty(count, dtype=torch.uint8, device=self.device)
        self.told["bytes_a_call"] = count

        def once() -> None:
            target.copy_(source, non_blocking=True)
            self.count += 1

        return once

    def _tiny(self):
        one = self.torch.ones(1, device=self.device)

        def once() -> None:
            for _ in range(1000):
                one.add_(1)
            self.count += 1000

        return once

    def _saw(self):
        period_s = float(self.name.partition("-")[2])
        product = Work("matmul-bf16")

        def once() -> None:
            began_s = time.perf_counter()
            while time.perf_counter() - began_s < period_s / 2:
                product.once()
                product.wait()
            self.busy_s += time.perf_counter() - began_s
            time.sleep(max(0.0, began_s + period_s - time.perf_counter()))
            self.count += 1

        return once

    def _holds(self):
        torch = self.torch
        count = 2**32 if self.has_gpu else 2**22
        held = torch.ones(count, dtype=torch.uint8, device=self.device)
        self.told["held_bytes"] = count

        def once() -> None:
            time.sleep(0.05)
            self.count += held.ndim

        return once


def main(name: str, seconds: float) -> None:
    work = None if name == "idle" else Work(name)
    if work:
        if not name.startswith("saw"):
            work.once()
        work.wait()
        work.count, work.busy_s = 0, 0.0
    print("begins", flush=True)
    began, began_s = time.time(), time.perf_counter()
    while time.perf_counter() - began_s < seconds:
        if work:
            work.once()
            work.wait()
        else:
            time.sleep(0.05)
    elapsed_s = time.perf_counter() - began_s
    told = dict(work.told, count=work.count, busy_s=work.busy_s) if work else {}
    print(json.dumps({"began": began, "ended": time.time(), "elapsed_s": elapsed_s, **told}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
