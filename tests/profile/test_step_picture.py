"""The picture of one step: what is drawn is what the tables say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from profile_traces import ON_GPU, call, copy, kernel, mark, operator, path_of, step, write
from teho.model.trace import StepPicture
from teho.profile.judge import judged
from teho.profile.summary import read_trace
from teho.show.build.profile import profile_document
from teho.show.html.page import render_html
from teho.show.html.step import step_section

LEARN = Path(__file__).parents[2] / "examples" / "learn" / "runs"


def picture_of(folder: Path, *events) -> StepPicture:
    return read_trace(write(folder, events)).picture


def lanes_of(picture: StepPicture) -> dict[str, dict[str, float]]:
    """Return the time of each band, in µs."""
    return {
        lane.label: {band.label: round(band.time_s * 1e6, 3) for band in lane.bands}
        for lane in picture.lanes
    }


def test_the_lanes_of_a_small_step(tmp_path: Path) -> None:
    picture = picture_of(
        tmp_path, step(4, 0, 480), mark("enumerate(DataLoader)#x", 0, 48),
        operator("aten::mm", 96, 144), call(1, 100, 105), copy(2, 50, 60), kernel(1, 144, 240),
        call(2, 48, 50), kernel(3, 240, 288, "void softmax_warp_forward<float>(float*)"),
        call(3, 110, 115),
    )  # fmt: skip
    assert (picture.step, picture.device, picture.elapsed_s) == (4, 0, pytest.approx(480e-6))
    assert lanes_of(picture) == {
        "CPU": {"waiting for data": 48, "other operators": 48},
        "GPU 0, computing": {"matmul": 96, "reduction": 48},
        "GPU 0, copying": {"copies and fills": 10},
        "GPU 0, idle": {"nothing launched yet": 278, "waiting for data": 48},
    }
    (matmul, _) = picture.lanes[1].bands
    assert matmul.shares == [0] * 144 + [1] * 96 + [0] * 240  # one part is one µs


def test_a_part_of_a_part(tmp_path: Path) -> None:
    picture = picture_of(tmp_path, step(4, 0, 960), call(1, 0, 1), kernel(1, 101, 104.5))
    (matmul,) = picture.lanes[0].bands
    assert {place: share for place, share in enumerate(matmul.shares) if share} == {
        50: 0.5, 51: 1, 52: 0.25,
    }  # fmt: skip


def test_work_of_two_streams_is_drawn_once(tmp_path: Path) -> None:
    picture = picture_of(
        tmp_path, step(4, 0, 480), call(1, 0, 1), call(2, 1, 2), kernel(1, 100, 300),
        kernel(2, 200, 350, "void softmax_warp_forward<float>(float*)", stream=8),
    )  # fmt: skip
    assert lanes_of(picture)["GPU 0, computing"] == {"matmul": 200, "reduction": 50}


def test_the_step_of_median_length_is_drawn(tmp_path: Path) -> None:
    steps = [step(1, 0, 100), step(2, 100, 400), step(3, 400, 600)]
    assert picture_of(tmp_path, *steps, call(1, 0, 1), kernel(1, 2, 500)).step == 3


def test_without_a_gpu_nothing_is_drawn(tmp_path: Path) -> None:
    assert picture_of(tmp_path, step(1, 0, 100), operator("aten::mm", 0, 50)) is None
    assert step_section(None) == ""


@pytest.mark.parametrize("name", ON_GPU)
def test_the_picture_of_a_real_trace_agrees_with_the_parts_of_its_step(name: str) -> None:
    trace = read_trace(path_of(name))
    picture = trace.picture
    (parts,) = (one.parts for one in trace.devices[0].steps if one.number == picture.step)
    times = {
        lane.label.partition(", ")[2]: sum(band.time_s for band in lane.bands)
        for lane in picture.lanes
    }
    assert times["computing"] == pytest.approx(parts.compute_s, abs=1e-9)
    assert times["copying"] == pytest.approx(parts.copy_s, abs=1e-9)
    assert times["idle"] == pytest.approx(parts.idle_s, abs=1e-9)
    for lane in picture.lanes:
        for band in lane.bands:
            drawn_s = sum(band.shares) / len(band.shares) * picture.elapsed_s
            assert drawn_s == pytest.approx(band.time_s, abs=0.0006 * picture.elapsed_s)
    longest = max(picture.pauses, key=lambda one: one.time_s)
    assert 0 <= longest.after_s < picture.elapsed_s
    assert longest.time_s <= parts.idle_s


@pytest.mark.parametrize("name", ["conv", "lm-stacks"])
def test_the_areas_of_the_drawing_are_the_times(name: str) -> None:
    picture = read_trace(path_of(name)).picture
    page = step_section(picture)
    strips = re.findall(r'<svg class="strip".*?</svg>', page, re.DOTALL)
    assert len(strips) == len(picture.lanes)
    for strip, lane in zip(strips, picture.lanes, strict=True):
        paths = re.findall(r' d="([^"]*)"', strip)
        for path, band in zip(paths, lane.bands, strict=True):
            boxes = re.findall(r"M(\d+) (\d+)H(\d+)V(\d+)H\1z", path)
            assert "".join(f"M{a} {b}H{c}V{d}H{a}z" for a, b, c, d in boxes) == path
            area = sum((int(c) - int(a)) * (int(d) - int(b)) for a, b, c, d in boxes)
            share = area / (len(band.shares) * 36)
            assert share == pytest.approx(band.time_s / picture.elapsed_s, abs=0.01)


def test_the_page_has_the_drawing_and_no_outside_address() -> None:
    trace = read_trace(path_of("conv"))
    page = render_html(profile_document(judged((trace,))))
    assert "One step over time" in page
    assert 'aria-label="GPU 0, idle over step' in page
    assert "://" not in page
    assert len(page) < 200_000


def test_a_label_has_one_color_and_the_bands_of_a_strip_have_different_ones() -> None:
    picture = read_trace(path_of("conv-pageable-item")).picture
    legends = re.findall(r'<p class="lane">.*?</p>', step_section(picture))
    colors: dict[str, set[str]] = {}
    for legend in legends:
        found = re.findall(r'class="(c\d)"><i></i>(.*?) [\d.]+', legend)
        assert len({color for color, _ in found}) == len(found)
        for color, label in found:
            colors.setdefault(label, set()).add(color)
    assert {"waiting for data", "optimizer"} <= set(colors)
    assert all(len(one) == 1 for one in colors.values())


def test_the_report_of_a_run_has_its_trace(teho, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(LEARN / "20261122-100700-tiny-kernels-83zy", run)
    (run / "traces").mkdir()
    trace = run / "traces" / "c1-1-0-abc123.json.gz"
    shutil.copy(path_of("conv"), trace)
    answer = json.loads(teho("report", run, "--format", "json").stdout)
    (own,) = (one for one in answer["findings"] if one["kind"] == "trace")
    assert own["sentence"].startswith("The GPU was idle for 80 % of a step")
    assert answer["step"]["step"] == 7
    page = tmp_path / "page.html"
    assert teho("report", run, "-o", page).returncode == 0
    assert 'aria-label="GPU 0, computing over step 7' in page.read_text()
    text = teho("report", run).stdout
    assert "The GPU was idle for 80 % of a step" in " ".join(text.split())
    trace.write_bytes(trace.read_bytes()[:9000])
    damaged = json.loads(teho("report", run, "--format", "json").stdout)
    assert damaged["step"] is None
    assert "is truncated" in damaged["notes"][-1]
