"""Options that `teho plan` and `teho submit` share: what a program needs, and its script."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from teho.cli import say
from teho.errors import InputError, UnitError
from teho.launchers.registry import launchers
from teho.model.cluster import Cluster
from teho.model.request import Request
from teho.schedulers.script.options import ScriptOptions
from teho.units import GIB, MIB, format_duration, parse_bytes, parse_duration

__all__ = [
    "check_gpu_type",
    "first_given",
    "read_request",
    "read_script_options",
    "request_options",
    "script_options",
    "with_environment",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _GpuCount(click.IntRange):
    """A number of GPUs; the error for Slurm's `TYPE:NUMBER` names Teho's two options."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # `gpu:a100:2` is Slurm's longer form.
        if named := re.fullmatch(r"(?:.*:)?([^:]+):(\d+)", str(value)):
            kind, count = named.groups()
            raise InputError(f"--gpus {value}", "a number", f"`--gpus {count} --gpu-type {kind}`")
        return super().convert(value, param, ctx)


_REQUEST = (
    click.option("--gpus", type=_GpuCount(min=0), default=1, show_default=True, metavar="N",
                 help="GPUs of the whole job; 0: none."),
    click.option("--gpu-memory", metavar="SIZE",
                 help="Memory of each GPU, at least, such as 30GiB."),
    click.option("--gpu-type", metavar="TYPE",
                 help="Such as a100 or h100; a slice by its own name."),
    click.option("--nodes", type=click.IntRange(min=1), metavar="N",
                 help="Number of nodes.  [default: the fewest]"),
    click.option("--cpus-per-gpu", type=click.IntRange(min=1), metavar="N",
                 help="Cores for each GPU.  [default: the site's fair share]"),
    click.option("--cpus", type=click.IntRange(min=1), metavar="N",
                 help="Cores of the whole job."),
    click.option("--mem", metavar="SIZE", help="Memory of each node, such as 64GiB."),
    click.option("--time", metavar="TIME",
                 help="Time limit, such as 90min, 2d or 1-12:00:00.  [default: 1h]"),
    click.option("--local-disk", metavar="SIZE", help="Disk of the job's own on each node."),
    click.option("--partition", metavar="NAME", help="Only this partition or queue."),
    click.option("--account", metavar="NAME", help="The project that is billed."),
    click.option("--qos", metavar="NAME", help="Quality of service (Slurm)."),
    click.option("--reservation", metavar="NAME", help="Reservation to run in (Slurm)."),
    click.option("--licenses", metavar="NAMES", help="Licenses, such as matlab:2 (Slurm)."),
    click.option("--exclusive", is_flag=True,
                 help="Whole nodes, which are billed whole, without other jobs on them."),
    click.option("--launcher", type=click.Choice(list(launchers())), default="plain",
                 show_default=True, help="What starts the processes; launch: `teho launch`."),
    click.option("--name", metavar="NAME", default="", help="Name of the job."),
    click.option("--even-if-retired", is_flag=True,
                 help="Plan for retired clusters too, for study."),
)  # fmt: skip
_SCRIPT = (
    click.option("--record", is_flag=True, help="In the script, record the program: `teho run`."),
    click.option("--check", is_flag=True,
                 help="In the script, look first, and end a job that cannot work: `teho doctor`."),
    click.option("--framework", metavar="NAME", default="",
                 help="Software to load; none: nothing.  [default: by the command]"),
    click.option("--env", metavar="ENV", default="",
                 help="Your own environment: a plan of `teho env plan` in JSON, a directory, a "
                 ".sif, or a name of conda's."),
    click.option("--line", "lines", metavar="LINE", multiple=True,
                 help="Line of the script before the command; may be given again."),
    click.option("--stage", metavar="FILE", multiple=True,
                 help="Bring FILE to each node's own disk; may be given again."),
    click.option("--array", metavar="RANGE", default="",
                 help="Job array, such as 1-10 or 1-100%8."),
    click.option("--after", metavar="JOB", multiple=True,
                 help="Start when JOB has ended well; may be given again."),
    click.option("--signal", metavar="TIME",
                 help="Send the program SIGUSR1 so long before the time limit."),
    click.option("--requeue", is_flag=True,
                 help="Run the job again after a node's failure, and after --signal."),
    click.option("--log", metavar="FILE", default="", help="File for the job's output."),
)  # fmt: skip
_OF_SCRIPT = (*ScriptOptions.__struct_fields__, "env", "lines", "signal")


def request_options(command: _Command) -> _Command:
    """Give a command the options that say what a program needs."""
    return _with(_REQUEST, command)


def script_options(command: _Command) -> _Command:
    """Give a command the options that say what a job's script is to hold beside the request."""
    return _with(_SCRIPT, command)


def _with(options: tuple[Callable[[_Command], _Command], ...], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


def read_request(given: Mapping[str, Any], argv: tuple[str, ...]) -> Request:
    """Turn the options of the command line into a request.

    Raises:
        InputError: a value is not as expected, or two contradict each other.
    """
    gpus, cpus, cpus_per_gpu = given["gpus"], given["cpus"], given["cpus_per_gpu"]
    if cpus is not None and cpus_per_gpu is not None:
        raise InputError("--cpus and --cpus-per-gpu together", "one of them")
    if cpus_per_gpu is not None and gpus == 0:
        raise InputError("--cpus-per-gpu without GPUs", next_step="`--cpus` counts for the job")
    if gpus == 0 and (given["gpu_type"] or given["gpu_memory"]):
        what = "--gpu-type" if given["gpu_type"] else "--gpu-memory"
        raise InputError(f"{what} with --gpus 0", "one or more GPUs")
    return Request(
        command=argv,
        gpus=gpus,
        gpu_memory_gib=_gib(given["gpu_memory"], "--gpu-memory"),
        gpu_type=given["gpu_type"],
        nodes=given["nodes"],
        cpus_per_gpu=cpus_per_gpu,
        cpus=cpus,
        memory_mib=_mib(given["mem"], "--mem"),
        time_s=_seconds(given["time"]),
        local_disk_gib=_gib(given["local_disk"], "--local-disk"),
        partition=given["partition"],
        account=given["account"],
        qos=given["qos"],
        reservation=given["reservation"],
        licenses=given["licenses"],
        exclusive=given["exclusive"],
        launcher=given["launcher"],
        name=given["name"],
        lines=given["lines"],
    )


def read_script_options(given: Mapping[str, Any]) -> ScriptOptions:
    """Turn the options of the command line into wishes for the script.

    Raises:
        UnitError: a time is none.
    """
    signal = given["signal"]
    wishes = {name: given[name] for name in ScriptOptions.__struct_fields__ if name in given}
    before_s = None if signal is None else parse_duration(signal, "--signal")
    return ScriptOptions(**wishes, signal_before_s=before_s)


def with_environment(wishes: ScriptOptions, env: str, cluster: Cluster) -> ScriptOptions:
    """Return the wishes with what activates `--env` on this cluster.

    Raises:
        InputError: it is no environment, one for another cluster, or contradicts --framework.
    """
    if not env:
        return wishes
    if wishes.framework:
        raise InputError("--env together with --framework", "one of them")
    from teho.software.activation import activation_of

    return msgspec.structs.replace(wishes, software=activation_of(env, cluster))


def first_given() -> str:
    """Return the first option of the command line that is for the script alone; "": none is."""
    context = click.get_current_context()
    return next(
        (
            parameter.opts[0]
            for parameter in context.command.params
            if parameter.name in _OF_SCRIPT
            and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ),
        "",
    )


def check_gpu_type(gpu_type: str) -> None:
    """Refuse a type of GPU that no cluster of the catalogue has: it is a slip of the pen.

    Raises:
        InputError: no cluster has it.
    """
    from teho.clusters.catalogue import load_catalogue
    from teho.config.toml import did_you_mean

    gpus = [kind.gpu for cluster in load_catalogue().values() for kind in cluster.nodes if kind.gpu]
    known = {gpu.type for gpu in gpus}
    if gpu_type.lower() not in {name.lower() for name in (*known, *(gpu.model for gpu in gpus))}:
        raise InputError(f"--gpu-type: no cluster has {gpu_type!r}{did_you_mean(gpu_type, known)}")


def _mib(text: str | None, what: str) -> int | None:
    gib = _gib(text, what)
    return None if gib is None else math.ceil(gib * GIB / MIB)


def _gib(text: str | None, what: str) -> float | None:
    if text is None:
        return None
    amount = parse_bytes(text, what)
    if amount < MIB:
        # A bare 30 is 30 bytes here, and 30 MB to Slurm: neither is what was meant.
        raise UnitError(f"{what}: {text!r} is {amount} bytes", "a size such as 512MiB or 64GiB")
    return amount / GIB


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().isdigit():
        raise UnitError(
            f"--time: {text!r} is minutes to Slurm and seconds to Grid Engine",
            f"a unit, such as {text.strip()}min",
        )
    seconds = parse_duration(text, "--time")
    if text.count(":") == 1 and "-" not in text:
        say(f"--time {text} is minutes and seconds: {format_duration(seconds)}")
    if seconds <= 0:
        raise UnitError(f"--time: {text!r} is no time at all", "a length such as 30min or 2h")
    return seconds
