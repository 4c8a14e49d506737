"""What a plan says of a random site is what its Grid Engine does; `make soak` starts many more."""

from __future__ import annotations

import pytest
from grid_engine_site_twin import why_not
from grid_engine_sites import draw_site
from grid_engine_soak import judged

pytestmark = pytest.mark.xdist_group("grid_engine")

SEEDS = (15, 46)
REQUESTS = 8


def test_a_seed_gives_one_site() -> None:
    assert [draw_site(seed) for seed in SEEDS] == [draw_site(seed) for seed in SEEDS]


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_and_grid_engine_agree(seed: int) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    tally = judged(draw_site(seed), REQUESTS)
    assert tally.counts["requests"] == REQUESTS
    assert not [case for case in tally.cases if case.verdict != "unsure"], tally.told()
