"""The profilers of JAX and of TensorFlow. Both write an XSpace (`.xplane.pb`), which XProf reads.

Both have one profiler for all threads of the process, and a lock that each start and each stop
takes. While Teho's profiler is active, another lock is in its place, so that a start by the program
is noticed.
"""

from __future__ import annotations

import os
import sys

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.profiling import Obstacle

if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["JaxTracer", "TensorFlowTracer"]


class _Tracer:
    """One use of such a profiler.

    Args:
        plan: what to record.
        displaced: called when the program starts its own profiler.
    """

    framework = ""
    ending = ".xplane.pb"
    writes = True
    """Whether there is a trace to save."""

    def __init__(self, plan: dict[str, Any], displaced: Callable[[], None]) -> None:
        self.has_stacks = "stack" in plan["with"]
        self._guard = _Guard(displaced)
        self.is_active = False
        self._mark: Any = None

    # What differs between the two.

    def holder(self) -> tuple[Any, str]:
        """Return the object that has the lock, and the name of its attribute."""
        raise NotImplementedError

    def is_used(self) -> bool:
        """Return whether the program's own profiler is active."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the profiler."""
        raise NotImplementedError

    def end(self, path: str) -> None:
        """Stop the profiler, and write the trace; an empty path: without a trace."""
        raise NotImplementedError

    def annotation(self, number: int) -> Any:
        """Return the context that marks a step."""
        raise NotImplementedError

    # What is the same.

    def prepare(self) -> None:
        """Check that the profiler is free.

        Raises:
            Obstacle: the program uses it.
        """
        if self.is_used():
            raise Obstacle("own")

    def start(self) -> None:
        """Begin to record."""
        self._guard.put(*self.holder())
        self.is_active = True
        self._guard.own(self.begin)

    def mark(self, number: int | None) -> None:
        """End the present step, and begin the step with this number; None: only end."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        if number is not None:
            self._mark = self.annotation(number)
            self._mark.__enter__()

    def stop(self, _: list[int]) -> None:
        """End the last step. `save` stops the profiler, because it writes the trace too."""
        self.mark(None)

    def expected_bytes(self) -> int:
        """Return 0: the size is not known before the trace is written."""
        return 0

    def save(self, path: str) -> None:
        """Stop, and write the trace."""
        self._end(path)

    def discard(self) -> None:
        """Stop without a trace."""
        self.mark(None)
        self.release()

    def _end(self, path: str) -> None:
        if self.is_active:
            self.is_active = False
            try:
                self._guard.own(lambda: self.end(path))
            finally:
                self.unguard()

    def unguard(self) -> None:
        """Put the lock of the framework back."""
        self._guard.remove()

    def forked(self) -> None:
        """Put the lock of the framework back in a forked child, which does not record."""
        self.unguard()

    def release(self) -> None:
        """Stop, if the trace was not written."""
        self._end("")


class _Guard:
    """Is in the place of a lock, and notices who takes it."""

    def __init__(self, displaced: Callable[[], None]) -> None:
        self._displaced = displaced
        self._lock: Any = None
        self._place: tuple[Any, str] | None = None
        self._is_own = False

    def put(self, holder: Any, name: str) -> None:
        self._lock, self._place = getattr(holder, name), (holder, name)
        setattr(holder, name, self)

    def remove(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            setattr(place[0], place[1], self._lock)

    def own(self, action: Callable[[], None]) -> None:
        self._is_own = True
        try:
            action()
        finally:
            self._is_own = False

    def __enter__(self) -> Any:
        if not self._is_own and self._place is not None:
            self._displaced()
        return self._lock.__enter__()

    def __exit__(self, *about: object) -> Any:
        return self._lock.__exit__(*about)


class JaxTracer(_Tracer):
    """JAX's profiler."""

    framework = "jax"

    def __init__(self, plan: dict[str, Any], displaced: Callable[[], None]) -> None:
        super().__init__(plan, displaced)
        self._jax = sys.modules["jax"]
        self._module = sys.modules["jax._src.profiler"]
        self._data = b""
        """The trace, from the end of the session on."""

    def holder(self) -> tuple[Any, str]:
        """Return JAX's state of the profiler."""
        return self._module._profile_state, "lock"

    def is_used(self) -> bool:
        """Return whether a session is active."""
        return self.holder()[0].profile_session is not None

    def _wait(self) -> None:
        """Wait until the devices have finished: JAX's calls return before. CPUs cannot be asked."""
        try:
            for device in self._jax.local_devices():
                device.synchronize_all_activity()
        except AttributeError:
            pass

    def begin(self) -> None:
        """Start a session; the devices are initialised already."""
        options = self._jax.profiler.ProfileOptions()
        options.python_tracer_level = int(self.has_stacks)
        self._wait()
        self._jax.profiler.start_trace(os.devnull, profiler_options=options)

    def stop(self, steps: list[int]) -> None:
        """End the last step and the session: so the size is known before the file is written."""
        super().stop(steps)
        self._wait()
        self._end("")

    def end(self, _: str) -> None:
        """Take the events from the session. `stop_trace` would convert them to JSON too."""
        state = self.holder()[0]
        with state.lock:
            session = state.profile_session
            try:
                self._data = session.stop() if session is not None else b""
            finally:  # the program can start its own profiler, whatever goes wrong
                state.reset()
                self._module.clear_metadata()

    def expected_bytes(self) -> int:
        """Return the size of the trace."""
        return len(self._data)

    def save(self, path: str) -> None:
        """Write the trace."""
        with open(path, "wb") as file:
            file.write(self._data)

    def release(self) -> None:
        """End the session, and free the memory of the trace."""
        super().release()
        self._data = b""

    def annotation(self, number: int) -> Any:
        """Return an annotation that XProf counts as a step."""
        return self._jax.profiler.StepTraceAnnotation("ProfilerStep", step_num=number)


class TensorFlowTracer(_Tracer):
    """TensorFlow's profiler."""

    framework = "tensorflow"

    def __init__(self, plan: dict[str, Any], displaced: Callable[[], None]) -> None:
        super().__init__(plan, displaced)
        self._profiler = sys.modules["tensorflow"].profiler.experimental
        self._module = sys.modules["tensorflow.python.profiler.profiler_v2"]
        self._folder = ""

    def holder(self) -> tuple[Any, str]:
        """Return the module with the lock."""
        return self._module, "_profiler_lock"

    def is_used(self) -> bool:
        """Return whether a session is active."""
        return self._module._profiler is not None

    def begin(self) -> None:
        """Start a session."""
        from tempfile import mkdtemp

        self._folder = mkdtemp(prefix="teho-")
        options = self._profiler.ProfilerOptions(python_tracer_level=int(self.has_stacks))
        self._profiler.start(self._folder, options=options)

    def end(self, path: str) -> None:
        """Write the trace into a folder, and move it."""
        from shutil import move, rmtree

        try:
            self._profiler.stop(save=bool(path))
            if path:
                found = [
                    os.path.join(folder, name)
                    for folder, _, names in os.walk(self._folder)
                    for name in names
                    if name.endswith(self.ending)
                ]
                move(found[0], path)
        finally:
            rmtree(self._folder, ignore_errors=True)

    def annotation(self, number: int) -> Any:
        """Return an annotation that XProf counts as a step."""
        return self._profiler.Trace("ProfilerStep", step_num=number, _r=1)
