"""Write the refusals that compare the request with a limit or a minimum."""

from __future__ import annotations

from teho.model.plan import Refusal

__all__ = ["above", "below"]


def above(kind: str, asked: str, limit: object, source: str, instead: str = "") -> Refusal:
    """Return that the job requests more than a limit, such as `4 per node`."""
    sentence = f"the job requests {asked}, more than the limit of {limit}"
    return Refusal(kind=kind, sentence=sentence, source=source, instead=instead)


def below(kind: str, asked: str, minimum: object, source: str, instead: str = "") -> Refusal:
    """Return that the job requests less than a minimum."""
    sentence = f"the job requests {asked}, less than the minimum of {minimum}"
    return Refusal(kind=kind, sentence=sentence, source=source, instead=instead)
