"""The traces of `teho profile` in a report: which steps they have, and how to read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from teho.explain.wording import listed
from teho.model.watched import WatchedProcess
from teho.profile.recorded import failed_words, partly_words, steps_words, uses_of

__all__ = ["profiled_commands", "profiled_notes"]


def profiled_commands(run_id: str, processes: Sequence[WatchedProcess]) -> Iterator[str]:
    """Yield how to read the traces of a run.

    Args:
        run_id: the run.
        processes: what the probe recorded of Python processes.
    """
    ranks: defaultdict[str, list[str]] = defaultdict(list)
    newest = ""
    for _, use in uses_of(processes):
        if use.file:
            newest = use.profile
            ranks[use.profile].append("" if use.rank is None else str(use.rank))
    for _, use in uses_of(processes, newest):
        if newest and use.file:
            shown_ranks = [rank for rank in ranks[newest] if rank]
            noun = "ranks" if len(shown_ranks) > 1 else "rank"
            where = f" of {noun} {listed(shown_ranks)}" if shown_ranks else ""
            yield f"`teho profile {run_id}` explains the trace of {steps_words(use)}{where}"
            return


def profiled_notes(processes: Sequence[WatchedProcess]) -> Iterator[str]:
    """Yield why traces are missing, or not complete."""
    for _, use in uses_of(processes):
        words = partly_words(use) if use.file else failed_words(use)
        if words:
            yield words
