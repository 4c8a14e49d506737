"""Marks the steps for a tool that runs the program, such as Nsight Systems or rocprofv3.

NVIDIA's tools record from `cudaProfilerStart` to `cudaProfilerStop`. rocprofv3 records from
`roctxProfilerResume` to `roctxProfilerPause`, two functions of a library that rocprofv3 loads into
the program. Ranges of NVTX name the steps; with AMD's PyTorch, they are ranges of ROCTx.
"""

from __future__ import annotations

import sys

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.profiling import Obstacle

if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["RangeTracer"]


class RangeTracer:
    """One range of steps; the tool decides what it records."""

    framework = "range"
    ending = ""
    writes = False
    """Whether there is a trace to save."""

    def __init__(self, _: dict[str, Any], __: Callable[[], None]) -> None:
        self._torch: Any = sys.modules.get("torch")
        self._cuda: Any = getattr(self._torch, "cuda", None)
        self._begin: Callable[[], object]
        self._end: Callable[[], object]
        self.is_active = self._is_marked = False

    def prepare(self) -> None:
        """Check that the program uses a GPU, and that the tool listens.

        Raises:
            Obstacle: it does not use one with PyTorch, or rocprofv3 does not run the program.
        """
        if self._cuda is None or not self._cuda.is_initialized():
            raise Obstacle("device")
        if getattr(getattr(self._torch, "version", None), "hip", None):
            import ctypes

            loaded = ctypes.CDLL(None)  # all libraries that are loaded into this process
            try:
                resume, pause = loaded.roctxProfilerResume, loaded.roctxProfilerPause
            except AttributeError:
                raise Obstacle("roctx") from None
            all_threads = ctypes.c_uint64(0)
            self._begin, self._end = lambda: resume(all_threads), lambda: pause(all_threads)
        else:
            cudart = self._cuda.cudart()
            self._begin, self._end = cudart.cudaProfilerStart, cudart.cudaProfilerStop

    def start(self) -> None:
        """Begin the range, after the GPU has finished the steps before."""
        self._cuda.synchronize()
        self._begin()
        self.is_active = True

    def mark(self, number: int | None) -> None:
        """End the present step, and begin the step with this number; None: only end."""
        if self._is_marked:
            self._cuda.nvtx.range_pop()
        self._is_marked = number is not None
        if number is not None:
            self._cuda.nvtx.range_push("ProfilerStep#%d" % number)

    def stop(self, _: list[int]) -> None:
        """End the range, after the GPU has finished the last step."""
        self.mark(None)
        self._cuda.synchronize()
        self._end()
        self.is_active = False

    def discard(self) -> None:
        """End the range."""
        if self.is_active:
            self.stop([])

    def forked(self) -> None:
        """Do nothing in a forked child: no function was replaced."""

    def release(self) -> None:
        """Do nothing: there are no events."""
