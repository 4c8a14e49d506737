"""What the slowest rank does, and the exchange of Python objects between ranks."""

from __future__ import annotations

import pytest

from explain.program_parts import of_library, of_python, own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import known_activity
from teho.explain.rules.job import ranks_wait_for_each_other
from teho.model.stack import State

APPLIED = (
    of_library("torch/nn/modules/linear.py", "Linear.forward"),
    of_library("torch/nn/modules/module.py", "Module._call_impl"),
    own("net(x[start:start + 500])", 25, "count_hits"),
    own("count_hits(net, x, y)", 55, "main"),
)
FORWARD = (*APPLIED[:2], own("model(x[rows])", 50, "main"))
TRAINED = (own("loss.backward()", 52, "main"),)
CALLED = own("dist.all_gather_object(parts, mine)", 47, "main")
EXCHANGED = (of_library("torch/distributed/distributed_c10d.py", "_object_to_tensor"), CALLED)


def alone(*stacks, of_others=()):
    """Return two ranks: these stacks are only of rank 0, for which rank 1 waits."""
    waits = seen((own("dist.barrier()", 57, "main"),), 40.0)
    forward = seen(FORWARD, 10.0)
    return watched(
        process(forward, *stacks, pid=10, torch={"rank": 0, "world_size": 2}),
        process(forward, waits, *of_others, pid=11, torch={"rank": 1, "world_size": 2}),
    )


def ranks(*stacks):
    """Return two ranks with the same stacks."""
    facts = {"world_size": 2}
    return watched(*(process(*stacks, pid=10 + n, torch={"rank": n, **facts}) for n in range(2)))


def test_only_one_rank_evaluates():
    finding = found(ranks_wait_for_each_other, alone(seen(APPLIED, 30.0)))
    assert finding.sentence == (
        "Rank 0 made the other ranks wait for up to 40 % of the time: only rank 0 executes "
        "`count_hits(net, x, y)` (train.py:55), which applies the model without a backward pass."
    )
    assert "execute train.py:55 on all ranks" in finding.action
    assert "`dist.all_reduce(total)`" in finding.action
    assert figures(finding)["time of this line (rank 0)"] == 30.0
    assert figures(finding)["slowest line"] == "train.py:55  count_hits(net, x, y)"
    assert finding.regain_percent == (12.0, 20.0)


@pytest.mark.parametrize(
    ("inner", "text", "words", "advised"),
    [
        (of_library("torch/serialization.py", "_save"), "torch.save(net, path)",
         ", which saves data.", "`threading.Thread(target=torch.save"),
        (of_python("logging/__init__.py", "StreamHandler.emit"), "log.info(x)",
         ": logging.", "The other ranks wait for train.py:60."),
        (own("draw(net)", 80, "plot"), "plot(net)",
         "(train.py:60).", "`items[rank::world_size]`"),
    ],
)  # fmt: skip
def test_only_one_rank_does_something_else(inner, text, words, advised):
    frames = (inner, own(text, 60, "main"))
    finding = found(ranks_wait_for_each_other, alone(seen(frames, 30.0)))
    assert f"only rank 0 executes `{text}` (train.py:60)" in finding.sentence
    assert finding.sentence.endswith(words)
    assert advised in finding.action


@pytest.mark.parametrize(
    ("stacks", "of_others"),
    [
        ([seen(APPLIED, 19.0)], ()),  # less than half of the difference
        ([seen(APPLIED, 60.0)], [seen(APPLIED, 0.5)]),  # the other rank has fewer samples
        ([seen(TRAINED, 60.0)], [seen(TRAINED, 5.0)]),  # longer samples
        # The other rank also comes to the line, and exchanges data there.
        ([seen(TRAINED, 60.0)], [seen((of_library("mpi4py/x.py", "f"), *TRAINED), 5.0)]),
    ],
)
def test_lines_that_all_ranks_execute_explain_nothing(stacks, of_others):
    finding = found(ranks_wait_for_each_other, alone(*stacks, of_others=of_others))
    assert finding.sentence.endswith("rank 0 has more work in each step.")


def test_a_rank_that_waits_is_named_as_before():
    sleeps = seen((own("time.sleep(1.5)", 65),), 30.0, State.SLEEPING)
    finding = found(ranks_wait_for_each_other, alone(sleeps))
    assert finding.sentence.endswith("rank 0 sleeps in `time.sleep(1.5)` (train.py:65).")


def test_a_line_that_trains_does_not_evaluate():
    backward = (
        of_library("torch/_tensor.py", "Tensor.backward"), own("fit(net)", 25, "adapt"),
        own("count_hits(net, x, y)", 55, "main"),
    )  # fmt: skip
    finding = found(ranks_wait_for_each_other, alone(seen(APPLIED, 20.0), seen(backward, 10.0)))
    assert "backward pass" not in finding.sentence


def test_a_part_of_the_model_that_one_rank_has_is_no_evaluation():
    first = (*APPLIED[:2], own("stage(x)", 44, "first"))
    last = (*APPLIED[:2], own("stage(x)", 55, "last"))
    made = watched(
        process(seen((own("dist.barrier()", 70, "main"),), 60.0), seen(first, 20.0), pid=10,
                torch={"rank": 0, "world_size": 2}),
        process(seen(last, 70.0), pid=11, torch={"rank": 1, "world_size": 2}),
    )  # fmt: skip
    finding = found(ranks_wait_for_each_other, made)
    assert "only rank 1 executes `stage(x)` (train.py:55)." in finding.sentence
    assert "evaluate" not in finding.action


class TestObjects:
    def test_the_exchange_is_named_instead_of_communication(self):
        findings, _ = judge_all(*ranks(seen(EXCHANGED, 20.0)), load_policy())
        kinds = [one.kind for one in findings]
        assert "ranks_wait_for_each_other" not in kinds
        assert findings[kinds.index("known_activity")].sentence == (
            "Exchanging Python objects between ranks took 20 % of the time, at train.py:47."
        )

    @pytest.mark.parametrize(("others_s", "count"), [(20.0, 0), (20.1, 1)])
    def test_other_communication_is_still_named(self, others_s, count):
        reduced = seen((own("dist.all_reduce(grad)", 42, "main"),), others_s)
        made = ranks(seen(EXCHANGED, 20.0), reduced)
        assert len(judged(ranks_wait_for_each_other, made)) == count

    @pytest.mark.parametrize(
        "frames",
        [
            (own("s.tolist()", 45, "main"),),
            # Before Python 3.12, a list comprehension has a frame of its own.
            (own("int(c)", 45, "main.<locals>.<listcomp>"), own("[", 44, "main")),
        ],
    )
    def test_making_the_objects_counts(self, frames):
        finding = found(known_activity, ranks(seen(EXCHANGED, 20.0), seen(frames, 15.0)))
        place = f"train.py:{45 if len(frames) == 1 else 44}"
        assert finding.sentence.endswith(
            f"at train.py:47. Making these objects at {place} took another 15 %."
        )
        assert finding.regain_percent == (pytest.approx(17.5), pytest.approx(33.25))

    def test_objects_that_the_exchange_itself_makes(self):
        made = (own("s.softmax(1).tolist()", 47, "main"),)
        finding = found(known_activity, ranks(seen(EXCHANGED, 6.0), seen(made, 15.0)))
        assert finding.sentence.endswith("Making these objects at train.py:47 took another 15 %.")

    def test_making_arrays_of_the_objects_counts(self):
        read = seen((own("torch.tensor(scores)", 50, "main"),), 15.0)
        made = ranks(seen(EXCHANGED, 6.0), read)
        finding = found(known_activity, made)
        assert finding.sentence == (
            "Exchanging Python objects between ranks took 6 % of the time, at train.py:47. Making "
            "arrays from these objects at train.py:50 took another 15 %."
        )
        assert judged(ranks_wait_for_each_other, made) == []

    @pytest.mark.parametrize(("line", "function"), [(70, "main"), (50, "evaluate"), (40, "main")])
    def test_arrays_of_other_lists(self, line, function):
        read = seen((own("torch.tensor(scores)", line, function),), 15.0)
        first, *_ = judged(known_activity, ranks(seen(EXCHANGED, 20.0), read))
        assert "Making" not in first.sentence

    @pytest.mark.parametrize(
        "frames",
        [
            (own("loss.item()", 55, "main"),),  # after the exchange
            (own("s.tolist()", 30, "main"),),  # far before it
            (own("s.tolist()", 45, "evaluate"),),  # in another function
            (own("model(x)", 44, "main"),),
        ],
    )
    def test_other_lines_do_not_make_them(self, frames):
        first, *_ = judged(known_activity, ranks(seen(EXCHANGED, 20.0), seen(frames, 15.0)))
        assert first.sentence.endswith("took 20 % of the time, at train.py:47.")
