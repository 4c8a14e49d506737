"""What `teho scale` prints, writes and draws."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from teho.model.scaled import CurvePoint, Estimate, Fit, Scaled, ScaleStep, Size, SizeRun
from teho.show.build.scale import fit_words, scale_document
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import render_text


def size(n: int, wall_s: float, speed_up: Estimate, *, energy_j: float, cost: float) -> Size:
    run = SizeRun(
        wall_s=wall_s, work_per_s=1 / wall_s, energy_j=energy_j, cost=cost, exit_code=0,
        recording=f"run-{n}",
    )  # fmt: skip
    return Size(
        n=n, runs=(run, run), work_per_s=Estimate(value=1 / wall_s), wall_s=wall_s,
        speed_up=speed_up, efficiency_percent=100 * speed_up.value / n, energy_j=energy_j,
        cost=cost, energy_ratio=energy_j / 3600, bill_ratio=cost / 0.3,
    )  # fmt: skip


FIT = Fit(
    law="usl",
    one_work_per_s=Estimate(value=0.01, low=0.009, high=0.011),
    contention=Estimate(value=0.05, low=0.02, high=0.085),
    coherency=Estimate(value=0.0125, low=0.0, high=0.018),
    off_percent=0.61,
    curve=(CurvePoint(1, 1.0, 0.9, 1.1), CurvePoint(2, 1.8, 1.7, 1.9), CurvePoint(4, 2.6, 2, 3)),
)
SCALED = Scaled(
    command=("torchrun", "träin.py", "\udcff"),
    kind="strong",
    worker="GPU",
    unit="run",
    outcome="pays_to",
    efficient_n=2,
    verdict="It pays up to 2 GPUs: 1.80 times as fast as 1 (95 % confidence: 1.70 to 1.90)",
    base_n=1,
    sizes=(
        size(1, 100.0, Estimate(value=1.0, low=1.0, high=1.0), energy_j=3600, cost=0.3),
        size(2, 55.6, Estimate(value=1.8, low=1.7, high=1.9), energy_j=4000, cost=0.33),
        Size(
            n=4,
            runs=(
                SizeRun(wall_s=2.0, exit_code=1, why="it ended with [x]"),
                SizeRun(wall_s=2.0, exit_code=1, why="it ended with [x]"),
                SizeRun(wall_s=0.0, why="there are 3 GPUs"),
            ),
        ),
    ),
    steps=(
        ScaleStep(from_n=1, to_n=2, speed=Estimate(value=1.8, low=1.7, high=1.9), bill_ratio=1.1,
                  needed=1.5, is_efficient=True),
        ScaleStep(from_n=2, to_n=3, speed=Estimate(value=1.2), bill_ratio=1.25, needed=1.27,
                  is_efficient=None),
    ),
    fits=(FIT,),
    cost_unit="BU",
    notes=("A remark.",),
    elapsed_s=500.0,
)  # fmt: skip
TEXT = """\
✓ It pays up to 2 GPUs: 1.80 times as fast as 1 (95 % confidence: 1.70 to 1.90)
  Strong scaling: all runs do the same work.

Measurements  runs 2
GPUs        time  speed-up  95 % interval  efficiency   energy  cost, BU  bill
   1  1 min 40 s      1.00  –                   100 %  1.00 Wh     0.300  1.00
   2      55.6 s      1.80  1.70 to 1.90         90 %  1.11 Wh     0.330  1.10

Gain of each increase
GPUs   speed  95 % interval  needed  bill  enough
1 → 2   1.80  1.70 to 1.90     1.50  1.10  yes
2 → 3   1.20  –                1.27  1.25  not yet clear

Fitted law
  Universal Scalability Law: contention (work that does not run in parallel)
    5.0 % (95 % confidence: 2.0 to 8.5), coherency (exchange of data) 0.013 (95
    % confidence: 0 to 0.018). The law differs from the measurements by at most
    0.6 %.

Not measured
  ✗ 4 GPUs: 2 of 3 runs: it ended with [x]
  ✗ 4 GPUs: 1 of 3 runs: there are 3 GPUs

  A remark.
"""


def text(scaled: Scaled, width: int = 80) -> str:
    return render_text(scale_document(scaled), width=width, color=False)


def test_the_verdict_comes_first() -> None:
    assert text(SCALED) == TEXT


def test_without_energy_or_cost_there_are_no_such_columns() -> None:
    sizes = tuple(msgspec.structs.replace(one, energy_j=None, cost=None) for one in SCALED.sizes)
    lines = text(msgspec.structs.replace(SCALED, sizes=sizes, cost_unit="")).splitlines()
    assert "GPUs        time  speed-up  95 % interval  efficiency  bill" in lines


def test_a_pace_replaces_the_time_if_windows_were_measured() -> None:
    shown = text(msgspec.structs.replace(SCALED, unit="step", kind="weak"))
    assert "   2   0.0180 " in shown
    assert "1 min 40 s" not in shown
    assert "Weak scaling: in all runs, each GPU or core does the same amount of work." in shown
    # Each run did the work of one step.
    assert "Measurements; energy and cost are for 1,000 steps  runs 2" in shown
    assert "1.00 kWh" in shown
    assert "1.11 kWh" in shown


def test_nothing_measured_is_a_verdict_and_the_reasons() -> None:
    scaled = Scaled(
        command=("x",), kind="strong", worker="rank", unit="run", elapsed_s=1.0,
        outcome="not_enough_evidence", verdict="Nothing is known",
        sizes=(Size(n=1, runs=(SizeRun(wall_s=0.1, why="no such file"),)),),
    )  # fmt: skip
    assert text(scaled) == (
        "? Nothing is known\n"
        "  Strong scaling: all runs do the same work.\n\n"
        "Not measured\n"
        "  ✗ 1 rank: no such file\n"
    )


@pytest.mark.parametrize(("high", "shown"), [(30.0, "12 to 30"), (None, "12 or more")])
def test_a_peak_is_shown_with_its_interval(high: float | None, shown: str) -> None:
    peak = Estimate(value=21.0, low=12.0, high=high)
    said = fit_words(msgspec.structs.replace(FIT, peak_n=peak), "rank")
    assert f". Fastest at 21 ranks ({shown})." in said


def test_amdahls_law_has_no_coherency() -> None:
    said = fit_words(msgspec.structs.replace(FIT, law="amdahl", coherency=None), "GPU")
    assert said == (
        "Amdahl's law: contention (work that does not run in parallel) 5.0 % (95 % confidence: "
        "2.0 to 8.5). The law differs from the measurements by at most 0.6 %."
    )


def test_json_is_what_its_schema_says() -> None:
    answer = json.loads(render_noun(SCALED))
    jsonschema.validate(answer, schema_of(Scaled))
    assert answer["schema"] == "teho.scale/1"
    assert answer["command"][2] == "\\udcff"
    assert answer["sizes"][2]["speed_up"] is None
    assert answer["steps"][1]["pays"] is None
    assert answer["fits"][0]["curve"][1] == [2, 1.8, 1.7, 1.9]
    assert msgspec.json.decode(json.dumps(answer), type=Scaled).fits == SCALED.fits


class TestPicture:
    """Skipped without the extra `plots`."""

    @pytest.fixture
    def axes(self):
        figure = pytest.importorskip("matplotlib.figure")
        return figure.Figure().subplots()

    def test_it_shows_runs_ideal_and_fit(self, axes) -> None:
        from teho.show.plot.scale import paint_scaled

        paint_scaled(axes, SCALED)
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [
            "ideal", "Universal Scalability Law", "measured, 95 %",
        ]  # fmt: skip
        ideal, inside, beyond = axes.lines[:3]
        assert list(ideal.get_ydata()) == [1.0, 2.0]
        assert list(inside.get_xdata()) == [1, 2]
        assert list(beyond.get_xdata()) == [2, 4]
        assert beyond.get_linestyle() == "--"
        ((bars,),) = (container.lines[2] for container in axes.containers)
        assert [list(ends[:, 1]) for ends in bars.get_segments()] == [
            pytest.approx([1.0, 1.0]), pytest.approx([1.7, 1.9]),
        ]  # fmt: skip
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]

    def test_nothing_measured_is_an_empty_picture(self, axes) -> None:
        from teho.show.plot.scale import paint_scaled

        paint_scaled(axes, msgspec.structs.replace(SCALED, sizes=SCALED.sizes[2:], fits=()))
        assert not list(axes.lines)
