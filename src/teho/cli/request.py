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
from teho.config.settings import load_settings
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
                 help="Request N GPUs for the whole job; 0 for a job without GPUs."),
    click.option("--gpu-memory", metavar="SIZE",
                 help="Request GPUs with at least this memory, such as 30GiB.  [default: any]"),
    click.option("--gpu-type", metavar="TYPE",
                 help="Request GPUs or MIG slices of this type, such as a100.  "
                 "[default: any]"),
    click.option("--nodes", type=click.IntRange(min=1), metavar="N",
                 help="Spread the job over N nodes.  [default: the fewest that fit]"),
    click.option("--cpus-per-gpu", type=click.IntRange(min=1), metavar="N",
                 help="Request N cores for each GPU.  [default: the site's fair share]"),
    click.option("--cpus", type=click.IntRange(min=1), metavar="N",
                 help="Request N cores for the whole job.  [default: as --cpus-per-gpu]"),
    click.option("--mem", metavar="SIZE",
                 help="Request this memory on each node, such as 64GiB.  "
                 "[default: the site's fair share]"),
    click.option("--mem-per-cpu", metavar="SIZE",
                 help="Request this memory for each core, instead of --mem; the script has the "
                 "sum.  [default: none]"),
    click.option("--mem-per-gpu", metavar="SIZE",
                 help="Request this memory for each GPU, instead of --mem; the script has the "
                 "sum.  [default: none]"),
    click.option("--time", metavar="TIME",
                 help="Limit the run time, such as 90min, 2d or 1-12:00:00.  [default: 1h]"),
    click.option("--local-disk", metavar="SIZE",
                 help="Request this much local disk on each node.  [default: none]"),
    click.option("--partition", metavar="NAME",
                 help="Use only this partition or queue.  [default: any]"),
    click.option("--account", metavar="NAME",
                 help="Charge this project.  [default: the setting account]"),
    click.option("--qos", metavar="NAME",
                 help="Set this quality of service (Slurm).  [default: the site's]"),
    click.option("--reservation", metavar="NAME",
                 help="Run in this reservation (Slurm).  [default: none]"),
    click.option("--licenses", metavar="NAMES",
                 help="Request licenses, such as matlab:2 (Slurm).  [default: none]"),
    click.option("--exclusive", is_flag=True,
                 help="Request whole nodes, without other jobs; the site charges whole nodes."),
    click.option("--launcher", type=click.Choice(list(launchers())), default="plain",
                 show_default=True, help="Start the processes with this launcher."),
    click.option("--name", metavar="NAME", default="",
                 help="Set the name of the job.  [default: the command's name]"),
    click.option("--even-if-retired", is_flag=True, help="Also plan for retired clusters."),
)  # fmt: skip
_SCRIPT = (
    click.option("--record", is_flag=True, help="Record the program with `teho run`."),
    click.option("--check", is_flag=True,
                 help="Run `teho doctor` first, and end the job if it cannot work."),
    click.option("--framework", metavar="NAME", default="",
                 help="Load the site's software for this framework, such as tensorflow or "
                 "tensorflow==2.12; none: load nothing.  "
                 "[default: from the command]"),
    click.option("--env", metavar="ENV", default="",
                 help="Activate your environment: a plan of `teho env plan` in JSON, a directory, "
                 "a .sif file, or the name of a conda environment.  [default: none]"),
    click.option("--line", "lines", metavar="LINE", multiple=True,
                 help="Add this line before the command; may be repeated.  [default: none]"),
    click.option("--stage", metavar="FILE", multiple=True,
                 help="Copy FILE to the local disk of each node; may be repeated.  "
                 "[default: none]"),
    click.option("--array", metavar="RANGE", default="",
                 help="Submit a job array, such as 1-10 or 1-100%8.  [default: one job]"),
    click.option("--after", metavar="JOB", multiple=True,
                 help="Start after JOB has ended without error; may be repeated.  "
                 "[default: at once]"),
    click.option("--signal", metavar="TIME",
                 help="Send SIGUSR1 to the program when this time is left, such as 5min.  "
                 "[default: no signal]"),
    click.option("--requeue", is_flag=True,
                 help="Queue the job again after a failed node, and after --signal."),
    click.option("--log", metavar="FILE", default="",
                 help="Write the output of the job to FILE.  [default: the scheduler's file]"),
    click.option("--error-log", metavar="FILE", default="",
                 help="Write the errors of the job to FILE, not to the file of its output.  "
                 "[default: the same file]"),
    click.option("--mail", metavar="WHEN", default="",
                 help="Let the scheduler send you an e-mail at these moments: begin, end, fail, "
                 "or several, such as begin,end.  [default: no e-mail]"),
    click.option("--mail-to", metavar="ADDRESS", default="",
                 help="Send the e-mails of --mail to this address.  "
                 "[default: the address that the site has]"),
    click.option("--gpus-per-task", metavar="N", type=int, default=None,
                 help="Let each task see only its own N GPUs (Slurm).  [default: each task sees "
                 "all GPUs of its node]"),
)  # fmt: skip
_SCRIPT_NAMES = (*ScriptOptions.__struct_fields__, "env", "lines", "signal")


def request_options(command: _Command) -> _Command:
    """Add the options that say what a program needs."""
    return _with(_REQUEST, command)


def script_options(command: _Command) -> _Command:
    """Add the options that change only the script of a job."""
    return _with(_SCRIPT, command)


def _with(options: tuple[Callable[[_Command], _Command], ...], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


def read_request(given: Mapping[str, Any], argv: tuple[str, ...]) -> Request:
    """Return the request that the options of the command line describe.

    Raises:
        InputError: a value is not valid, or two options contradict each other.
    """
    gpus, cpus, cpus_per_gpu = given["gpus"], given["cpus"], given["cpus_per_gpu"]
    if cpus is not None and cpus_per_gpu is not None:
        raise InputError("--cpus and --cpus-per-gpu together", "one of them")
    if cpus_per_gpu is not None and gpus == 0:
        raise InputError("--cpus-per-gpu without GPUs", next_step="`--cpus N` for the whole job")
    if gpus == 0 and (given["gpu_type"] or given["gpu_memory"]):
        what = "--gpu-type" if given["gpu_type"] else "--gpu-memory"
        raise InputError(f"{what} with --gpus 0", "one or more GPUs")
    memories = [name for name in ("mem", "mem_per_cpu", "mem_per_gpu") if given[name]]
    if len(memories) > 1:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in memories)
        raise InputError(f"{named} together", "one of them")
    if gpus == 0 and given["mem_per_gpu"]:
        raise InputError("--mem-per-gpu without GPUs", next_step="`--mem SIZE` for each node")
    read = {
        "command": argv,
        "account": given["account"] or load_settings().account or None,
        "gpu_memory_gib": _gib(given["gpu_memory"], "--gpu-memory"),
        "local_disk_gib": _gib(given["local_disk"], "--local-disk"),
        "memory_mib": _mib(given["mem"], "--mem"),
        "memory_per_core_mib": _mib(given["mem_per_cpu"], "--mem-per-cpu"),
        "memory_per_gpu_mib": _mib(given["mem_per_gpu"], "--mem-per-gpu"),
        "time_s": _seconds(given["time"]),
    }
    same = {name: given[name] for name in Request.__struct_fields__ if name in given}
    return Request(**{**same, **read})


def read_script_options(given: Mapping[str, Any]) -> ScriptOptions:
    """Return the options for the script.

    Raises:
        UnitError: a time is not valid.
    """
    signal = given["signal"]
    wishes = {name: given[name] for name in ScriptOptions.__struct_fields__ if name in given}
    before_s = None if signal is None else parse_duration(signal, "--signal")
    return ScriptOptions(**wishes, signal_before_s=before_s)


def with_environment(wishes: ScriptOptions, env: str, cluster: Cluster) -> ScriptOptions:
    """Return the options for the script with the lines that activate `--env` on this cluster.

    Raises:
        InputError: `--env` is not an environment, is for another cluster, or is used with
            `--framework`.
    """
    if not env:
        return wishes
    if wishes.framework:
        raise InputError("--env together with --framework", "one of them")
    from teho.software.activation import activation_of

    return msgspec.structs.replace(wishes, software=activation_of(env, cluster))


def first_given() -> str:
    """Return the first option of the command line that changes only the script, or ""."""
    context = click.get_current_context()
    return next(
        (
            parameter.opts[0]
            for parameter in context.command.params
            if parameter.name in _SCRIPT_NAMES
            and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ),
        "",
    )


def check_gpu_type(gpu_type: str) -> None:
    """Refuse a type of GPU that no cluster of the catalogue has.

    Raises:
        InputError: the type is probably misspelt.
    """
    from teho.clusters.catalogue import load_catalogue
    from teho.config.toml import did_you_mean

    gpus = [kind.gpu for cluster in load_catalogue().values() for kind in cluster.nodes if kind.gpu]
    known = {gpu.type for gpu in gpus}
    if gpu_type.lower() not in {name.lower() for name in (*known, *(gpu.model for gpu in gpus))}:
        raise InputError(f"--gpu-type: no cluster has {gpu_type!r}{did_you_mean(gpu_type, known)}")


def _gib(text: str | None, what: str) -> float | None:
    if text is None:
        return None
    amount = parse_bytes(text, what)
    if amount < MIB:
        # A number without a unit means bytes to Teho and MB to Slurm.
        raise UnitError(f"{what}: {text!r} is {amount} bytes", "a size such as 512MiB or 64GiB")
    return amount / GIB


def _mib(text: str | None, what: str) -> int | None:
    amount_gib = _gib(text, what)
    return None if amount_gib is None else math.ceil(amount_gib * GIB / MIB)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().isdigit():
        raise UnitError(
            f"--time: {text!r} means minutes in Slurm, but seconds in Grid Engine",
            f"a unit, such as {text.strip()}min",
        )
    seconds = parse_duration(text, "--time")
    if text.count(":") == 1 and "-" not in text:
        say(f"--time {text} is minutes and seconds: {format_duration(seconds)}")
    if seconds <= 0:
        raise UnitError(f"--time: {text!r} is not above 0", "a length such as 30min or 2h")
    return seconds
