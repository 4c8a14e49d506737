"""Write the refusals that compare the request with a limit, a minimum, or a list of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from teho.model.plan import Refusal

__all__ = ["above", "below", "first_names", "not_listed"]


def above(kind: str, requested: str, limit: object, source: str, instead: str = "") -> Refusal:
    """Return that the job requests more than a limit, such as `4 per node`."""
    sentence = f"the job requests {requested}, more than the limit of {limit}"
    return Refusal(kind=kind, sentence=sentence, source=source, instead=instead)


def below(kind: str, requested: str, minimum: object, source: str, instead: str = "") -> Refusal:
    """Return that the job requests less than a minimum."""
    sentence = f"the job requests {requested}, less than the minimum of {minimum}"
    return Refusal(kind=kind, sentence=sentence, source=source, instead=instead)


def not_listed(
    kind: str,
    where: str,
    noun: str,
    name: str,
    lists: tuple[Sequence[str], Sequence[str]],
    mine: Iterable[str],
    source: str,
    *,
    any_case: bool = False,
) -> Iterator[Refusal]:
    """Yield that a partition's lists do not admit the job.

    Args:
        kind: the refusal's kind, which is also the name of the option.
        where: the partition in words.
        noun: such as `account`.
        name: name that the job has; empty: none.
        lists: the only allowed names (empty: all), and the denied names.
        mine: names that the user may use; the first admitted one is proposed.
        source: of the lists.
        any_case: whether upper and lower case are equal.
    """
    allowed, denied = lists
    fold = str.lower if any_case else str
    only, never = {fold(one) for one in allowed}, {fold(one) for one in denied}

    def may(one: str) -> bool:
        return (not only or fold(one) in only) and fold(one) not in never

    if may(name):
        return
    nouns = noun if noun.isupper() else f"the {noun}s"
    takes = "accepts only" if allowed else "accepts no jobs of"
    other = next(filter(may, mine), "")
    yield Refusal(
        kind=kind,
        sentence=f"{where} {takes} {nouns} {first_names(allowed or denied)}; "
        f"the job has {f'{noun} {name}' if name else f'no {noun}'}",
        source=source,
        instead=f"--{kind} {other}" if other else "",
    )


def first_names(names: Iterable[str]) -> str:
    """Write the first three names, and the number of the others."""
    listed = list(names)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if listed[3:] else "")
