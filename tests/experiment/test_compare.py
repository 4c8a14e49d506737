"""`teho compare` with real programs and real recordings, from the command line to the verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from experiment.comparing import (
    STEPS,
    after_three_rounds,
    answer_in,
    as_judged,
    compare,
    found,
)
from support import TEHO

KNOWN = Path(__file__).parents[2] / "examples" / "known"
TWO_CORES = ("--on", "cpu:1,cpu:2", "--", sys.executable)
NO_GAIN = {"no_difference", "not_worth_it"}
needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this machine has only one core"
)

Compare = Callable[..., subprocess.CompletedProcess[str]]


# ---- programs whose answer is known ----


@needs_two_cores
@pytest.mark.parametrize(
    "words",
    [("parallel.py", "--below", "60000"), ("serial.py", "--steps", "1000000")],
    ids=lambda words: words[0],
)
def test_whole_runs_are_compared_by_their_time(words: tuple[str, ...], home: Path) -> None:
    name, *options = words
    printed = after_three_rounds(
        home, "compare", "--for", "2min", *TWO_CORES, KNOWN / name, *options
    )
    point = as_judged(answer_in(printed))
    assert all(len(variant.samples) >= 3 for variant in point.variants)
    assert point.measure == "time"
    assert point.comparison is not None
    assert (point.comparison.larger, point.comparison.smaller) == ("cpu:2", "cpu:1")
    assert all(one.is_whole for variant in point.variants for one in variant.samples)
    assert not any("other results" in note for note in point.notes)


@needs_two_cores
def test_the_imports_of_a_tiny_program_are_seen(home: Path) -> None:
    pytest.importorskip("numpy")
    program = (*TWO_CORES, KNOWN / "tiny.py")
    point = as_judged(answer_in(after_three_rounds(home, "compare", "--for", "2min", *program)))
    # The note about imports is judged from these figures, as `as_judged` checks.
    samples = [one for variant in point.variants for one in variant.samples]
    assert all(one.import_s is not None and one.import_s < one.elapsed_s for one in samples)


@needs_two_cores
def test_a_program_that_is_twice_as_fast_on_two_cores_should_use_them(tmp_path: Path) -> None:
    # Steps that only sleep: beside other programs they start late by some ms of 100 or 200 ms, so
    # their ratio stays far above the 1.5 that two cores need.
    script = tmp_path / "train.py"
    script.write_text(STEPS.replace("0.01", "0.2 / len(os.sched_getaffinity(0))"))
    answer = found("--window", "2s", "--for", "3min", *TWO_CORES, script)
    assert answer["verdict"].startswith("Use 2 cores: they are ")
    assert as_judged(answer).outcome == "worth_it"


# ---- steps ----


@needs_two_cores
def test_an_endless_program_is_measured_by_its_steps_and_has_not_failed(
    teho: Compare, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(STEPS)
    options = ("--on", "cpu:1,cpu:2", "--window", "500ms", "--for", "30s")
    answer = found(*options, "--", sys.executable, script)
    (point,) = answer["points"]
    assert (point["measure"], point["unit"]) == ("pace", "step")
    # Beside other programs the verdict may stay open, but it is never a gain.
    assert answer["outcome"] in {*NO_GAIN, "not_enough_evidence"}, answer["verdict"]
    for variant in point["variants"]:
        for sample in variant["samples"]:
            assert 20 < sample["steps_per_s"] < 101
            assert not sample["is_whole"]
    tag = f"compare={answer['id']}"
    listed = json.loads(teho("list", "--format", "json", "--tag", tag).stdout)
    assert {row["tags"]["variant"] for row in listed} == {"cpu:1", "cpu:2"}
    text = teho("list", "--tag", tag).stdout
    assert text.count("measured long enough") == len(listed)
    report = json.loads(teho("report", listed[0]["id"], "--format", "json").stdout)
    assert not {"run_failed", "out_of_memory"} & {one["kind"] for one in report["findings"]}
    assert report["verdict_severity"] != "critical"
    assert "measured long enough" in teho("report", listed[0]["id"]).stdout
    # The recordings on disk give the same result.
    again = found("--recorded", tag)
    assert again["outcome"] != "worth_it"
    assert [one["name"] for one in again["points"][0]["variants"]] == ["cpu:1", "cpu:2"]


def test_a_variant_that_was_never_recorded_is_not_out_of_time(teho: Compare) -> None:
    for rows, variant in (("10", "cpu:1"), ("10", "cpu:2"), ("90", "cpu:1")):
        tags = ("--tag", "set=b", "--tag", f"rows={rows}", "--tag", f"variant={variant}")
        assert teho("run", "-q", *tags, "--", "true").returncode == 0
    answer = found("--recorded", "set=b")
    whys = {
        (p["value"], one["name"]): one["why"] for p in answer["points"] for one in p["variants"]
    }
    assert whys[90, "cpu:2"] == "it was not recorded"
    assert "The output of these runs was not stored, so it was not compared" in answer["notes"][-1]


def test_each_number_of_a_sweep_is_put_into_the_command(teho: Compare) -> None:
    options = ("--on", "cpu:1", "--for", "60s", "--sweep", "n=1234567,0.5")
    answer = found(*options, "--", "sh", "-c", 'echo "$0"', "a{n}b")
    assert [point["value"] for point in answer["points"]] == [0.5, 1234567]
    assert answer["command"][-1] == "a{n}b"
    listed = json.loads(teho("list", "--format", "json").stdout)
    assert {row["command"][-1] for row in listed} == {"a0.5b", "a1234567b"}
    again = found("--recorded", f"compare={answer['id']}")
    assert again["swept"] == "n"
    assert [point["value"] for point in again["points"]] == [0.5, 1234567]


# ---- what goes wrong ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "no-such-program"], "no-such-program: command not found"),
        (["--on", "cpu:9999", "--", "true"], "--on cpu:9999: this job has"),
        (["--on", "tpu:1", "--", "true"], "--on tpu:1; expected cpu:N"),
        (["--for", "5s", "--window", "5s", "--", "true"], "--window 5s is not shorter than"),
        (["--site", "nowhere", "--", "true"], "no cluster 'nowhere' in the catalogue"),
        (["--sweep", "rows=1,2", "--", "true"], "{rows} is not in the command"),
        (["--sweep", "rows=0", "--", "echo", "{rows}"], "--sweep rows=0; expected NAME=NUMBER"),
        (["--sweep", "rows=1,a", "--", "echo", "{rows}"], "expected NAME=NUMBER"),
        (["--recorded", "set=none"], "no recording has the tag set=none"),
        (["--recorded", "x", "--", "true"], "one of the two"),
        (["--recorded", "x", "--cluster", "birch"], "--cluster"),
        (["--recorded", "x", "--on", "cpu:1"], "--on has no effect with --recorded"),
        (["--cluster", "birch", "--sweep", "n=1", "--", "a{n}"], "--sweep has no effect with"),
        (["--repeats", "3", "--", "true"], "--repeats has no effect without --cluster"),
        (["--cluster", "a", "--on", "cpu:1", "--window", "0s", "--", "true"], "--window 0s; exp"),
        (["--plot", "x.gif", "--", "true"], "--plot x.gif"),
        ([], "one of the two"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_in_one_line(words: list[str], said: str) -> None:
    done = compare(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_all_processes_and_the_recording_is_not_a_failure(
    teho: Compare, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    script = tmp_path / "train.py"
    script.write_text(
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(1000)\n"
    )
    argv = [*TEHO, "compare", "--on", "cpu:1,cpu:all", "--", sys.executable, script, mark]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as comparing:
        until_s = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        child = int(mark.read_text())
        comparing.send_signal(signal.SIGINT)
        output, errors = comparing.communicate(timeout=60)
    assert comparing.returncode == 130
    assert "Traceback" not in errors
    assert "The comparison was ended early." in output
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or ") Z " in state.read_text()
    assert "ended with its comparison" in teho("list", "--all").stdout
