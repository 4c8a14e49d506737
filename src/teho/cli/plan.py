"""`teho plan`: from what a program needs to what to ask for, where, at what cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, get_args

import click
from click.core import ParameterSource

from teho.cli import say
from teho.errors import InputError, UnitError
from teho.model.request import Launcher, Request
from teho.schedulers.script_options import ScriptOptions
from teho.units import GIB, parse_bytes, parse_duration

if TYPE_CHECKING:
    from teho.model.cluster import Cluster
    from teho.model.plan import Answer

__all__ = ["command"]

_MIB = 1024**2
_OF_SCRIPT = frozenset(
    {"record", "framework", "lines", "stage", "array", "after", "signal", "requeue", "log"}
)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho plan --gpus 1 --gpu-memory 30GiB -- python train.py
  teho plan --gpus 8 --launcher torchrun --time 12h --cluster lumi --cluster roihu
  teho plan --gpus 0 --cpus 16 --mem 64GiB --time 2d
  teho plan --gpus 4 --format json | jq '.options[0]'
  teho plan --gpus 4 --cluster roihu --launcher torchrun --script -- train.py > job.sh""",
)
@click.option("--gpus", type=click.IntRange(min=0), default=1, show_default=True, metavar="N",
              help="GPUs of the whole job; 0: none.")  # fmt: skip
@click.option("--gpu-memory", metavar="SIZE", help="Memory of each GPU, at least, such as 30GiB.")
@click.option("--gpu-type", metavar="TYPE", help="Such as a100 or h100; a slice by its own name.")
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of nodes.  [default: the fewest]",
)
@click.option("--cpus-per-gpu", type=click.IntRange(min=1), metavar="N",
              help="Cores for each GPU.  [default: the site's fair share]")  # fmt: skip
@click.option("--cpus", type=click.IntRange(min=1), metavar="N", help="Cores of the whole job.")
@click.option("--mem", metavar="SIZE", help="Memory of each node, such as 64GiB.")
@click.option("--time", "time", metavar="TIME",
              help="Time limit, such as 90min, 2d or 1-12:00:00.  [default: 1h]")  # fmt: skip
@click.option("--local-disk", metavar="SIZE", help="Disk of the job's own on each node.")
@click.option("--cluster", "names", metavar="NAME", multiple=True,
              help="Only this cluster; may be given again.  [default: all]")  # fmt: skip
@click.option("--partition", metavar="NAME", help="Only this partition or queue.")
@click.option("--account", metavar="NAME", help="The project that pays.")
@click.option("--launcher", type=click.Choice(get_args(Launcher)), default="plain",
              show_default=True, help="What starts the program's processes.")  # fmt: skip
@click.option("--name", metavar="NAME", default="", help="Name of the job.")
@click.option("--even-if-retired", is_flag=True, help="Plan for retired clusters too, for study.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--script", is_flag=True, help="Print the cheapest way's batch script alone.")
@click.option("--record", is_flag=True, help="In the script, record the program: `teho run`.")
@click.option("--framework", metavar="NAME", default="",
              help="Software to load; none: nothing.  [default: by the command]")  # fmt: skip
@click.option("--line", "lines", metavar="LINE", multiple=True,
              help="Line of the script before the command; may be given again.")  # fmt: skip
@click.option("--stage", metavar="FILE", multiple=True,
              help="Bring FILE to each node's own disk; may be given again.")  # fmt: skip
@click.option("--array", metavar="RANGE", default="", help="Job array, such as 1-10 or 1-100%8.")
@click.option("--after", metavar="JOB", multiple=True,
              help="Start when JOB has ended well; may be given again.")  # fmt: skip
@click.option("--signal", metavar="TIME",
              help="Send the program SIGUSR1 so long before the time limit.")  # fmt: skip
@click.option("--requeue", is_flag=True, help="Run the job again after a node's failure, and "
              "after --signal.")  # fmt: skip
@click.option("--log", metavar="FILE", default="", help="File for the job's output.")
@click.argument("argv", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
def command(
    gpus: int,
    gpu_memory: str | None,
    gpu_type: str | None,
    nodes: int | None,
    cpus_per_gpu: int | None,
    cpus: int | None,
    mem: str | None,
    time: str | None,
    local_disk: str | None,
    names: tuple[str, ...],
    partition: str | None,
    account: str | None,
    launcher: Launcher,
    name: str,
    even_if_retired: bool,  # noqa: FBT001 - click's signature
    form: str,
    script: bool,  # noqa: FBT001
    record: bool,  # noqa: FBT001
    framework: str,
    lines: tuple[str, ...],
    stage: tuple[str, ...],
    array: str,
    after: tuple[str, ...],
    signal: str | None,
    requeue: bool,  # noqa: FBT001
    log: str,
    argv: tuple[str, ...],
) -> None:
    """Say what to ask for so that COMMAND fits, on every cluster, cheapest first.

    And, for what does not fit, the limit that is in the way and where it is written. What
    --record, --framework and the options below them say is for the script alone.
    Exit code: 0 something fits, 1 nothing does.
    """
    if cpus is not None and cpus_per_gpu is not None:
        raise InputError("--cpus and --cpus-per-gpu together", "one of them")
    if cpus_per_gpu is not None and gpus == 0:
        raise InputError("--cpus-per-gpu without GPUs", next_step="`--cpus` counts for the job")
    if gpus == 0 and (gpu_type or gpu_memory):
        what = "--gpu-type" if gpu_type else "--gpu-memory"
        raise InputError(f"{what} with --gpus 0", "one or more GPUs")
    wishes = ScriptOptions(
        record=record,
        framework=framework,
        lines=lines,
        stage=stage,
        array=array,
        after=after,
        signal_before_s=None if signal is None else parse_duration(signal, "--signal"),
        requeue=requeue,
        log=log,
    )
    if script and form == "json":
        raise InputError("--script together with --format json", "one of them")
    if not script and wishes != ScriptOptions():
        raise InputError(f"{_first_given()} without --script")
    request = Request(
        command=argv,
        gpus=gpus,
        gpu_memory_gib=_gib(gpu_memory, "--gpu-memory"),
        gpu_type=gpu_type,
        nodes=nodes,
        cpus_per_gpu=cpus_per_gpu,
        cpus=cpus,
        memory_gib=_gib(mem, "--mem"),
        time_s=_seconds(time),
        local_disk_gib=_gib(local_disk, "--local-disk"),
        partition=partition,
        account=account,
        launcher=launcher,
        name=name,
    )
    from teho.planner.answer import answer

    clusters = _clusters(names)
    found = answer(request, clusters.values(), even_if_retired=even_if_retired)
    if gpu_type is not None and not found.options:
        _check_type(gpu_type)
    if script and found.options:
        _print_script(found, clusters, wishes)
    elif form == "json":
        from teho.show.plan_json import render_plan_json

        click.echo(render_plan_json(found), nl=False)
    else:
        from teho.cli.terminal import wants_color, width
        from teho.show.plan_text import render_plan

        # What is no script must not end up in the script's file.
        stream = sys.stderr if script else sys.stdout
        color = wants_color(stream)
        text = render_plan(request, found, clusters, width=width(), color=color)
        click.echo(text, file=stream, nl=False)
    if not found.options:
        raise click.exceptions.Exit(1)


def _print_script(found: Answer, clusters: dict[str, Cluster], wishes: ScriptOptions) -> None:
    """Print the script of the first way, and on standard error what is to be said about it."""
    from teho.schedulers.script import write_script

    names = list(dict.fromkeys(option.cluster for option in found.options))
    if len(names) > 1:
        raise InputError(
            f"--script, and {len(names)} clusters fit: {', '.join(names)}",
            next_step=f"`--cluster {names[0]}`, or another",
        )
    option = found.options[0]
    script = write_script(option, clusters[option.cluster], wishes)
    for advice in option.advice:
        say(f"{advice.sentence} · {advice.source}")
    for remark in script.remarks:
        say(remark)
    click.echo(script.text.encode("utf-8", "surrogateescape"), nl=False)


def _first_given() -> str:
    """Return the first option of the command line that is for the script alone."""
    context = click.get_current_context()
    return next(
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in _OF_SCRIPT
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    )


def _clusters(names: tuple[str, ...]) -> dict[str, Cluster]:
    """Read the clusters of these names, or all; of those that are named, only their files."""
    from teho.clusters.catalogue import load_catalogue, load_cluster

    return {name: load_cluster(name) for name in names} if names else load_catalogue()


def _check_type(gpu_type: str) -> None:
    """Refuse a type of GPU that no cluster of the catalogue has: it is a slip of the pen."""
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
    if amount < _MIB:
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
    if seconds <= 0:
        raise UnitError(f"--time: {text!r} is no time at all", "a length such as 30min or 2h")
    return seconds
