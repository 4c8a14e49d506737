"""`teho compare --cluster`: submit each variant as an array of jobs."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
from collections.abc import Sequence

import click

from teho.cli import say
from teho.cli.own_path import own_path
from teho.cli.repeated_runs import read_window
from teho.clusters.catalogue import load_cluster
from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.model.request import Request
from teho.patterns import lazy_pattern
from teho.planner.answer import answer
from teho.units import counted

__all__ = ["submit_variants"]

_FORM = lazy_pattern(r"(cpu|gpu):([1-9][0-9]{0,5})")


def submit_variants(
    cluster: str,
    on: str | None,
    repeats: int,
    window: str | None,
    options: str,
    argv: Sequence[str],
) -> None:
    """Submit every variant, and print how to compare the recordings.

    Args:
        cluster: name of the cluster.
        on: such as `cpu:16,gpu:1`, without `all`. None: one core, one GPU, and the number of
            cores that comes with this GPU.
        repeats: number of tasks in each array.
        window: `--window`; None: each program runs to its end.
        options: more options of `teho submit`, as typed in a shell.
        argv: the program.

    Raises:
        InputError: a variant has another form, the window is not a time, or the cluster has no
            default variants. No job is submitted then.
    """
    given = _usual(load_cluster(cluster)) if on is None else on.split(",")
    words = list(dict.fromkeys(filter(None, map(str.strip, given))))
    if strange := next((word for word in words if not _FORM.fullmatch(word)), None):
        raise InputError(
            f"--on {strange} with --cluster", "cpu:N or gpu:N, such as cpu:16,gpu:1",
            "use numbers, because a job must request a number of cores or GPUs",
        )  # fmt: skip
    if window is not None:
        read_window(window)
    try:
        more = shlex.split(options)
    except ValueError as error:
        raise InputError(
            f"--submit {options}: {error}", "options in the syntax of a shell"
        ) from None
    id_ = secrets.token_hex(4)
    done: list[str] = []
    for word in words:
        kind, _, count = word.partition(":")
        wanted = ["--gpus", count] if kind == "gpu" else ["--gpus", "0", "--cpus", count]
        tags = ["--tag", f"compare={id_}", "--tag", f"variant={word}"]
        tags += ["--window", window] if window is not None else []
        name = f"compare-{id_}-{word.replace(':', '')}"
        ended = subprocess.run(
            [
                *own_path(), "submit", "--cluster", cluster, *wanted, "--name", name,
                *(["--array", f"1-{repeats}"] if repeats > 1 else []), *more, "--",
                "env", "TEHO_PROBE_STEPS=1", *own_path(), "run", "--quiet", "--keep-output",
                *tags, "--", *argv,
            ],
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if ended.returncode:
            submitted = f"; submitted: {', '.join(done)}" if done else ""
            say(f"{word} was not submitted{submitted}")
            raise click.exceptions.Exit(ended.returncode)
        done.append(f"{word} (job {ended.stdout.strip()})")
        sys.stdout.write(ended.stdout)
    say(f"after the jobs have ended, `teho compare --recorded compare={id_}` compares them")


def _usual(cluster: Cluster) -> list[str]:
    """Return the default variants: one core, the cores that come with one GPU, and this GPU."""
    with_gpu = _jobs(cluster, Request(gpus=1))
    if not with_gpu:
        raise InputError(
            "the default of --on cannot be used: according to the catalogue, no partition of "
            f"{cluster.title} accepts a job with 1 GPU",
            "variants, such as `--on cpu:1,cpu:16`",
        )
    cores = with_gpu[0].tasks_per_node * with_gpu[0].cpus_per_task
    if not _jobs(cluster, Request(gpus=0, cpus=cores)):
        raise InputError(
            "the default of --on cannot be used: according to the catalogue, no partition of "
            f"{cluster.title} accepts a job with {counted(cores, 'core')} and without GPUs",
            "variants, such as `--on gpu:1,gpu:2`",
        )
    return ["cpu:1", f"cpu:{cores}", "gpu:1"]


def _jobs(cluster: Cluster, request: Request) -> tuple[Option, ...]:
    # `teho submit` says whether a retired cluster accepts jobs.
    return answer(request, [cluster], even_if_retired=True).options
