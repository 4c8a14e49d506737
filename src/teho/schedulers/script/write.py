"""A plan's option as the whole text of a batch script."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

import msgspec

from teho.config.toml import did_you_mean
from teho.errors import InputError
from teho.launchers.registry import launcher_of
from teho.model.cluster import Cluster, Container, Software
from teho.model.plan import Option
from teho.schedulers.registry import scheduler_of, schedulers
from teho.schedulers.script.launch_site import is_known_by_name, launch_site
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.quoting import bash_command, bash_word

__all__ = ["Script", "ScriptOptions", "Values", "write_script"]

_PYTHON = re.compile(r"python[\d.]*", re.ASCII)
_ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|tzst)", re.ASCII)
_PLAIN_OPTIONS = ScriptOptions()


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A batch script."""

    text: str
    """Whole; written as UTF-8 with `surrogateescape`, as bytes that are no UTF-8 may be in it."""
    remarks: tuple[str, ...] = ()
    """What could not be written as it was asked for, one sentence each."""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """What a template can use; every text is quoted for bash already."""

    title: str
    """The cluster's title."""
    directives: tuple[str, ...]
    """The scheduler's options, without `#SBATCH` or `#$`."""
    site_lines: tuple[str, ...]
    """Lines that the cluster's every script needs."""
    site: str
    """The variable by which `teho launch` knows the cluster, as `NAME=value`; empty: not needed."""
    software: tuple[str, ...]
    """Lines that make the framework available."""
    lines: tuple[str, ...]
    """The user's own lines."""
    directories: tuple[str, ...]
    """To create on each node first."""
    variables: tuple[str, ...]
    """Variables for communication between nodes, as `NAME=value`."""
    stage: tuple[str, ...]
    """Commands that bring data to the node's own disk, to run once on each node."""
    scratch: str
    """That disk's directory, such as `$LOCAL_SCRATCH`; empty if nothing is staged."""
    launcher: str
    own_processes: bool
    """Whether the launcher starts a process for each GPU of a node itself."""
    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    """Tasks that the scheduler starts on each node."""
    processes: int
    """Processes that a launcher of its own starts on each node."""
    cores_named: bool
    """Whether the request names cores, so that `SLURM_CPUS_PER_TASK` is there."""
    threads: str
    """`OMP_NUM_THREADS` of each process, as an expression of bash; empty: `teho launch` sets it."""
    meets: bool
    """Whether the processes need `MASTER_ADDR` and `MASTER_PORT`."""
    masks: str
    """Value of `--cpu-bind`; empty: none is documented, or none would be valid."""
    check: str
    """The command that looks first whether the job can work; empty: none does."""
    container: str
    """What stands before a command inside the software's container, with a space behind."""
    teho: str
    """What of Teho's stands before the program: `teho run -- `, `teho launch -- `, both, none."""
    program: str
    """The user's command."""
    script: str
    """The user's command as launchers of Python scripts take it: without `python`."""
    signal_before_s: int
    """How long before the end the program gets SIGUSR1; 0: it gets none."""
    time_s: int
    """The time limit."""
    shell_is_told: bool
    """Whether Slurm's signal is for the script's shell, which hands it on."""
    requeue: bool


def write_script(
    option: Option, cluster: Cluster, options: ScriptOptions = _PLAIN_OPTIONS
) -> Script:
    """Return the batch script of a plan's option.

    Its template is in the folder of the option's `scheduler`, such as `slurm.sh.j2`; that of
    this machine, `local.sh.j2`, has no directives and no software.

    Args:
        option: what to ask for; its request holds the command.
        cluster: where.
        options: wishes beside the plan.

    Raises:
        InputError: no command, something cannot be said to the scheduler, or a
            template has a mistake.
    """
    from teho.schedulers.script.render import render

    command = option.request.command
    if not command or not command[0]:
        raise InputError("a script without a command", next_step="`-- COMMAND…` at the end")
    scheduler = scheduler_of(option.scheduler)
    if not scheduler.starts_tasks and option.nodes > 1:
        raise InputError(f"{option.nodes} nodes on {cluster.title}", "one: Slurm alone has several")
    name = option.request.launcher
    if not launcher_of(name).works_on(option.scheduler):
        raise InputError(
            f"--launcher {name} on {cluster.title}, which has no {name}", "torchrun, or another"
        )
    software = None if scheduler.is_this_machine else _software(option, cluster, options)
    values = _values(option, cluster, options, software)
    text = render(f"{option.scheduler}.sh.j2", msgspec.structs.asdict(values))
    return Script(text=text, remarks=tuple(_remarks(option, cluster, options)))


def _values(
    option: Option,
    cluster: Cluster,
    options: ScriptOptions,
    software: Software | None,
) -> Values:
    stage = _stage(option, cluster, options)
    request, scheduler = option.request, scheduler_of(option.scheduler)
    container = _container(option, cluster, software)
    launcher = launcher_of(request.launcher)
    processes = max(1, option.gpus_per_node) if launcher.own_processes else 1
    return Values(
        title=" ".join(cluster.title.split()),
        directives=scheduler.directives(option, cluster, options),
        site_lines=() if scheduler.is_this_machine else cluster.script_lines,
        site=_site(option, cluster),
        software=software.lines if software else (),
        lines=request.lines,
        directories=tuple(map(_filled, container.directories)) if container else (),
        variables=_variables(container) if container else (),
        stage=stage,
        scratch=_scratch(cluster) if stage else "",
        launcher=request.launcher,
        own_processes=launcher.own_processes,
        nodes=option.nodes,
        gpus_per_node=option.gpus_per_node,
        tasks_per_node=option.tasks_per_node,
        processes=processes,
        cores_named="cores" not in option.automatic,
        threads=_threads(option, processes),
        meets=launcher.meets(option.nodes, option.nodes * option.tasks_per_node * processes),
        masks=_masks(option, cluster),
        check=_check(option, options, software),
        container=f"{software.run_prefix} " if software and software.run_prefix else "",
        teho=_teho(option, options),
        program=bash_command(request.command),
        script=" ".join(map(bash_word, _script_words(option))),
        signal_before_s=options.notice_s(option),
        time_s=math.ceil(option.time_s),
        shell_is_told=options.shell_is_told(option),
        requeue=options.requeue,
    )


def _site(option: Option, cluster: Cluster) -> str:
    through_teho = launcher_of(option.request.launcher).through_teho
    if not through_teho or scheduler_of(option.scheduler).is_this_machine:
        return ""  # this machine may be another cluster's, or no one's
    if is_known_by_name(cluster):
        return f"TEHO_CLUSTER={bash_word(cluster.name)}"
    return f"TEHO_SITE={bash_word(json.dumps(launch_site(cluster)))}"


def _teho(option: Option, options: ScriptOptions) -> str:
    path = " ".join(map(bash_word, options.teho))
    wanted = {"run": options.record, "launch": launcher_of(option.request.launcher).through_teho}
    return "".join(f"{path} {name} -- " for name, is_wanted in wanted.items() if is_wanted)


def _check(option: Option, options: ScriptOptions, software: Software | None) -> str:
    """Return `teho doctor --in-job`, for the program's own Python where that is named by a path.

    The one that a container has cannot be asked from outside, and the node's is another.
    """
    if not options.check:
        return ""
    words = [*options.teho, "doctor", "--in-job"]
    program = option.request.command[0]
    if software and software.run_prefix:
        words += ["--python", "-"]
    elif "/" in program and _PYTHON.fullmatch(program.rpartition("/")[2]):
        words += ["--python", program]
    return " ".join(map(bash_word, words))


def _software(option: Option, cluster: Cluster, options: ScriptOptions) -> Software | None:
    """Return what to load: what is asked for, or what the command looks like.

    PyTorch where the launcher is PyTorch's or the program is a bare `python`; if the
    cluster has no entry for it, what the cluster says for any framework; and nothing for
    a program, or a Python, of the user's own.
    """
    if options.software is not None:
        return options.software
    known = {software.framework: software for software in cluster.software}
    wanted = options.framework
    if wanted == "none":
        return None
    if wanted:
        if wanted not in known:
            near = did_you_mean(wanted, [*known, "none"])
            raise InputError(f"--framework: {cluster.title} has no {wanted!r}{near}")
        return known[wanted]
    framework = launcher_of(option.request.launcher).framework
    if not framework and _PYTHON.fullmatch(option.request.command[0]):
        framework = "pytorch"
    return (known.get(framework) or known.get("any")) if framework else None


def _script_words(option: Option) -> tuple[str, ...]:
    """Return the command as launchers take it that start Python themselves.

    For what is not a Python script they have an option.
    """
    words = option.request.command
    if _PYTHON.fullmatch(words[0]) and len(words) > 1:
        if words[1] == "-m":
            return ("--module", *words[2:])
        if not words[1].startswith("-"):
            return words[1:]
    if words[0].endswith(".py") and not words[0].startswith("-"):
        return words
    return (launcher_of(option.request.launcher).other_program, *words)


def _threads(option: Option, processes: int) -> str:
    """Return how many threads each process should have: the cores that are its own."""
    if launcher_of(option.request.launcher).through_teho:
        return ""
    return scheduler_of(option.scheduler).threads(option, processes)


def _masks(option: Option, cluster: Cluster) -> str:
    """Return the masks that bind each task to its GPU's cores; empty if they do not apply.

    They do where srun starts a task for every GPU of nodes that are held whole, with the
    cores that the site's table gives to each.
    """
    binding = cluster.binding
    launcher = launcher_of(option.request.launcher)
    if binding is None or launcher.through_teho or not launcher.task_per_gpu:
        return ""
    whole = option.request.exclusive or any(
        partition.exclusive and partition.name == option.partition
        for partition in cluster.partitions
    )
    every = {(option.tasks_per_node, option.gpus_per_node)} == {(len(binding.cores_of_gpu),) * 2}
    fits = all(len(cores) == option.cpus_per_task for cores in binding.cores_of_gpu)
    if not every or not fits or (binding.only_exclusive and not whole):
        return ""
    masks = (sum(1 << core for core in cores) for cores in binding.cores_of_gpu)
    return "mask_cpu:" + ",".join(f"{mask:#018x}" for mask in masks)


def _filled(text: str) -> str:
    return text.replace("{user}", "$USER").replace("{node}", "$SLURM_NODEID")


def _variables(container: Container) -> tuple[str, ...]:
    return tuple(f'{name}="{_filled(value)}"' for name, value in container.variables.items())


def _container(option: Option, cluster: Cluster, software: Software | None) -> Container | None:
    """Return what the software's container needs on several nodes; `teho launch` sees to it."""
    if option.nodes == 1 or launcher_of(option.request.launcher).through_teho:
        return None
    if software is None or not software.run_prefix or not cluster.environment:
        return None
    return cluster.environment[0]


def _scratch(cluster: Cluster) -> str:
    disk = cluster.local_disk
    return f"${disk.variable}" if disk and disk.variable else (disk.path if disk else "")


def _has_disk(option: Option, cluster: Cluster) -> bool:
    """Return whether the nodes have a disk of their own to bring data to."""
    kind = next((kind for kind in cluster.nodes if kind.name == option.node_kind), None)
    disk = cluster.local_disk
    return not (disk is None or disk.in_memory or (kind and kind.local_disk_gib == 0))


def _stage(option: Option, cluster: Cluster, options: ScriptOptions) -> tuple[str, ...]:
    """Return the commands that bring data to each node's own disk."""
    disk = cluster.local_disk
    here = scheduler_of(option.scheduler).is_this_machine
    if here or disk is None or not _has_disk(option, cluster):
        return ()
    if options.stage and disk.only_if_asked and option.local_disk_gib is None:
        raise InputError(
            f"--stage, and no disk: {cluster.title} gives it only where it is asked for",
            next_step="`--local-disk 100GiB`, or what the data needs",
        )
    return tuple(_staged(path, _scratch(cluster)) for path in options.stage)


def _staged(path: str, scratch: str) -> str:
    """Return the command that unpacks an archive, or copies anything else, to a directory."""
    quoted = bash_word(f"./{path}" if path.startswith("-") else path)
    if path.endswith(".zip"):
        return f'unzip -q {quoted} -d "{scratch}"'
    if not _ARCHIVE.search(path):
        return f'cp -r {quoted} "{scratch}"'
    # tar takes what stands before a colon for another machine's name.
    local = "--force-local " if ":" in path else ""
    return f'tar {local}-xf {quoted} -C "{scratch}"'


def _remarks(option: Option, cluster: Cluster, options: ScriptOptions) -> Iterator[str]:
    name, scheduler = option.request.name, scheduler_of(option.scheduler)
    held = scheduler.job_name(name)
    if name and held != name:
        yield f"the job's name is written {held!r}: the scheduler cannot hold {name!r}"
    if options.stage and not scheduler.is_this_machine and not _has_disk(option, cluster):
        yield f"{cluster.title}'s nodes have no disk of their own: nothing is staged"
    several = option.tasks_per_node > 1 and launcher_of(option.request.launcher).through_teho
    if scheduler.is_this_machine and several:
        yield (
            f"the program is started once, and sees all {option.gpus_per_node} GPUs: this machine "
            "has nothing that starts a task for each; `-- torchrun train.py` does"
        )
    yield from scheduler.remarks(option, options)
    yield from _not_expanded(option, cluster)


def _not_expanded(option: Option, cluster: Cluster) -> Iterator[str]:
    """Yield that the command's words are passed as they are, where one holds a job's variable."""
    words, scratch = option.request.command, _scratch(cluster).removeprefix("$")
    begin = [one.job_variables for one in schedulers().values() if one.job_variables]
    named = [re.escape(scratch)] if scratch else []
    known = "|".join([*(rf"{re.escape(name)}\w+" for name in begin), *named])
    found = re.search(rf"\$(?:{known})\b|\$\{{(?:{known})\b", " ".join(words))
    if found and words[0].rpartition("/")[2] not in {"bash", "sh"}:
        yield (
            f"words of the command are passed as they are, {found.group().replace('{', '')} too: "
            "`-- bash -c '…'` lets the job's shell fill it in"
        )
