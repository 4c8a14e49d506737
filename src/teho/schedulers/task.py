"""Read from the environment which task of which job step this process is.

The scheduler is not asked, because ten thousand tasks call this at once, in `teho launch` and in
`teho run`. For the same reason this file only imports small modules.
"""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.launchers.task_variables import INNERMOST_FIRST
from teho.schedulers.hostlist import expand_counts, expand_hosts, is_number, job_hosts, qrsh_host

TYPE_CHECKING = False  # type checkers take it for true; importing it from `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teho.launchers.task_variables import TaskVariables

__all__ = [
    "Task",
    "at_rank",
    "is_batch_script",
    "is_step",
    "job_id",
    "rank_places",
    "read_task",
    "record",
    "step_key",
]

_PORTS = range(10_000, 30_000)
"""Below 32768, from which Linux takes ports for outgoing connections (ip_local_port_range)."""
_PORTS_A_JOB, _PORTS_A_STEP = 7649, 2027
"""Distance between the ports of two jobs, and of two steps. Within 8 steps of 100 jobs in a row,
two ports differ by at least 16: TensorFlow takes one for each task. Both numbers are coprime to
the number of ports, so all ports are used before one repeats."""
_TOO_MANY = 1_000_000
_FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""Slurm's step numbers from here on mean the batch script, the shell of salloc and similar."""


if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(cls: type) -> type:
        """Give a class an `__init__` for its annotated attributes, as `dataclass` does.

        To import `dataclasses` would take longer than the whole launch. All objects share the
        default values.
        """

        def fill(self: object, *values: object, **named: object) -> None:
            self.__dict__.update(zip(cls.__annotations__, values, strict=False), **named)

        cls.__init__ = fill
        return cls


@record
class Task:
    """One of the tasks that were started together. Ranks count from 0."""

    started_by: str
    """The program that started the tasks, such as `Slurm`; empty: this is a single program."""
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    node_rank: int = 0
    hosts: tuple[str, ...] = ()
    """The step's nodes in the order of their ranks; empty: not known."""
    tasks_per_node: tuple[int, ...] = ()
    """Number of tasks on each of those nodes; empty: not known."""
    distribution: str = ""
    """How ranks are distributed to nodes, as Slurm calls it; empty: not known."""
    first_host: str = ""
    """The node of rank 0, which may be known if `hosts` is not; empty: not known."""
    job: str = ""
    """The job's id, with the index of its array task; empty: not in a job."""
    key: str = ""
    """An id that all tasks of this step have, and no other step; empty: a single program, or
    not known."""
    port: int = _PORTS.start
    """A port for the tasks to connect to: the same on every rank, different for each step."""
    rank_name: str = ""
    """Variable with the rank. Other processes of this task have the same value of it."""

    @property
    def node_count(self) -> int | None:
        """Number of nodes of the step. None: not known."""
        return len(self.hosts) or None


def is_step(task: Task) -> bool:
    """Return whether the task is one of several and all of them know the same key."""
    return task.size > 1 and task.key != ""


def is_batch_script(environment: Mapping[str, str]) -> bool:
    """Return whether this is a job's script or a shell of it, and not a task of a step."""
    return bool(_slurm_job(environment)) and not _slurm_step(environment)


def step_key(environment: Mapping[str, str], step: str) -> str:
    """Return an id of a step of this Slurm job, which no other step or earlier run has."""
    cluster = environment.get("SLURM_CLUSTER_NAME") or "cluster"
    restart = environment.get("SLURM_RESTART_COUNT", "0")
    again = f"-r{restart}" if restart != "0" else ""
    return f"slurm-{cluster}-{_slurm_job(environment)}.{step}{again}"


def read_task(environment: Mapping[str, str], host: str) -> Task:
    """Return the task of torchrun, horovodrun, MPI or Slurm that this process is; or a single one.

    Args:
        environment: variables of this process.
        host: name of this machine.

    Raises:
        InputError: variables contradict each other or cannot be read; the message names this
            task and this host.
    """
    variables = _starter(environment)
    try:
        if variables is None:
            return _single(environment)
        if variables.title == "Slurm":
            task = _slurm(environment)
        else:
            task = _by_names(environment, host, variables)
        _check(task)
    except InputError as error:
        names = (variables.rank if variables else "", "SLURM_PROCID", "PMIX_RANK")
        ranks = (environment.get(name, "") for name in names)
        raise at_rank(error, next(filter(is_number, ranks), "?"), host) from None
    return task


def at_rank(error: InputError, rank: int | str, host: str) -> InputError:
    """Return the same error with the task that found it: thousands of tasks may print at once."""
    return InputError(f"rank {rank} on {host}: {error.found}", error.expected, error.next_step)


def rank_places(task: Task) -> list[tuple[int, int]]:
    """Return `(node's rank, local rank)` of every rank of the step; empty: not known."""
    counts = task.tasks_per_node
    if task.distribution == "block":
        places = [(node, local) for node, count in enumerate(counts) for local in range(count)]
    elif task.distribution == "cyclic" and counts:
        turns = range(max(counts))
        places = [(n, local) for local in turns for n, count in enumerate(counts) if local < count]
    else:
        return []
    # If this task is at another place, the ranks are distributed in another way.
    here = places[task.rank : task.rank + 1]
    return places if here == [(task.node_rank, task.local_rank)] else []


def _starter(environment: Mapping[str, str]) -> TaskVariables | None:
    for variables in INNERMOST_FIRST:
        if variables.title == "Slurm":
            if _slurm_step(environment):
                return variables
        elif variables.started(environment):
            return variables
    return None


def _slurm_job(environment: Mapping[str, str]) -> str:
    return environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID", "")


def _slurm_step(environment: Mapping[str, str]) -> str:
    """Return the number of the Slurm step of which this is a task; empty: not in a step."""
    step = environment.get("SLURM_STEP_ID") or environment.get("SLURM_STEPID", "")
    special = is_number(step) and int(step) >= _FIRST_SPECIAL_STEP
    return "" if special or not environment.get("SLURM_PROCID") else step


def job_id(environment: Mapping[str, str]) -> str:
    """Return the job's id as its scheduler shows it, with the index of its array task."""
    get = environment.get
    if job := _slurm_job(environment):
        array, index = get("SLURM_ARRAY_JOB_ID"), get("SLURM_ARRAY_TASK_ID")
        return f"{array}_{index}" if array and index else job
    job, index = get("JOB_ID", ""), get("SGE_TASK_ID") or "undefined"
    return job if not job or index == "undefined" else f"{job}.{index}"


def _slurm(environment: Mapping[str, str]) -> Task:
    """Read a task of `srun` (srun(1), output environment variables)."""
    get = environment.get
    size = _number(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    node_rank = _number(environment, "SLURM_NODEID")
    hosts = expand_hosts(get("SLURM_STEP_NODELIST") or get("SLURM_JOB_NODELIST") or "localhost")
    counts = get("SLURM_STEP_TASKS_PER_NODE") or get("SLURM_TASKS_PER_NODE") or str(size)
    tasks_per_node = expand_counts(counts)
    if len(tasks_per_node) != len(hosts) or node_rank >= len(hosts):
        from teho.units import counted

        raise InputError(
            f"Slurm's variables contradict each other: they list {counted(len(hosts), 'node')} and "
            f"the numbers of tasks of {counted(len(tasks_per_node), 'node')}, and this node is "
            f"number {node_rank} (numbers begin at 0)",
            "the same number of nodes in SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE",
        )
    job, step = _slurm_job(environment), _slurm_step(environment)
    return Task(
        started_by="Slurm",
        rank=_number(environment, "SLURM_PROCID"),
        size=size,
        local_rank=_number(environment, "SLURM_LOCALID"),
        local_size=tasks_per_node[node_rank],
        node_rank=node_rank,
        hosts=hosts,
        tasks_per_node=tasks_per_node,
        distribution=get("SLURM_DISTRIBUTION", "block").partition(":")[0].partition(",")[0],
        first_host=hosts[0],
        job=job_id(environment),
        key=step_key(environment, step),
        port=_port(job, step),
        rank_name="SLURM_PROCID",
    )


def _by_names(environment: Mapping[str, str], host: str, variables: TaskVariables) -> Task:
    """Read a task of a launcher that sets numbers and does not name the nodes."""
    rank, size = _number(environment, variables.rank), _number(environment, variables.size)
    local_rank = _number(environment, variables.local_rank, default=rank)
    local_size = _number(environment, variables.local_size, default=size)
    hosts: tuple[str, ...] = (host,)
    tasks_per_node: tuple[int, ...] = (size,)
    computed_node_rank = 0
    first_host = host
    if local_size != size:
        # Otherwise all tasks are on this node, even if the job has several nodes.
        hosts, tasks_per_node = _nodes(environment, host, size, local_size)
        here = _position(host, hosts)
        computed_node_rank = rank // max(local_size, 1) if here is None else here
        first_host = hosts[0] if hosts else qrsh_host(environment)
        if rank == 0 and (here if hosts else _position(host, (first_host,)) is None):
            # The launcher uses only some of the job's nodes, or another order of them.
            hosts, tasks_per_node, first_host = (), (), ""
    node_rank = _number(environment, variables.node_rank, default=computed_node_rank)
    if node_rank != computed_node_rank and local_size < size:
        # The launcher numbers the nodes in another order than the job lists them.
        hosts, tasks_per_node, first_host = (), (), ""
    job, launch_id = job_id(environment), variables.launch_id(environment)
    # The value of `mpirun --map-by`.
    policy = environment.get("OMPI_MCA_rmaps_base_mapping_policy", "")
    program = variables.title.partition(" ")[0].lower()
    return Task(
        started_by=variables.title,
        rank=rank,
        size=size,
        local_rank=local_rank,
        local_size=local_size,
        node_rank=node_rank,
        hosts=hosts,
        tasks_per_node=tasks_per_node,
        distribution="cyclic" if policy.startswith("node") else "block",
        first_host=first_host,
        job=job,
        key=f"{program}-{job or 'nojob'}-{launch_id}" if launch_id else "",
        port=_port(_slurm_job(environment) or job, launch_id),
        rank_name=variables.rank,
    )


def _single(environment: Mapping[str, str]) -> Task:
    """Return the only task of a program that no launcher started."""
    if environment.get("PMIX_RANK"):
        raise InputError(
            "PMIX_RANK is set, but the number of tasks is not",
            "OMPI_COMM_WORLD_SIZE or SLURM_STEP_NUM_TASKS",
            "export RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE before `teho launch`",
        )
    job = _slurm_job(environment) or job_id(environment)
    # No other process has to find this port. The process id gives each program another port.
    return Task(started_by="", job=job_id(environment), port=_port(job, str(os.getpid())))


def _nodes(
    environment: Mapping[str, str], host: str, size: int, local_size: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return `(nodes, tasks on each)` if the job's nodes fit the launcher's numbers; else empty.

    A launcher may use only some of the job's nodes.
    """
    hosts, slots = job_hosts(environment)
    here = _position(host, hosts)
    if sum(slots) == size and here is not None and slots[here] == local_size:
        return hosts, slots
    if len(hosts) * local_size == size:
        return hosts, (local_size,) * len(hosts)
    first = qrsh_host(environment)
    if first and environment.get("OMPI_MCA_orte_num_nodes") == "2":
        # Of two nodes, the second one has no list, but it knows the first one and itself.
        return (first, host), (size - local_size, local_size)
    return (), ()


def _position(host: str, hosts: tuple[str, ...]) -> int | None:
    """Return the index of a host among others, with or without domains; None: it is not there."""
    names = [name.partition(".")[0] for name in hosts]
    name = host.partition(".")[0]
    return names.index(name) if name in names else None


def _port(job: str, step: str) -> int:
    """Return a port of `_PORTS`. Jobs and steps that follow each other get distant ports."""
    place = _PORTS_A_JOB * _as_number(job) + _PORTS_A_STEP * _as_number(step)
    return _PORTS[place % len(_PORTS)]


def _as_number(text: str) -> int:
    if is_number(text):
        return int(text)
    value = 0
    for byte in text.encode(errors="surrogateescape"):
        value = (value * 131 + byte) % (1 << 61)
    return value


def _number(environment: Mapping[str, str], *names: str, default: int | None = None) -> int:
    """Return the first of these variables that is set, as a number from 0.

    Raises:
        InputError: it is not a number, or no variable is set and no default is given.
    """
    for name in names:
        text = environment.get(name)
        if text:
            if is_number(text) and int(text) < _TOO_MANY:
                return int(text)
            raise InputError(f"{name} is {text[:40]!r}", f"a whole number below {_TOO_MANY}")
    if default is None:
        are = "are" if names[1:] else "is"
        raise InputError(f"{' and '.join(names)} {are} not set", "a whole number")
    return default


def _check(task: Task) -> None:
    """Raise an InputError if the numbers contradict each other."""
    if task.rank >= task.size:
        found = (
            f"{task.started_by} reports rank {task.rank} of {task.size}; this is not possible, "
            "because ranks begin at 0"
        )
    elif task.local_rank >= task.local_size:
        found = (
            f"{task.started_by} reports local rank {task.local_rank} of {task.local_size}; this is "
            "not possible, because ranks begin at 0"
        )
    elif task.local_size > task.size:
        found = f"there are {task.local_size} tasks on this node, but only {task.size} in all"
    elif task.tasks_per_node and sum(task.tasks_per_node) != task.size:
        found = (
            f"there are {task.size} tasks in all, but the numbers of tasks of all nodes add up to "
            f"{sum(task.tasks_per_node)}"
        )
    elif task.hosts and task.node_rank >= len(task.hosts):
        found = (
            f"this node is number {task.node_rank} of {len(task.hosts)}; this is not possible, "
            "because numbers begin at 0"
        )
    else:
        return
    raise InputError(
        found,
        "numbers that agree",
        "look for variables left over from another launch: `env | grep -E 'RANK|SIZE|SLURM'`",
    )
