"""What `teho compare` prints and writes."""

from __future__ import annotations

import json

import jsonschema
import pytest
from msgspec.structs import replace

from experiment.samples import NO_ENERGY, broken, paced, place, runs, whole, whole_runs
from show.golden import FOLDER, ROOT, check
from teho.experiment.compare import summed_up
from teho.experiment.verdict import Terms, judge
from teho.model.compared import Compared, Point, Sample
from teho.show.build.compare import compare_document
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import render_text

NOISE = {"a": (0.99, 1.0, 1.02), "b": (1.01, 0.99, 1.0), "c": (1.0, 1.02, 0.99)}
TERMS = Terms({"cpu:1": 1, "cpu:16": 16, "gpu:1": 75}, {1: 75})


def steps(name: str, pace: float, start_s: float, power_w: float, **more: float) -> list[Sample]:
    return [
        replace(
            paced(pace * by, fixed_s=start_s * by, steps_per_epoch=39.0, **more),
            run=f"{name}-{by}", energy_j=10 * power_w,
        )
        for by in NOISE[name]
    ]  # fmt: skip


def about(*points: Point, swept: str = "", notes: tuple[str, ...] = ()) -> Compared:
    return summed_up(
        points, swept, id="1f0c2a9b", command=("python", "träin.py", "\udcff"), site="Birch",
        cost_unit="BU", notes=notes, elapsed_s=400.0,
    )  # fmt: skip


@pytest.fixture
def training() -> Compared:
    point = judge(
        {
            place("cpu:1"): steps("a", 1.2, 2.1, 180),
            place("cpu:16"): steps("b", 9.9, 2.2, 320, import_s=1.1),
            place("gpu:1"): steps("c", 161, 9.7, 510, import_s=1.2, compile_s=6.0, copy_s=0.04),
            place("gpu:8"): [broken("the run ended with exit code 1: [x] no memory")],
        },
        TERMS,
    )
    return about(point, notes=("gpu:16 was left out: this job has only 8 GPUs.",))


@pytest.fixture
def fit() -> Compared:
    by_rows = {1e3: (0.1, 2.0), 1e4: (1.1, 2.1), 1e5: (10.3, 2.9)}
    points = [
        judge(
            whole_runs(cpu_8=[0.99 / cpu_s, 1 / cpu_s, 1.01 / cpu_s], gpu_1=[1 / gpu_s] * 3),
            Terms({}, {}),
            rows,
        )
        for rows, (cpu_s, gpu_s) in by_rows.items()
    ]
    return about(*points, swept="rows")


def render_compared(compared: Compared, *, width: int, detail: str = "default") -> str:
    return render_text(compare_document(compared), width=width, color=False, detail=detail)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["training", "fit"])
def test_on_a_terminal(name: str, width: int, request: pytest.FixtureRequest) -> None:
    text = render_compared(request.getfixturevalue(name), width=width)
    assert max(map(len, text.splitlines())) <= width
    check(FOLDER / f"compare-{name}-{width}.txt", text)


def test_the_page_shows_what_is_printed(training: Compared) -> None:
    page = (ROOT / "docs" / "compare.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert render_compared(training, width=100).startswith(shown)


def test_nothing_measured_is_a_verdict_and_its_reasons() -> None:
    found = about(judge(runs(cpu_1=[broken()], gpu_1=[]), Terms({}, {})))
    assert render_compared(found, width=80) == (
        "? Not enough evidence: none of the variants could be measured\n\n"
        "Not measured\n"
        "  ✗ cpu:1: it ended with exit code 3\n"
        "  ✗ gpu:1: the time limit was too short for this run\n"
    )


def test_what_was_not_measured_has_no_column() -> None:
    point = judge(whole_runs(cpu_1=[1.0] * 3, cpu_2=[2.0] * 3), Terms({}, {}))
    lines = render_compared(about(point), width=80).splitlines()
    assert lines[3:5] == ["Measurements  runs 3", "on       time  speed  95 % interval"]


def test_energy_that_one_variant_lacks_is_missing_and_not_zero() -> None:
    known = [replace(whole(1.0), energy_j=3600.0)] * 3
    point = judge(runs(cpu_1=known, cpu_2=[whole(0.5)] * 3), Terms({}, {}))
    text = render_compared(about(point), width=120)
    assert "1.00 Wh" in text
    assert str(NO_ENERGY) in text
    assert "0.00 Wh" not in text


def test_batches_are_not_batchs() -> None:
    one, other = [paced(5, unit="batch")] * 3, [paced(6, unit="batch")] * 3
    point = judge(runs(cpu_1=one, cpu_2=other), Terms({}, {}))
    assert "5 batches/s" in render_compared(about(point), width=80)


def test_the_recordings_are_a_command_away(training: Compared) -> None:
    text = render_compared(training, width=200)
    assert "`teho list --tag compare=1f0c2a9b` shows all recordings. `teho report a-0.99`" in text


@pytest.mark.parametrize("name", ["training", "fit"])
def test_json_is_what_its_schema_says(name: str, request: pytest.FixtureRequest) -> None:
    answer = json.loads(render_noun(request.getfixturevalue(name)))
    jsonschema.validate(answer, schema_of(Compared))
    assert answer["schema"] == "teho.compare/1"
    assert answer["command"][2] == "\\udcff"
    assert answer["points"][0]["variants"][0]["speed"] is None


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("training", ["1 core", "16 cores", "1 GPU", "times as fast as 1 core", "134×"]),
        ("fit", ["8 cores", "1 GPU", "rows", "1,000", "100,000"]),
    ],
)
def test_the_picture_names_what_it_shows(
    name: str, labels: list[str], request: pytest.FixtureRequest
) -> None:
    """Skipped without the extra `plots`."""
    pytest.importorskip("matplotlib")
    from teho.show.plot.compare import draw_compared

    compared = request.getfixturevalue(name)
    svg = draw_compared(compared, "svg").decode()
    assert all(f">{label}<" in svg for label in labels)
    assert draw_compared(compared, "svg").decode() == svg
    assert draw_compared(compared, "png").startswith(b"\x89PNG")


def test_bars_have_the_intervals_of_the_speeds(training: Compared) -> None:
    """Skipped without the extra `plots`."""
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    from teho.show.plot.compare import _bars

    variants = [one for one in training.points[0].variants if one.rates]
    _bars(axes, variants)
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(
        [1.0, *(one.speed.times for one in variants[1:])]
    )
    errors = [one.lines[2][0] for one in axes.containers if hasattr(one, "has_yerr")]
    assert [list(one.get_segments()[0][:, 1]) for one in errors] == [
        pytest.approx([one.speed.low, one.speed.high]) for one in variants[1:]
    ]


def test_times_of_whole_runs_and_of_steps_are_no_line() -> None:
    """Skipped without the extra `plots`."""
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    from teho.show.plot.compare import _lines

    ended = judge(whole_runs(cpu_1=[1.0] * 3, gpu_1=[0.5] * 3), Terms({}, {}), 10.0)
    paces = [
        judge(runs(cpu_1=[paced(500.0)] * 3, gpu_1=[paced(900.0)] * 3), Terms({}, {}), value)
        for value in (100.0, 1000.0)
    ]
    _lines(axes, about(ended, *paces, swept="rows"))
    assert axes.get_ylabel() == "time per step"
    assert [list(line.get_xdata()) for line in axes.lines[:2]] == [[100.0, 1000.0]] * 2
