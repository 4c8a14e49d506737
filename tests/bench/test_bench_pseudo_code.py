"""The three short examples compute what their loops say, step by step."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import numpy as np
import pytest
from served import PROGRAMS, Asked, answers_of, figures_in, serve

LIBRARIES = ("numpy", "jax", "torch")
POINT = {"elements": 300}


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch):
    """Return a function that returns the arrays of an example, in double precision."""
    monkeypatch.syspath_prepend(PROGRAMS)

    def arrays(name: str) -> list[list[float]]:
        found = importlib.import_module(name).make_data(POINT)
        return np.atleast_2d(np.asarray(found, np.float64)).tolist()

    return arrays


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], list[float]]:
    """Return a function that returns the figures of a program with a library."""

    @functools.cache
    def of(library: str) -> dict[str, list[float]]:
        asked = {name: Asked(name, [POINT]) for name in ("add", "loop", "sum")}
        answers = answers_of(library, tmp_path_factory.mktemp(library), asked)
        return {name: figures_in(own) for name, (own,) in answers.items()}

    return lambda name, library: of(library)[name]


@pytest.mark.drawn(1, by="library", always=("numpy",))
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_constant_is_added_to_each_element(data, figures, library: str) -> None:
    (own,) = data("add")
    expected = [one + 3.0 for one in own]
    *first, total = figures("add", library)
    assert first == pytest.approx(expected[: len(first)], rel=1e-6)
    assert total == pytest.approx(sum(expected), rel=1e-6)


@pytest.mark.drawn(1, by="library", always=("numpy",))
@pytest.mark.parametrize("library", LIBRARIES)
def test_both_forms_of_the_loop_are_the_loop(data, figures, library: str) -> None:
    own, flags, others = data("loop")
    for i in range(1, len(own)):
        own[i] = own[i] + own[i - 1] if flags[i] % 2 == 0 else others[i] + own[i - 1]
    found = figures("loop", library)
    half = len(found) // 2
    assert half > 20
    assert found[:half] == own[-half:]  # the running sum
    assert found[half:] == own[-half:]  # step by step


@pytest.mark.drawn(1, by="library", always=("numpy",))
@pytest.mark.parametrize("library", LIBRARIES)
def test_three_arrays_are_added_up(data, figures, library: str) -> None:
    own, others, more = data("sum")
    for i in range(len(own)):
        own[i] = own[i] + 3.0
        others[i] = others[i] + own[i]
        more[i] = more[i] + others[i]
    (found,) = figures("sum", library)
    assert found == pytest.approx(sum(own) + sum(others) + sum(more), rel=1e-5)


def test_long_loops_in_python_are_not_timed() -> None:
    """Each of a million steps takes a microsecond and more. The running sum goes on."""
    with serve("loop", "numpy") as program:
        assert list(program.phases({"elements": 100_001})) == ["running sum"]
    with serve("loop", "jax") as program:
        assert list(program.phases({"elements": 100_001})) == ["step by step", "running sum"]
