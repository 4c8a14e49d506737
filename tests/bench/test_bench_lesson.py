"""The lesson about sizes shows a GPU as soon as one was measured, and says so while none was."""

from __future__ import annotations

import shlex
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest
from gpu_scenario import made_up

from pages import ROOT
from support import TEHO
from teho.model.bench import Bench
from test_docs import generator


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return docs/generate.py, for which no stage of a GPU has been kept."""
    module = generator()
    monkeypatch.setattr(module, "HERE", tmp_path / "docs")
    monkeypatch.setattr(module.gpu_page, "BENCHES", tmp_path / "results" / "bench")
    return module


def keep(module, bench: Bench) -> Path:
    module.gpu_page.BENCHES.mkdir(parents=True, exist_ok=True)
    path = module.gpu_page.BENCHES / "solve.json"
    path.write_bytes(msgspec.json.encode(bench))
    return path


def test_without_a_measured_gpu_the_lesson_says_so(docs) -> None:
    assert "**No GPU has been measured yet**" in docs.lesson_page()
    (measured,) = made_up().results
    on_cpus = tuple(one for one in measured.timings if one.placement != "gpu:1")
    keep(docs, msgspec.structs.replace(
        made_up(), results=(msgspec.structs.replace(measured, timings=on_cpus),)
    ))  # fmt: skip
    assert "**No GPU has been measured yet**" in docs.lesson_page()


def test_a_measured_gpu_has_its_columns_in_the_lesson(docs, tmp_path: Path) -> None:
    path = keep(docs, made_up())
    page = docs.lesson_page()
    assert "No GPU has been measured" not in page
    assert "on a GPU (NVIDIA H100 80GB HBM3;" in page
    command, _, shown = page.partition("$ teho bench --from results/bench/")[2].partition("\n")
    shown = shown.partition("```")[0]
    assert "1 GPU" in shown
    # What the page shows is what the command prints.
    done = subprocess.run(
        [*TEHO, *shlex.split("bench --from"), path], capture_output=True, text=True, check=True
    )
    assert (command, shown) == ("solve.json", done.stdout)


def test_the_page_that_is_committed_is_in_step_with_the_kept_results() -> None:
    module = generator()
    has_gpu = (module.gpu_page.BENCHES / "solve.json").exists()
    text = (ROOT / "docs" / "learn" / "when-a-gpu.md").read_text()
    assert ("No GPU has been measured yet" in text) != has_gpu


def test_what_a_gpu_day_brought_back_is_kept_for_the_lesson(
    docs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks" / "gpu")
    import keep as keep_program

    source = tmp_path / "solve.json"
    source.write_bytes(msgspec.json.encode(made_up()))
    archive = tmp_path / "recordings.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(source, "bench/solve.json")
    keep_program._keep_archive(archive)
    assert (docs.gpu_page.BENCHES / "solve.json").read_bytes() == source.read_bytes()
    assert "1 GPU" in docs.lesson_page()
