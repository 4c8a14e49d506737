"""`teho launch`: from the environment of a task to the user's program in its place."""

from __future__ import annotations

import os
import sys

from teho.errors import InputError, TehoError
from teho.launch.binding import bind, physical_cores
from teho.launch.caches import create, find_caches
from teho.launch.gpus import find_gpus
from teho.launch.site import find_generation, find_site
from teho.launch.variables import (
    meeting_place,
    rank_variables,
    thread_variables,
    torchrun_processes,
    torchrun_variables,
)
from teho.schedulers.task import is_batch_script, read_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.launch.binding import Binding
    from teho.launch.caches import Caches
    from teho.launch.gpus import Gpus
    from teho.launch.options import Options
    from teho.launch.site import Site
    from teho.schedulers.task import Task

__all__ = ["Launch", "launch", "prepare"]

_CONTAINERS = frozenset({"apptainer", "singularity"})
_CLEAN = frozenset({"-e", "--cleanenv", "-C", "--containall", "-c", "--contain"})
_BOUND_ANYWAY = ("/tmp", "/var/tmp")  # noqa: S108 - what Apptainer mounts, and nothing written there


class Launch:
    """Everything that one task is given before its program starts."""

    __slots__ = ("binding", "caches", "gpus", "notes", "site", "task", "variables")

    def __init__(
        self,
        task: Task,
        binding: Binding,
        gpus: Gpus,
        caches: Caches,
        variables: dict[str, str],
        site: Site | None,
    ) -> None:
        self.task = task
        self.binding = binding
        self.gpus = gpus
        self.caches = caches
        self.variables = variables
        """What is set beside the environment that is there."""
        self.site = site
        self.notes: list[str] = []
        """What the user should know, a sentence each."""


def launch(options: Options, environment: Mapping[str, str]) -> int:
    """Set this task up and become the program; return an exit code only where that fails.

    Raises:
        TehoError: this task cannot be set up.
    """
    host = os.uname().nodename
    if options.dry_run:
        from teho.launch.table import print_table

        return print_table(options, environment, host)
    mine = os.sched_getaffinity(0)
    ready = prepare(options, environment, host, frozenset(mine))
    problem = create(ready.caches)
    if problem:
        ready.notes.append(f"caches stay where they were: {problem}")
        for name in ready.caches.variables:
            ready.variables.pop(name, None)
    _bind_here(ready, mine)
    if ready.task.rank == 0 and ready.task.size > 1:
        _check_port(ready, host)
    if ready.task.rank == 0 and not options.quiet:
        for note in ready.notes:
            _say(note)
    command = options.command
    if options.check:
        from teho.launch.check_command import check_command

        ready.variables["TEHO_HOSTS"] = ",".join(ready.task.hosts)
        command = check_command(command, environment)
    return _become(command, {**environment, **ready.variables})


def prepare(
    options: Options, environment: Mapping[str, str], host: str, mine: frozenset[int]
) -> Launch:
    """Return all that this task gets; nothing is changed yet.

    Args:
        options: what the user wants.
        environment: of this process.
        host: name of this machine.
        mine: cores that this process may run on now.

    Raises:
        TehoError: the environment contradicts itself, or an option cannot be kept.
    """
    task = read_task(environment, host)
    return prepare_task(task, options, environment, host, mine)


def prepare_task(
    task: Task,
    options: Options,
    environment: Mapping[str, str],
    host: str,
    mine: frozenset[int],
) -> Launch:
    """Return all that one task gets; see `prepare`."""
    site = find_site(environment, host)
    in_container = _is_container(options.command) or bool(
        environment.get("SINGULARITY_CONTAINER") or environment.get("APPTAINER_CONTAINER")
    )
    generation = None
    if options.generation or in_container:
        generation = find_generation(site, options.generation)
    gpus = find_gpus(environment)
    binding = bind(options.bind, task, gpus, site, environment, mine)
    caches = find_caches(site, generation, gpus, task, environment)
    address, port = _meeting(task, environment, host)
    variables = rank_variables(task, address, port)
    inner = torchrun_processes(options.command, gpus)
    if inner and task.local_size == 1:
        variables = torchrun_variables(task, gpus, address, port)
    variables |= caches.variables
    variables |= thread_variables(_threads(binding, task, inner), environment)
    own = site is not None and site["gpus_visible"] == "own"
    if gpus.names and (options.gpus == "own" or (options.gpus == "auto" and own)):
        variables[gpus.variable] = gpus.names[task.local_rank % len(gpus.names)]
    for pair in options.env:
        name, _, value = pair.partition("=")
        variables[name] = value
    if _is_container(options.command):
        variables |= _for_container(options.command, variables, caches, environment)
    ready = Launch(task, binding, gpus, caches, variables, site)
    ready.notes += _notes(ready, environment)
    return ready


def _meeting(task: Task, environment: Mapping[str, str], host: str) -> tuple[str, str]:
    address, port = meeting_place(task, environment)
    if not address:
        raise InputError(
            f"rank {task.rank} on {host}: {task.started_by} tells no names of its nodes",
            "MASTER_ADDR, the host of rank 0",
            "export MASTER_ADDR before the launch (`mpirun -x MASTER_ADDR …`)",
        )
    if not port.isdigit() or not 0 < int(port) < 65_000:
        raise InputError(
            f"rank {task.rank} on {host}: MASTER_PORT is {port[:40]!r}", "a number up to 64999"
        )
    return address, port


def _threads(binding: Binding, task: Task, inner: int) -> int:
    """Return how many physical cores each process of this task really has."""
    cores = len(physical_cores(frozenset(binding.cores[task.local_rank])))
    cores = min(cores, binding.granted or cores)
    return max(1, cores // binding.shared_by // max(1, inner))


def _notes(ready: Launch, environment: Mapping[str, str]) -> list[str]:
    notes = []
    tasks = environment.get("SLURM_NTASKS", "1")
    if is_batch_script(environment) and not ready.task.started_by and tasks not in {"", "1"}:
        notes.append(
            f"this is one task, and the job has {tasks}: write `srun teho launch -- …` to start all"
        )
    if ready.task.local_size > 1 and ready.binding.why_not:
        notes.append(f"tasks stay on the cores that they had: {ready.binding.why_not}")
    return notes


def _is_container(command: Sequence[str]) -> bool:
    return bool(command) and command[0].rpartition("/")[2] in _CONTAINERS


def _for_container(
    command: Sequence[str],
    variables: Mapping[str, str],
    caches: Caches,
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return what brings variables and cache folders into a container that the command starts.

    Apptainer hands its whole environment on, but where it is told not to; then variables need
    its prefix. Folders need a bind mount.
    """
    found = {}
    if _CLEAN.intersection(command):
        for prefix in ("APPTAINERENV_", "SINGULARITYENV_"):
            found |= {f"{prefix}{name}": value for name, value in variables.items()}
    outside = [one for one in caches.directories if not one.startswith(_BOUND_ANYWAY)]
    if outside:
        for name in ("APPTAINER_BIND", "SINGULARITY_BIND"):
            there = environment.get(name) or environment.get(f"{name}PATH", "")
            found[name] = ",".join(filter(None, (there, *outside)))
    return found


def _bind_here(ready: Launch, mine: set[int]) -> None:
    """Put this process on its cores; where the system grants others, leave it as it was."""
    if ready.binding.why_not:
        return
    wanted = set(ready.binding.cores[ready.task.local_rank])
    try:
        os.sched_setaffinity(0, wanted)
        if os.sched_getaffinity(0) == wanted:
            return
        os.sched_setaffinity(0, mine)
        why = "the system grants only some of the cores nearest the GPUs"
    except OSError as error:
        why = f"the system refuses: {error.strerror}"
    ready.notes.append(f"rank {ready.task.rank} stays on the cores that it had: {why}")


def _check_port(ready: Launch, host: str) -> None:
    """On the rank that the others come to: is the port free?

    Raises:
        InputError: another program has it.
    """
    import errno

    import _socket

    port = int(ready.variables.get("MASTER_PORT", "0"))
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        probe.bind(("", port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"rank 0 on {host}: port {port} is in use by another program",
                "a free one, the same on all ranks",
                "export MASTER_PORT=NUMBER before the launch",
            ) from None
    finally:
        probe.close()


def _become(command: Sequence[str], environment: dict[str, str]) -> int:
    """Become the program, or say why not with the shell's own exit codes."""
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - it is the purpose
    except OSError as error:
        import errno

        if error.errno == errno.ENOEXEC:
            # A script without `#!` goes to the shell, as execvp(3) has it.
            return _become(("/bin/sh", *command), environment)
        missing = error.errno in {errno.ENOENT, errno.ENOTDIR}
        reason = "command not found" if missing else error.strerror
        _say(f"{command[0]}: {reason}")
        return 127 if missing else 126
    except ValueError as error:
        raise TehoError(f"the program cannot be started: {error}") from None


def _say(text: str) -> None:
    print(f"teho: {text}", file=sys.stderr, flush=True)
