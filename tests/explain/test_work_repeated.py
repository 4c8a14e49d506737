"""Work that a loop does again in each iteration, as a finding."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import of_library, of_python, own, process, seen
from explain.scenario_parts import NodePart, figures, found, judged, scenario
from teho.explain.program import program_of
from teho.explain.rules.cpu import known_activity, work_repeated
from teho.model.finding import Certainty, Severity
from teho.model.in_source import ColumnFilter, Repeated
from teho.model.stack import Frame

LOOP = own("for clip in clips", 10)
CALL = own("bank(RATE, 64)", 12)
INSIDE = (of_library("numpy/fft.py", "rfft"), own("np.fft.rfft(window)", 3, function="bank"), CALL)
REST = (own("fit(features)", 14),)


def made(wall_s, *, periods=3, loop=LOOP, is_same=True, is_changed=False, inside=INSIDE, **part):
    """Return a run of 100 s that was in the call for a part of it."""
    run, summary = scenario(NodePart(**part))
    repeated = Repeated(
        calls=(CALL,), loop=loop, last=20, is_same=is_same, is_changed=is_changed, periods=periods
    )
    main = process(
        seen(inside, wall_s), seen(REST, 100.0 - wall_s), node=summary.nodes[0].name, wall_s=100.0
    )
    main = msgspec.structs.replace(main, repeated=(repeated,))
    return run, msgspec.structs.replace(summary, program=program_of([main]))


def test_names_the_call_and_the_loop():
    finding = found(work_repeated, made(40.0))
    assert finding.sentence == (
        "`bank(RATE, 64)` at train.py:12 took 40 % of the run time. The result of this call is "
        "the same in each iteration of the loop at train.py:10."
    )
    assert finding.action.startswith("Compute the result once, before the loop")
    assert figures(finding)["time spent in this call"] == pytest.approx(40.0)
    assert figures(finding)["loop"] == "train.py:10  for clip in clips"
    assert finding.regain_percent == (pytest.approx(24.0), pytest.approx(38.0))
    assert finding.certainty is Certainty.SURE


def test_names_the_function_that_a_library_calls():
    loop = own("def forward(self, x)", 10, function="Net.forward")
    finding = found(work_repeated, made(40.0, loop=loop))
    assert "the same in each call of `forward`" in finding.sentence
    assert "in `__init__`, store it as an attribute of `self`" in finding.action
    assert "function" in figures(finding)


def test_work_in_forward_with_the_same_inputs():
    _, summary = scenario(NodePart())
    calls = [
        (own(text, line, "Layer.forward"), s)
        for text, line, s in (("a + torch.eye(n)", 33, 12.0), ("a / a.sum(1)", 34, 9.0))
    ]
    outer = own("model(a, x)", 73)
    loop = own("for epoch in range(9)", 72)
    main = process(
        *(seen((call, outer), s) for call, s in calls),
        seen(REST, 79.0),
        node=summary.nodes[0].name,
        wall_s=100.0,
    )
    repeated = tuple(
        Repeated(calls=(outer, call), loop=loop, last=80, is_same=True, periods=5)
        for call, _ in calls
    )
    main = msgspec.structs.replace(main, repeated=repeated)
    run, summary = scenario(NodePart())
    finding = found(
        work_repeated, (run, msgspec.structs.replace(summary, program=program_of([main])))
    )
    assert finding.action == (
        "Move this work out of `Layer.forward`: compute the results of train.py:33 and train.py:34 "
        "once, before the loop at train.py:72, and give the results to the model instead of the "
        "inputs of these lines."
    )


def test_calls_of_one_function_are_one_finding():
    run, summary = scenario(NodePart())
    texts = (("torch.tensor(self.y[i])", 66, 12.0), ("self.x[i] - self.mean", 65, 9.0))
    calls = [(own(text, line, "Wafers.__getitem__"), s) for text, line, s in texts]
    small = own("x / self.std", 67, "Wafers.__getitem__"), 1.0
    other = own("np.eye(9)", 90, "main"), 6.0
    every = [*calls, small, other]
    main = process(
        *(seen((call,), s) for call, s in every), seen(REST, 72.0), node=summary.nodes[0].name
    )
    repeated = tuple(
        Repeated(calls=(call,), loop=LOOP, last=20, is_same=False, periods=3) for call, _ in every
    )
    main = msgspec.structs.replace(main, repeated=repeated)
    made = run, msgspec.structs.replace(summary, program=program_of([main]))
    first, second = judged(work_repeated, made)
    assert first.sentence == (
        "`torch.tensor(self.y[i])` at train.py:66 and 1 more call in `__getitem__` took 22 % of "
        "the run time. Each iteration of the loop at train.py:10 makes these calls for the same "
        "values as the iteration before."
    )
    assert figures(first)["second slowest line"] == "train.py:65  self.x[i] - self.mean"
    assert second.sentence.startswith("`np.eye(9)` at train.py:90 took 6 %")


def test_results_of_several_calls_are_kept():
    call = own("np.exp(k)", 13)
    run, summary = made(20.0)
    (main,) = (one.process for one in summary.program.mains)
    again = Repeated(calls=(call,), loop=LOOP, last=20, is_same=True, periods=3)
    main = msgspec.structs.replace(
        main, repeated=(*main.repeated, again), stacks=(*main.stacks, seen((call,), 10.0))
    )
    finding = found(work_repeated, (run, msgspec.structs.replace(
        summary, program=program_of([main])
    )))  # fmt: skip
    assert "The results of these calls are the same in each iteration" in finding.sentence
    assert finding.action == (
        "Compute the results once, before the loop, and use these results in each iteration."
    )


def test_a_lambda_that_a_library_calls():
    loop = own("lambda x: cost(x, matrix)", 10, function="main.<locals>.<lambda>")
    finding = found(work_repeated, made(40.0, loop=loop))
    assert "the same in each call of the `lambda` at train.py:10." in finding.sentence
    assert "before the first call of the `lambda` at train.py:10, and give" in finding.action


def test_a_function_without_self_gets_the_result_as_an_argument():
    loop = own("def cost(weights, selfish)", 10, function="cost")
    finding = found(work_repeated, made(40.0, loop=loop))
    assert finding.action == (
        "Compute the result once, before the first call of `cost`, and give the result to `cost` "
        "as an argument."
    )


def test_a_result_that_the_program_changes_is_copied():
    unchanged, changed = (found(work_repeated, made(40.0, is_changed=one)) for one in (False, True))
    assert "a copy each time" in changed.action
    assert "copy" not in unchanged.action
    assert changed.regain_percent < unchanged.regain_percent


def test_values_of_an_inner_loop_are_computed_again():
    finding = found(work_repeated, made(40.0, is_same=False))
    assert "for the same values as the iteration before" in finding.sentence
    assert finding.certainty is Certainty.LIKELY


@pytest.mark.parametrize(
    ("wall_s", "periods", "severity"),
    [
        (4.9, 3, None),
        (5.0, 3, Severity.WARNING),
        (40.0, 2, None),  # it may have happened only once
    ],
)
def test_limits(wall_s, periods, severity):
    findings = judged(work_repeated, made(wall_s, periods=periods))
    assert [one.severity for one in findings] == ([severity] if severity else [])


def test_an_activity_in_the_repeated_call_is_not_named_again():
    inside = (of_python("zipfile.py", "ZipFile._RealGetContents"), CALL)
    assert judged(known_activity, made(60.0, inside=inside)) == []
    assert judged(known_activity, made(60.0, inside=inside, periods=0)) != []


def test_the_call_and_its_loop_are_recognised_on_a_stack():
    repeated = Repeated(calls=(CALL,), loop=LOOP, last=20, is_same=True)
    assert repeated.has(seen(INSIDE, 1.0))
    assert not repeated.has(seen(REST, 1.0))
    assert repeated.is_beside(seen(REST, 1.0))
    after = Frame(LOOP.file, LOOP.function, 21, "save()")
    assert not repeated.is_beside(seen((after,), 1.0))


@pytest.mark.parametrize(("in_query_s", "names_it"), [(30.0, True), (29.9, False)])
def test_a_query_that_cannot_use_an_index(in_query_s, names_it):
    line = own("con.execute(sql, (day,))", 43)
    filtered = ColumnFilter(frame=line, text="substr(taken_at, 1, 10)")
    run, summary = scenario(NodePart())
    other = own("con.execute(other, (day,))", 50)
    main = process(
        seen((line,), in_query_s), seen((other,), 60.0 - in_query_s), seen(REST, 40.0),
        node=summary.nodes[0].name, progress=(),
    )  # fmt: skip
    main = msgspec.structs.replace(main, column_filters=(filtered,))
    given = run, msgspec.structs.replace(summary, program=program_of([main]))
    finding = found(known_activity, given)
    assert ("`substr(taken_at, 1, 10)`" in finding.sentence) is names_it
    assert (finding.regain_percent is not None) is names_it
