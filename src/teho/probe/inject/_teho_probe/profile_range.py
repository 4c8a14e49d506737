"""Marks the steps for a tool that runs the program, such as Nsight Systems and Nsight Compute.

The tool records from `cudaProfilerStart` to `cudaProfilerStop`. NVTX ranges name the steps.
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
        self._cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        self.is_active = self._is_marked = False

    def prepare(self) -> None:
        """Check that the program uses a GPU.

        Raises:
            Obstacle: it does not use one with PyTorch.
        """
        if self._cuda is None or not self._cuda.is_initialized():
            raise Obstacle("device")

    def start(self) -> None:
        """Begin the range, after the GPU has finished the steps before."""
        self._cuda.synchronize()
        self._cuda.cudart().cudaProfilerStart()
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
        self._cuda.cudart().cudaProfilerStop()
        self.is_active = False

    def discard(self) -> None:
        """End the range."""
        if self.is_active:
            self.stop([])

    def unguard(self) -> None:
        """Do nothing: no function was replaced."""

    def release(self) -> None:
        """Do nothing: there are no events."""
