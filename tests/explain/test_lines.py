"""The time of each of a program's own lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.program_parts import MAIN, of_library, own, process, seen
from teho.explain.lines import own_lines, sections_s, share_interval
from teho.model.program import Doing, Section
from teho.model.stack import Seen, State
from teho.model.watched import WatchedProcess

STEP = seen((own("loss.backward()", 26, "main"),), 30.0)
SAVED = seen((of_library("torch/serialization.py", "save"), own("keep(net)", 27, "main")), 10.0)
EVALUATED = seen((own("net(x)", 12, "evaluate"), own("evaluate(net)", 30, "main")), 20.0)
READ = seen((own("read(path)", 8, "load"),), 40.0)


def only(*stacks: Seen, **about: object) -> WatchedProcess:
    """Return a process that was nowhere else."""
    return process(*stacks, wall_s=sum(one.wall_s for one in stacks), **about)


def told(*stacks: Seen, **about: object) -> dict[tuple[Section, int], tuple[float, float, Doing]]:
    return {
        (line.section, line.frame.line): (line.own_s, line.total_s, line.doing)
        for line in own_lines(only(*stacks, **about))
    }


def test_itself_and_in_all() -> None:
    lines = told(STEP, SAVED, EVALUATED)
    assert lines[Section.LOOP, 26] == (30.0, 30.0, Doing.NATIVE)
    # A library's time is that of the line which called it.
    assert lines[Section.LOOP, 27] == (10.0, 10.0, Doing.SAVING)
    assert lines[Section.EVALUATION, 12] == (20.0, 20.0, Doing.NATIVE)
    assert lines[Section.EVALUATION, 30] == (0.0, 20.0, Doing.NATIVE)
    assert lines[Section.LOOP, MAIN.line] == (0.0, 40.0, Doing.NATIVE)


def test_the_one_with_most_time_of_its_own_comes_first() -> None:
    assert [line.frame.line for line in own_lines(only(SAVED, STEP))][:2] == [26, 27]


def test_a_line_that_calls_itself_counts_once() -> None:
    again = own("walk(child)", 50, "walk")
    lines = told(seen((again, again, again), 10.0))
    assert lines[Section.LOOP, 50] == (10.0, 10.0, Doing.NATIVE)


def test_before_the_first_step_it_is_set_up() -> None:
    lines = told(READ, STEP, set_up=(READ,))
    assert lines[Section.SET_UP, 8] == (40.0, 40.0, Doing.NATIVE)
    assert (Section.LOOP, 8) not in lines
    assert sections_s(only(READ, STEP, set_up=(READ,))) == {
        Section.SET_UP: 40.0,
        Section.LOOP: 30.0,
    }


def test_without_steps_all_is_the_program() -> None:
    assert told(STEP, progress=())[Section.PROGRAM, 26][0] == 30.0


@pytest.mark.parametrize(
    ("frame", "section"),
    [
        (own("net(x)", 12, "Trainer.validate"), Section.EVALUATION),
        (own("net(x)", 12, "evaluation_loop"), Section.EVALUATION),
        (own("net(x)", 12, "retrieval"), Section.LOOP),
        (of_library("lightning/pytorch/loops/evaluation_loop.py", "run"), Section.EVALUATION),
        (of_library("transformers/trainer_callback.py", "call_event"), Section.CALLBACK),
        (own("log()", 12, "Plot.on_train_batch_end"), Section.CALLBACK),
        (of_library("torch/utils/data/dataloader.py", "__next__"), Section.LOADER),
    ],
)
def test_the_functions_that_lead_to_a_line_name_its_section(
    frame: object, section: Section
) -> None:
    assert list(sections_s(only(seen((own("f()", 5), frame), 10.0)))) == [section]


def test_how_a_share_changes() -> None:
    parts = ((STEP,), (STEP,), (STEP, SAVED), (SAVED,))
    (first, second, *_) = own_lines(only(STEP, SAVED, parts=parts))
    assert first.parts_percent == (100.0, 100.0, 75.0, 0.0)
    assert second.parts_percent == (0.0, 0.0, 25.0, 100.0)


def test_the_interval_is_wilsons() -> None:
    # By hand: 40 of 100, z = 1.96 (Wilson 1927).
    low, high = share_interval(40.0, 100) or (0.0, 0.0)
    assert (low, high) == (pytest.approx(30.9, abs=0.1), pytest.approx(49.8, abs=0.1))
    assert share_interval(40.0, 0) is None


@given(st.floats(0, 100), st.floats(1, 1e6))
def test_an_interval_contains_its_share_and_narrows_with_samples(
    share: float, samples: float
) -> None:
    low, high = share_interval(share, samples) or (0.0, 0.0)
    assert 0 <= low <= share + 1e-6
    assert share - 1e-6 <= high <= 100
    closer = share_interval(share, 4 * samples) or (0.0, 0.0)
    assert closer[1] - closer[0] < high - low


def test_waiting_is_named_by_what_is_waited_for() -> None:
    line = told(seen((own("os.fsync(log)", 9),), 10.0, State.DISK))[Section.LOOP, 9]
    assert line[2] is Doing.DISK
