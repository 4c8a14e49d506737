"""`teho compare --cluster`: each variant as an array of jobs, through `teho submit`."""

from __future__ import annotations

import re
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
from teho.planner.answer import answer

__all__ = ["submit_variants"]

_FORM = re.compile(r"(cpu|gpu):([1-9][0-9]{0,5})")


def submit_variants(
    cluster: str,
    on: str | None,
    repeats: int,
    window: str | None,
    options: str,
    argv: Sequence[str],
) -> None:
    """Submit every variant, and say how to compare what comes of them.

    Args:
        cluster: its name.
        on: `cpu:16,gpu:1`; `all` has no meaning here. None: one core, one GPU, and as many cores
            as come with it.
        repeats: tasks of each array.
        window: `--window`; None: each job lets the program come to its end.
        options: more options of `teho submit`, as one would type them.
        argv: the program.

    Raises:
        InputError: a variant has not this form, the window is none, or the cluster lacks what is
            compared where nobody says it; nothing is submitted then.
    """
    given = _usual(load_cluster(cluster)) if on is None else on.split(",")
    words = list(dict.fromkeys(filter(None, map(str.strip, given))))
    if strange := next((word for word in words if not _FORM.fullmatch(word)), None):
        raise InputError(
            f"--on {strange} with --cluster", "cpu:N or gpu:N, such as cpu:16,gpu:1",
            "say numbers: a job has what it asks for",
        )  # fmt: skip
    if window is not None:
        read_window(window)
    try:
        more = shlex.split(options)
    except ValueError as error:
        raise InputError(f"--submit {options}: {error}", "options as a shell takes them") from None
    id_ = secrets.token_hex(4)
    done: list[str] = []
    for word in words:
        kind, _, count = word.partition(":")
        wanted = ["--gpus", count] if kind == "gpu" else ["--gpus", "0", "--cpus", count]
        told = ["--tag", f"compare={id_}", "--tag", f"variant={word}"]
        told += ["--window", window] if window is not None else []
        name = f"compare-{id_}-{word.replace(':', '')}"
        ended = subprocess.run(
            [
                *own_path(), "submit", "--cluster", cluster, *wanted, "--name", name,
                *(["--array", f"1-{repeats}"] if repeats > 1 else []), *more, "--",
                "env", "TEHO_PROBE_STEPS=1", *own_path(), "run", "--quiet", "--keep-output",
                *told, "--", *argv,
            ],
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if ended.returncode:
            said = f"{word} was not submitted"
            say(
                f"{said}, {', '.join(done)} {'was' if len(done) == 1 else 'were'}" if done else said
            )
            raise click.exceptions.Exit(ended.returncode)
        done.append(f"{word} (job {ended.stdout.strip()})")
        sys.stdout.write(ended.stdout)
    say(f"when they have ended: `teho compare --recorded compare={id_}`")


def _usual(cluster: Cluster) -> list[str]:
    """Return what is compared where nobody says it, by the job that the catalogue has for a GPU.

    Its cores are on both sides then, with the GPU and without.
    """
    with_gpu = _jobs(cluster, Request(gpus=1))
    if not with_gpu:
        raise InputError(
            f"no --on, and the catalogue knows of no job with a GPU on {cluster.title}",
            "what to compare, such as `--on cpu:1,cpu:16`",
        )
    cores = with_gpu[0].tasks_per_node * with_gpu[0].cpus_per_task
    if not _jobs(cluster, Request(gpus=0, cpus=cores)):
        raise InputError(
            f"no --on, and the catalogue knows of no job of {cores} cores without a GPU on "
            f"{cluster.title}",
            "what to compare, such as `--on gpu:1,gpu:2`",
        )
    return ["cpu:1", f"cpu:{cores}", "gpu:1"]


def _jobs(cluster: Cluster, request: Request) -> tuple[Option, ...]:
    # Whether a retired cluster takes jobs is for `teho submit` to say.
    return answer(request, [cluster], even_if_retired=True).options
