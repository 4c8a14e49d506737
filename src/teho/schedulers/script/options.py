"""What a script can be asked for beside the plan itself."""

from __future__ import annotations

import math

import msgspec

from teho.errors import InputError
from teho.launchers.registry import launcher_of
from teho.model.cluster import Software
from teho.model.plan import Option

__all__ = ["ScriptOptions"]


_LONGEST_NOTICE_S = 65535
"""Slurm's own limit on the time of `--signal`."""


class ScriptOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Wishes for one script; without any, it holds the request and the command alone."""

    record: bool = False
    """Whether `teho run` records the program."""
    check: bool = False
    """Whether `teho doctor` looks first, and ends a job that cannot do what it is started for."""
    teho: tuple[str, ...] = ("teho",)
    """The words by which the job finds Teho: a name on the PATH, or an absolute path."""
    framework: str = ""
    """Whose modules or container are loaded; `none`: no one's; empty: as the command looks."""
    software: Software | None = None
    """An environment of the user's own, which is activated instead."""
    stage: tuple[str, ...] = ()
    """Files that are copied, and archives that are unpacked, to each node's own disk."""
    array: str = ""
    """Indices of a job array as Slurm writes them, such as `1-10%4`."""
    after: tuple[str, ...] = ()
    """Jobs that must have ended first."""
    signal_before_s: float | None = None
    """How long before the time limit the program gets SIGUSR1. None: it gets none."""
    requeue: bool = False
    """Whether the job is run again: after a failed node, and after that signal."""
    log: str = ""
    """File for the job's output, with the scheduler's own patterns; empty: the site's default."""

    def notice_s(self, option: Option) -> int:
        """Return how long before the end the program is told, in whole seconds; 0: it is not.

        Raises:
            InputError: it is longer than the job, or than Slurm takes.
        """
        seconds = self.signal_before_s
        if seconds is None:
            return 0
        most = min(_LONGEST_NOTICE_S, math.ceil(option.time_s) - 1)
        if not 1 <= seconds <= most:
            raise InputError(f"--signal: {seconds:g} s before the end", f"1 to {most} s")
        return math.ceil(seconds)

    def shell_is_told(self, option: Option) -> bool:
        """Return whether Slurm's signal is for the script's shell, which hands it on.

        It is where it puts the job back into the queue, or runs the program itself:
        srun gets Slurm's signals alone.
        """
        return self.signal_before_s is not None and (self.requeue or _runs_in_shell(option))


def _runs_in_shell(option: Option) -> bool:
    """Return whether the shell runs the program itself: one process that has several nodes."""
    return launcher_of(option.request.launcher).one_process and option.nodes > 1
