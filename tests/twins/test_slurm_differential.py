"""Plan against a real Slurm of each live cluster's shape: what plan takes, Slurm takes.

For every cluster, hundreds of requests at and around its limits are planned, written as
scripts, and judged by `sbatch --test-only` on the cluster's twin.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from slurm_requests import Judged, judged_by_plan, requests_for
from slurm_twin import SlurmTwin
from teho.clusters.catalogue import load_cluster

REQUESTS = 500
CLUSTERS = ("aire", "fir", "lumi", "narval", "nibi", "roihu", "rorqual", "trillium")

pytestmark = pytest.mark.xdist_group("slurm")


@pytest.fixture(scope="module")
def twins(slurm: None) -> Iterator[dict[str, SlurmTwin]]:
    """Start all twins at once: most of their start is waiting."""

    def start(name: str) -> SlurmTwin:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twin-")))
        return stack.enter_context(SlurmTwin(load_cluster(name, {}), folder, live={}))

    with ExitStack() as stack:
        # Daemons end with the thread that started them: the threads outlive the twins.
        threads = stack.enter_context(ThreadPoolExecutor(len(CLUSTERS)))
        yield dict(zip(CLUSTERS, threads.map(start, CLUSTERS), strict=True))


@pytest.mark.parametrize("name", CLUSTERS)
def test_plan_and_slurm_agree(name: str, twins: dict[str, SlurmTwin]) -> None:
    cluster, twin = load_cluster(name, {}), twins[name]
    requests = itertools.islice(requests_for(cluster, seed=1), REQUESTS)
    judged = [one for request in requests for one in judged_by_plan(request, cluster)]
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda one: twin.judge(one.script), judged))
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    for one, answer in zip(judged, answers, strict=True):
        taken = answer.returncode == 0
        if one.accepted and not taken:
            wrong.append(f"plan accepts, Slurm refuses\n{_told(one)}\n{answer.stderr}")
        elif one.accepted:
            counts["accepted by both"] += 1
        elif not taken:
            counts["refused by both"] += 1
        else:
            counts["refused by plan alone"] += 1
            counts.update({f"  {kind}" for kind in {refusal.kind for refusal in one.refusals}})
            if not _cited(one, set(cluster.sources)):
                wrong.append(f"plan alone refuses, without a source\n{_told(one)}")
    print(f"\n{name}: {REQUESTS} requests, {len(judged)} scripts")
    print("\n".join(f"  {what}: {count}" for what, count in sorted(counts.items())))
    assert not wrong, "\n\n".join(
        f"{len(cases)} times: {what}\n{cases[0]}" for what, cases in wrong.items()
    )
    for what in ("accepted by both", "refused by both", "refused by plan alone"):
        assert counts[what] >= 40, f"{what}: {counts[what]}, too few to mean anything"


def _cited(one: Judged, sources: set[str]) -> bool:
    """Tell whether each refusal names a document of the cluster's, or Slurm's own manual."""
    first = [refusal.source.split(" ", 1)[0].rstrip(":;") for refusal in one.refusals]
    return bool(first) and all(word in sources or word == "Slurm" for word in first)


def _told(one: Judged) -> str:
    said = "\n".join(f"  {refusal.kind}: {refusal.sentence}" for refusal in one.refusals)
    directives = [line for line in one.script.splitlines() if line.startswith("#SBATCH")]
    return "\n".join([repr(one.request), *directives, said])
