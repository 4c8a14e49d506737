"""Which task of which job step this process is, told by the environment alone.

Nothing is asked of anybody: ten thousand tasks read this at once, in `teho launch` and in
`teho run`. The standard library's quickest part is all that is loaded.
"""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.schedulers.hostlist import expand_counts, expand_hosts, is_number, job_hosts, qrsh_host

TYPE_CHECKING = False  # type checkers take it for true; importing it from `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Task", "at_rank", "deal_ranks", "is_batch_script", "is_step", "read_task"]

_PORTS = range(10_000, 30_000)
"""Below 32768, where Linux takes its ports for outgoing connections (ip_local_port_range)."""
_PORTS_A_JOB, _PORTS_A_STEP = 7649, 2027
"""How far apart jobs and steps are: within 8 steps of 100 jobs in a row, no two ports are nearer
than 16, of which TensorFlow takes one a task. Coprime to the ports: none repeats before all."""
_TOO_MANY = 1_000_000
_FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""From here on, Slurm's numbers stand for the batch script, the shell of salloc and the like."""

_NAMES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # Who started the tasks, and its variables: rank, size, local rank, local size, node's rank.
    # The innermost comes first: mpirun runs its daemons through srun, torchrun runs in tasks.
    (
        "torchrun",
        "TORCHELASTIC_RUN_ID",
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
    ),
    (
        "horovodrun",
        "HOROVOD_GLOO_RENDEZVOUS_PORT",
        (
            "HOROVOD_RANK",
            "HOROVOD_SIZE",
            "HOROVOD_LOCAL_RANK",
            "HOROVOD_LOCAL_SIZE",
            "HOROVOD_CROSS_RANK",
        ),
    ),
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        (
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "",  # OMPI_COMM_WORLD_NODE_RANK counts processes on a node, not nodes.
        ),
    ),
    (
        "MPI (Hydra)",
        "MPI_LOCALNRANKS",
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""),
    ),
    ("Slurm", "SLURM_STEP_ID", ()),
    ("PMI", "PMI_RANK", ("PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "")),
    (
        "RANK and WORLD_SIZE",
        "WORLD_SIZE",
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"),
    ),
)


class Task:
    """One task among those that were started together; counts from 0."""

    __slots__ = (
        "dealt",
        "first_host",
        "hosts",
        "job",
        "key",
        "local_rank",
        "local_size",
        "node_count",
        "node_rank",
        "port",
        "rank",
        "rank_name",
        "size",
        "started_by",
        "tasks_per_node",
    )

    def __init__(
        self,
        *,
        started_by: str,
        rank: int = 0,
        size: int = 1,
        local_rank: int = 0,
        local_size: int = 1,
        node_rank: int = 0,
        hosts: tuple[str, ...] = (),
        tasks_per_node: tuple[int, ...] = (),
        dealt: str = "",
        first_host: str = "",
        job: str = "",
        key: str = "",
        port: int = _PORTS.start,
        rank_name: str = "",
    ) -> None:
        self.started_by = started_by
        """Who started the tasks, such as `Slurm`; empty: nobody, this is a program alone."""
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self.node_rank = node_rank
        self.hosts = hosts
        """The step's nodes in the order of their ranks; empty if nobody tells."""
        self.tasks_per_node = tasks_per_node
        """How many tasks each of those nodes has; empty if nobody tells."""
        self.dealt = dealt
        """How ranks are dealt to nodes, as Slurm calls it; empty if nobody tells."""
        self.first_host = first_host or (hosts[0] if hosts else "")
        """The node of rank 0, known in places where the others are not; empty: nobody tells."""
        self.node_count = len(hosts) or None
        """None if nobody tells."""
        self.job = job
        """The job's id, with its array's task; empty outside of a job."""
        self.key = key
        """The same for all tasks of the step, and for no other step; empty for a program alone, and
        where nobody tells."""
        self.port = port
        """A port to meet at: the same on every rank, another for each step of a node's jobs."""
        self.rank_name = rank_name
        """Variable that holds the rank, by which other processes of this task are known."""


def is_step(task: Task) -> bool:
    """Return whether a task is one of several, of a step that all of them know by its key."""
    return task.size > 1 and task.key != ""


def is_batch_script(environment: Mapping[str, str]) -> bool:
    """Return whether this is a job's own script, or a shell in it, and none of its steps."""
    return bool(_slurm_job(environment)) and not _slurm_step(environment)


def read_task(environment: Mapping[str, str], host: str) -> Task:
    """Return which task this process is: of torchrun, horovodrun, MPI, Slurm, or a program alone.

    Args:
        environment: of this process.
        host: name of this machine.

    Raises:
        InputError: variables contradict each other or do not parse; the message names this
            task and this host.
    """
    started_by, names = _starter(environment)
    try:
        if not started_by:
            return _alone(environment)
        if started_by == "Slurm":
            task = _slurm(environment)
        else:
            task = _by_names(environment, host, started_by, names)
        _check(task)
    except InputError as error:
        told = (environment.get(name, "") for name in (*names[:1], "SLURM_PROCID", "PMIX_RANK"))
        raise at_rank(error, next(filter(is_number, told), "?"), host) from None
    return task


def at_rank(error: InputError, rank: int | str, host: str) -> InputError:
    """Return the same mistake, with the task that found it: thousands may speak at once."""
    return InputError(f"rank {rank} on {host}: {error.found}", error.expected, error.next_step)


def deal_ranks(task: Task) -> list[tuple[int, int]]:
    """Return `(node's rank, local rank)` of every rank of the step; empty if nobody tells."""
    counts = task.tasks_per_node
    if task.dealt == "block":
        places = [(node, local) for node, count in enumerate(counts) for local in range(count)]
    elif task.dealt == "cyclic" and counts:
        turns = range(max(counts))
        places = [(n, local) for local in turns for n, count in enumerate(counts) if local < count]
    else:
        return []
    # Where this very task is elsewhere, they were dealt in another way than was told.
    here = places[task.rank : task.rank + 1]
    return places if here == [(task.node_rank, task.local_rank)] else []


def _starter(environment: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    for started_by, sign, names in _NAMES:
        if started_by == "Slurm":
            if _slurm_step(environment):
                return started_by, names
        elif environment.get(sign) and environment.get(names[0]):
            return started_by, names
    return "", ()


def _slurm_job(environment: Mapping[str, str]) -> str:
    return environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID", "")


def _slurm_step(environment: Mapping[str, str]) -> str:
    """Return the number of the step that this is a task of; empty: of none."""
    step = environment.get("SLURM_STEP_ID") or environment.get("SLURM_STEPID", "")
    special = is_number(step) and int(step) >= _FIRST_SPECIAL_STEP
    return "" if special or not environment.get("SLURM_PROCID") else step


def _job(environment: Mapping[str, str]) -> str:
    """Return the job's id as its scheduler shows it, with its array's task."""
    get = environment.get
    if job := _slurm_job(environment):
        array, index = get("SLURM_ARRAY_JOB_ID"), get("SLURM_ARRAY_TASK_ID")
        return f"{array}_{index}" if array and index else job
    job, index = get("JOB_ID", ""), get("SGE_TASK_ID", "undefined")
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
        raise InputError(
            f"{len(hosts)} nodes, {len(tasks_per_node)} counts of tasks, and this node is "
            f"number {node_rank}",
            "as many of each in SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE",
        )
    job, step = _slurm_job(environment), _slurm_step(environment)
    restart = get("SLURM_RESTART_COUNT", "0")
    again = f"-r{restart}" if restart != "0" else ""
    return Task(
        started_by="Slurm",
        rank=_number(environment, "SLURM_PROCID"),
        size=size,
        local_rank=_number(environment, "SLURM_LOCALID"),
        local_size=tasks_per_node[node_rank],
        node_rank=node_rank,
        hosts=hosts,
        tasks_per_node=tasks_per_node,
        dealt=get("SLURM_DISTRIBUTION", "block").partition(":")[0].partition(",")[0],
        job=_job(environment),
        key=f"slurm-{get('SLURM_CLUSTER_NAME') or 'cluster'}-{job}.{step}{again}",
        port=_port(job, step),
        rank_name="SLURM_PROCID",
    )


def _by_names(
    environment: Mapping[str, str], host: str, started_by: str, names: tuple[str, ...]
) -> Task:
    """Read a task of a launcher that tells its numbers by name, and its nodes not at all."""
    rank_name, size_name, local_rank_name, local_size_name, node_rank_name = names
    rank, size = _number(environment, rank_name), _number(environment, size_name)
    local_rank = _number(environment, local_rank_name, default=rank)
    local_size = _number(environment, local_size_name, default=size)
    hosts: tuple[str, ...] = (host,)
    tasks_per_node: tuple[int, ...] = (size,)
    node_rank = 0
    first_host = ""
    if local_size != size:
        # Otherwise all are here, however many nodes the job has.
        hosts, tasks_per_node = _nodes(environment, host, size, local_size)
        here = _position(host, hosts)
        node_rank = rank // max(local_size, 1) if here is None else here
        first_host = hosts[0] if hosts else qrsh_host(environment)
        if rank == 0 and (here if hosts else _position(host, (first_host,)) is None):
            # Some of the job's nodes alone, or in another order: it starts elsewhere.
            hosts, tasks_per_node, first_host = (), (), ""
    told = _number(environment, node_rank_name, default=node_rank)
    if told != node_rank and local_size < size:
        # It counts its nodes as they came, and not as the job lists them.
        hosts, tasks_per_node, first_host = (), (), ""
    job, step = _job(environment), _namespace(environment, started_by)
    # What `mpirun --map-by` was told.
    policy = environment.get("OMPI_MCA_rmaps_base_mapping_policy", "")
    return Task(
        started_by=started_by,
        rank=rank,
        size=size,
        local_rank=local_rank,
        local_size=local_size,
        node_rank=told,
        hosts=hosts,
        tasks_per_node=tasks_per_node,
        dealt="cyclic" if policy.startswith("node") else "block",
        first_host=first_host,
        job=job,
        key=f"{started_by.partition(' ')[0].lower()}-{job or 'nojob'}-{step}" if step else "",
        port=_port(_slurm_job(environment) or job, step),
        rank_name=rank_name,
    )


def _alone(environment: Mapping[str, str]) -> Task:
    if environment.get("PMIX_RANK"):
        raise InputError(
            "PMIX_RANK is there, and no number of tasks",
            "OMPI_COMM_WORLD_SIZE beside it, or SLURM_STEP_NUM_TASKS",
            "export RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE before `teho launch`",
        )
    job = _slurm_job(environment) or _job(environment)
    # Nobody else needs to find the port: the process's number keeps programs apart.
    return Task(started_by="", job=_job(environment), port=_port(job, str(os.getpid())))


def _nodes(
    environment: Mapping[str, str], host: str, size: int, local_size: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return `(nodes, tasks on each)` where the job's own fit what the launcher tells; else none.

    A launcher may have been told to use some of the job's nodes alone.
    """
    hosts, slots = job_hosts(environment)
    here = _position(host, hosts)
    if sum(slots) == size and here is not None and slots[here] == local_size:
        return hosts, slots
    if len(hosts) * local_size == size:
        return hosts, (local_size,) * len(hosts)
    first = qrsh_host(environment)
    if first and environment.get("OMPI_MCA_orte_num_nodes") == "2":
        # Of two, the one without the list knows itself and the other.
        return (first, host), (size - local_size, local_size)
    return (), ()


def _position(host: str, hosts: tuple[str, ...]) -> int | None:
    """Return a host's place among others, whichever of them has its domain; None: it has none."""
    names = [name.partition(".")[0] for name in hosts]
    name = host.partition(".")[0]
    return names.index(name) if name in names else None


def _namespace(environment: Mapping[str, str], started_by: str) -> str:
    """Return what tells this launch from others of the same job; empty: nothing does."""
    if started_by == "torchrun":
        restarts = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        run_id = environment["TORCHELASTIC_RUN_ID"]
        # `none` is the name of every run that got no other.
        known = run_id if run_id != "none" else environment.get("MASTER_PORT", "")
        return f"{known}.{restarts}"
    if started_by == "horovodrun":
        return environment["HOROVOD_GLOO_RENDEZVOUS_PORT"]
    names = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID")
    return next((environment[name] for name in names if environment.get(name)), "")


def _port(job: str, step: str) -> int:
    """Return a port of `_PORTS`: apart for jobs that follow each other, and for their steps."""
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
        InputError: it is none, or no variable is set and there is no default.
    """
    for name in names:
        text = environment.get(name)
        if text:
            if is_number(text) and int(text) < _TOO_MANY:
                return int(text)
            raise InputError(f"{name} is {text[:40]!r}", f"a whole number below {_TOO_MANY}")
    if default is None:
        raise InputError(f"{' and '.join(names)} is not set", "a whole number")
    return default


def _check(task: Task) -> None:
    """Refuse numbers that cannot be."""
    if task.rank >= task.size:
        found = f"{task.started_by} says rank {task.rank} of {task.size}"
    elif task.local_rank >= task.local_size:
        found = f"{task.started_by} says local rank {task.local_rank} of {task.local_size}"
    elif task.local_size > task.size:
        found = f"{task.local_size} tasks on this node, and {task.size} in all"
    elif task.tasks_per_node and sum(task.tasks_per_node) != task.size:
        found = f"{task.size} tasks in all, {sum(task.tasks_per_node)} on all nodes together"
    elif task.hosts and task.node_rank >= len(task.hosts):
        found = f"node number {task.node_rank} of {len(task.hosts)}"
    else:
        return
    raise InputError(
        found,
        "numbers that agree",
        "look for variables left over from another launch: `env | grep -E 'RANK|SIZE|SLURM'`",
    )
