"""Plan against a real Grid Engine of ARC4's shape: what plan takes, Grid Engine takes.

Requests at and around the cluster's limits are planned, written as scripts, and judged by
`qsub -w v` on the cluster's twin.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from grid_engine_twin import GridEngineTwin
from slurm_requests import requests_for

from teho.model.cluster import Cluster
from teho.model.plan import Option, Refusal
from teho.model.request import Request
from teho.planner.answer import answer, option_of
from teho.planner.place import Place
from teho.planner.shape import lay_out
from teho.schedulers.script.write import write_script

REQUESTS = 320

pytestmark = pytest.mark.xdist_group("grid_engine")


class Judged(msgspec.Struct):
    """A request as a script, and what the plan says of it."""

    request: Request
    script: str
    refusals: tuple[Refusal, ...] = ()
    """Why the plan would not write it; empty: it would."""
    answer: str = ""
    """Grid Engine's refusal; empty: it takes the script."""


def test_plan_and_grid_engine_agree(arc4: GridEngineTwin) -> None:
    cluster = arc4.cluster
    requests = itertools.islice(_requests(cluster), REQUESTS)
    judged = [one for request in requests for one in _judged(request, cluster)]
    scripts = dict.fromkeys(one.script for one in judged)
    with ThreadPoolExecutor(4) as threads:  # an answer is mostly waiting
        answers = threads.map(lambda numbered: _ask(arc4, *numbered), enumerate(scripts))
        said = dict(zip(scripts, answers, strict=True))
    for one in judged:
        one.answer = said[one.script]
    counts = Counter(_verdict(one) for one in judged)
    alone = Counter(
        kind
        for one in judged
        if _verdict(one) == "refused by plan alone"
        for kind in {refusal.kind for refusal in one.refusals}
    )
    print(
        f"\narc4: {REQUESTS} requests, {len(scripts)} scripts: {dict(counts)}; alone: {dict(alone)}"
    )
    wrong = [_told(one) for one in judged if _verdict(one).startswith("wrong")]
    assert not wrong, "\n\n".join([f"{len(wrong)} disagreements", *wrong[:5]])
    for verdict in ("accepted by both", "refused by both"):
        assert counts[verdict] >= 30, f"{verdict}: {counts[verdict]}, too few to mean anything"
    uncited = [one for one in judged if one.refusals and not _cited(one, cluster)]
    assert not uncited, _told(uncited[0])


def _requests(cluster: Cluster) -> Iterator[Request]:
    for request in requests_for(cluster, seed=1):
        # ARC4 has no srun and documents no Horovod: the script says so before it is written.
        launcher = "plain" if request.launcher in {"srun", "horovod"} else request.launcher
        yield msgspec.structs.replace(request, launcher=launcher)


def _judged(request: Request, cluster: Cluster) -> Iterator[Judged]:
    """Yield a script for each way in which the request could be meant."""
    answered = answer(request, [cluster], even_if_retired=True)
    # The twin has one host.
    options = [option for option in answered.options if option.nodes == 1]
    accepted = {write_script(option, cluster).text for option in options}
    yield from (Judged(request, script) for script in accepted)
    refused = {unfit.label: unfit.refusals for unfit in answered.unfit}
    for label, refusals in refused.items():
        for option in _meant(request, cluster, label):
            if option.nodes > 1:  # cannot be written
                continue
            script = write_script(option, cluster).text
            if script not in accepted:  # what one kind of node refuses, another may take
                yield Judged(request, script, refusals)


def _meant(request: Request, cluster: Cluster, label: str) -> Iterator[Option]:
    """Yield what the request would ask for on a partition that refuses it.

    Kinds without GPUs are no answer to a request for some; under a name that no partition
    has, any may be meant.
    """
    titles = {partition.title for partition in cluster.partitions}
    for partition in cluster.partitions:
        for kind in cluster.nodes:
            suits = kind.name in partition.kinds and (kind.gpu is not None) == (request.gpus > 0)
            if not suits or (label in titles and label != partition.title):
                continue
            place = Place(request=request, cluster=cluster, partition=partition, kind=kind)
            option = option_of(lay_out(place))
            yield msgspec.structs.replace(
                option,
                partition=request.partition or "",
                gpu_type=(request.gpu_type or option.gpu_type) if request.gpus else "",
            )


def _ask(arc4: GridEngineTwin, number: int, script: str) -> str:
    path = arc4.home / f"{number}.sh"
    path.write_text(script)
    done = arc4.ask("qsub", "-w", "v", path.name)
    return "" if done.returncode == 0 else done.stderr or "refused"


def _verdict(one: Judged) -> str:
    if not one.refusals:
        return "wrong: plan accepts, Grid Engine refuses" if one.answer else "accepted by both"
    return "refused by both" if one.answer else "refused by plan alone"


def _cited(one: Judged, cluster: Cluster) -> bool:
    """Tell whether every refusal names a document of the cluster's file."""
    return all(
        refusal.source.split(" ", 1)[0].rstrip(":;") in cluster.sources for refusal in one.refusals
    )


def _told(one: Judged) -> str:
    directives = [line for line in one.script.splitlines() if line.startswith("#$")]
    said = [
        f"plan: {refusal.kind}: {refusal.sentence} [{refusal.source}]" for refusal in one.refusals
    ]
    return "\n".join([_verdict(one), repr(one.request), *directives, *said, one.answer])
