"""`teho scale` with real programs, from the command line to the verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import nvml_stub
import pytest
from nvml_stub import Scenario

from experiment.comparing import after_three_rounds
from experiment.samples import FREE, place, whole
from support import TEHO
from teho.experiment.placement import Machine, Placement
from teho.experiment.recorded import Recorded
from teho.experiment.scale import ScaleRequest, doublings
from teho.experiment.scale import scale as run_scale
from teho.experiment.scaling import scaling
from teho.model.device import Device
from teho.model.scaled import Scaled
from teho.show.json.noun import schema_of

SLEEPING = """\
import sys, time
workers = int(sys.argv[1])
time.sleep({seconds})
print("done")
"""
# Steps that only sleep: beside other programs they start late by some ms of 50 ms or more, so that
# ratios stay far from the 1.5 that a doubling needs. Start-up is not part of them.
STEPS = """\
import sys, time
import teho

while True:
    time.sleep({seconds})
    teho.step()
"""


def scale(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "scale", *map(str, words)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def program(folder: Path, text: str, **values: str) -> Path:
    path = folder / "program.py"
    path.write_text(text.format(**values))
    return path


def answer_in(printed: str) -> dict[str, Any]:
    answer = json.loads(printed)
    jsonschema.validate(answer, schema_of(Scaled))
    return answer


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return answer_in(done.stdout)


needs_two = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this machine has a single core to scale over"
)


def by_steps(folder: Path, seconds: str, *options: str) -> dict[str, Any]:
    script = program(folder, STEPS, seconds=seconds)
    words = ("--for", "2min", "--window", "2s", "--format", "json", *options)
    done = scale(*words, "--", sys.executable, script, "{n}")
    assert done.returncode == 0, done.stderr
    return found(done)


@needs_two
def test_with_twice_the_steps_two_cores_should_be_used(tmp_path: Path) -> None:
    answer = by_steps(tmp_path, "0.1 / int(sys.argv[1])")
    assert (answer["kind"], answer["unit"]) == ("strong", "step")
    assert (answer["outcome"], answer["pays_to"]) == ("pays_to", 2)
    assert [size["n"] for size in answer["sizes"]] == [1, 2]
    runs = [run for size in answer["sizes"] for run in size["runs"]]
    assert len({run["recording"] for run in runs}) == len(runs) >= 6


@needs_two
def test_a_serial_program_should_use_one_core(tmp_path: Path) -> None:
    answer = by_steps(tmp_path, "0.1")
    assert answer["outcome"] == "no_gain"
    assert answer["verdict"].startswith("1 core is enough: ")


@needs_two
def test_the_same_time_for_more_work_is_weak_scaling(tmp_path: Path) -> None:
    answer = by_steps(tmp_path, "0.1", "--weak")
    assert (answer["kind"], answer["pays_to"]) == ("weak", 2)
    assert answer["sizes"][1]["efficiency_percent"] == pytest.approx(100, abs=20)


@needs_two
@pytest.mark.drawn(1)
@pytest.mark.parametrize("options", [(), ("--weak",)], ids=["strong", "weak"])
def test_the_verdict_on_whole_runs_follows_from_their_times(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    script = program(tmp_path, SLEEPING, seconds="1.6 / workers")
    done = scale("--for", "1min", "--format", "json", *options, "--", sys.executable, script, "{n}")
    answer = msgspec.json.decode(done.stdout, type=Scaled)
    # Start-up, which grows with the load of this machine, is part of a whole run. So the verdict is
    # compared with what its rule gives for the same runs, and not with a fixed one.
    runs = {size.n: size.runs for size in answer.sizes}
    for n, own in runs.items():
        for run in own:
            assert run.work_per_s == pytest.approx((n if options else 1) / run.wall_s)
    again = scaling(answer.kind, runs, argv=[], elapsed_s=0.0, worker="core")
    assert (answer.kind, answer.unit) == ("weak" if options else "strong", "run")
    assert (again.outcome, again.efficient_n, again.verdict) == (
        answer.outcome, answer.efficient_n, answer.verdict,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("took_s", "is_weak", "efficient_n"),
    [
        (lambda n: 1.6 / n, False, 4),
        (lambda n: 0.5, False, None),
        (lambda n: 2.0, True, 4),
        (lambda n: 2.0 * n, True, None),
    ],
    ids=["strong", "serial", "weak", "no more in the same time"],
)
def test_whole_runs_are_scaled_by_their_times(
    took_s: Callable[[int], float], is_weak: bool, efficient_n: int | None
) -> None:
    now_s = [0.0]

    def run(placement: Placement, _: float) -> Recorded:
        elapsed_s = took_s(len(placement.cores))
        now_s[0] += elapsed_s
        return Recorded(whole(elapsed_s))

    places = [place("cpu:1"), place("cpu:2"), place("cpu:4")]
    wish = ScaleRequest(("train",), places, FREE, 600.0, is_weak)
    answer = run_scale(wish, run, lambda _: None, lambda: now_s[0])
    assert (answer.kind, answer.unit) == ("weak" if is_weak else "strong", "run")
    assert answer.efficient_n == efficient_n


@needs_two
def test_a_failed_size_is_shown(tmp_path: Path) -> None:
    text = SLEEPING + "sys.exit('no room' if workers == 2 else 0)\n"
    script = program(tmp_path, text, seconds="0.2")
    done = scale("--for", "1min", "--format", "json", "--", sys.executable, script, "{n}")
    assert done.returncode == 1, done.stderr
    answer = found(done)
    assert answer["outcome"] == "not_enough_evidence"
    (failed,) = (size for size in answer["sizes"] if size["n"] == 2)
    assert all(
        "exit code 1, and its last message was “no room”" in run["why"] for run in failed["runs"]
    )


@needs_two
def test_a_size_with_other_results_is_named_unless_it_has_more_work(
    tmp_path: Path, home: Path
) -> None:
    script = program(tmp_path, SLEEPING + "print('sum', workers)\n", seconds="0.2")
    said = (
        "The program prints other results on cpu:2 than on cpu:1: line 2 is `sum 2` instead "
        "of `sum 1`."
    )
    for options, is_said in (((), True), (("--weak",), False)):
        words = ("--for", "1min", *options, "--", sys.executable, script, "{n}")
        answer = answer_in(after_three_rounds(home, "scale", *words))
        assert all(len(size["runs"]) >= 3 for size in answer["sizes"])
        assert (said in answer["notes"]) == is_said


@pytest.fixture
def two_gpus(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two GPUs here, by a stand-in for the driver."""
    scenario = Scenario(("gpus 2", "0 * 90 1000 500")).write(tmp_path / "scenario.txt")
    for name, text in nvml_stub.environment(nvml_library, scenario).items():
        monkeypatch.setenv(name, text)


def test_gpus_are_scaled_if_there_are_some(two_gpus: None) -> None:
    # The shell starts within some 10 ms, also beside other programs: the ratio stays above 1.5.
    seen = "IFS=,; set -- $CUDA_VISIBLE_DEVICES; [ $# = {n} ] && sleep $((4 / $#))"
    done = scale("--for", "1min", "--format", "json", "--", "sh", "-c", seen)
    assert done.returncode == 0, done.stderr
    answer = found(done)
    assert (answer["worker"], answer["outcome"], answer["pays_to"]) == ("GPU", "pays_to", 2)


def test_unused_gpus_are_named() -> None:
    now_s = [0.0]

    def run(placement: Placement, _: float) -> Recorded:
        now_s[0] += 10.0
        return Recorded(whole(10.0, idle_gpus=len(placement.gpus) - 1))

    wish = ScaleRequest(("train",), [place("gpu:1"), place("gpu:4")], FREE, 600.0)
    answer = run_scale(wish, run, lambda _: None, lambda: now_s[0])
    assert answer.outcome == "no_gain"
    assert "Of the 4 GPUs of gpu:4, 3 were never busy." in answer.notes
    assert not any("gpu:1" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "cpu:1,disk:2", "--", "true"], "--on disk:2; expected cpu:N"),
        (["--on", "gpu:1", "--", "true"], "--on gpu:1: this job has no GPU"),
        (
            ["--for", "1s", "--window", "2s", "--", "true"],
            "--window 2s is not shorter than --for 1s",
        ),
        (["--", "no-such-program-anywhere"], "no-such-program-anywhere"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str) -> None:
    done = scale(*words)
    assert done.returncode in {1, 2}
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_sizes_are_doublings_up_to_all() -> None:
    gpus = tuple(Device(id=f"GPU-{n}", index=n, name="H100", vendor="nvidia") for n in range(6))
    cores = tuple((core,) for core in range(8))
    assert doublings(Machine(cores, gpus)) == "gpu:1,gpu:2,gpu:4,gpu:6"
    assert doublings(Machine(cores, ())) == "cpu:1,cpu:2,cpu:4,cpu:8"
    assert doublings(Machine(cores[:1], ())) == "cpu:1"
