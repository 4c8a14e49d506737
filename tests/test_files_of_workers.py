"""The order in which workers take files of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from files_of_workers import COMPUTING, WAITING, next_file

TESTS = Path(__file__).parent


def test_every_file_is_there_and_listed_once() -> None:
    listed = [*WAITING, *COMPUTING]
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if not (TESTS / name).exists()] == []


@pytest.mark.parametrize(
    ("prefers_waiting", "names"),
    [
        (True, [WAITING[0], WAITING[1], COMPUTING[0], COMPUTING[1], "cli/test_a.py", "test_b.py"]),
        (False, [COMPUTING[0], COMPUTING[1], "cli/test_a.py", "test_b.py", WAITING[0], WAITING[1]]),
    ],
)
def test_a_worker_takes_the_longest_of_its_kind_first(
    prefers_waiting: bool, names: list[str]
) -> None:
    left = [f"tests/{name}" for name in ("cli/test_a.py", COMPUTING[1], WAITING[1], COMPUTING[0],
                                         "test_b.py", WAITING[0])]  # fmt: skip
    taken = []
    while left:
        taken.append(next_file(left, prefers_waiting=prefers_waiting))
        left.remove(taken[-1])
    assert taken == [f"tests/{name}" for name in names]
