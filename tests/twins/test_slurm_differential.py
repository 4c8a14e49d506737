"""Plan against a real Slurm of each live cluster's shape: what plan takes, Slurm takes.

For every cluster, hundreds of requests at and around its limits are planned, written as
scripts, and judged by `sbatch --test-only` on the cluster's twin.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from slurm_requests import Judged, judged_by_plan, requests_for
from slurm_twin import SlurmTwin, several

from drawn import cases_that_run
from support import SOAK
from teho.clusters.catalogue import load_cluster
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import write_script

CLUSTERS = ("aire", "fir", "lumi", "narval", "nibi", "roihu", "rorqual", "trillium")
REQUESTS = dict.fromkeys(CLUSTERS, 500 if SOAK else 100) | {"narval": 500}
if not SOAK:
    REQUESTS |= dict.fromkeys(("fir", "nibi", "rorqual"), 200)
"""For each cluster. Of these four, few requests are refused only by the plan: one in fifty of
Narval's."""
DRAWN = pytest.mark.drawn(1, always=("lumi",))


@pytest.fixture(scope="module")
def twins(request: pytest.FixtureRequest, slurm: None) -> Iterator[dict[str, SlurmTwin]]:
    clusters = [load_cluster(str(name), {}) for name in cases_that_run(request, "name")]
    with several(clusters, {}, asleep=True) as found:
        yield found


@DRAWN
@pytest.mark.parametrize("name", CLUSTERS)
def test_plan_and_slurm_agree(name: str, twins: dict[str, SlurmTwin]) -> None:
    cluster, twin = load_cluster(name, {}), twins[name]
    requests = itertools.islice(requests_for(cluster, seed=1), REQUESTS[name])
    judged = [one for request in requests for one in judged_by_plan(request, cluster)]
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda one: twin.judge(one.script), judged))
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    for one, said in zip(judged, answers, strict=True):
        taken = said.returncode == 0
        if one.accepted and not taken:
            wrong.setdefault(f"Slurm alone refuses: {said.stderr}", []).append(_told(one))
        elif one.accepted:
            counts["accepted by both"] += 1
        elif not taken:
            counts["refused by both"] += 1
        else:
            counts["refused by plan alone"] += 1
            counts.update({f"  {kind}" for kind in {refusal.kind for refusal in one.refusals}})
            if not _cited(one, set(cluster.sources)):
                wrong.setdefault("plan alone refuses, without a source", []).append(_told(one))
    print(f"\n{name}: {REQUESTS[name]} requests, {len(judged)} scripts")
    print("\n".join(f"  {what}: {count}" for what, count in sorted(counts.items())))
    assert not wrong, "\n\n".join(
        f"{len(cases)} times: {what}\n{cases[0]}" for what, cases in wrong.items()
    )
    for what in ("accepted by both", "refused by both", "refused by plan alone"):
        assert counts[what] >= 10, f"{what}: {counts[what]}, too few to mean anything"


@DRAWN
@pytest.mark.parametrize("name", ["lumi", "roihu"])
def test_slurm_refuses_what_plan_warns_of_a_missing_account(
    name: str, twins: dict[str, SlurmTwin]
) -> None:
    cluster = load_cluster(name, {})
    option = answer(Request(command=("true",)), [cluster]).options[0]
    assert "account_missing" in {advice.kind for advice in option.advice}
    refused = twins[name].judge(write_script(option, cluster).text)
    assert refused.returncode != 0
    # The script has a placeholder instead of an account.
    assert "Invalid account" in refused.stderr
    named = replace(option, account=cluster.account.example)
    taken = twins[name].judge(write_script(named, cluster).text)
    assert taken.returncode == 0, taken.stderr


def _cited(one: Judged, sources: set[str]) -> bool:
    """Tell whether each refusal names a document of the cluster's, or a command of Slurm."""
    first = [refusal.source.split(" ", 1)[0].rstrip(":;") for refusal in one.refusals]
    return bool(first) and all(word in sources or word.startswith("`") for word in first)


def _told(one: Judged) -> str:
    said = "\n".join(f"  {refusal.kind}: {refusal.sentence}" for refusal in one.refusals)
    directives = [line for line in one.script.splitlines() if line.startswith("#SBATCH")]
    return "\n".join([repr(one.request), *directives, said])
