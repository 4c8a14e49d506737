"""Which cases of a costly test run: some, drawn anew for each commit. TEHO_SOAK=1 runs all.

A test with the same steps for many launchers, clusters or libraries has the mark `drawn`:

    @pytest.mark.drawn(2, always=("srun",))      of its cases "srun" and two others run
    @pytest.mark.drawn(1, by="cluster")          the cases with one value of this parameter
    @pytest.mark.drawn(1, tests="trainers")      one of the tests of this file with this mark
    pytestmark = pytest.mark.drawn(2, group="frameworks")    two files of those with this mark

Tests of one file with the same mark run the same cases. What is skipped on this machine takes no
part in the draw. The first line of pytest names the draw; TEHO_DRAW=NAME repeats it.
"""

from __future__ import annotations

import datetime as dt
import random
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

__all__ = ["cases_that_run", "draw", "drawn_items", "name_of_draw"]


def name_of_draw() -> str:
    """Return what decides the draw: the commit, or the date outside of git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()[:12] or dt.datetime.now(dt.timezone.utc).date().isoformat()


def draw(cases: Iterable[str], number: int, always: Sequence[str], seed: str) -> set[str]:
    """Return the cases that run: the ones that always run, and a number of others."""
    others = sorted({*cases} - {*always})
    return {*always, *random.Random(seed).sample(others, min(number, len(others)))}


def drawn_items(
    items: Sequence[pytest.Item], name: str
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide tests into those that run and those that were not drawn.

    Args:
        items: of one call of pytest. The draw is among them, so a single case that is named runs.
        name: of the draw. It decides, with the file and the names of the cases.
    """
    marked: defaultdict[tuple[str, str], dict[pytest.Item, str]] = defaultdict(dict)
    for one in items:
        mark = one.get_closest_marker("drawn")
        if mark and not any(skipped.args[0] for skipped in one.iter_markers("skipif")):
            drawn_from = mark.kwargs.get("group", one.path.name)
            marked[drawn_from, repr(mark)][one] = _case(one, mark.kwargs)
    left_out: set[pytest.Item] = set()
    for (drawn_from, _), cases in marked.items():
        mark = next(iter(cases)).get_closest_marker("drawn")
        assert mark is not None
        always = [one for one in mark.kwargs.get("always", ()) if one in cases.values()]
        chosen = draw(cases.values(), mark.args[0], always, f"{name} {drawn_from}")
        left_out |= {one for one, case in cases.items() if case not in chosen}
    return [one for one in items if one not in left_out], [one for one in items if one in left_out]


def cases_that_run(request: pytest.FixtureRequest, parameter: str) -> list[object]:
    """Return the values of a parameter in the tests of this file that have the mark and run."""
    values = [
        one.callspec.params[parameter]
        for one in request.session.items
        if one.path == request.path and one.get_closest_marker("drawn")
    ]
    return list(dict.fromkeys(values))


def _case(item: pytest.Item, mark: Mapping[str, str]) -> str:
    if "group" in mark:
        return item.path.name
    if "tests" in mark:
        return item.name.partition("[")[0]
    cases = getattr(item, "callspec")  # noqa: B009 - only tests with parameters have it
    return str(cases.params[mark["by"]] if "by" in mark else cases.id)
