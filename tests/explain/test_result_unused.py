"""Results that a program uses seldom, never, or only in part, as findings."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, of_python, own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from teho.explain.rules.cpu import (
    array_cut_late,
    known_activity,
    option_costly,
    result_unused,
    work_repeated,
)
from teho.model.finding import Certainty, Severity
from teho.model.in_source import CostlyOption, Need, Repeated, Unneeded

LOOP = own("for step in range(STEPS)", 68)
CALL = own("order(v)", 70)
INSIDE = own("np.hypot(ky, kx)", 59, "order")
IF = own("step % 100 == 0", 71)
SELDOM = Unneeded(
    calls=(CALL,), need=Need.SELDOM, moved=(70,), at=(IF,), loop=LOOP, last=75, periods=5,
    share=0.01, can_move=True,
)  # fmt: skip
PART = Unneeded(
    calls=(own("np.log10(x)", 46),), need=Need.PART, at=(own("y[top : top + 64]", 48),),
    loop=own("def tile(x)", 44), last=49,
)  # fmt: skip


def run(*unneeded, wall_s=40.0, repeated=(), inside=()):
    """Return a run of 100 s that was in each expression for an equal part of a time."""
    stacks = [seen((*inside, one.call), wall_s / len(unneeded)) for one in unneeded]
    main = process(*stacks, unneeded=unneeded, repeated=repeated, progress=(), node=NODE)
    return watched(main)


def changed(**fields):
    return msgspec.structs.replace(SELDOM, **fields)


def test_names_the_condition_and_where_to_move_the_line():
    finding = found(result_unused, run(SELDOM))
    assert finding.sentence == (
        "Computing `order(v)` at train.py:70 took 40 % of the run time. The program uses the "
        "result only if `step % 100 == 0` (train.py:71), in 1 of 100 iterations."
    )
    assert finding.action == "Move line 70 into the `if` at train.py:71."
    assert finding.certainty is Certainty.SURE
    # The call was seen in five periods, so it happened at least four times.
    assert finding.regain_percent == (pytest.approx(30.0), pytest.approx(39.6))
    assert figures(finding)["used at"] == "train.py:71  step % 100 == 0"


@pytest.mark.parametrize(
    ("one", "action"),
    [
        (
            changed(can_move=False, moved=(70, 72)),
            "Execute lines 70 and 72 only if the result is used: `if step % 100 == 0:`.",
        ),
        (
            changed(can_move=False, at=(IF, own("step == last", 74)), moved=(69, 70, 72)),
            (
                "Execute lines 69, 70 and 72 only if the result is used: "
                "`if step % 100 == 0 or step == last:`."
            ),
        ),
        (
            changed(at=(own("step % 100", 71),), is_skipped=True),
            "Move line 70 to after the `if` at train.py:71.",
        ),
        (
            changed(at=(own("step % 100", 71),), is_skipped=True, can_move=False),
            "Execute line 70 only if the result is used: `if not (step % 100):`.",
        ),
        (
            changed(can_move=False, after=(own("print(value)", 80),)),
            (
                "Execute line 70 only if the result is used: `if step % 100 == 0:`. Also execute "
                "line 70 once after the loop, before line 80."
            ),
        ),
    ],
)
def test_the_advice_can_be_followed_as_it_is(one, action):
    assert found(result_unused, run(one)).action == action


def test_a_default_may_have_been_changed():
    finding = found(result_unused, run(changed(is_sure=False)))
    assert "by default in 1 of 100 iterations" in finding.sentence
    assert finding.certainty is Certainty.LIKELY
    assert finding.regain_percent == (pytest.approx(12.0), pytest.approx(39.6))


def test_a_part_that_is_no_nth_is_a_percentage():
    finding = found(result_unused, run(changed(share=3 / 7)))
    assert finding.sentence.endswith("(train.py:71), in 43 % of the iterations.")
    finding = found(result_unused, run(changed(share=34 / 100)))
    assert finding.sentence.endswith("(train.py:71), in 1 of 3 iterations.")


def test_a_function_without_a_loop():
    finding = found(result_unused, run(changed(loop=own("def cost(self, x)", 66))))
    assert finding.sentence.endswith("(train.py:71), in 1 of 100 calls.")


def test_the_length_of_the_loop_may_be_unknown():
    finding = found(result_unused, run(changed(is_sure=False, share=0.5)))
    assert finding.sentence.endswith("only if `step % 100 == 0` (train.py:71).")


def test_the_last_result():
    finding = found(result_unused, run(changed(need=Need.LAST, at=(own("print(v)", 80),))))
    assert finding.sentence.endswith(
        "The loop at train.py:68 computes the result in each iteration, but the program uses only "
        "the last one, at train.py:80."
    )
    assert finding.action == "Move line 70 to after the loop, so that the result is computed once."


def test_a_result_without_a_use():
    finding = found(result_unused, run(changed(need=Need.NEVER, at=(), periods=0)))
    assert finding.sentence.endswith("The program never uses the result.")
    assert finding.action == "Remove line 70."
    assert finding.regain_percent == (pytest.approx(36.0), pytest.approx(40.0))


@pytest.mark.parametrize(
    ("wall_s", "periods", "severity"),
    [
        (4.9, 5, None),
        (5.0, 5, Severity.WARNING),
        (40.0, 2, None),  # it may have happened only once
    ],
)
def test_limits(wall_s, periods, severity):
    findings = judged(result_unused, run(changed(periods=periods), wall_s=wall_s))
    assert [one.severity for one in findings] == ([severity] if severity else [])


def test_what_is_repeated_inside_is_not_named_too():
    again = Repeated(calls=(CALL, INSIDE), loop=LOOP, last=75, is_same=True, periods=5)
    made = run(SELDOM, repeated=(again,), inside=(INSIDE,))
    assert len(judged(result_unused, made)) == 1
    assert judged(work_repeated, made) == []


def test_a_repeated_call_around_it_is_the_better_advice():
    again = Repeated(calls=(CALL,), loop=LOOP, last=75, is_same=True, periods=5)
    made = run(SELDOM, repeated=(again,))
    assert judged(result_unused, made) == []
    assert len(judged(work_repeated, made)) == 1


def test_an_activity_in_it_is_not_named_again():
    inside = (of_python("zipfile.py", "ZipFile._RealGetContents"),)
    assert judged(known_activity, run(SELDOM, wall_s=60.0, inside=inside)) == []
    assert judged(known_activity, run(changed(periods=0), wall_s=60.0, inside=inside)) != []


def test_operations_on_whole_arrays_are_one_finding():
    other = msgspec.structs.replace(PART, calls=(own("x.astype(np.float32)", 45),))
    third = msgspec.structs.replace(PART, calls=(own("y / 6.0", 47),))
    finding = found(array_cut_late, run(PART, other, third, wall_s=60.0))
    assert finding.sentence == (
        "Computing `np.log10(x)` at train.py:46 and 2 more operations took 60 % of the time, but "
        "the program uses only a part of the result: `y[top : top + 64]` at train.py:48."
    )
    assert finding.action.startswith(
        "Take this part of each array before line 45, and remove the cut at line 48."
    )
    assert finding.certainty is Certainty.LIKELY
    assert finding.regain_percent == (pytest.approx(12.0), pytest.approx(57.0))
    assert judged(result_unused, run(PART)) == judged(array_cut_late, run(SELDOM)) == []


@pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
def test_a_small_share_is_not_reported(wall_s, count):
    assert len(judged(array_cut_late, run(PART, wall_s=wall_s))) == count


def test_a_condition_that_is_true_too_often():
    often = own("step % 25 == 0", 69)
    one = changed(condition=often, share=0.25, can_move=False)
    finding = found(result_unused, run(one))
    assert finding.sentence.endswith(
        "The program uses the result only if `step % 100 == 0` (train.py:71), in 1 of 4 cases."
    )
    assert finding.action == "Change the condition at train.py:69 to `step % 100 == 0`."


def test_an_option_in_an_unused_result_is_not_named_too():
    words = dict.fromkeys(("file", "index", "new", "lines", "after"), "x")
    option = CostlyOption(name="pairs_one_by_one", at=CALL, lines=(CALL,), words=words)
    for unneeded, count in (((SELDOM,), 0), ((), 1)):
        main = process(
            seen((CALL,), 40.0),
            unneeded=unneeded,
            costly_options=(option,),
            progress=(),
            node=NODE,
        )
        assert len(judged(option_costly, watched(main))) == count
