"""Start random Grid Engine sites, plan requests on them, report where Teho and Grid Engine differ.

    python tests/sites/grid_engine_soak.py --sites 30 --requests 20 --seed 1

The report is Markdown: counts, then each category of disagreement, the most frequent first, with
an example that is made as small as the time allows.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "twins"), str(Path(__file__).parents[1])]

from grid_engine_requests import draw_requests
from grid_engine_shrink import shrunken
from grid_engine_site_twin import FACTS, started, why_not
from grid_engine_sites import Site, draw_site
from grid_engine_verdicts import Case, Tally, judge_site

__all__ = ["judged"]


def judged(site: Site, requests: int) -> Tally:
    """Start a site and return how Teho and Grid Engine differ on it."""
    with started(site) as twin:
        return judge_site(twin, islice(draw_requests(site, 1, FACTS), requests))


def main() -> int:
    """Run from the command line; 1 if Teho and Grid Engine differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sites", type=int, default=30, metavar="N")
    parser.add_argument("--requests", type=int, default=20, metavar="M", help="for each site")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the first site")
    parser.add_argument(
        "--shrink", type=float, default=5.0, metavar="MINUTES", help="0: not at all"
    )
    parser.add_argument("--pause-while", type=Path, metavar="FILE", help="wait while FILE exists")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="write every case there")
    options = parser.parse_args()
    reason = why_not()
    if reason:
        sys.exit(reason)
    # SIGTERM must leave through the context managers, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in list(os.environ):
        if name.startswith(("SGE_", "TEHO_")):
            del os.environ[name]
    tally, begin_s = Tally(), time.monotonic()
    for number in range(options.sites):
        while options.pause_while and options.pause_while.exists():
            time.sleep(2)
        site = draw_site(options.seed + number)
        try:
            own = judged(site, options.requests)
        except (RuntimeError, TimeoutError) as error:
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
    print(_report(tally, options.shrink * 60.0))
    return 1 if tally.cases else 0


def _report(tally: Tally, patience_s: float) -> str:
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in tally.cases:
        groups.setdefault(case.key, []).append(case)
    rows = ["# Random sites: where Teho and Grid Engine differ", ""]
    rows += [f"- {what}: {count}" for what, count in sorted(tally.counts.items())]
    verdicts = Counter(case.verdict for case in tally.cases)
    rows += [f"- **{verdict}: {count}**" for verdict, count in verdicts.most_common()]
    ordered = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    end_s = time.monotonic() + patience_s
    for place, ((verdict, what), cases) in enumerate(ordered):
        sites = len({one.site.seed for one in cases})
        # What any user would write is the better example, then the smaller site.
        small = min(cases, key=lambda one: ("by hand with" in one.grid_engine, len(one.told())))
        share_s = (end_s - time.monotonic()) / (len(ordered) - place)
        if patience_s:
            small = shrunken(small, time.monotonic() + share_s)
        rows += ["", f"## {len(cases)} × {verdict}: {what}", "", f"On {sites} sites.", "", "```"]
        rows += [small.told(), "```"]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
