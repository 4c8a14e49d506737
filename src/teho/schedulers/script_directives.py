"""What a job asks for, as the lines that Slurm and Grid Engine read at a script's head."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.schedulers.quoting import (
    grid_engine_name,
    grid_engine_value,
    slurm_name,
    slurm_value,
)
from teho.schedulers.script_options import ScriptOptions

__all__ = ["grid_engine_directives", "slurm_directives"]

_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)
_JOB = re.compile(r"[\w.+-]+", re.ASCII)


def slurm_directives(option: Option, cluster: Cluster, options: ScriptOptions) -> tuple[str, ...]:
    """Return the options of the `#SBATCH` lines.

    Raises:
        InputError: something cannot be said to Slurm.
    """
    return tuple(_slurm(option, cluster, options))


def grid_engine_directives(
    option: Option, cluster: Cluster, options: ScriptOptions
) -> tuple[str, ...]:
    """Return the options of the `#$` lines.

    Raises:
        InputError: something cannot be said to Grid Engine.
    """
    return tuple(_grid_engine(option, cluster, options))


def _slurm(option: Option, cluster: Cluster, options: ScriptOptions) -> Iterator[str]:
    dialect = cluster.dialect
    if option.request.name:
        yield f"--job-name={slurm_value(slurm_name(option.request.name), '--name')}"
    if option.account:
        yield f"{cluster.account.option}={slurm_value(option.account, '--account')}"
    if option.partition:
        yield f"--partition={slurm_value(option.partition, 'partition')}"
    request = option.request
    for name in ("qos", "reservation", "licenses"):
        if value := getattr(request, name):
            yield f"--{name}={slurm_value(value, f'--{name}')}"
    if option.constraint:
        yield dialect.constraint.format(constraint=option.constraint)
    if request.exclusive:
        yield "--exclusive"
    yield f"--nodes={option.nodes}"
    if option.nodes * option.tasks_per_node == 1:
        yield "--ntasks=1"
    else:
        yield f"--ntasks-per-node={option.tasks_per_node}"
    if "cores" not in option.automatic:
        # What Slurm calls a CPU is a thread where it counts threads.
        yield f"--cpus-per-task={option.cpus_per_task * option.cpus_per_core}"
    if option.one_thread:
        yield "--threads-per-core=1"
    if option.memory_mib is not None and "memory" not in option.automatic:
        if option.memory_per_gpu:
            yield f"--mem-per-gpu={_memory(option.memory_mib // option.gpus_per_node)}"
        else:
            yield f"--mem={_memory(option.memory_mib)}"
    yield from _gpus_and_disk(option, cluster)
    yield f"--time={_slurm_time(option.time_s)}"
    if options.log:
        yield f"--output={slurm_value(_slurm_path(options.log), '--log')}"
    if options.array:
        yield f"--array={_slurm_array(options.array)}"
    if options.after:
        yield f"--dependency=afterok:{':'.join(_jobs(options.after))}"
    if options.signal_before_s is not None:
        # B: the shell alone is told, and tells the program; without it, the steps alone.
        whom = "B:" if options.shell_is_told(option) else ""
        yield f"--signal={whom}USR1@{options.notice_s(option)}"
    if options.requeue:
        yield from ("--requeue", "--open-mode=append")
    else:
        # Slurm's default is to run a job again from its beginning if a node fails (JobRequeue=1).
        yield "--no-requeue"


def _gpus_and_disk(option: Option, cluster: Cluster) -> Iterator[str]:
    """Yield the options for GPUs and for disk, which on some sites are one."""
    gpus, disk = _gpus(option, cluster), _disk(option, cluster)
    joins = cluster.local_disk is not None and cluster.local_disk.joins_gres
    if disk and joins:
        yield f"{gpus},{disk}" if gpus else f"--gres={disk}"
        return
    yield from filter(None, (gpus, disk))


def _grid_engine(option: Option, cluster: Cluster, options: ScriptOptions) -> Iterator[str]:
    dialect, cores = cluster.dialect, option.tasks_per_node * option.cpus_per_task
    # Without a name the script's file gives it, and names such as `1.sh` are refused.
    yield f"-N {grid_engine_name(option.request.name or 'job')}"
    if option.account:
        yield f"{cluster.account.option} {grid_engine_value(option.account, '--account')}"
    if option.partition:
        yield f"-q {grid_engine_value(option.partition, 'partition')}"
    yield "-cwd"
    if option.constraint:
        yield dialect.constraint.format(constraint=option.constraint)
    if option.parallel_environment:
        yield f"-pe {option.parallel_environment} {cores}"
    elif "cores" not in option.automatic and (dialect.cores or cores > 1):
        yield (dialect.cores or "-pe smp {cores}").format(cores=cores)
    if option.memory_mib is not None and "memory" not in option.automatic:
        memory = _memory(option.memory_mib)
        if dialect.memory == "core":
            memory = _part_of_memory(option.memory_mib, cores)
        yield (dialect.memory_option or "-l h_vmem={memory}").format(memory=memory)
    yield from filter(None, (_gpus(option, cluster), _disk(option, cluster)))
    yield f"-l h_rt={_clock(option.time_s)}"
    if options.log:
        # What stands before a colon would be a host's name, were the first not a colon.
        path = f":{options.log}" if ":" in options.log else options.log
        yield f"-o {grid_engine_value(path, '--log')}"
        yield "-j y"
    if options.array:
        yield from _grid_engine_array(options.array)
    if options.after:
        yield f"-hold_jid {','.join(_jobs(options.after))}"
    if options.requeue:
        yield "-r y"


def _gpus(option: Option, cluster: Cluster) -> str:
    if not option.gpus_per_node:
        return ""
    words = cluster.dialect.gpus
    if not option.gpu_is_typed:
        words = words.replace("{type}:", "")
    count = option.gpus_per_node if option.gpus_named is None else option.gpus_named
    return words.format(type=option.gpu_type, count=count)


def _disk(option: Option, cluster: Cluster) -> str:
    disk = cluster.local_disk
    if disk is None or not disk.option or option.local_disk_gib is None:
        return ""
    if not disk.per_core:
        return disk.option.format(gib=math.ceil(option.local_disk_gib))
    gib = _part(option.local_disk_gib, option.tasks_per_node * option.cpus_per_task)
    return disk.option.format(gib=f"{math.floor(gib * 1000) / 1000:g}")


def _part(amount: float, cores: int) -> float:
    """Return each core's part. It is then rounded down: all of them must not exceed the node's."""
    return round(amount / cores, 6)


def _memory(mib: int) -> str:
    """Write memory in whole GiB or, where it is none, in MiB."""
    return f"{mib}M" if mib % 1024 else f"{mib // 1024}G"


def _part_of_memory(mib: int, cores: int) -> str:
    """Write each core's part in whole KiB, rounded down: all of them must not exceed the node's."""
    kib = mib * 1024 // cores
    return f"{kib}K" if kib % 1024 else f"{kib // 1024}M"


def _slurm_time(seconds: float) -> str:
    """Write a time as `H:MM:SS`, or as `D-HH:MM:SS` from a day on."""
    days, rest = divmod(math.ceil(seconds), 86400)
    hours, minutes, left = rest // 3600, rest // 60 % 60, rest % 60
    return (
        f"{days}-{hours:02d}:{minutes:02d}:{left:02d}"
        if days
        else f"{hours}:{minutes:02d}:{left:02d}"
    )


def _clock(seconds: float) -> str:
    """Write a time as `HH:MM:SS`: Grid Engine knows no days."""
    whole = math.ceil(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _slurm_path(path: str) -> str:
    if "\\" in path:
        raise InputError(
            f"--log: {path!r} has a backslash, with which Slurm switches its patterns off"
        )
    return path


def _jobs(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _JOB.fullmatch(name):
            raise InputError(f"--after: {name!r} is no job", "a job's number, such as 123456")
    return names


def _slurm_array(text: str) -> str:
    ranges, _, most = text.partition("%")
    if not all(map(_RANGE.fullmatch, ranges.split(","))) or (
        "%" in text and not _RANGE.fullmatch(most)
    ):
        raise InputError(f"--array: {text!r}", "such as 1-10, 0-15:4, 1,3,7 or 1-100%8")
    return text


def _grid_engine_array(text: str) -> Iterator[str]:
    ranges, _, most = _slurm_array(text).partition("%")
    match = _RANGE.fullmatch(ranges)
    if match is None or int(match.group(1)) < 1:
        raise InputError(f"--array: {text!r}", "one range from 1 on, such as 1-10 or 1-9:2%4")
    yield f"-t {ranges}"
    if most:
        yield f"-tc {most}"
