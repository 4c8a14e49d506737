"""A request as the `#$` lines of a script."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.schedulers.grid_engine.quoting import grid_engine_name, grid_engine_value
from teho.schedulers.script.directives import (
    ACCOUNT_PLACEHOLDER,
    ARRAY_RANGE,
    array_text,
    disk_option,
    gpus_option,
    job_names,
    lacks_account,
    memory_text,
)
from teho.schedulers.script.options import ScriptOptions

__all__ = ["grid_engine_directives"]

_MOMENTS = {"begin": "b", "end": "e", "fail": "a"}
"""Moments of e-mails as the letters of `qsub -m`."""


def grid_engine_directives(
    option: Option, cluster: Cluster, options: ScriptOptions
) -> Iterator[str]:
    """Yield the options of the `#$` lines.

    Raises:
        InputError: Grid Engine cannot express something.
    """
    dialect, cores = cluster.dialect, option.tasks_per_node * option.cpus_per_task
    # By default, the name is the file name of the script, and names such as `1.sh` are refused.
    yield f"-N {grid_engine_name(option.request.name or 'job')}"
    if option.account:
        yield f"{cluster.account.option} {grid_engine_value(option.account, '--account')}"
    elif lacks_account(option):
        yield f"{cluster.account.option} {ACCOUNT_PLACEHOLDER}"
    if option.partition:
        yield f"-q {grid_engine_value(option.partition, 'partition')}"
    yield "-cwd"
    if option.constraint:
        yield dialect.constraint.format(constraint=option.constraint)
    if option.nodes > 1:
        yield dialect.several_nodes.format(nodes=option.nodes, cores=cores)
    elif option.parallel_environment:
        yield f"-pe {option.parallel_environment} {cores}"
    elif "cores" not in option.automatic and (dialect.cores or cores > 1):
        yield (dialect.cores or "-pe smp {cores}").format(cores=cores)
    if option.memory_mib is not None and "memory" not in option.automatic:
        memory = memory_text(option.memory_mib)
        if dialect.memory == "core":
            memory = _part_of_memory(option.memory_mib, cores)
        yield (dialect.memory_option or "-l h_vmem={memory}").format(memory=memory)
    yield from filter(None, (gpus_option(option, cluster),))
    if option.nodes == 1:
        yield from filter(None, (disk_option(option, cluster),))
    yield f"-l h_rt={_clock(option.time_s)}"
    if options.log:
        yield f"-o {grid_engine_value(_path(options.log), '--log')}"
    if options.error_log:
        yield f"-e {grid_engine_value(_path(options.error_log), '--error-log')}"
    elif options.log:
        yield "-j y"
    if moments := options.mails():
        yield f"-m {''.join(_MOMENTS[moment] for moment in moments)}"
        if options.mail_to:
            yield f"-M {grid_engine_value(options.mail_to, '--mail-to')}"
    if options.array:
        yield from _grid_engine_array(options.array)
    if options.after:
        yield f"-hold_jid {','.join(job_names(options.after))}"
    if options.requeue:
        yield "-r y"


def _path(path: str) -> str:
    """Return a path that Grid Engine takes as it is.

    It takes text before a colon for the name of a host, unless the path begins with a colon.
    """
    return f":{path}" if ":" in path else path


def _part_of_memory(mib: int, cores: int) -> str:
    """Write each core's part in KiB, rounded down: the sum must not exceed the node's memory."""
    kib = mib * 1024 // cores
    return f"{kib}K" if kib % 1024 else f"{kib // 1024}M"


def _clock(seconds: float) -> str:
    """Write a time as `HH:MM:SS`. Grid Engine has no days."""
    whole = math.ceil(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _grid_engine_array(text: str) -> Iterator[str]:
    ranges, _, most = array_text(text).partition("%")
    match = ARRAY_RANGE.fullmatch(ranges)
    if match is None or int(match.group(1)) < 1:
        raise InputError(
            f"--array: {text!r}", "one range that begins at 1 or more, such as 1-10 or 1-9:2%4"
        )
    yield f"-t {ranges}"
    if most:
        yield f"-tc {most}"
