"""The newest values: rates, ages, and why a value is missing."""

from __future__ import annotations

import msgspec
import pytest

from teho.explain.now import NewestValues, power_reported_by, total_power_w, worst_first_key
from teho.explain.pace import recent_pace
from teho.model.device import GpuState
from teho.model.live import GpuNow, LiveSample
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Run
from teho.model.watched import Progress
from teho.observe.viewer import Received, Way
from top.frames import AT, NO_SM, WATCHED, frame, sample


def test_a_counter_is_its_increase_per_second() -> None:
    (node,) = frame({"n1": [90.0]}).nodes
    assert node.values["job_cpu_s"] == 6.0
    assert node.values["cpu_busy_percent"] == 75.0
    assert node.age_s == 1.0


def test_a_missing_value_has_the_reason_of_the_recorder() -> None:
    (node,) = frame({"n1": [90.0]}).nodes
    assert node.gpus[0].values["gpu_sm_active_percent"] == NO_SM


def test_a_value_that_the_sample_lacks_is_not_an_old_one() -> None:
    (node,) = frame({"n1": [None]}).nodes
    lost = node.gpus[0].values["gpu_busy_percent"]
    assert isinstance(lost, Missing)
    assert lost.reason is Reason.UNRECORDED


def test_a_p_state_comes_only_with_a_sample() -> None:
    (described,) = (node.node for node in frame({"n1": [90.0]}).nodes)
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="n1",
              nodes=(described,))  # fmt: skip
    device = described.devices[0].id
    state = GpuState(p_state=2, unlisted={"MPS": NO_SM})
    sent = msgspec.structs.replace(sample(described, 9.0, [90.0]), gpus={device: state})

    def gpu_of(made: LiveSample | None, way: Way) -> GpuNow:
        newest = {"n1": Received(made, 1000.0, None, way)} if made else {}
        (node,) = NewestValues().nodes(run, newest, 1000.0)
        return node.gpus[0]

    assert gpu_of(sent, "connection").p_state == 2
    assert gpu_of(sent, "file").unlisted == {"MPS": NO_SM}
    without = sample(described, 9.0, [90.0])
    for made, way, words in (
        (without, "recording", "shown only while the run is running"),
        (without, "connection", "the newest sample does not contain"),  # from an older recorder
        (None, "connection", "this node has sent no sample"),
    ):
        p_state = gpu_of(made, way).p_state
        assert isinstance(p_state, Missing)
        assert p_state.reason is Reason.UNRECORDED
        assert words in p_state.detail


def test_a_node_without_a_sample_has_no_values() -> None:
    shown = frame({"n1": [90.0]}, missing=["n2"])
    node = shown.node("n2")
    assert node is not None
    assert node.age_s is None
    assert all(isinstance(value, Missing) for value in node.values.values())
    assert node.is_silent


def test_the_worst_nodes_are_first() -> None:
    shown = frame(
        {
            "n1": [90.0, 91.0],
            "n2": [95.0, 3.0],
            "n3": [99.0, 99.0],
            "n4": [50.0, 50.0],
            "n5": [99.0, None],
            "n6": [None, None],
        },
        ages_s={"n3": 13.0},
    )
    order = [node.node.name for node in sorted(shown.nodes, key=worst_first_key)]
    assert order == ["n3", "n5", "n2", "n4", "n6", "n1"]


@pytest.mark.parametrize(
    ("steps", "until_s", "expected"),
    [
        ([(10, 100.0), (20, 110.0), (32, 160.0)], 170.0, 12 / 50),  # steps 20 to 32 in 50 s
        ([(10, 100.0), (20, 110.0)], 120.0, None),  # 20 s of steps
        ([(10, 100.0), (100, 190.0)], 290.0, 0.0),  # one step per second, then none
        ([(2, 100.0), (3, 200.0)], 290.0, None),  # a step takes 100 s
        ([(10, 100.0)], 290.0, None),
    ],
)
def test_the_pace_of_the_last_minute(
    steps: list[tuple[int, float]], until_s: float, expected: float | None
) -> None:
    progress = tuple(Progress(steps=count, first_s=0.0, last_s=at_s) for count, at_s in steps)
    process = msgspec.structs.replace(WATCHED, progress=progress, until_s=until_s)
    assert recent_pace(process) == expected


def test_a_card_whose_power_only_one_of_its_gpus_reports() -> None:
    (node,) = frame({"n1": [90.0, 90.0]}).nodes
    first, second = node.gpus
    pair = [
        msgspec.structs.replace(
            gpu, device=msgspec.structs.replace(gpu.device, package_id="card"), values=values
        )
        for gpu, values in ((first, first.values), (second, {"gpu_power_w": NO_SM}))
    ]
    card = msgspec.structs.replace(node, gpus=tuple(pair))
    assert total_power_w(card) == 600.0
    assert power_reported_by(card, pair[1]) == pair[0]
    assert power_reported_by(card, pair[0]) is None
    assert total_power_w(msgspec.structs.replace(card, gpus=(pair[1],))) is None
    assert total_power_w(msgspec.structs.replace(node, gpus=())) is None
