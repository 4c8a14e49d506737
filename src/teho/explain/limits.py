"""What many rules have in common: one figure of each GPU or node, compared with limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, Union

from teho.explain.context import Located, RuleContext
from teho.explain.moments import Shows, bins_where
from teho.explain.places import Place, name_all, per_place
from teho.explain.wording import span
from teho.model.finding import Evidence, Severity

__all__ = ["Level", "compare_with_limits"]

_P = TypeVar("_P", bound=Place)


class Level(NamedTuple):
    """A limit, and the severity of a finding beyond it."""

    severity: Severity
    is_beyond: Callable[[float, float], bool]
    """A comparison of the module `operator`; the limit is its second argument."""
    limit: str
    """Name of a threshold of the rule."""


def compare_with_limits(
    context: RuleContext,
    figures: Iterable[tuple[_P, Union[float, None]]],
    levels: Sequence[Level],
    *,
    sentence: Union[str, Callable[[list[_P]], str]],
    label: Union[str, Callable[[list[_P]], str]],
    action: Union[str, Callable[[list[_P]], str]],
    further: Callable[[list[_P]], Iterable[Evidence]] = lambda _: (),
    judged_by: Sequence[str] = (),
    unit: str = "%",
    name: Callable[[list[_P]], str] = name_all,
    shown_by: str = "",
    shows: Union[Callable[[_P, Level], Shows], None] = None,
) -> Iterator[Located]:
    """Yield one finding for each severity, about all places whose figure is beyond its limit.

    Args:
        context: of the rule.
        figures: each place with its figure; None if it is missing.
        levels: from the most to the least severe. A figure must be beyond the last of them.
        sentence: with the fields `{places}`, `{was}`, `{its}` and `{figures}` (the range of the
            figures). Sentence, label and action may also be functions of the places.
        label: name of the figures in the evidence.
        action: the advice.
        further: returns the rest of the evidence for some places.
        judged_by: further thresholds to name.
        unit: of the figures.
        name: writes `{places}`.
        shown_by: the metric that shows it over time; empty: none.
        shows: returns the time bins of a place that show it; None: those in which the metric is
            beyond the limit.
    """

    def beyond_limit(place: _P, level: Level) -> Shows:
        limit = context.limit(level.limit)
        return bins_where(place, shown_by, lambda value: level.is_beyond(value, limit))

    beyond: dict[Level, list[tuple[_P, float]]] = {level: [] for level in levels}
    for place, figure in figures:
        passed = [
            level
            for level in levels
            if figure is not None and level.is_beyond(figure, context.limit(level.limit))
        ]
        if figure is not None and levels[-1] in passed:
            beyond[passed[0]].append((place, figure))
    for level, group in beyond.items():
        if not group:
            continue
        places = [place for place, _ in group]
        one = len(places) == 1
        yield context.finding(
            level.severity,
            _text(sentence, places).format(
                places=name(places),
                was="was" if one else "were",
                its="its" if one else "their",
                figures=span([figure for _, figure in group], unit),
            ),
            evidence=(*per_place(_text(label, places), unit, group), *further(places)),
            judged_by=list(dict.fromkeys([level.limit, levels[-1].limit, *judged_by])),
            action=_text(action, places),
            subjects=places,
            moments=context.moments_in(
                shown_by,
                [
                    (place, shows(place, level) if shows else beyond_limit(place, level))
                    for place in places
                ],
            ),
        )


def _text(text: Union[str, Callable[[list[_P]], str]], places: list[_P]) -> str:
    return text if isinstance(text, str) else text(places)
