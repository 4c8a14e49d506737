"""Counts which programs other than Python ran, and which of them ran again and again."""

from __future__ import annotations

import os
from collections.abc import Collection
from heapq import nlargest

from teho.config.privacy import readable
from teho.devices.host.procstat import read_stat, slurp
from teho.model.run import ProgramUse
from teho.observe.process_list import command_text
from teho.observe.shell_scripts import ShellScripts
from teho.patterns import lazy_pattern

__all__ = ["Programs"]

_LEFT_OUT = lazy_pattern(
    r"-?(?:(?:ba|da|z|k|c|tc|fi)?sh|python[\d.]*|pypy[\d.]*|env|time|nohup|timeout|xargs|parallel|"
    r"srun|mpirun|mpiexec|orted|prted|hydra_\w+|slurmstepd|teho|torchrun|apptainer|singularity)"
)
"""Programs that only start others, and Python, whose samples say more."""
_MOST = 16
"""Processes that are read in a sample, at most: each takes some 20 µs, and there is a sample
each second."""
_MOST_COMMANDS = 512
_KEPT = 8


class _Seen:
    """How often a program or a command line was seen."""

    def __init__(self) -> None:
        self.samples = 0
        self.processes: set[tuple[int, bytes]] = set()


class Programs:
    """The programs of a node in all samples so far.

    Args:
        proc: mount point of the process file system.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self.samples = 0
        """Number of samples."""
        self._programs: dict[str, _Seen] = {}
        self._commands: dict[tuple[str, str], _Seen] = {}
        self.scripts = ShellScripts(proc)
        """The shell scripts that started these programs."""

    def read(self, pids: Collection[int]) -> None:
        """Count the processes that exist now.

        Args:
            pids: the program's processes on this node.
        """
        self.samples += 1
        self.scripts.read(pids)
        programs: set[str] = set()
        commands: set[tuple[str, str]] = set()
        for pid in nlargest(_MOST, pids):  # the youngest ones: the oldest only start others
            directory = f"{self._proc}/{pid}"
            try:
                stat = read_stat(directory)
                if stat is None or stat.is_dead:
                    continue
                # Read again each time: a shell may have become another program.
                content = slurp(directory + "/cmdline")
            except (OSError, ValueError):
                continue  # it has ended, or it cannot be read
            name = readable(os.fsdecode(content.split(b"\0", 1)[0])).rpartition("/")[2]
            if not name or _LEFT_OUT.fullmatch(name):
                continue
            command = (name, command_text(content))
            if command not in self._commands and len(self._commands) >= _MOST_COMMANDS:
                command = (name, "")  # too many: only the program is counted
            process = pid, stat.start
            self._programs.setdefault(name, _Seen()).processes.add(process)
            self._commands.setdefault(command, _Seen()).processes.add(process)
            programs.add(name)
            commands.add(command)
        for name in programs:
            self._programs[name].samples += 1
        for command in commands:
            self._commands[command].samples += 1

    def most_seen(self) -> tuple[ProgramUse, ...]:
        """Return the programs that were seen most often, each with its most repeated command."""
        found = []
        for name, seen in self._programs.items():
            own = [
                (text, one)
                for (program, text), one in self._commands.items()
                if program == name and text
            ]
            text, most = max(own, key=lambda pair: len(pair[1].processes), default=("", _Seen()))
            found.append(
                ProgramUse(
                    name=name,
                    samples=seen.samples,
                    processes=len(seen.processes),
                    command=text,
                    command_samples=most.samples,
                    command_processes=len(most.processes),
                )
            )
        return tuple(sorted(found, key=lambda one: -one.samples)[:_KEPT])
