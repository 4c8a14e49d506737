"""The causes together: who gives way to whom, what all may give back, and programs of any kind."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.program_parts import (
    NODE,
    TENSORS,
    alone,
    awaiting,
    collating,
    fetching,
    idle,
    in_worker,
    loader,
    of_library,
    opening,
    own,
    process,
    seen,
    starting,
    watched,
    with_workers,
    worker,
)
from explain.program_scenarios import WATCHED, node
from explain.scenario_parts import UNSUPPORTED, NodePart, figures, gpu, kinds_of, untouched_gpu
from teho.explain.judge import judge_all, judge_by
from teho.explain.policy import Policy, load_policy
from teho.explain.registry import RULES
from teho.model.finding import Abstention, Finding, Threshold
from teho.model.in_source import Repeated
from teho.model.stack import Frame, State
from teho.model.watched import Progress, Wait
from teho.show.cells import evidence_of

SAVE = (of_library("torch/serialization.py", "save"), own("torch.save(net, f)"))


def found_alone(made):
    """Return the kinds that are found where no rule gives way to another."""
    verdicts = [judge_by(rule, *made, load_policy()) for rule in RULES]
    return {
        finding.kind
        for verdict in verdicts
        if not isinstance(verdict, Abstention)
        for finding in verdict
    }


class TestGivingWay:
    @pytest.mark.parametrize(
        ("name", "muted"),
        [
            ("decodes_in_main_process", {"input_slow", "serial_program", "cores_unused"}),
            ("too_few_workers", {"input_slow"}),
            ("too_many_workers", {"input_slow"}),
            ("bound_to_two_cores", {"input_slow", "input_in_main_process", "cores_unused"}),
            ("collated_one_by_one", {"input_slow", "input_in_main_process"}),
            ("needless_workers", {"input_slow", "input_too_few_workers"}),
            ("restarted_workers", {"input_slow"}),
            ("small_files", {"input_slow", "input_in_main_process"}),
            ("reads_again", {"input_slow", "input_too_few_workers"}),
            ("skewed_samples", {"input_slow"}),
            (
                "maps_one_by_one",
                {"input_slow", "input_not_cached", "serial_program", "cores_unused"},
            ),
            ("maps_again", {"input_slow"}),
            ("slow_rank", {"input_slow", "input_in_main_process"}),
            ("cpu_build", {"gpu_never_used", "gpu_low_use"}),
        ],
    )
    def test_who_mutes_whom(self, name, muted):
        made = WATCHED[name]()
        (kind,) = kinds_of(made)
        assert found_alone(made) == {kind} | muted

    def test_waiting_for_the_gpu_if_that_has_no_effect(self):
        # `.item()` of a tensor in the host's memory looks the same.
        stacks = (
            seen((own("x.sum().item()"),), 30.0),
            seen((own("x.to(device)"),), 30.0),
        )
        steps = Progress(steps=9000, first_s=101.0, last_s=108.0)
        one = process(
            *stacks,
            loaders=[loader()],
            progress=[steps],
            torch={"parameter_bytes": 400, "cuda": "12.8"},
        )
        made = watched(one, parts=node(gpus=[untouched_gpu()]))
        causes = {"waits_for_device", "copies_from_pageable_memory", "problem_too_small"}
        assert found_alone(made) == {"gpu_never_used", "gpu_low_use"} | causes
        assert kinds_of(made) == ["gpu_never_used"]

    def test_threads_that_take_turns_on_that_node(self):
        crowded = NodePart(NODE, cores=8, cores_used=8.0, signals={"job_runnable_threads": 64.0})
        made = alone(fetching(60.0), parts=[crowded])
        assert "input_in_main_process" in found_alone(made)
        (finding,), _ = judge_all(*made, load_policy())
        assert finding.kind == "too_many_threads"
        assert finding.regain_percent == (0.0, 87.5)
        assert figures(finding)["slowest line"] == "train.py:20  decode(self.raw[i])"
        elsewhere = [
            *node(),
            NodePart("r01g02", cores=8, cores_used=8.0, signals={"job_runnable_threads": 64.0}),
        ]
        assert kinds_of(alone(fetching(60.0), parts=elsewhere)) == [
            "input_in_main_process",
            "too_many_threads",
        ]

    def test_small_problems_of_python(self):
        steps = Progress(steps=10_000, first_s=101.0, last_s=108.0)
        loop = seen((own("total += x * y"),), 60.0, State.PYTHON)
        one = process(loop, progress=[steps], torch={"parameter_bytes": 400})
        made = watched(one, parts=node(gpus=[gpu(30.0, gpu_sm_active_percent=1.0)]))
        assert "python_bound" in found_alone(made)
        assert kinds_of(made) == ["problem_too_small"]


class TestTheWhole:
    def made(self):
        """Lose 45 % for data, 30 % in saving, 60 % of all in Python; each is right by itself."""
        stacks = (
            fetching(45.0),
            seen(SAVE, 30.0),
            seen((own("total += x * y"),), 60.0, State.PYTHON),
        )
        return alone(*stacks, wall_s=100.0, parts=node(used=0.1))

    def test_is_never_more_than_there_is(self):
        findings, _ = judge_all(*self.made(), load_policy())
        assert [(one.kind, one.regain_percent) for one in findings] == [
            # A general cause comes after a specific one.
            ("input_in_main_process", (pytest.approx(22.5), pytest.approx(45.0))),
            ("saving_often", (15.0, 30.0)),
            ("python_bound", (0.0, pytest.approx(25.0))),
        ]

    def test_what_could_give_back_more_comes_first_among_equals(self):
        made = alone(fetching(30.0), seen(SAVE, 40.0), parts=node())
        assert kinds_of(made) == ["saving_often", "input_in_main_process"]
        made = alone(fetching(40.0), seen(SAVE, 30.0), parts=node())
        assert kinds_of(made) == ["input_in_main_process", "saving_often"]

    @pytest.mark.parametrize("is_same", [True, False])
    def test_workers_do_not_remove_work_that_is_repeated(self, is_same):
        again = Repeated(
            calls=(own("decode(self.raw[i])", 20, "__getitem__"),),
            loop=own("for epoch in range(9)", 70),
            last=80,
            is_same=is_same,
            periods=5,
        )
        one = process(fetching(45.0), repeated=(again,), wall_s=100.0, loaders=[loader()])
        findings, _ = judge_all(*watched(one, parts=node(used=0.1)), load_policy())
        assert [one.kind for one in findings] == ["work_repeated", "input_in_main_process"]
        assert findings[1].regain_percent is None


class TestWords:
    @pytest.mark.parametrize(
        ("regain", "said"),
        [
            ((35.2, 70.4), "35–70 % of the run time"),
            ((0.4, 61.0), "up to 61 % of the run time"),
            ((62.1, 61.9), "62 % of the run time"),
            ((0.0, 0.4), None),
            ((0.0, 0.0), None),
            (None, None),
        ],
    )
    def test_of_the_range(self, regain, said):
        (finding,), _ = judge_all(*WATCHED["saves_often"](), load_policy())
        shown = evidence_of(msgspec.structs.replace(finding, regain_percent=regain))
        assert shown[-len(finding.evidence) :] == finding.evidence
        before = shown[: -len(finding.evidence)]
        assert [(item.label, item.value) for item in before] == (
            [("could save", said)] if said else []
        )


# ---- programs of any kind ----

STACKS = st.sampled_from(
    [
        fetching, opening, collating, awaiting, starting, idle,
        lambda s: seen(SAVE, s),
        lambda s: seen((own("loss.item()"),), s),
        lambda s: seen((own("x.to(0)"),), s),
        lambda s: seen((own("x += 1"),), s, State.PYTHON),
        lambda s: seen((Frame("<frozen importlib._bootstrap>", "f", 1, ""),), s),
        lambda s: seen((), s),
        lambda s: fetching(s, in_worker()),
        lambda s: collating(s, in_worker()),
    ]
)  # fmt: skip
SECONDS = st.one_of(st.just(0.0), st.floats(0.01, 1e5))
COUNTS = st.integers(0, 200)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "batch_size": st.sampled_from([None, 0, 1, 32]),
        "num_workers": st.sampled_from([None, 0, 1, 4, 40]),
        "pin_memory": st.sampled_from([None, True, False]),
        "persistent_workers": st.sampled_from([None, True, False]),
        "is_iterable": st.sampled_from([None, True, False]),
        "samples": st.sampled_from([None, 0, 10_000]),
        "dataset": st.sampled_from([None, TENSORS, "tf.data"]),
        "dataset_bytes": st.sampled_from([None, 0, 2**30]),
    },
)
LOADERS = st.builds(
    lambda settings, kept, **facts: msgspec.structs.replace(
        given_one := loader(**facts),
        settings=settings if not kept else given_one.settings | settings,
    ),
    SETTINGS,
    st.booleans(),
    batches=COUNTS,
    epochs=COUNTS,
    made=COUNTS,
    first_s=SECONDS,
    batch_bytes=st.sampled_from([None, 0, 10**6]),
    waits=st.dictionaries(st.integers(0, 30), st.tuples(COUNTS, SECONDS), max_size=5),
)
TORCH = st.fixed_dictionaries(
    {"rank": st.integers(0, 3), "world_size": st.sampled_from([None, 1, 2, 4])},
    optional={
        "devices": st.sampled_from([None, [], ["cpu"], ["cuda:0"]]),
        "parameter_bytes": st.sampled_from([None, 0, 4000]),
        "parameter_dtypes": st.sampled_from([None, {}, {"float64": 0}, {"float64": 9}]),
        "cuda": st.sampled_from([None, "12.8"]),
    },
)
PROCESSES = st.builds(
    lambda stacks, is_worker, **facts: (worker if is_worker else process)(
        *(make(wall_s) for make, wall_s in stacks), **facts
    ),
    st.lists(st.tuples(STACKS, SECONDS), max_size=4),
    st.booleans(),
    pid=st.integers(10, 13),
    wall_s=SECONDS,
    began_s=SECONDS,
    node=st.sampled_from([NODE, "r01g02"]),
    loaders=st.lists(LOADERS, max_size=2),
    progress=st.lists(
        st.builds(
            Progress,
            steps=COUNTS,
            first_s=SECONDS,
            last_s=SECONDS,
            between=st.dictionaries(st.integers(0, 30), st.builds(Wait, COUNTS, SECONDS)),
        ),
        max_size=2,
    ),
    torch=st.one_of(st.none(), TORCH),
    cores=st.sampled_from([None, (), (0,), (0, 1, 2, 3)]),
    wait_for_core_s=st.one_of(st.none(), SECONDS),
)  # fmt: skip
FIGURES = st.one_of(st.just(UNSUPPORTED), st.sampled_from([0.0, 1e3, 2**40 * 1.0]))
PARTS = st.builds(
    lambda limit, busy, read, **facts: NodePart(
        NODE,
        gpus=[gpu(busy)] if busy is not None else [],
        memory_limit=limit,
        rates={"job_read_bytes": read, "job_read_calls_bytes": read},
        **facts,
    ),
    FIGURES,
    st.one_of(st.none(), st.just(UNSUPPORTED), st.floats(0, 100)),
    FIGURES,
    cores=st.integers(1, 8),
    cores_used=st.one_of(st.just(UNSUPPORTED), st.floats(0, 8)),
    scheduler=st.sampled_from([None, "slurm"]),
)
SHIPPED = load_policy()
STRICTEST = Policy(
    verified_on=SHIPPED.verified_on,
    thresholds={
        kind: {name: Threshold(0.0, limit.unit, limit.source) for name, limit in limits.items()}
        for kind, limits in SHIPPED.thresholds.items()
    },
)
"""What a site could set that wants to hear of everything."""


@given(st.lists(PROCESSES, max_size=4), PARTS, st.booleans())
def test_any_program_is_judged_and_no_more_is_claimed_than_there_is(processes, part, strictest):
    policy = STRICTEST if strictest else SHIPPED
    findings, abstentions = judge_all(*watched(*processes, parts=[part]), policy)
    ranges = [one.regain_percent for one in findings if one.regain_percent]
    assert all(0 <= least <= most <= 100 for least, most in ranges)
    assert sum(most for _, most in ranges) <= 100.0001
    whole = msgspec.json.decode(msgspec.json.encode(findings), type=tuple[Finding, ...])
    assert whole == findings
    assert all(one.action.count("`") % 2 == 0 for one in findings)
    assert "None" not in "".join(one.sentence for one in findings)
    assert not {one.kind for one in findings} & {one.kind for one in abstentions}


def test_workers_that_are_fast_enough_are_no_cause():
    made = with_workers(fetching(70.0, in_worker()), idle(30.0), waits_s=9.0, parts=node())
    assert found_alone(made) == set()
