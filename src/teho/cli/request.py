"""Options that `teho plan` and `teho submit` share: what a program needs, and its script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from teho.cli import say
from teho.cli.declare import flag, option, together
from teho.config.settings import load_settings
from teho.errors import InputError
from teho.launchers.registry import launchers
from teho.model.cluster import Cluster
from teho.model.plan import Answer
from teho.model.request import Request
from teho.schedulers.script.options import ScriptOptions
from teho.units import format_duration, parse_duration

__all__ = [
    "SCRIPT_NAMES",
    "check_gpu_type",
    "confirmed",
    "read_request",
    "read_script_options",
    "request_options",
    "script_options",
    "with_environment",
]


class _GpuCount(click.IntRange):
    """A number of GPUs; the error for Slurm's `TYPE:NUMBER` names Teho's two options."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # `gpu:a100:2` is Slurm's longer form.
        if named := re.fullmatch(r"(?:.*:)?([^:]+):(\d+)", str(value)):
            kind, count = named.groups()
            raise InputError(f"--gpus {value}", "a number", f"`--gpus {count} --gpu-type {kind}`")
        return super().convert(value, param, ctx)


request_options = together(
    option("--gpus N", "Request N GPUs for the whole job; 0 for a job without GPUs.",
           type=_GpuCount(min=0), default=1),
    option("--gpu-memory SIZE", "Request GPUs with at least this memory, such as 30GiB.",
           unset="any"),
    option("--gpu-type TYPE", "Request GPUs or MIG slices of this type, such as a100.",
           unset="any"),
    option("--nodes N", "Spread the job over N nodes.", unset="the fewest possible",
           type=click.IntRange(min=1)),
    option("--cpus-per-gpu N", "Request N cores for each GPU.",
           unset="the number that the site intends",
           type=click.IntRange(min=1)),
    option("--cpus N", "Request N cores for the whole job.",
           unset="the cores of --cpus-per-gpu for each GPU",
           type=click.IntRange(min=1)),
    option("--mem SIZE", "Request this memory on each node, such as 64GiB.",
           unset="the memory that the site intends"),
    option("--mem-per-cpu SIZE",
           "Request this memory for each core, instead of --mem; the script requests the "
           "sum for all cores of a node.",
           unset="none"),
    option("--mem-per-gpu SIZE",
           "Request this memory for each GPU, instead of --mem; the script requests the "
           "sum for all GPUs of a node.",
           unset="none"),
    option("--time TIME", "Limit the run time, such as 90min, 2d or 1-12:00:00.", unset="1h"),
    option("--local-disk SIZE", "Request this much local disk on each node.", unset="none"),
    option("--partition NAME", "Use only this partition or queue.", unset="any"),
    option("--account NAME", "Charge this project.", unset="the setting `account`"),
    option("--qos NAME", "Set this quality of service (Slurm).", unset="the cluster's default"),
    option("--reservation NAME", "Run in this reservation (Slurm).", unset="none"),
    option("--licenses NAMES", "Request licenses, such as matlab:2 (Slurm).", unset="none"),
    flag("--exclusive", "Request whole nodes, without other jobs; the cluster charges whole "
                        "nodes."),
    option("--launcher", "Start the processes with this launcher.",
           type=click.Choice(list(launchers())), default="plain"),
    option("--name NAME", "Set the name of the job.", unset="the command's name", default=""),
    flag("--even-if-retired", "Also plan for retired clusters."),
)  # fmt: skip
"""Add the options that say what a program needs."""
script_options = together(
    flag("--record", "Record the program with `teho run`."),
    flag("--check", "Run `teho doctor` first, and end the job if the job cannot work."),
    option("--framework NAME",
           "Load the cluster's software for this framework, such as tensorflow or "
           "tensorflow==2.12; none: do not load software.", unset="guessed from the command",
           default=""),
    option("--env ENV",
           "Activate your environment: a plan of `teho env plan` in JSON, a directory, a .sif "
           "file, or the name of a conda environment.", unset="none", default=""),
    option("--line LINE", "Add this line before the command; may be repeated.", unset="none",
           into="lines", multiple=True),
    option("--stage FILE", "Copy FILE to the local disk of each node; may be repeated.",
           unset="none", multiple=True),
    option("--array RANGE", "Submit a job array, such as 1-10 or 1-100%8.", unset="one job",
           default=""),
    option("--after JOB", "Start after JOB has ended without error; may be repeated.",
           unset="at once", multiple=True),
    option("--signal TIME",
           "Send SIGUSR1 to the program when only this much of the time limit is left, such as "
           "5min.", unset="no signal"),
    flag("--requeue", "Queue the job again if a node fails, and after the signal of --signal."),
    option("--log FILE", "Write the output of the job to FILE.",
           unset="a file that the scheduler names", default=""),
    option("--error-log FILE",
           "Write the errors of the job to FILE, not to the file of the job's output.",
           unset="the file of the output", default=""),
    option("--mail WHEN",
           "Let the scheduler send you an e-mail at these moments: begin, end, fail, or several, "
           "such as begin,end.", unset="no e-mail", default=""),
    option("--mail-to ADDRESS", "Send the e-mails of --mail to this address.",
           unset="the address that the cluster has for you", default=""),
    option("--gpus-per-task N", "Let each task see only its own N GPUs (Slurm).",
           unset="each task sees all GPUs of its node", type=int),
)  # fmt: skip
"""Add the options that change only the script of a job."""
SCRIPT_NAMES = (*ScriptOptions.__struct_fields__, "env", "lines", "signal")
"""Parameters of these options."""


def read_request(given: Mapping[str, Any], argv: tuple[str, ...]) -> Request:
    """Return the request that the options of the command line describe.

    Raises:
        InputError: a value is not valid, or two options contradict each other.
    """
    from teho.planner.read_request import read_request as read

    request = read(given, argv, account=load_settings().account)
    text = given["time"] or ""
    if text.count(":") == 1 and "-" not in text and request.time_s is not None:
        say(f"Teho reads --time {text} as minutes and seconds: {format_duration(request.time_s)}")
    return request


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
        raise InputError("--env cannot be used together with --framework", "one of them")
    from teho.software.activation import activation_of

    return msgspec.structs.replace(wishes, software=activation_of(env, cluster))


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


def confirmed(found: Answer, here: Cluster) -> Answer:
    """Ask the scheduler of this cluster about the options of an answer, if there are any.

    If it gives no start, the waiting times of the user's similar jobs are added.
    """
    from teho.schedulers.command import run
    from teho.schedulers.history import with_past_waits
    from teho.schedulers.registry import backend_for
    from teho.schedulers.waiting import as_the_scheduler_says

    if not any(option.cluster == here.name for option in found.options):
        return found
    backend = backend_for(here.scheduler, load_settings().home_directory)
    found = as_the_scheduler_says(found, here, backend)
    return with_past_waits(found, here.name, here.scheduler, run)
