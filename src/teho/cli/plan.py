"""`teho plan`: from what a program needs to what to ask for, where, at what cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, get_args

import click

from teho.errors import InputError, UnitError
from teho.model.request import Launcher, Request
from teho.units import GIB, parse_bytes, parse_duration

if TYPE_CHECKING:
    from teho.model.cluster import Cluster

__all__ = ["command"]

_MIB = 1024**2


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho plan --gpus 1 --gpu-memory 30GiB -- python train.py
  teho plan --gpus 8 --launcher torchrun --time 12h --cluster lumi --cluster roihu
  teho plan --gpus 0 --cpus 16 --mem 64GiB --time 2d
  teho plan --gpus 4 --format json | jq '.options[0]'""",
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
    argv: tuple[str, ...],
) -> None:
    """Say what to ask for so that COMMAND fits, on every cluster, cheapest first.

    And, for what does not fit, the limit that is in the way and where it is written.
    Exit code: 0 something fits, 1 nothing does.
    """
    if cpus is not None and cpus_per_gpu is not None:
        raise InputError("--cpus and --cpus-per-gpu together", "one of them")
    if cpus_per_gpu is not None and gpus == 0:
        raise InputError("--cpus-per-gpu without GPUs", next_step="`--cpus` counts for the job")
    if gpus == 0 and (gpu_type or gpu_memory):
        what = "--gpu-type" if gpu_type else "--gpu-memory"
        raise InputError(f"{what} with --gpus 0", "one or more GPUs")
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
    if form == "json":
        from teho.show.plan_json import render_plan_json

        click.echo(render_plan_json(found), nl=False)
    else:
        from teho.cli.terminal import wants_color, width
        from teho.show.plan_text import render_plan

        color = wants_color(sys.stdout)
        click.echo(render_plan(request, found, clusters, width=width(), color=color), nl=False)
    if not found.options:
        raise click.exceptions.Exit(1)


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
