"""Collects facts about a program's libraries, until they are written.

The program's threads write them, and the sampler's thread reads them. So a value is always
replaced as a whole, or only grows.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident, get_native_id
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING, described_place, error_text, is_library
from _teho_probe.permit import read_file

if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    Facts = Dict[str, Any]

__all__ = ["Loader", "Notes", "caller"]

_MOST_LOADERS = 50
_MOST_STEPS = 100_000
_MOST_PHASES = 200
_SHORTEST_S = 0.001
"""A shorter phase is not written: changing from one phase to another takes time too."""
_MOST_FAILURES = 20
_INHERITED = ("version", "cuda", "hip", "xpu", "blas", "blas_threads")
"""Facts that are true for a forked child too."""
_TOTALS = ("transformers", "lightning", "keras", "tqdm")
"""Libraries that may know the total number of steps; a bar of tqdm may be about something else."""
_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    # Debug modes.
    "CUDA_LAUNCH_BLOCKING",
    "NUMBA_DISABLE_JIT",
    "PYTHONDEVMODE",
    "PYTHONMALLOC",
    "PYTHONTRACEMALLOC",
    "TORCHDYNAMO_DISABLE",
)


class Loader:
    """The data loaders made at one line of the program with the same settings.

    Args:
        settings: by the names of the library.
        made_at: file, function, line and text of the place in the program.
    """

    def __init__(self, settings: Facts, made_at: Any) -> None:
        self.settings = settings
        self.made_at = made_at
        self.restart()

    def restart(self) -> None:
        """Reset all counts, in a forked child."""
        self.made = 0
        self.epochs = 0
        self.batches = 0
        self.first_s = 0.0
        """Time spent waiting for the first batch of each epoch, including the start of workers."""
        self.waits: Dict[int, List[float]] = {}
        """For later batches: bits of the waiting time in µs -> [count, total s]."""
        self.batch: Facts = {}
        """The content of one batch."""
        self.padding: Tuple[int, int] = (0, 0)
        """Tokens of the first batches, and those of them that are padding."""
        self.series: Tuple[int, int, int] = (0, 0, 0)
        """Time steps of the first batches, those after the longest series of each batch, and all
        those that are padding."""
        self.sizes: Set[Any] = set()
        """For each of the first batches: the sizes of its samples. Equal ones count once."""
        self._given: Optional[List[List[float]]] = [] if _wants_times() else None
        """For each batch: when it came, the time waited, and whether it began an epoch."""

    def came(self, requested_s: float, began_s: Optional[float]) -> None:
        """Note a batch.

        Args:
            requested_s: when the program requested it.
            began_s: for the first batch of an epoch: when the epoch began.
        """
        now_s = monotonic()
        self.batches += 1
        if began_s is None:
            wait_s = now_s - requested_s
            _count(self.waits, wait_s)
        else:
            wait_s = now_s - began_s
            self.epochs += 1
            self.first_s += wait_s
        if self._given is not None and len(self._given) < _MOST_STEPS:
            self._given.append([round(now_s, 5), round(wait_s, 6), int(began_s is not None)])

    def line(self) -> Facts:
        """Return its facts as they are written."""
        given: Facts = {}
        if self._given:
            given["given"], self._given = self._given, []
        return {
            **given,
            "settings": self.settings,
            "made_at": self.made_at,
            "made": self.made,
            "epochs": self.epochs,
            "batches": self.batches,
            "first_s": round(self.first_s, 4),
            "waits": _counted(self.waits),
            "batch": self.batch,
        }


class Notes:
    """The notes of one process."""

    def __init__(self) -> None:
        self.libraries: Dict[str, Facts] = {}
        self.loaders: Dict[Any, Loader] = {}
        self.finish: Callable[[], None] = lambda: None
        """Writes the rest, in a process that ends without exit handlers."""
        self.plans: Any = None
        """Starts the framework's profiler, if this is requested: a `Plans`."""
        self._totals: Dict[str, Callable[[], Optional[Tuple[int, int]]]] = {}
        self.restart()

    def restart(self) -> None:
        """Delete the parent's notes, in a forked child."""
        self._thread = get_native_id()
        self._thread_id = get_ident()
        for name, facts in list(self.libraries.items()):
            self.libraries[name] = {one: facts[one] for one in _INHERITED if one in facts}
        for loader in self.loaders.values():
            loader.restart()
        self.steps = 0
        self._is_reported = False
        """Whether the program reports its steps with `teho.step()`."""
        self._last_step_s: Optional[float] = None
        self._first_step_s: Optional[float] = None
        self._between: Dict[int, List[float]] = {}
        """Bits of the time between two steps in µs -> [count, total s]."""
        self._times: Optional[List[float]] = [] if _wants_times() else None
        self._phases: Tuple[str, ...] = ()
        self._in_phases: Dict[str, float] = {}
        self._since_s = 0.0
        self.ended_by: Optional[Facts] = None
        """The exception that ended the program."""
        self._failures: List[Facts] = []
        self._profiled: List[Facts] = []
        self._written: List[Facts] = []
        self.is_urgent = False
        """Whether the next lines are to be written at once."""
        if self.plans is not None:
            self.plans.forked()

    @property
    def main_thread(self) -> int:
        """The identifier of the main thread."""
        return self._thread_id

    @property
    def is_profiling(self) -> bool:
        """Whether the framework's profiler records now, or from the next step on."""
        return self.plans is not None and bool(self.plans.is_active)

    def profiled(self, facts: Facts) -> None:
        """Note how a use of the framework's profiler ended."""
        self._profiled.append(facts)
        self.is_urgent = True

    def fact(self, library: str, **facts: Any) -> None:
        """Note facts of a library; a new fact replaces an old one of the same name."""
        self.libraries[library] = {**self.libraries.get(library, {}), **facts}

    def step(self, *, is_reported: bool = False) -> None:
        """Note that the program has finished a step.

        Args:
            is_reported: whether the program reported it with `teho.step()`. Then only such steps
                count.
        """
        if is_reported and not self._is_reported:
            self._is_reported, self.steps, self._first_step_s, self._between = True, 0, None, {}
            self._times = None if self._times is None else []
        elif is_reported is not self._is_reported:
            return
        now_s = monotonic()
        self.steps += 1
        if self._first_step_s is None:
            self._first_step_s = now_s
        elif self._last_step_s is not None:
            _count(self._between, now_s - self._last_step_s)
        self._last_step_s = now_s
        if self._times is not None and len(self._times) < _MOST_STEPS:
            self._times.append(now_s)
        if self.plans is not None:
            self.plans.stepped(self.steps, now_s)

    def knows_total(
        self, library: str, read_total: Callable[[], Optional[Tuple[int, int]]]
    ) -> None:
        """Note who knows the total number of steps.

        Args:
            library: its name.
            read_total: returns what is done and the total, in the same unit; None: not known now.
                The sampler's thread calls it.
        """
        self._totals[library] = read_total

    def is_main_thread(self) -> bool:
        """Return whether the calling thread is the main thread."""
        return get_ident() == self._thread_id

    def enter(self, phase: str) -> None:
        """Note that the main thread begins a phase."""
        if self.is_main_thread():
            self._spend()
            self._phases = (*self._phases, str(phase))

    def leave(self, phase: str) -> None:
        """Note that the main thread ends a phase, and all phases inside it."""
        phases, name = self._phases, str(phase)
        if name in phases and self.is_main_thread():
            self._spend()
            self._phases = phases[: len(phases) - 1 - phases[::-1].index(name)]

    def _spend(self) -> None:
        """Add the time since the last change to the phase in which the main thread was."""
        now_s = monotonic()
        self._add_present(self._in_phases, now_s)
        self._since_s = now_s

    def _add_present(self, phases: Dict[str, float], now_s: float) -> None:
        path = "/".join(self._phases)
        if path:
            path = path if path in phases or len(phases) < _MOST_PHASES else "(others)"
            phases[path] = phases.get(path, 0.0) + now_s - self._since_s

    def _all_phases(self) -> Dict[str, float]:
        """Return the time in each phase, including the present one."""
        phases = dict(self._in_phases)
        self._add_present(phases, monotonic())
        return {
            name: round(spent_s, 4) for name, spent_s in phases.items() if spent_s >= _SHORTEST_S
        }

    def loader(self, settings: Facts, made_at: Any = None) -> Loader:
        """Return the loader with these settings and place; the present place if none is given."""
        made_at = made_at or caller()
        key = repr((made_at, settings))
        found = self.loaders.get(key)
        if found is None:
            found = Loader(settings, made_at)
            if len(self.loaders) < _MOST_LOADERS:
                self.loaders[key] = found
        found.made += 1
        return found

    def failed(self, name: str, error: Exception) -> None:
        """Note that a library could not be observed."""
        line = {"failed": "%s: %s" % (name, error_text(error))}
        if line not in self._failures and len(self._failures) < _MOST_FAILURES:
            self._failures.append(line)

    def new_lines(self) -> List[Facts]:
        """Return the lines that have changed since the last call."""
        self._note_tracing()
        lines: List[Facts] = [{"process": self._placed()}, {"process": self._moved()}]
        lines += [{"library": name, "facts": facts} for name, facts in list(self.libraries.items())]
        for number, loader in enumerate(list(self.loaders.values())):
            if loader.made or loader.batches:
                lines.append({"loader": number, **loader.line()})
        if self.steps:
            lines.append(self._progress())
        phases = self._all_phases()
        if phases:
            lines.append({"phases": phases})
        lines += self._profiled
        lines += self._failures
        if self.ended_by is not None:
            lines.append(self.ended_by)
        new = [one for one in lines if one not in self._written]
        self._written = lines
        return new

    def mark_unwritten(self) -> None:
        """Return all lines again at the next call of `new_lines`, because a write failed."""
        self._written = []

    def _note_tracing(self) -> None:
        """Note if Python stores where each object is made."""
        tracer = sys.modules.get("_tracemalloc")
        if tracer is not None and tracer.is_tracing():
            self.fact("python", tracemalloc=tracer.get_traceback_limit())

    def _progress(self) -> Facts:
        steps: Facts = {
            "steps": self.steps, "first_s": self._first_step_s, "last_s": self._last_step_s,
            "between": _counted(self._between),
        }  # fmt: skip
        total = self._total()
        if total is not None:
            steps["total"] = total
        if self._times:
            times, self._times = self._times, []
            steps["times_s"] = [round(one, 5) for one in times]
        return steps

    def _total(self) -> Optional[List[Any]]:
        for library in _TOTALS:
            try:
                found = self._totals[library]() if library in self._totals else None
                if found is not None and 0 <= found[0] < found[1]:
                    return [library, int(found[0]), int(found[1])]
            except Exception as error:
                del self._totals[library]
                self.failed(library, error)
        return None

    def _placed(self) -> Facts:
        # The main thread's cores: if the program binds itself, the sampler's thread does not move.
        return {
            "cores": sorted(os.sched_getaffinity(self._thread)),
            "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
            "stdin_is_terminal": os.isatty(0),
        }

    def _moved(self) -> Facts:
        found: Facts = {}
        with_delay = read_file("/proc/self/task/%d/schedstat" % self._thread).split()
        if len(with_delay) == 3:
            found["wait_for_core_s"] = round(int(with_delay[1]) / 1e9, 3)
        try:
            found["threads"] = len(os.listdir("/proc/self/task"))
        except OSError:
            pass
        return found


def _count(seen: Dict[int, List[float]], took_s: float) -> None:
    place = int(took_s * 1e6).bit_length()
    found = seen.get(place)
    if found is None:
        found = seen[place] = [0, 0.0]
    found[0] += 1
    found[1] += took_s


def _counted(seen: Dict[int, List[float]]) -> Dict[int, List[float]]:
    return {place: [n, round(s, 4)] for place, (n, s) in sorted(seen.items())}


def _wants_times() -> bool:
    return bool(os.environ.get("TEHO_PROBE_STEPS"))


def caller() -> Any:
    """Return the innermost place in the program's own code; None if all code is a library's."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return described_place(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None
