"""What counts as other results, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.experiment.outputs import Printed, other_results


def told(first: str, other: str) -> list[str]:
    return other_results({"cpu:1": whole(*[first] * 3), "gpu:1": whole(*[other] * 3)})


def whole(*texts: str) -> list[Printed]:
    return [Printed(text) for text in texts]


def cut(*texts: str) -> list[Printed]:
    return [Printed(text, is_whole=False) for text in texts]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("loss 0.5123\n", "loss 0.5123\n"),
        ("loss 0.51230\n", "loss 0.51265\n"),
        ("loss -1.0e-3 at 7\n", "loss -1.0005e-3 at 7\n"),
        ("residue 3.1e-16\n", "residue 8.8e-13\n"),
        ("device: cpu\nloss 1\n", "device: cuda:0\nloss 1\n"),
        ("using 1 thread\n", "using 64 threads\n"),
        ("", ""),
        ("nan\n", "nan\n"),
    ],
)
def test_the_same_within_rounding_and_lines_about_places(first: str, other: str) -> None:
    assert told(first, other) == []


@pytest.mark.parametrize(
    ("first", "other", "line"),
    [
        ("loss 0.5123\n", "loss 0.5143\n", 1),
        ("a\nloss 0.5\n", "a\nloss nan\n", 2),
        ("OK\n", "FAILED\n", 1),
        ("score 10\n", "score 11\n", 1),
        ("1 2 3\n", "1 2 4\n", 1),
        ("1 2\n", "1 2 3\n", 1),
    ],
)
def test_other_results_are_shown_with_their_line(first: str, other: str, line: int) -> None:
    (sentence,) = told(first, other)
    assert sentence.startswith("The program prints other results on gpu:1 than on cpu:1: ")
    assert f"line {line} is `{other.splitlines()[line - 1]}`" in sentence


def test_more_lines_are_shown() -> None:
    assert told("a\n", "a\nb\n") == ["The program prints 1 line on cpu:1, and 2 lines on gpu:1."]


def test_lines_that_differ_between_runs_are_not_compared() -> None:
    printed = {"cpu:1": whole("took 3 s\nsum 1\n", "took 4 s\nsum 1\n")}
    assert (
        other_results({**printed, "gpu:1": whole("took 1 s\nsum 1\n", "took 1 s\nsum 1\n")}) == []
    )
    assert other_results({**printed, "gpu:1": whole("took 1 s\nsum 2\n", "took 2 s\nsum 2\n")})
    assert other_results({**printed, "gpu:1": whole("sum 2\n", "took 2 s\nsum 2\n")}) == []


def test_one_run_of_each_is_not_enough() -> None:
    assert other_results({"cpu:1": whole("1"), "gpu:1": whole("2")}) == []
    assert other_results({"cpu:1": whole("1", "1")}) == []
    assert other_results({}) == []


def test_a_long_line_is_shortened() -> None:
    (sentence,) = told("x" * 1000, "y" * 1000)
    assert len(sentence) < 250


@given(st.text(), st.text())
def test_any_text_is_taken(first: str, other: str) -> None:
    assert told(first, first) == []
    assert len(told(first, other)) <= 1


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("loss 2\nloss 1\nloss 0.5", "loss 2\n"), id="one got further"),
        pytest.param(("loss 2\nloss 1.5", "loss 2\nloss 1.4999"), id="cut within a line"),
        pytest.param(("", "loss 2\n"), id="nothing yet"),
    ],
)
def test_of_runs_that_were_ended_the_lines_count_that_all_have(texts: tuple[str, str]) -> None:
    assert other_results({"cpu:1": cut(*texts), "gpu:1": cut(*texts[::-1])}) == []


def test_what_was_printed_before_the_end_may_differ() -> None:
    ended = cut("loss 2\nloss 1.5\nlo", "loss 2\nloss 1.5\nloss 1\n")
    (sentence,) = other_results({"cpu:1": ended, "gpu:1": cut(*["loss 2\nloss nan\n"] * 2)})
    assert "line 2 is `loss nan` instead of `loss 1.5`" in sentence
    (sentence,) = other_results({"cpu:1": ended, "gpu:1": whole(*["loss 3\n"] * 2)})
    assert "line 1 is `loss 3` instead of `loss 2`" in sentence
