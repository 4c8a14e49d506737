"""Run `teho launch`: set up a task from its environment, and become the user's program."""

from __future__ import annotations

import os
import sys

from teho.errors import InputError
from teho.launch.caches import create
from teho.launch.prepare import prepare
from teho.process.exec_program import CannotStart, exec_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teho.launch.options import Options
    from teho.launch.prepare import Launch

__all__ = ["launch"]


def launch(options: Options, environment: Mapping[str, str]) -> int:
    """Set up this task and become the program. Return an exit code only if this fails.

    Raises:
        TehoError: this task cannot be set up.
    """
    host = os.uname().nodename
    if options.dry_run:
        from teho.launch.table import print_table

        return print_table(options, environment, host)
    mine = frozenset(os.sched_getaffinity(0))
    ready = prepare(options, environment, host, mine)
    unusable: dict[str, str] = {}
    while problem := create(ready.caches):
        unusable |= problem
        ready = prepare(options, environment, host, mine, unusable)
    _bind_here(ready, mine)
    if ready.port is not None:
        _check_port(ready, ready.port, host)
    if ready.task.rank == 0 and not options.quiet:
        for note in ready.notes:
            _say(note)
    command = options.command
    if options.check:
        from teho.launch.check_command import check_command

        ready.variables["TEHO_HOSTS"] = ",".join(ready.task.hosts)
        ready.variables["TEHO_STEP"] = ready.task.key
        command = (*check_command(command, environment), *options.check_words)
    try:
        exec_program(command, {**_as_found(environment), **ready.variables})
    except CannotStart as error:
        _say(str(error))
        return error.exit_code


def _bind_here(ready: Launch, mine: frozenset[int]) -> None:
    """Bind this process to its cores. If this fails, restore its affinity."""
    if ready.binding.why_not:
        return
    wanted = {*ready.binding.cores}
    try:
        os.sched_setaffinity(0, wanted)
        if os.sched_getaffinity(0) == wanted:
            return
        os.sched_setaffinity(0, mine)
        why = "the system grants only some of the cores nearest the GPUs"
    except OSError as error:
        why = f"the system refuses: {error.strerror}"
    ready.notes.append(f"the cores of rank {ready.task.rank} are not changed: {why}")


def _check_port(ready: Launch, port: int, host: str) -> None:
    """Check on rank 0 that the port of the rendezvous is free.

    Raises:
        InputError: another program uses it.
    """
    import _socket
    import errno

    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        probe.bind(("", port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"rank {ready.task.rank} on {host}: port {port} is in use by another program",
                "a free port, the same on all ranks",
                "export MASTER_PORT=NUMBER before the launch",
            ) from None
    finally:
        probe.close()


def _as_found(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without Python's change: in the C locale, it sets LC_CTYPE (PEP 538).

    In a container without that locale, every shell and every Perl would print a warning.
    """
    found = {**environment}
    if found.get("LC_CTYPE", "").upper().endswith(("UTF-8", "UTF8")):
        try:
            with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib loads late
                names = [pair.partition(b"=")[0] for pair in file.read().split(b"\0")]
        except OSError:
            return found
        if b"LC_CTYPE" not in names:
            del found["LC_CTYPE"]
    return found


def _say(text: str) -> None:
    """Write a line to stderr. The program starts even if stderr is closed."""
    try:
        if sys.stderr:
            sys.stderr.write(f"teho: {text}\n")
            sys.stderr.flush()
    except OSError:
        return
