"""`teho diff` of two traces."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profile_traces import call, kernel, path_of, step, write
from show.golden import ROOT, check
from teho.model.document import Document
from teho.profile.summary import read_traces
from teho.show.build.profile_diff import trace_diff_document
from teho.show.text.document import render_text

RUN = ROOT / "examples" / "learn" / "runs" / "20261122-100700-tiny-kernels-83zy"
GOLDEN = ROOT / "tests" / "data" / "show"


def diff(first: Path, second: Path) -> Document:
    return trace_diff_document(
        read_traces([first]), read_traces([second]), [str(first), str(second)]
    )


def rows_of(document: Document, key: str) -> dict[str, dict[str, float]]:
    (table,) = (one for one in document.tables if one.key == key)
    return {row["what"]: row for row in table.rows}


def made(folder: Path, name: str, *events) -> Path:
    place = folder / name
    place.mkdir()
    return write(place, events).rename(folder / f"{name}.json")


@pytest.mark.parametrize("detail", ["default", "why"])
def test_the_text(detail, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = path_of("conv-pageable-item"), path_of("conv")
    monkeypatch.chdir(first.parent)  # the text has the paths as they were given
    document = diff(Path(first.name), Path(second.name))
    text = render_text(document, width=80, color=False, detail=detail)
    check(GOLDEN / f"profile-diff-{detail}.txt", text)
    assert max(len(line) for line in text.splitlines() if "`teho" not in line) <= 80


def test_a_faster_kernel_and_one_that_is_gone(tmp_path: Path) -> None:
    before = made(
        tmp_path, "before", step(1, 0, 200), call(1, 0, 1), kernel(1, 2, 102), call(2, 1, 2),
        kernel(2, 102, 152, "slow"),
    )  # fmt: skip
    after = made(tmp_path, "after", step(1, 0, 100), call(1, 0, 1), kernel(1, 2, 42))
    document = diff(before, after)
    assert document.verdict == (
        "A step takes 50 % less time: 200 µs in before, 100 µs in after. The largest change: "
        '"computing" fell from 150 µs to 40.0 µs.'
    )
    kernels = rows_of(document, "kernels")
    assert list(kernels) == ["gemm", "slow"]
    assert kernels["gemm"]["difference"] == pytest.approx(-60e-6)
    assert kernels["slow"]["second"] is None  # it did not run, which is not 0
    assert kernels["slow"]["difference"] == pytest.approx(-50e-6)
    parts = rows_of(document, "parts").values()
    for key, step_s in (("first", 200e-6), ("second", 100e-6)):
        assert sum(row[key] or 0 for row in parts) == pytest.approx(step_s)


def test_equal_traces(tmp_path: Path) -> None:
    document = diff(path_of("conv"), path_of("conv"))
    assert document.verdict.startswith("A step takes about equally long: 4.92 ms in first")
    assert all(row["difference"] == 0 for row in rows_of(document, "kernels").values())


def test_a_step_that_became_slower(tmp_path: Path) -> None:
    before = made(tmp_path, "before", step(1, 0, 100), call(1, 0, 1), kernel(1, 2, 100))
    after = made(tmp_path, "after", step(1, 0, 300), call(1, 0, 1), kernel(1, 2, 100))
    assert diff(before, after).verdict == (
        "A step takes 200 % more time: 100 µs in before, 300 µs in after. The largest change: "
        '"idle, nothing launched yet" grew from 2.00 µs to 202 µs.'
    )


def test_traces_without_a_gpu_and_without_steps(tmp_path: Path) -> None:
    before = path_of("conv-cpu")
    after = made(tmp_path, "after", call(1, 0, 1), kernel(1, 2, 100))
    document = diff(before, after)
    assert "No work of a GPU is in conv-cpu." in " ".join(document.notes)
    assert "Only one of the traces has steps" in " ".join(document.notes)


def test_the_command(teho, tmp_path: Path) -> None:
    answer = teho("diff", path_of("conv-pageable-item"), path_of("conv"), "--format", "json")
    assert json.loads(answer.stdout)["verdict"].startswith("A step takes 42 % less time")
    same = teho("diff", path_of("conv"), path_of("conv").parent / "../traces/conv.json.gz")
    assert (same.returncode, same.stdout) == (2, "")
    assert "are the same trace; expected two different traces. Next: `teho profile" in same.stderr
    folder = tmp_path / "both"
    folder.mkdir()
    for rank in (0, 1):
        name = path_of(f"ddp-gloo-{rank}of2")
        (folder / name.name).symlink_to(name)
    assert teho("diff", folder, path_of("conv"), "--short").stdout.startswith("i A step takes 83 %")
    runs = [tmp_path / name for name in ("first", "second")]
    for run, case in zip(runs, ("conv-pageable-item", "conv"), strict=True):
        shutil.copytree(RUN, run)
        (run / "traces").mkdir()
        shutil.copy(path_of(case), run / "traces" / "c1-1-0-abc123.json.gz")
    said = teho("diff", "--traces", *runs, "--short").stdout
    assert said.startswith("i A step takes 42 % less time: 8.52 ms in first, 4.92 ms in second.")
    without = teho("diff", "--traces", runs[0], RUN)
    assert (without.returncode, without.stdout) == (2, "")
    assert "has no trace; expected a run that" in without.stderr
    missing = teho("diff", path_of("conv"), tmp_path / "none")
    assert missing.returncode == 2
    assert "is not a file, and" in missing.stderr


def test_traces_of_different_gpus(tmp_path: Path) -> None:
    place = tmp_path / "other"
    place.mkdir()
    other = write(place, [step(1, 0, 100), call(1, 0, 1), kernel(1, 2, 100)],
                  deviceProperties=[{"id": 0, "name": "AMD Instinct MI250X"}])  # fmt: skip
    notes = diff(path_of("conv"), other).notes
    assert "The traces are from different GPUs, so the same program has other kernels." in notes


def test_kernels_of_two_programs(tmp_path: Path) -> None:
    before = made(
        tmp_path, "before", step(1, 0, 200), call(1, 0, 1), kernel(1, 2, 102), call(2, 1, 2),
        kernel(2, 102, 142, "copy"),
    )  # fmt: skip
    other = made(
        tmp_path, "other", step(1, 0, 200), call(1, 0, 1), kernel(1, 2, 152, "fft"), call(2, 1, 2),
        kernel(2, 152, 162, "copy"),
    )  # fmt: skip
    assert (
        "Kernels that only one of the traces has took 71 % of the kernel time in before and 94 % "
        "in other. So the two programs, and the work of a step, may differ."
    ) in diff(before, other).notes
    same = made(tmp_path, "same", step(1, 0, 100), call(1, 0, 1), kernel(1, 2, 100))
    assert not any("Kernels that only" in note for note in diff(before, same).notes)
