"""Teho shows how well a program uses the GPUs of a shared cluster.

>>> import teho
>>> run = teho.load("last")
>>> run.summary, run.findings, run.table("gpu")
"""

from __future__ import annotations

import sys

from teho.version import __version__

TYPE_CHECKING = False  # True for type checkers; `typing` would slow down `teho launch`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import ParamSpec, TypeVar

    from IPython.core.interactiveshell import InteractiveShell

    from teho.model.plan import Answer
    from teho.model.request import Request
    from teho.observe.energy import Energy
    from teho.show.loaded import LoadedRun

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["__version__", "energy", "load", "phase", "plan", "step"]


def energy() -> Energy:
    """Measure the energy of this node's GPUs: `with teho.energy() as e: …`, then `e.energy_j`.

    The decorator `@teho.energy()` measures each call of a function. The attribute `energy` of the
    function then has the energy of the last call. The energy includes all GPUs that this process
    may use, even if other processes use these GPUs. Without a GPU, no exception is raised: each
    energy is then a `Missing` that says why.
    """
    from teho.observe.energy import Energy

    return Energy()


def load(run: str = "last") -> LoadedRun:
    """Open a recording.

    Args:
        run: the id of the run, the first characters of its id, its name, `last`, or a directory.

    Raises:
        teho.errors.RecordingError: there is no such recording, or it cannot be read.
    """
    from teho.show.loaded import LoadedRun

    return LoadedRun.open(run)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%teho` to IPython and Jupyter: `%load_ext teho` calls this function."""
    from teho.show.notebook import add_magic

    add_magic(shell)


class phase:  # noqa: N801 - used like a function
    """Name a part of the program: `with teho.phase("augment"): …`, or `@teho.phase("augment")`.

    If the program runs under `teho run`, the report says how much of the main thread's time each
    phase took. A phase inside another phase has a name such as `epoch/augment`. Without a
    recording, a phase takes less than a microsecond. Use the decorator only for ordinary functions:
    for a generator or a coroutine, the phase includes only the creation of the object.

    Args:
        name: the name of the part.

    Raises:
        teho.errors.InputError: the argument is a function, not a name.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        if callable(name):
            from teho.errors import InputError

            raise InputError(f"@teho.phase on {name!r}", "a name", 'write @teho.phase("NAME")')
        self._name = name

    def __enter__(self) -> None:
        probe = sys.modules.get("_teho_probe")
        if probe is not None:
            probe.NOTES.enter(self._name)

    def __exit__(self, *_: object) -> None:
        probe = sys.modules.get("_teho_probe")
        if probe is not None:
            probe.NOTES.leave(self._name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function in which each call is a phase."""
        from functools import wraps

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return call


def plan(
    request: Request, clusters: Sequence[str] = (), *, even_if_retired: bool = False
) -> Answer:
    """Compare a request with the catalogue: what fits, cheapest first, and why the rest does not.

    Args:
        request: what the program needs.
        clusters: names of the clusters to consider. Empty: all clusters of the catalogue.
        even_if_retired: also plan for retired clusters, as an example.

    Raises:
        teho.errors.InputError: there is no such cluster, or its file cannot be read.
    """
    from teho.clusters.catalogue import load_catalogue, load_cluster
    from teho.planner.answer import answer

    if clusters:
        chosen = [load_cluster(name) for name in clusters]
    else:
        chosen = list(load_catalogue().values())
    return answer(request, chosen, even_if_retired=even_if_retired)


def step() -> None:
    """Count one step of the program's work: for example a batch, an iteration or a sample.

    If a program calls this function, `teho run`, `compare` and `tune` count these calls, and not
    the steps of PyTorch's optimizers.
    """
    probe = sys.modules.get("_teho_probe")
    if probe is not None:
        probe.NOTES.step(is_reported=True)


def __dir__() -> list[str]:
    return __all__
