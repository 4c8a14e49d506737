"""Counts in which functions the programs that are not Python use their CPU time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from heapq import nlargest

from teho.config.privacy import readable
from teho.devices.host.procstat import slurp
from teho.devices.procfile import names_in
from teho.model.native import FunctionUse, NativeProgram
from teho.observe.function_places import FunctionPlaces, Place
from teho.patterns import lazy_pattern
from teho.unwind.loaded_files import LoadedFiles
from teho.unwind.perf_events import RATE_HZ, ThreadSamples, why_refused

__all__ = ["NativeFunctions"]

_PYTHON = lazy_pattern(r"(?:python|pypy)[\d.]*[a-z]?")
_MOST_PROCESSES = 6
_MOST_THREADS = 16
"""Threads of one process that are sampled."""
_MOST_OF_ALL = 48
"""Threads of all processes that are sampled: each has a descriptor and 68 KiB."""
_LEAST_TICKS = 2
"""CPU time since the last sample from which on a process is sampled: 20 ms."""
_MOST_PROGRAMS = 32
_MOST_PLACES = 512
"""Different places of one program that are kept separately."""
_MOST_LINES = 256
_KEPT_PROGRAMS = 4
_KEPT_FUNCTIONS = 12
_KEPT_LINES = 3
_LEAST_SAMPLES = 5
"""Programs with fewer samples are not written."""
_OTHER = Place("", "", "")
_INSTALLED = lazy_pattern(r"^/(?:usr|opt|lib|lib64|cvmfs|snap)/|/(?:s?bin|libexec)/")


class _Use:
    """The samples in one place."""

    def __init__(self) -> None:
        self.samples = 0
        self.main_samples = 0
        self.atomic_samples = 0
        self.threads: set[int] = set()
        self.lines: Counter[str] = Counter()


class _Program:
    """The samples of all processes of one program."""

    def __init__(self, path: str) -> None:
        self.file = _file_name(path)
        self.is_installed = bool(_INSTALLED.search(path))
        self.processes = 0
        self.threads = 0
        self.ticks = 0
        self.is_unoptimised = False
        self.uses: dict[Place, _Use] = {}

    def add(self, place: Place, thread: int, *, is_main: bool, samples: int) -> None:
        """Count samples of a thread."""
        line, is_atomic = place.line, place.is_atomic
        place = place._replace(line="", is_atomic=False)
        if place not in self.uses and len(self.uses) >= _MOST_PLACES:
            place = _OTHER
        use = self.uses.setdefault(place, _Use())
        use.samples += samples
        use.main_samples += samples if is_main else 0
        use.atomic_samples += samples if is_atomic else 0
        if line and (line in use.lines or len(use.lines) < _MOST_LINES):
            use.lines[line] += samples
        if len(use.threads) < _MOST_OF_ALL:
            use.threads.add(thread)


class _Process:
    """A sampled process."""

    def __init__(self, pid: int, directory: str, path: str, files: LoadedFiles) -> None:
        self.pid = pid
        self.path = path
        """Of its program: it changes if the process executes another program."""
        self.files = files
        self.threads: dict[int, ThreadSamples] = {}
        self.grown = 0
        """CPU time that it used since the sample before, in ticks."""
        self._directory = directory
        self._is_reloaded = False

    def begin(self) -> None:
        """Begin a sample."""
        self._is_reloaded = False

    def reload(self) -> bool:
        """Read the list of loaded files again, once in a sample; return whether this succeeded."""
        if self._is_reloaded:
            return False
        self._is_reloaded = True
        try:
            self.files = LoadedFiles(self._directory)
        except (OSError, ValueError):
            return False
        return True

    def close(self) -> None:
        """End all its events."""
        for thread in self.threads.values():
            thread.close()
        self.threads.clear()


class NativeFunctions:
    """The functions in which the programs of a node run, except Python programs.

    Args:
        proc: mount point of the process file system.

    Attributes:
        refused: why the kernel gives no samples; empty if it does, or if there was no program to
            sample.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self.refused = ""
        self._proc = proc
        self._ticks: dict[int, int] = {}
        self._processes: dict[int, _Process] = {}
        self._left_out: set[int] = set()
        """Processes that are Python, or that belong to another user."""
        self._programs: dict[str, _Program] = {}
        self._names: dict[int, str] = {}
        self._places = FunctionPlaces(proc)

    def read(self, ticks: Mapping[int, int]) -> None:
        """Take the samples since the last call, and choose the processes to sample next.

        Args:
            ticks: the CPU time of each process of the program so far, in clock ticks.
        """
        grown = {pid: used - self._ticks.get(pid, 0) for pid, used in ticks.items()}
        self._ticks = dict(ticks)
        self._left_out &= ticks.keys()
        for pid, process in tuple(self._processes.items()):
            if self._is_another(process):
                # It executes another program. Its newest samples may be of either.
                self._remove(process)
                continue
            self._take(process)
            if pid in ticks:
                process.grown = grown[pid]
                self._programs[self._names[pid]].ticks += max(0, grown[pid])
            else:
                self._remove(process)
        if self.refused:
            return
        self._choose(grown)
        for process in tuple(self._processes.values()):
            self._follow(process)

    def close(self) -> None:
        """End all events."""
        for process in tuple(self._processes.values()):
            self._take(process)
            self._remove(process)

    def _remove(self, process: _Process) -> None:
        process.close()
        del self._processes[process.pid], self._names[process.pid]

    def _take(self, process: _Process) -> None:
        """Count the samples of a process."""
        process.begin()
        program = self._programs[self._names[process.pid]]
        for thread, samples in process.threads.items():
            found = Counter(self._places.of(process, sample) for sample in samples.read())
            for place, count in found.items():
                program.add(place, thread, is_main=thread == process.pid, samples=count)
        program.is_unoptimised |= self._places.is_unoptimised(process)

    def _is_another(self, process: _Process) -> bool:
        """Return whether a process executes another program than before."""
        try:
            path = os.readlink(f"{self._proc}/{process.pid}/exe")  # noqa: PTH115 - a text
        except OSError:
            return False  # it has ended
        return path != process.path

    def _choose(self, grown: Mapping[int, int]) -> None:
        """Begin to sample the processes that used most CPU time."""
        new = [
            pid
            for pid, ticks in grown.items()
            if ticks >= _LEAST_TICKS and pid not in self._processes and pid not in self._left_out
        ]
        for pid in nlargest(_MOST_PROCESSES, new, key=grown.__getitem__):
            if len(self._processes) >= _MOST_PROCESSES:
                least = min(self._processes.values(), key=lambda one: one.grown)
                if 2 * least.grown >= grown[pid]:
                    return
                self._remove(least)
            if not self._has_room:
                return
            self._begin(pid)
            if self.refused:
                return

    def _begin(self, pid: int) -> None:
        """Begin to sample a process, unless it is Python or another user's."""
        directory = f"{self._proc}/{pid}"
        try:
            path = os.readlink(directory + "/exe")  # noqa: PTH115 - a text
            name = readable(os.fsdecode(slurp(directory + "/cmdline").split(b"\0", 1)[0]))
            files = LoadedFiles(directory)
        except (OSError, ValueError):
            self._left_out.add(pid)
            return
        name = name.rpartition("/")[2] or _file_name(path)
        if _is_python(path, files):
            self._left_out.add(pid)
            return
        process = _Process(pid, directory, path, files)
        if not self._open(process, pid):
            self._left_out.add(pid)
            return
        if name not in self._programs and len(self._programs) >= _MOST_PROGRAMS:
            name = ""
        self._programs.setdefault(name, _Program(path)).processes += 1
        self._processes[pid], self._names[pid] = process, name

    @property
    def _has_room(self) -> bool:
        """Whether one more thread can be sampled."""
        return sum(len(one.threads) for one in self._processes.values()) < _MOST_OF_ALL

    def _open(self, process: _Process, thread: int) -> bool:
        """Sample one more thread; return whether this succeeded."""
        try:
            process.threads[thread] = ThreadSamples(thread)
        except MemoryError:
            return False
        except OSError:
            # It may have ended, or it may be another user's. Or no thread can be sampled.
            self.refused = why_refused(self._proc)
            return False
        return True

    def _follow(self, process: _Process) -> None:
        """Sample the new threads of a process, and end the events of ended threads."""
        threads = sorted(int(name) for name in names_in(f"{self._proc}/{process.pid}/task"))
        for ended in process.threads.keys() - set(threads):
            if len(process.threads) > 1:
                process.threads.pop(ended).close()
        for thread in threads:
            if len(process.threads) >= _MOST_THREADS or not self._has_room:
                break
            if thread not in process.threads and not self._open(process, thread):
                break
        program = self._programs[self._names[process.pid]]
        program.threads = max(program.threads, len(process.threads))

    def found(self) -> tuple[NativeProgram, ...]:
        """Return the programs with the most samples, each with its functions."""
        programs = (_described(name, one) for name, one in self._programs.items())
        known = [one for one in programs if one.name and one.samples >= _LEAST_SAMPLES]
        return tuple(sorted(known, key=lambda one: -one.samples)[:_KEPT_PROGRAMS])


def _is_python(path: str, files: LoadedFiles) -> bool:
    """Return whether a process runs Python: its stacks are read in another way."""
    return bool(_PYTHON.fullmatch(_file_name(path))) or any(
        one.startswith(("libpython", "libpypy")) for one in files.names
    )


def _file_name(path: str) -> str:
    return path.removesuffix(" (deleted)").rpartition("/")[2]


def _described(name: str, program: _Program) -> NativeProgram:
    functions = [
        FunctionUse(
            function=place.function,
            file=place.file,
            caller=place.caller,
            lines=dict(use.lines.most_common(_KEPT_LINES)),
            samples=use.samples,
            main_samples=use.main_samples,
            atomic_samples=use.atomic_samples,
            threads=len(use.threads),
        )
        for place, use in program.uses.items()
    ]
    functions.sort(key=lambda one: -one.samples)
    return NativeProgram(
        name=name,
        file=program.file,
        is_installed=program.is_installed,
        processes=program.processes,
        threads=program.threads,
        rate_hz=RATE_HZ,
        cpu_s=program.ticks / os.sysconf("SC_CLK_TCK"),
        samples=sum(one.samples for one in functions),
        main_samples=sum(one.main_samples for one in functions),
        is_unoptimised=program.is_unoptimised,
        functions=tuple(functions[:_KEPT_FUNCTIONS]),
    )
