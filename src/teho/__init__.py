"""Teho shows whether the GPUs of a shared cluster earned their keep.

>>> import teho
>>> run = teho.load("last")
>>> run.summary, run.findings, run.table("gpu")
"""

from __future__ import annotations

import sys

from teho.version import __version__

TYPE_CHECKING = False  # type checkers take it for true; `teho launch` has no time for `typing`
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


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%teho` to IPython and Jupyter: `%load_ext teho` calls this function."""
    from teho.show.notebook import add_magic

    add_magic(shell)


class phase:  # noqa: N801 - used as a function is
    """Name a part of the program: `with teho.phase("augment"): …`, or `@teho.phase("augment")`.

    Under `teho run` the report then tells how much of the main thread's time went into each; one
    within another is `epoch/augment`. It costs less than a microsecond where nobody records. As a
    decorator it is for ordinary functions: of a generator or a coroutine it sees the making alone.

    Args:
        name: of the part.

    Raises:
        teho.errors.InputError: a function stands where the name belongs.
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
        """Return the function as one that is a phase each time it is called."""
        from functools import wraps

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return call


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


def step() -> None:
    """Tell that one step of the program's work is done: a batch, an iteration, a sample.

    If a program calls it, its steps are what `teho run`, `compare` and `tune` count, and not
    those of PyTorch's optimizers.
    """
    probe = sys.modules.get("_teho_probe")
    if probe is not None:
        probe.NOTES.step(is_told=True)


def __dir__() -> list[str]:
    return __all__
