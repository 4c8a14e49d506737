"""Write a plan's option as a batch script."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

import msgspec

from teho.errors import InputError
from teho.launchers.registry import launcher_of
from teho.model.cluster import Cluster, Container, Software
from teho.model.plan import Option
from teho.model.run import TRIAL_TAG
from teho.patterns import lazy_pattern
from teho.schedulers.registry import scheduler_of, schedulers
from teho.schedulers.script.directives import ACCOUNT_PLACEHOLDER, lacks_account
from teho.schedulers.script.launch_site import is_known_by_name, launch_site
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.quoting import bash_command, bash_word
from teho.schedulers.script.software import PYTHON, chosen_software, software_remark

__all__ = ["Script", "ScriptOptions", "Values", "write_script"]

_ARCHIVE = lazy_pattern(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|tzst)", re.ASCII)
_PLAIN_OPTIONS = ScriptOptions()
_TRIAL = f"--window 10s --for 2min --tag {TRIAL_TAG}=yes"
"""Options of `teho run` in a trial."""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A batch script."""

    text: str
    """The whole text. Write it as UTF-8 with `surrogateescape`: it may have other bytes."""
    remarks: tuple[str, ...] = ()
    """A sentence for each option that the script could not fulfil exactly."""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a template can use. Every text is already quoted for bash."""

    title: str
    """The cluster's title."""
    directives: tuple[str, ...]
    """The scheduler's options, without `#SBATCH` or `#$`."""
    site_lines: tuple[str, ...]
    """Lines that every script of the cluster needs."""
    site: str
    """Variable that names the cluster for `teho launch`, as `NAME=value`; empty: not needed."""
    software: tuple[str, ...]
    """Lines that load the framework."""
    lines: tuple[str, ...]
    """The user's lines."""
    directories: tuple[str, ...]
    """Directories to create first, on each node."""
    variables: tuple[str, ...]
    """Variables for communication between nodes, as `NAME=value`."""
    stage: tuple[str, ...]
    """Commands that copy data to the node's local disk, to run once on each node."""
    scratch: str
    """Directory of that disk, such as `$LOCAL_SCRATCH`; empty: no data is staged."""
    launcher: str
    own_processes: bool
    """Whether the launcher starts a process for each GPU of a node itself."""
    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    """Tasks that the scheduler starts on each node."""
    processes: int
    """Processes that the launcher starts on each node."""
    cores_named: bool
    """Whether the request names cores, so Slurm sets `SLURM_CPUS_PER_TASK`."""
    threads: str
    """`OMP_NUM_THREADS` of each process, as an expression of bash; empty: `teho launch` sets it."""
    meets: bool
    """Whether the processes need `MASTER_ADDR` and `MASTER_PORT`."""
    masks: str
    """Value of `--cpu-bind`; empty: not documented, or not valid for this job."""
    check: str
    """Command that first checks if the job can work; empty: no check."""
    container: str
    """Words before a command in the software's container, with a space at the end."""
    teho: str
    """Teho's words before the program: `teho run -- `, `teho launch -- `, both, or none."""
    program: str
    """The user's command."""
    script: str
    """The user's command for launchers of Python scripts: without `python`."""
    signal_before_s: int
    """Time before the end at which the program gets SIGUSR1; 0: no signal."""
    time_s: int
    """The time limit."""
    shell_is_told: bool
    """Whether Slurm's signal is for the script's shell, which sends it on."""
    requeue: bool


def write_script(
    option: Option, cluster: Cluster, options: ScriptOptions = _PLAIN_OPTIONS
) -> Script:
    """Return the batch script of a plan's option.

    The template is in the folder of the option's `scheduler`, such as `slurm.sh.j2`. The template
    of this machine, `local.sh.j2`, has no directives and no software.

    Args:
        option: the option; its request has the command.
        cluster: the cluster of the option.
        options: options of the script.

    Raises:
        InputError: the command is missing, the scheduler cannot express the request, or a
            template has a mistake.
    """
    from teho.schedulers.script.render import render

    command = option.request.command
    if not command or not command[0]:
        raise InputError(
            "a script cannot be written without a command",
            next_step="add `-- COMMAND…` at the end",
        )
    scheduler = scheduler_of(option.scheduler)
    name = option.request.launcher
    if not scheduler.starts_tasks and option.nodes > 1:
        _check_several_nodes(option, cluster, options)
    if not launcher_of(name).works_on(option.scheduler):
        raise InputError(
            f"--launcher {name}: {cluster.title} has no {name}",
            "torchrun, or another launcher",
        )
    if options.gpus_per_task is not None and not scheduler.starts_tasks:
        raise InputError(f"--gpus-per-task on {cluster.title}", "a cluster with Slurm")
    software = None if scheduler.is_this_machine else chosen_software(option, cluster, options)
    values = _values(option, cluster, options, software)
    text = render(f"{option.scheduler}.sh.j2", msgspec.structs.asdict(values))
    return Script(text=text, remarks=tuple(_remarks(option, cluster, options)))


def _check_several_nodes(option: Option, cluster: Cluster, options: ScriptOptions) -> None:
    """Check a job on several nodes if the scheduler only starts the script.

    Raises:
        InputError: the site has no option for it, or the script cannot start it.
    """
    nodes, title = f"{option.nodes} nodes on {cluster.title}", cluster.title
    if option.gpus_per_node or not cluster.dialect.several_nodes:
        what = " with GPUs" if option.gpus_per_node else ""
        raise InputError(
            f"{nodes}{what}", f"one node: {title} documents no option for several nodes"
        )
    if launcher_of(option.request.launcher).template("mpirun") is None:
        raise InputError(f"--launcher {option.request.launcher} with {nodes}", "launch or plain")
    if options.stage:
        raise InputError(f"--stage with {nodes}", "one node", "let your command copy the data")


def _values(
    option: Option,
    cluster: Cluster,
    options: ScriptOptions,
    software: Software | None,
) -> Values:
    stage = _stage(option, cluster, options)
    request, scheduler = option.request, scheduler_of(option.scheduler)
    container = _container(option, cluster, software)
    variables = container.variables if container else {}
    launcher = launcher_of(request.launcher)
    processes = max(1, option.gpus_per_node) if launcher.own_processes else 1
    # On several nodes of Grid Engine, the site may set the number of threads to 1.
    is_step = scheduler.starts_tasks or option.nodes == 1
    finds_threads = launcher.through_teho and is_step
    return Values(
        title=" ".join(cluster.title.split()),
        directives=scheduler.directives(option, cluster, options),
        site_lines=() if scheduler.is_this_machine else cluster.script_lines,
        site=_site(option, cluster),
        software=software.lines if software else (),
        lines=request.lines,
        directories=tuple(map(_filled, container.directories)) if container else (),
        variables=tuple(f'{name}="{_filled(value)}"' for name, value in variables.items()),
        stage=stage,
        scratch=cluster.local_disk.place if stage and cluster.local_disk else "",
        launcher=request.launcher,
        own_processes=launcher.own_processes,
        nodes=option.nodes,
        gpus_per_node=option.gpus_per_node,
        tasks_per_node=option.tasks_per_node,
        processes=processes,
        cores_named="cores" not in option.automatic,
        # `teho launch` sets the number of threads itself. Otherwise it is the number of cores.
        threads="" if finds_threads else scheduler.threads(option, processes),
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
        return ""  # This machine may belong to another cluster, or to none.
    if is_known_by_name(cluster):
        return f"TEHO_CLUSTER={bash_word(cluster.name)}"
    return f"TEHO_SITE={bash_word(json.dumps(launch_site(cluster)))}"


def _teho(option: Option, options: ScriptOptions) -> str:
    path = " ".join(map(bash_word, options.teho))
    run = f"run {_TRIAL}" if options.trial else "run"
    through_teho = launcher_of(option.request.launcher).through_teho
    wanted = {run: options.record or options.trial, "launch": through_teho}
    return "".join(f"{path} {name} -- " for name, is_wanted in wanted.items() if is_wanted)


def _check(option: Option, options: ScriptOptions, software: Software | None) -> str:
    """Return `teho doctor --in-job`, with the program's Python if the command has its path.

    The Python in a container cannot be asked from outside, and the node's Python is another one.
    """
    if not options.check:
        return ""
    words = [*options.teho, "doctor", "--in-job"]
    program = option.request.command[0]
    if software and software.run_prefix:
        words += ["--python", "-"]
    elif "/" in program and PYTHON.fullmatch(program.rpartition("/")[2]):
        words += ["--python", program]
    return " ".join(map(bash_word, words))


def _script_words(option: Option) -> tuple[str, ...]:
    """Return the command for launchers that start Python themselves.

    They have an option for programs that are not Python scripts.
    """
    words = option.request.command
    if PYTHON.fullmatch(words[0]) and len(words) > 1:
        if words[1] == "-m":
            return ("--module", *words[2:])
        if not words[1].startswith("-"):
            return words[1:]
    if words[0].endswith(".py") and not words[0].startswith("-"):
        return words
    return (launcher_of(option.request.launcher).other_program, *words)


def _masks(option: Option, cluster: Cluster) -> str:
    """Return the masks that bind each task to its GPU's cores; empty: they do not apply.

    They apply if srun starts a task for every GPU of whole nodes, and each task has the number of
    cores in the site's table.
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


def _container(option: Option, cluster: Cluster, software: Software | None) -> Container | None:
    """Return the variables for a container on several nodes. `teho launch` sets them itself."""
    if option.nodes == 1 or launcher_of(option.request.launcher).through_teho:
        return None
    if software is None or not software.run_prefix or not cluster.environment:
        return None
    return cluster.environment[0]


def _has_disk(option: Option, cluster: Cluster) -> bool:
    """Return whether the nodes have a local disk."""
    kind = next((kind for kind in cluster.nodes if kind.name == option.node_kind), None)
    disk = cluster.local_disk
    return not (disk is None or disk.in_memory or (kind and kind.local_disk_gib == 0))


def _stage(option: Option, cluster: Cluster, options: ScriptOptions) -> tuple[str, ...]:
    """Return the commands that copy data to each node's local disk."""
    disk = cluster.local_disk
    here = scheduler_of(option.scheduler).is_this_machine
    if here or disk is None or not _has_disk(option, cluster):
        return ()
    if options.stage and disk.only_if_asked and option.local_disk_gib is None:
        raise InputError(
            f"--stage without --local-disk: {cluster.title} gives local disk only to jobs that "
            "request it",
            next_step="add `--local-disk` with the size of the data, for example "
            "`--local-disk 100GiB`",
        )
    return tuple(_staged(path, disk.place) for path in options.stage)


def _staged(path: str, scratch: str) -> str:
    """Return the command that unpacks an archive, or copies a file or folder, to a directory."""
    quoted = bash_word(f"./{path}" if path.startswith("-") else path)
    if path.endswith(".zip"):
        return f'unzip -q {quoted} -d "{scratch}"'
    if not _ARCHIVE.search(path):
        return f'cp -r {quoted} "{scratch}"'
    # tar takes the text before a colon for the name of a machine.
    local = "--force-local " if ":" in path else ""
    return f'tar {local}-xf {quoted} -C "{scratch}"'


def _remarks(option: Option, cluster: Cluster, options: ScriptOptions) -> Iterator[str]:
    name, scheduler = option.request.name, scheduler_of(option.scheduler)
    accepted = scheduler.job_name(name)
    if name and accepted != name:
        yield f"the job's name is {accepted!r}: the scheduler does not accept {name!r}"
    if not scheduler.is_this_machine and (remark := software_remark(option, cluster, options)):
        yield remark
    if lacks_account(option) and not scheduler.is_this_machine:
        yield f"replace {ACCOUNT_PLACEHOLDER} in the script with your project"
    if options.gpus_per_task is not None:
        yield (
            "with --gpus-per-task, a task cannot reach the GPUs of other tasks on its node: if "
            "NCCL or RCCL then fails or is slow, leave the option out"
        )
    if options.stage and not scheduler.is_this_machine and not _has_disk(option, cluster):
        yield f"--stage is ignored: {cluster.title}'s nodes have no local disk"
    several = option.tasks_per_node > 1 and launcher_of(option.request.launcher).through_teho
    if scheduler.is_this_machine and several:
        yield (
            f"the program starts once and sees all {option.gpus_per_node} GPUs. To start a process "
            "for each GPU on this machine, use `-- torchrun train.py`"
        )
    yield from scheduler.remarks(option, options)
    yield from _not_expanded(option, cluster)


def _not_expanded(option: Option, cluster: Cluster) -> Iterator[str]:
    """Yield that the command's words are not expanded, if one contains a job's variable."""
    disk = cluster.local_disk
    words, scratch = option.request.command, disk.place.removeprefix("$") if disk else ""
    begin = [one.job_variables for one in schedulers().values() if one.job_variables]
    named = [re.escape(scratch)] if scratch else []
    known = "|".join([*(rf"{re.escape(name)}\w+" for name in begin), *named])
    found = re.search(rf"\$(?:{known})\b|\$\{{(?:{known})\b", " ".join(words))
    if found and words[0].rpartition("/")[2] not in {"bash", "sh"}:
        yield (
            f"{found.group().replace('{', '')} in the command is not expanded: to let the job's "
            "shell expand it, use `-- bash -c '…'`"
        )
