"""What went wrong in a recording, and the notes of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.explain.step import offset_s
from teho.explain.wording import listed
from teho.model.run import Run
from teho.observe.uninstrumented import is_about_probe
from teho.units import format_duration

__all__ = ["notes_of", "troubles_of"]


def troubles_of(run: Run, problems: Sequence[str]) -> Iterable[str]:
    """Yield a sentence for each trouble of the recording, with its time and nodes."""
    offsets_s = {node.name: offset_s(run, node) for node in run.nodes}
    after: dict[str, float] = {}
    places: dict[str, list[str]] = {}
    parts = (
        *((node.name, node.troubles) for node in run.nodes),
        *((task.node, task.troubles) for task in run.tasks),
        ("", run.troubles),
    )
    for name, troubles in parts:
        for trouble in troubles:
            # The recorder and the supervisor both report it, in case one of them is killed.
            after.setdefault(trouble.what, max(0.0, trouble.elapsed_s + offsets_s.get(name, 0.0)))
            places.setdefault(trouble.what, []).extend([name] if name else [])
    for what, after_s in after.items():
        yield f"{_prefix(run, places[what])}After {format_duration(after_s)}: {what}."
    yield from dict.fromkeys(problems)


def notes_of(run: Run, *, about_probe: bool) -> Iterable[str]:
    """Yield the notes of the nodes that are about the probe, or all others."""
    places: dict[str, list[str]] = {}
    for node in run.nodes:
        for note in (*node.allocation.notes, *node.notes):
            if is_about_probe(note) == about_probe:
                places.setdefault(note, []).append(node.name)
    for note, names in places.items():
        yield f"{_prefix(run, names)}{note}"


def _prefix(run: Run, names: Sequence[str]) -> str:
    """Return the names of the nodes that a sentence is about; empty if it is about all."""
    unique = list(dict.fromkeys(names))
    return f"{listed(unique)}: " if 0 < len(unique) < len(run.nodes) else ""
