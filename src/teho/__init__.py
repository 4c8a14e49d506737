"""Teho shows whether the GPUs of a shared cluster earned their keep.

>>> import teho
>>> run = teho.load("last")
>>> run.summary, run.findings, run.table("gpu")
"""

from __future__ import annotations

from teho.version import __version__

TYPE_CHECKING = False  # type checkers take it for true; `teho launch` has no time for `typing`
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.model.plan import Answer
    from teho.model.request import Request
    from teho.observe.energy import Energy
    from teho.show.loaded import LoadedRun

__all__ = ["__version__", "energy", "load", "plan"]


def energy() -> Energy:
    """Measure what this node's GPUs draw: `with teho.energy() as e: …`, then `e.energy_j`.

    As a decorator, `@teho.energy()`, it measures each call of a function; its attribute `energy` is
    that of the last call. All GPUs count that this process may use, whoever uses them. Without a
    GPU nothing fails: each energy then is a `Missing` that says why.
    """
    from teho.observe.energy import Energy

    return Energy()


def load(run: str = "last") -> LoadedRun:
    """Open a recording.

    Args:
        run: its id, a unique beginning of it, its name, `last`, or a directory.

    Raises:
        teho.errors.RecordingError: there is no such recording, or it does not read.
    """
    from teho.show.loaded import LoadedRun

    return LoadedRun.open(run)


def plan(
    request: Request, clusters: Sequence[str] = (), *, even_if_retired: bool = False
) -> Answer:
    """Hold a request against the catalogue: what fits, cheapest first, and why the rest does not.

    Args:
        request: what the program needs.
        clusters: names of the clusters to consider; none: the whole catalogue.
        even_if_retired: plan for retired clusters too, for study.

    Raises:
        teho.errors.InputError: there is no such cluster, or its file does not read.
    """
    from teho.clusters.catalogue import load_catalogue, load_cluster
    from teho.planner.answer import answer

    if clusters:
        chosen = [load_cluster(name) for name in clusters]
    else:
        chosen = list(load_catalogue().values())
    return answer(request, chosen, even_if_retired=even_if_retired)


def __dir__() -> list[str]:
    return __all__
