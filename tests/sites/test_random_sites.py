"""What a plan says of a random site is what its Slurm says; `make soak` starts many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from random_sites import draw_site
from site_twin import Ground
from soak import ground, judged

pytestmark = pytest.mark.xdist_group("slurm")

SEEDS = (3, 5)
REQUESTS = 25
JOBS = 4


@pytest.fixture(scope="module")
def base(slurm: None) -> Iterator[Ground]:
    with ground([draw_site(seed) for seed in SEEDS]) as found:
        yield found


def test_a_seed_gives_one_site() -> None:
    assert [draw_site(seed) for seed in SEEDS] == [draw_site(seed) for seed in SEEDS]


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_and_slurm_agree(seed: int, base: Ground) -> None:
    tally = judged(base, draw_site(seed), REQUESTS, jobs=JOBS)
    assert not tally.cases, tally.told()
