"""Starts a recorder in each Grid Engine job, through the files that a login shell reads.

Grid Engine removes `BASH_ENV` from the variables of a job. But in a queue with `posix_compliant`,
it starts the shells in `login_shells` as login shells (queue_conf(5), sge_conf(5)). Such a shell
reads a file of the user before the script. The line in this file starts the recorder in the
background. It reads no file of Teho, waits for none, and leaves `$?` as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from teho.errors import SchedulerError, UnconfiguredError
from teho.model.always import Hook
from teho.patterns import lazy_pattern
from teho.schedulers.command import accepted
from teho.schedulers.grid_engine.answers import listed, settings_of
from teho.schedulers.inventory import PATIENCE_S, Ask

__all__ = ["grid_engine_hooks"]

_OF_BASH = (".bash_profile", ".bash_login", ".profile")
"""A login shell of bash reads the first of them (bash(1))."""
_OF_SH = ".profile"
_SHELLS = frozenset({"bash", "sh"})
_LOGIN_MODES = frozenset({"posix_compliant", "script_from_stdin"})
_OF_HOSTS = lazy_pattern(r",?\[[^\]]*\]")
"""Values of single hosts, behind the value of the queue."""
# Only in a job, not in an interactive shell, and only until the recorder runs: then the link of its
# name leads to its folder in /proc. `exec`: no shell of the job may wait for the recorder, which
# waits for the end of the job. A status that is not 0 does not end a shell with `set -e` if `&& :`
# follows.
_LINE = (
    "case ${{SGE_JOB_SPOOL_DIR:+job}}$- in job*i*) ;; job*) (status=$?; "
    '[ -e "/tmp/teho-always-${{JOB_ID-}}.${{SGE_TASK_ID-}}" ] || '
    "exec setsid {start} detached $$ </dev/null >/dev/null 2>&1 & "
    "exit $status) && : ;; esac"
)


def grid_engine_hooks(start: str, home: Path, ask: Ask) -> tuple[Hook, ...]:
    """Return the line for each file that the login shells of jobs read.

    Empty: no queue starts login shells, or Grid Engine is not configured on this machine.
    """
    problem = ""
    try:
        modes = dict(_modes(ask))
    except UnconfiguredError:
        return ()
    except SchedulerError as error:
        problem = f"Grid Engine did not report its queues: {error}"
    else:
        without = [name for name, mode in modes.items() if mode not in _LOGIN_MODES]
        if len(without) == len(modes):
            return ()
        if without:
            problem = (
                f"in the queue{'' if len(without) == 1 else 's'} {', '.join(without)}, jobs are "
                "not recorded: Grid Engine does not start them with a login shell"
            )
    line = _LINE.format(start=start)
    return tuple(
        Hook(
            scheduler="Grid Engine",
            file=str(home / name),
            lines=(line,),
            is_active=True,
            needs_new_shell=False,
            problem=problem,
        )
        for name in dict.fromkeys((_file_of_bash(home), _OF_SH))
    )


def _modes(ask: Ask) -> Iterator[tuple[str, str]]:
    """Yield the start mode of each queue; no queues if neither bash nor sh is a login shell."""

    def answer(*argv: str) -> str:
        return accepted(ask(("qconf", *argv), timeout_s=PATIENCE_S, repeat=False)).stdout

    shells = listed(settings_of(answer("-sconf")).get("login_shells", ""))
    if _SHELLS.isdisjoint(shells):
        return
    for name in answer("-sql").split():
        mode = settings_of(answer("-sq", name)).get("shell_start_mode", "")
        yield name, _OF_HOSTS.sub("", mode).lower()


def _file_of_bash(home: Path) -> str:
    return next((name for name in _OF_BASH if (home / name).is_file()), _OF_SH)
