"""Options of a script, in addition to the plan."""

from __future__ import annotations

import math

import msgspec

from teho.errors import InputError
from teho.launchers.registry import launcher_of
from teho.model.cluster import Software
from teho.model.plan import Option

__all__ = ["ScriptOptions"]


_MOMENTS = ("begin", "end", "fail")
_LONGEST_NOTICE_S = 65535
"""Slurm's own limit on the time of `--signal`."""


class ScriptOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one script. By default, it only has the request and the command."""

    record: bool = False
    """Whether `teho run` records the program."""
    trial: bool = False
    """Whether `teho run` ends the program when its step rate is known, or after two minutes."""
    check: bool = False
    """Whether `teho doctor` runs first, and ends a job that cannot work."""
    teho: tuple[str, ...] = ("teho",)
    """The words that start Teho in the job: a name on the PATH, or an absolute path."""
    framework: str = ""
    """The framework to load, such as `tensorflow` or `tensorflow==2.12`; `none`: no framework;
    empty: the command decides."""
    software: Software | None = None
    """The user's environment, which is activated instead of a framework."""
    stage: tuple[str, ...] = ()
    """Files to copy, and archives to unpack, to each node's local disk."""
    array: str = ""
    """Indices of a job array in Slurm's form, such as `1-10%4`."""
    after: tuple[str, ...] = ()
    """Jobs that must have ended first."""
    signal_before_s: float | None = None
    """Time before the time limit at which the program gets SIGUSR1. None: no signal."""
    requeue: bool = False
    """Whether the job runs again after a node failure and after that signal."""
    log: str = ""
    """File for the job's output, with the scheduler's patterns; empty: the site's default."""
    error_log: str = ""
    """File for the job's errors; empty: the file of its output."""
    mail: str = ""
    """When the scheduler sends an e-mail: `begin`, `end` and `fail`, separated by commas; empty:
    never."""
    mail_to: str = ""
    """Address of the e-mails; empty: the site's own for the user."""
    gpus_per_task: int | None = None
    """GPUs that each task sees. None: all GPUs of the node."""

    def mails(self) -> tuple[str, ...]:
        """Return the moments of e-mails.

        Raises:
            InputError: one is not known, or there is an address without moments.
        """
        moments = tuple(filter(None, (word.strip().lower() for word in self.mail.split(","))))
        for moment in moments:
            if moment not in _MOMENTS:
                raise InputError(f"--mail: {moment!r}", f"one or more of {', '.join(_MOMENTS)}")
        if self.mail_to and not moments:
            raise InputError("--mail-to without --mail", next_step="add `--mail end,fail`")
        return moments

    def notice_s(self, option: Option) -> int:
        """Return the time of the signal before the end, in whole seconds; 0: no signal.

        Raises:
            InputError: it is longer than the job, or longer than Slurm allows.
        """
        seconds = self.signal_before_s
        if seconds is None:
            return 0
        most = min(_LONGEST_NOTICE_S, math.ceil(option.time_s) - 1)
        if not 1 <= seconds <= most:
            raise InputError(f"--signal: {seconds:g} s before the end", f"1 to {most} s")
        return math.ceil(seconds)

    def shell_is_told(self, option: Option) -> bool:
        """Return whether Slurm's signal is for the script's shell, which sends it on.

        The shell needs it to requeue the job, or if the shell runs the program itself: one process
        for several nodes. Otherwise srun gets the signal.
        """
        in_shell = launcher_of(option.request.launcher).one_process and option.nodes > 1
        return self.signal_before_s is not None and (self.requeue or in_shell)
