"""Start random sites, plan random requests on them, and report where Teho and Slurm differ.

    python tests/sites/soak.py --sites 30 --requests 30 --seed 1

The report is Markdown: counts, then each category of disagreement, the most frequent first,
with an example that is made as small as the time allows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "twins"), str(Path(__file__).parents[1])]

from disagreements import Case, Tally
from msgspec.structs import replace
from random_sites import Site, draw_site
from site_requests import draw_requests
from site_shrink import features_of, shrunken
from site_twin import Ground
from site_verdicts import judge_site
from slurm_daemons import TwinError, why_not
from soaking import compare, options_of, report, without_variables

__all__ = ["ground", "judged"]

_LIVE_EVERY = 8
"""Of so many sites, one has nodes that run jobs."""


@contextmanager
def ground(sites: Sequence[Site]) -> Iterator[Ground]:
    """Start what some sites stand on."""
    # A short path: sockets are in it.
    with tempfile.TemporaryDirectory(prefix="sites-") as folder, Ground(Path(folder)) as found:
        found.learn({gpus.type for one in sites for kind in one.kinds for gpus in kind.gpus} - {""})
        yield found


def judged(base: Ground, site: Site, requests: int, *, jobs: int, live: bool = False) -> Tally:
    """Start a site and return how Teho and Slurm differ on it."""
    with base.started(_small(site) if live else site, live=live) as twin:
        return judge_site(twin, islice(draw_requests(site, 1), requests), jobs=jobs)


def _small(site: Site) -> Site:
    """Return a site with one node of each kind that can run jobs."""
    # A job on such a node and on one that never starts takes long to end.
    kinds = tuple(kind if kind.words else replace(kind, count=1, drained=0) for kind in site.kinds)
    return replace(site, kinds=kinds)


def main() -> int:
    """Run from the command line; 1 if Teho and Slurm differ."""
    parser = options_of(str(__doc__), requests=30, shrink_min=10.0)
    parser.add_argument("--jobs", type=int, default=8, help="really submitted, for each site")
    options = parser.parse_args()
    reason = why_not()
    if reason:
        sys.exit(reason)
    without_variables("SLURM_", "SBATCH_")
    sites = [draw_site(options.seed + number) for number in range(options.sites)]
    with ground(sites) as base:
        calls = (
            (
                site.seed,
                partial(
                    judged, base, site, options.requests, jobs=options.jobs,
                    live=number % _LIVE_EVERY == 0,
                ),
            )
            for number, site in enumerate(sites)
        )  # fmt: skip
        tally = compare(calls, options, (TwinError,))
        patience_s = options.shrink * 60.0
        examples = partial(_examples, base, shrink=patience_s > 0)
        print(report(tally, "Slurm", patience_s, examples))
    return 1 if tally.cases else 0


def _examples(
    base: Ground, cases: list[Case], until_s: float, *, shrink: bool
) -> Iterator[tuple[str, Case]]:
    """Yield small examples: one, or two if what remains of them differs."""
    first: dict[str, Case] = {}
    # Of the smallest site, shrinking is quickest.
    for case in sorted(cases, key=lambda one: len(one.told())):
        first.setdefault(case.site.seed, case)
    chosen = list(first.values())[: 2 if shrink else 1]
    if shrink:
        found: dict[str, Case] = {}
        for place, case in enumerate(chosen):
            share_s = (until_s - time.monotonic()) / (len(chosen) - place)
            small = shrunken(base, case, time.monotonic() + share_s)
            found.setdefault(features_of(small), small)
        chosen = list(found.values())
    for small in chosen:
        yield f"What remains: {features_of(small) or 'a plain site'}.", small


if __name__ == "__main__":
    sys.exit(main())
