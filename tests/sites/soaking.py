"""What the comparisons on many random sites share: options, the loop over sites, the report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from disagreements import Case, Tally

__all__ = ["compare", "options_of", "report", "without_variables"]


def options_of(description: str, *, requests: int, shrink_min: float) -> argparse.ArgumentParser:
    """Return the options that all have."""
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--sites", type=int, default=30, metavar="N")
    parser.add_argument("--requests", type=int, default=requests, metavar="M", help="for each site")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the first site")
    parser.add_argument(
        "--shrink", type=float, default=shrink_min, metavar="MINUTES", help="0: not at all"
    )
    parser.add_argument("--cases", type=Path, metavar="FILE", help="write every case there")
    parser.add_argument("--pause-while", type=Path, metavar="FILE", help="wait while FILE exists")
    return parser


def without_variables(*prefixes: str) -> None:
    """Forget what the caller's environment says to a scheduler and to Teho."""
    # SIGTERM must leave through the context managers, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in list(os.environ):
        if name.startswith((*prefixes, "TEHO_")):
            del os.environ[name]


def compare(
    sites: Iterable[tuple[str, Callable[[], Tally]]],
    options: argparse.Namespace,
    failures: tuple[type[Exception], ...],
) -> Tally:
    """Compare on one site after the other.

    Args:
        sites: the seed of each, and what starts it and compares there.
        options: of the command line.
        failures: a site that raises one of these did not start.
    """
    tally, begin_s = Tally(), time.monotonic()
    for seed, judged in sites:
        while options.pause_while and options.pause_while.exists():
            time.sleep(2)
        try:
            own = judged()
        except failures as error:
            tally.counts["sites that did not start"] += 1
            print(f"site {seed} did not start: {error}", file=sys.stderr)
            continue
        tally.counts["sites"] += 1
        tally.add(own)
        spent_s = time.monotonic() - begin_s
        print(f"{spent_s:5.0f} s  site {seed}: {len(own.cases)} cases", file=sys.stderr)
        if options.cases:
            options.cases.write_text(tally.told())
    return tally


def report(
    tally: Tally,
    scheduler: str,
    patience_s: float,
    examples: Callable[[list[Case], float], Iterator[tuple[str, Case]]],
) -> str:
    """Return what was found: counts, then each category, the most frequent first.

    Args:
        tally: what was found.
        scheduler: its name.
        patience_s: how long to look for small examples.
        examples: yields a sentence and a small case of some, until a moment on the monotonic clock.
    """
    counts = {key: n for key, n in sorted(tally.counts.items()) if not key.startswith(" ")}
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in tally.cases:
        groups.setdefault(case.key, []).append(case)
    rows = [f"# Random sites: where Teho and {scheduler} differ", ""]
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
        for sentence, small in examples(cases, until_s):
            rows += [sentence, "", "```"] if sentence else ["", "```"]
            rows += [small.told(), "```", ""]
    return "\n".join(rows)
