"""PyTorch's profiler, started and stopped for the program.

If the program starts its own profiler meanwhile, the program's profiler gets its place: PyTorch
allows only one. To notice this, two functions of `torch.autograd.profiler` are replaced while
Teho's profiler is active, and only then.
"""

from __future__ import annotations

import os
import sys
from gc import get_referrers

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.profiling import Obstacle

if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["TorchTracer"]

_GUARDED = ("_prepare_profiler", "_enable_profiler")
"""Functions of `torch.autograd.profiler` through which each profiler starts."""
_VARIABLES = ("DISABLE_CUPTI_LAZY_REINIT", "TEARDOWN_CUPTI")
"""Variables that the profiler may set in the program's environment."""
_EVENT_BYTES = 400
"""Size of an event in a trace, for an estimate. With PyTorch 2.13 on CPUs, it was 260 bytes, and
410 with shapes (2026-11-26)."""
_END_BYTES = 64
_LIBRARY, _LEVEL = "libtorch_cpu.so", "_ZN9libkineto6Logger14severityLevel_E"
_LEVEL_VARIABLE = "KINETO_LOG_LEVEL"
_UNSET, _ERRORS, _SILENT = 0, 4, 6
"""Levels of Kineto's messages: before its first use, usually, and above all of its levels. With
PyTorch 2.13, each start and each stop of the profiler prints a line."""


class TorchTracer:
    """One use of `torch.profiler`.

    Args:
        plan: what to record.
        displaced: called when the program starts its own profiler.
    """

    framework = "torch"
    ending = ".json"
    writes = True
    """Whether there is a trace to save."""

    def __init__(self, plan: dict[str, Any], displaced: Callable[[], None]) -> None:
        self._plan = plan
        self._displaced = displaced
        self._torch = sys.modules["torch"]
        self._module = sys.modules["torch.autograd.profiler"]
        self._originals: dict[str, Any] = {}
        self._is_own = False
        """Whether the present call of the profiler is Teho's."""
        self._is_started = False
        self._profile: Any = None
        self._mark: Any = None
        self._level: Any = None
        """Kineto's variable for the least level that it prints."""
        self._usual_level = 0

    @property
    def is_active(self) -> bool:
        """Whether the profiler is prepared, or has events."""
        return self._profile is not None

    def prepare(self) -> None:
        """Prepare the profiler, so that its start takes less time.

        Raises:
            Obstacle: the program uses a profiler now.
        """
        if self._torch.autograd._profiler_enabled() or self._is_used():
            raise Obstacle("own")
        profiler, wanted = self._torch.profiler, self._plan["with"]
        kinds = profiler.ProfilerActivity
        activities = [kinds.CPU]
        if self._torch.cuda.is_initialized():
            activities.append(kinds.CUDA)
        elif hasattr(self._torch, "xpu") and self._torch.xpu.is_initialized():
            activities.append(kinds.XPU)
        # The base class of `torch.profiler.profile`, without a schedule and without marks of steps.
        self._profile = profiler._KinetoProfile(
            activities=activities,
            record_shapes="shapes" in wanted,
            profile_memory="memory" in wanted,
            with_stack="stack" in wanted,
            **self._all_threads(),
        )
        self._guard()
        self._silence()
        try:
            self._own(self._profile.prepare_trace)
        finally:  # the program's environment stays as it was, whatever goes wrong
            if self._level is not None:
                os.environ.pop(_LEVEL_VARIABLE, None)
                self._level.value = _SILENT

    def _silence(self) -> None:
        """Let Kineto print nothing until the end: its lines would be in the program's output.

        At its first use, it reads the level from a variable.
        """
        if _LEVEL_VARIABLE in os.environ:
            return  # the user has chosen what it prints
        try:
            import ctypes

            library = ctypes.CDLL(_LIBRARY, os.RTLD_NOLOAD | os.RTLD_NOW)
            self._level = ctypes.c_int.in_dll(library, _LEVEL)
        except (ImportError, OSError, ValueError):  # another build of PyTorch
            return
        level = self._level.value
        self._usual_level = _ERRORS if level == _UNSET else level
        os.environ[_LEVEL_VARIABLE] = str(_SILENT)

    def _all_threads(self) -> dict[str, Any]:
        """Return the setting to record all threads, for a window of time; empty before 2.8."""
        if self._plan.get("window_s") is None:
            return {}
        try:
            config = self._torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        except (AttributeError, TypeError):
            return {}
        return {"experimental_config": config}

    def _is_used(self) -> bool:
        """Return whether a profiler of the program is being prepared, or records a thread.

        An object refers to its type. A list of all objects would have tuples that other threads are
        still making: these threads would get a SystemError.
        """
        kind = self._module.profile
        return any(
            type(one) is kind
            and getattr(one, "entered", False)
            and getattr(one, "kineto_results", None) is None
            for one in get_referrers(kind)
        )

    def start(self) -> None:
        """Begin to record."""
        before = {name: os.environ.get(name) for name in _VARIABLES}
        self._is_started = True
        self._own(self._profile.start_trace)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)

    def mark(self, number: int | None) -> None:
        """End the present step, and begin the step with this number; None: only end."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        if number is not None:
            self._mark = self._module.record_function("ProfilerStep#%d" % number)
            self._mark.__enter__()

    def stop(self, steps: list[int]) -> None:
        """Stop recording, after the GPU has finished.

        Args:
            steps: first and last step that are in the trace as a whole.
        """
        self.mark(None)
        self._profile.add_metadata_json("teho_steps", repr(steps or None).replace("None", "null"))
        self._own(self._profile.stop_trace)
        self._is_started = False
        self.unguard()

    def expected_bytes(self) -> int:
        """Return the estimated size of the trace."""
        return len(self._profile.profiler.kineto_results.events()) * _EVENT_BYTES

    def save(self, path: str) -> None:
        """Write the trace."""
        self._profile.export_chrome_trace(path)
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _END_BYTES, 0))
            if not file.read().rstrip().endswith(b"}"):  # the profiler reports no full disk
                raise Obstacle("written")

    def discard(self) -> None:
        """Stop without a trace. A profiler that is only prepared stops by a short recording."""
        try:
            if self._profile is not None:
                if not self._is_started:
                    self.start()
                self.mark(None)
                self._own(self._profile.stop_trace)
        finally:
            self.unguard()
            self.release()

    def release(self) -> None:
        """Free the memory of the events, and let Kineto print as before."""
        level, self._level = self._level, None
        if level is not None:
            level.value = self._usual_level
        self._profile = self._mark = None
        self._is_started = False

    def _own(self, action: Callable[[], None]) -> None:
        self._is_own = True
        try:
            action()
        finally:
            self._is_own = False

    def _guard(self) -> None:
        for name in _GUARDED:
            original = self._originals[name] = getattr(self._module, name)
            setattr(self._module, name, self._guarded(original))

    def _guarded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._is_own:
                self._displaced()  # this puts the originals back
            return original(*args, **kwargs)

        return call

    def forked(self) -> None:
        """Stop recording in a forked child, which has the callbacks of its parent.

        Otherwise each operator of the child would fill its memory, about 1 kB each. Kineto itself
        is not touched: its threads do not exist in the child.
        """
        self.unguard()
        clear = getattr(self._torch._C._autograd, "_clear_callbacks", None)
        if clear is not None:
            clear()

    def unguard(self) -> None:
        """Put the functions of PyTorch back."""
        originals, self._originals = self._originals, {}
        for name, original in originals.items():
            setattr(self._module, name, original)
