"""Start random Grid Engine sites, plan requests on them, report where Teho and Grid Engine differ.

    python tests/sites/grid_engine_soak.py --sites 30 --requests 20 --seed 1

The report is Markdown: counts, then each category of disagreement, the most frequent first, with
an example that is made as small as the time allows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "twins"), str(Path(__file__).parents[1])]

from disagreements import Case, Tally
from grid_engine_requests import draw_requests
from grid_engine_shrink import shrunken
from grid_engine_site_twin import FACTS, started, why_not
from grid_engine_sites import Site, draw_site
from grid_engine_verdicts import judge_site
from soaking import compare, options_of, report, without_variables

__all__ = ["judged"]


def judged(site: Site, requests: int) -> Tally:
    """Start a site and return how Teho and Grid Engine differ on it."""
    with started(site) as twin:
        return judge_site(twin, islice(draw_requests(site, 1, FACTS), requests))


def main() -> int:
    """Run from the command line; 1 if Teho and Grid Engine differ."""
    options = options_of(str(__doc__), requests=20, shrink_min=5.0).parse_args()
    reason = why_not()
    if reason:
        sys.exit(reason)
    without_variables("SGE_")
    sites = (draw_site(options.seed + number) for number in range(options.sites))
    calls = ((site.seed, partial(judged, site, options.requests)) for site in sites)
    tally = compare(calls, options, (RuntimeError, TimeoutError))
    patience_s = options.shrink * 60.0
    print(report(tally, "Grid Engine", patience_s, partial(_example, shrink=patience_s > 0)))
    return 1 if tally.cases else 0


def _example(cases: list[Case], until_s: float, *, shrink: bool) -> Iterator[tuple[str, Case]]:
    # What any user would write is the better example, then the smaller site.
    small = min(cases, key=lambda one: ("by hand with" in one.answer, len(one.told())))
    yield "", shrunken(small, until_s) if shrink else small


if __name__ == "__main__":
    sys.exit(main())
