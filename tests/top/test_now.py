"""The newest values: rates, ages, and why a value is missing."""

from __future__ import annotations

import re

import msgspec
import pytest

from teho.explain import now
from teho.explain.now import NewestValues, power_reported_by, total_power_w, worst_first_key
from teho.explain.pace import recent_pace
from teho.explain.rules.energy import gpu_throttled
from teho.model.device import GpuState
from teho.model.live import GpuNow, LiveSample, NodeNow
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Run
from teho.model.watched import Progress
from teho.observe.viewer import Received, Way
from teho.show.top.frame import Frame
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
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


@pytest.mark.parametrize("age_s", [100.0, 220.0])
def test_in_a_large_job_the_values_of_seldom_files_are_shown(age_s: float) -> None:
    """Each of 1,250 nodes replaces its file every 104 s, if it cannot reach the viewer."""
    described = frame({"n1": [90.0]}).nodes[0].node
    nodes = tuple(msgspec.structs.replace(described, name=f"n{place}") for place in range(1, 1251))
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="n1", nodes=nodes)
    came = Received(sample(described, 9.0, [90.0]), 1000.0 - age_s, None, "file")
    first, *others = NewestValues().nodes(run, {"n1": came}, 1000.0)
    assert first.age_s == age_s
    assert first.is_silent is (age_s > 209.0)
    assert all(node.is_silent for node in others)


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


def with_gpu(shown: Frame, name: str, **values: float) -> NodeNow:
    """Return a node whose second GPU has further values in its newest sample."""
    found = shown.node(name)
    assert found is not None
    described = found.node
    newest = sample(described, 100.0, [90.0] * len(described.devices))
    rows = [dict(row) for row in newest.rows]
    rows[2] |= values
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host=name,
              nodes=(described,))  # fmt: skip
    received = Received(
        msgspec.structs.replace(newest, rows=rows), 999.0, sample(described, 99.0, [90.0] * 2),
        "connection",
    )  # fmt: skip
    (changed,) = NewestValues().nodes(run, {name: received}, 1000.0)
    return changed


@pytest.mark.parametrize(
    ("values", "has_fault"),
    [
        ({"gpu_ecc_uncorrected": 1.0}, True),
        ({"gpu_xid_errors": 1.0}, True),
        ({"gpu_thermal_throttle_percent": 5.0}, True),
        # Each of these is usual.
        ({"gpu_thermal_throttle_percent": 4.9}, False),
        ({"gpu_power_throttle_percent": 100.0}, False),
        ({"gpu_ecc_corrected": 9.0, "gpu_ecc_uncorrected": 0.0, "gpu_xid_errors": 0.0}, False),
        ({}, False),
    ],
)
def test_a_node_with_a_faulty_gpu_is_before_idle_nodes(
    values: dict[str, float], has_fault: bool
) -> None:
    shown = frame({"n1": [90.0, 90.0], "n2": [3.0, 3.0], "n3": [90.0, None]})
    nodes = [with_gpu(shown, "n1", **values), *shown.nodes[1:]]
    order = [node.node.name for node in sorted(nodes, key=worst_first_key)]
    assert order == (["n3", "n1", "n2"] if has_fault else ["n3", "n2", "n1"])
    lines = [row.line.plain for row in JobLines().view(nodes, 100).rows]
    assert [line.partition(" ")[0] for line in lines] == ["n1!" if has_fault else "n1", "n2", "n3"]


def test_heat_counts_from_the_limit_of_the_report_on() -> None:
    assert gpu_throttled.THRESHOLDS["thermal_percent"].value == now._HEAT_PERCENT


def test_an_opened_node_shows_what_is_wrong_on_each_screen() -> None:
    shown = frame({"n1": [90.0, 90.0]})
    values = {
        "gpu_thermal_throttle_percent": 40.0, "gpu_power_throttle_percent": 20.0,
        "gpu_sm_clock_mhz": 1410.0, "gpu_ecc_uncorrected": 2.0, "gpu_xid_errors": 1.0,
    }  # fmt: skip
    faulty = shown._replace(nodes=(with_gpu(shown, "n1", **values),))
    wide, narrow = (
        [row.line.plain for row in node_view(faulty, "n1", width).rows] for width in (117, 77)
    )
    assert wide[0].split()[-5:] == ["P", "SLOWED", "BY", "CLOCK", "ECC"]
    assert re.search(r" heat 40 %  1,410 MHz    2$", wide[2].partition("  NVIDIA")[0])
    assert re.search(r" –          –    –$", wide[1].partition("  NVIDIA")[0])
    assert "Uncorrected memory errors       2 (GPU 1)" in wide
    assert "Xid errors                      1 (GPU 1)" in wide
    assert not any("Slowed" in line for line in wide)
    assert "CLOCK" not in narrow[0]
    for line in (
        "Slowed by heat                  40 % (GPU 1)",
        "Slowed by the power cap         20 % (GPU 1)",
        "Uncorrected memory errors       2 (GPU 1)",
    ):
        assert line in narrow
    clean = [row.line.plain for row in node_view(shown, "n1", 77).rows]
    assert not any("Slowed" in line or "errors" in line for line in clean)


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
