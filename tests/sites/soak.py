"""Start random sites, plan random requests on them, and report where Teho and Slurm differ.

    python tests/sites/soak.py --sites 30 --requests 30 --seed 1

The report is Markdown: counts, then each category of disagreement, the most frequent first,
with an example that is made as small as the time allows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "twins"), str(Path(__file__).parents[1])]

from msgspec.structs import replace
from random_sites import Site, draw_site
from site_requests import draw_requests
from site_shrink import features_of, shrunken
from site_twin import Ground
from site_verdicts import Case, Tally, judge_site
from slurm_daemons import TwinError, why_not

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
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sites", type=int, default=30, metavar="N")
    parser.add_argument("--requests", type=int, default=30, metavar="M", help="for each site")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the first site")
    parser.add_argument("--jobs", type=int, default=8, help="really submitted, for each site")
    parser.add_argument(
        "--shrink", type=float, default=10.0, metavar="MINUTES", help="0: not at all"
    )
    parser.add_argument("--cases", type=Path, metavar="FILE", help="write every case there")
    parser.add_argument("--pause-while", type=Path, metavar="FILE", help="wait while FILE exists")
    options = parser.parse_args()
    reason = why_not()
    if reason:
        sys.exit(reason)
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SBATCH_", "TEHO_")):
            del os.environ[name]
    sites = [draw_site(options.seed + number) for number in range(options.sites)]
    tally, begin_s = Tally(), time.monotonic()
    with ground(sites) as base:
        for number, site in enumerate(sites):
            while options.pause_while and options.pause_while.exists():
                time.sleep(2)
            live = number % _LIVE_EVERY == 0
            try:
                own = judged(base, site, options.requests, jobs=options.jobs, live=live)
            except TwinError as error:
                tally.counts["sites that did not start"] += 1
                print(f"site {site.seed} did not start: {error}", file=sys.stderr)
                continue
            tally.counts["sites"] += 1
            tally.add(own)
            spent_s = time.monotonic() - begin_s
            print(f"{spent_s:5.0f} s  site {site.seed}: {len(own.cases)} cases", file=sys.stderr)
        if options.cases:
            told = (f"## {case.verdict}: {case.what}\n{case.told()}\n" for case in tally.cases)
            options.cases.write_text("\n".join(told))
        print(_report(base, tally, options.shrink * 60.0))
    return 1 if tally.cases else 0


def _report(base: Ground, tally: Tally, patience_s: float) -> str:
    counts = {key: n for key, n in sorted(tally.counts.items()) if not key.startswith(" ")}
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in tally.cases:
        groups.setdefault(case.key, []).append(case)
    rows = ["# Random sites: where Teho and Slurm differ", ""]
    rows += [f"- {what}: {count}" for what, count in counts.items()]
    verdicts = Counter(case.verdict for case in tally.cases)
    rows += [f"- **{verdict}: {count}**" for verdict, count in verdicts.most_common()]
    ordered = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    end_s = time.monotonic() + patience_s
    for place, ((verdict, what), cases) in enumerate(ordered):
        left_s = end_s - time.monotonic()
        until_s = time.monotonic() + left_s / (len(ordered) - place)
        sites = len({one.site.seed for one in cases})
        rows += ["", f"## {len(cases)} × {verdict}: {what}", "", f"On {sites} sites."]
        for small in _examples(base, cases, until_s, shrink=patience_s > 0):
            rows += [f"What remains: {features_of(small) or 'a plain site'}.", "", "```"]
            rows += [small.told(), "```", ""]
    return "\n".join(rows)


def _examples(base: Ground, cases: list[Case], until_s: float, *, shrink: bool) -> list[Case]:
    """Return small examples: one, or two if what remains of them differs."""
    first: dict[str, Case] = {}
    # Of the smallest site, shrinking is quickest.
    for case in sorted(cases, key=lambda one: len(one.told())):
        first.setdefault(case.site.seed, case)
    chosen = list(first.values())[:2]
    if not shrink:
        return chosen[:1]
    found: dict[str, Case] = {}
    for place, case in enumerate(chosen):
        share_s = (until_s - time.monotonic()) / (len(chosen) - place)
        small = shrunken(base, case, time.monotonic() + share_s)
        found.setdefault(features_of(small), small)
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
