"""`teho plan`: what to request so that a program fits, on which cluster, and at what cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from teho.cli import say
from teho.cli.declare import first_given, flag, option, program_command
from teho.cli.here import cluster_here, live_of
from teho.cli.output import Output, output_options
from teho.cli.request import (
    SCRIPT_NAMES,
    check_gpu_type,
    confirmed,
    read_request,
    read_script_options,
    request_options,
    script_options,
    with_environment,
)
from teho.errors import InputError
from teho.schedulers.script.options import ScriptOptions

if TYPE_CHECKING:
    from pathlib import Path

    from teho.model.cluster import Cluster
    from teho.model.plan import Answer

__all__ = ["command"]


@program_command("""\
  teho plan --gpus 1 --gpu-memory 30GiB -- python train.py
  teho plan --gpus 8 --launcher torchrun --time 12h --cluster lumi --cluster roihu
  teho plan --gpus 0 --cpus 16 --mem 64GiB --time 2d
  teho plan --gpus 4 --format json | jq '.options[0]'
  teho plan --gpus 4 --cluster roihu --launcher torchrun --script -- train.py > job.sh""")
@request_options
@option("--cluster NAME", "Plan only for these clusters, such as lumi,roihu.", unset="all",
        into="names", multiple=True)  # fmt: skip
@output_options()
@flag("--script", "Print only the batch script of the first option.")
@script_options
@click.argument("argv", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
def command(
    names: tuple[str, ...],
    script: bool,
    output: Output,
    argv: tuple[str, ...],
    **given: Any,
) -> None:
    """Print what to request for COMMAND, on every cluster.

    An option is one possible job: a partition with nodes, cores, GPUs and memory. The options on
    the cluster of this machine are first. The options on the clusters of the settings `cluster` and
    `my_clusters` are next. The other clusters follow, sorted by the GPU memory of their first
    option: the smallest memory is first. Retired clusters are last. Within a cluster, the cheapest
    option is first, and partitions for tests and interactive work are last. --why also prints every
    bill, warning and limit, and says why the other options do not fit. --record and the
    command-line options below --record change only the script. Exit code: 0 if an option fits, 1 if
    no option fits.

    Reads: the catalogue, and the site's templates; on a cluster, the answers of the scheduler.

    Writes: only the -o file.

    Network: only through commands of the scheduler. These commands do not submit a job.
    """
    request, wishes = read_request(given, argv), read_script_options(given)
    if script and output.form != "text":
        raise InputError(
            f"--script cannot be used together with --format {output.form}", "one of them"
        )
    if not script and (option := first_given(SCRIPT_NAMES)):
        raise InputError(f"{option} has no effect without --script")
    from teho.planner.answer import answer

    clusters = _clusters(names)
    here = cluster_here(clusters.values())
    live = live_of(here) if here else {}
    even_if_retired = given["even_if_retired"]
    preferred = [*([here.name] if here else []), *_preferred()]
    found = answer(
        request, clusters.values(), even_if_retired=even_if_retired, live=live, preferred=preferred
    )
    if request.gpu_type is not None and not found.options:
        check_gpu_type(request.gpu_type)
    if here:
        found = confirmed(found, here)
    if script and found.options:
        _print_script(found, clusters, wishes, given["env"], output.path)
    else:
        from teho.show.build.plan import plan_document
        from teho.show.json.plan import Plan

        typed = sys.argv[2:] if sys.argv[1:2] == ["plan"] and not script else None
        # If no script can be written, the explanation must not go into the script's file.
        result = Output("text", None, output.detail) if script else output
        result.show(
            plan_document(request, found, clusters, typed),
            Plan(options=found.options, unfit=found.unfit),
            stream=sys.stderr if script else None,
        )
    if not found.options:
        raise click.exceptions.Exit(1)


def _preferred() -> list[str]:
    """Return the names of the clusters in the user's settings.

    Raises:
        InputError: a name is not in the catalogue.
    """
    from teho.clusters.catalogue import load_cluster
    from teho.config.settings import load_settings

    settings = load_settings()
    return [load_cluster(name).name for name in _names(settings.cluster, settings.my_clusters)]


def _print_script(
    found: Answer, clusters: dict[str, Cluster], wishes: ScriptOptions, env: str, path: Path | None
) -> None:
    """Print the script of the first option, and remarks about it to standard error."""
    from teho.schedulers.script.write import write_script

    names = list(dict.fromkeys(option.cluster for option in found.options))
    if len(names) > 1:
        raise InputError(
            f"--script needs one cluster, but the request fits {len(names)} clusters: "
            f"{', '.join(names)}",
            next_step=f"`--cluster {names[0]}`, or another of these clusters",
        )
    option = found.options[0]
    cluster = clusters[option.cluster]
    script = write_script(option, cluster, with_environment(wishes, env, cluster))
    for advice in option.advice:
        say(f"{advice.sentence} · {advice.source}")
    for remark in script.remarks:
        say(remark)
    text = script.text.encode("utf-8", "surrogateescape")
    if path is None:
        click.echo(text, nl=False)
    else:
        path.write_bytes(text)
        say(f"wrote {path}")


def _clusters(given: tuple[str, ...]) -> dict[str, Cluster]:
    """Read the clusters with these names, or all clusters without names."""
    from teho.clusters.catalogue import load_catalogue, load_cluster

    names = _names(*given)
    return {name: load_cluster(name) for name in names} if names else load_catalogue()


def _names(*texts: str) -> list[str]:
    return [name for text in texts for name in text.replace(",", " ").split()]
