"""The planted-fault benchmark: who is held to be right, and that its runner runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "benchmarks" / "faults"
sys.path[:0] = [str(FAULTS), str(FAULTS.parent)]

from cases import CASES, TIME_CAUSES, Case, Setting
from common import environment
from measured import Found, Workshop, found_in, with_traceml
from scores import Result, changed_setting, confusion, page, summary

from explain.scenario_parts import needs_a_probed_program
from support import lacks_framework
from teho.explain.registry import RULES
from teho.explain.rule import kind_of

FRAMEWORKS = ROOT / ".frameworks" / "bin" / "python"
PROGRAMS = sorted((FAULTS / "programs").glob("*.py"))
PATHS = ("PYTHONPATH",)
BY_KEY = {case.key: case for case in CASES}

SLOW = Case(
    key="2",
    title="too few",
    program="train_images",
    faulty=Setting("--workers 1"),
    ideal=Setting("--workers 2"),
    expected="input_too_few_workers",
    option=(r"num_workers=(\d+)", "--workers {}"),
    peer="INPUT_BOUND",
)
CONTROL = Case(key="control busy", title="busy", program="train_images", peer="COMPUTE_BOUND")
MISSING = Case(key="m off", title="no probe", program="train_images", probe="off")


def found(top: str | None, steps_per_s: float = 1.0, action: str = "") -> Found:
    return Found(top, action, (), steps_per_s)


def test_each_case_can_be_run_and_judged() -> None:
    assert len(BY_KEY) == len(CASES)
    assert {case.expected for case in CASES} <= {None, *TIME_CAUSES}
    assert {case.program for case in CASES} == {path.stem for path in PROGRAMS}
    numbers = {case.key.rstrip("ab") for case in CASES}
    assert {*map(str, range(1, 13)), "19"} <= numbers


def test_every_rule_on_lost_time_counts() -> None:
    causes = {kind_of(rule) for rule in RULES if needs_a_probed_program(rule)}
    assert len(causes) > 20
    assert causes <= {*TIME_CAUSES}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_no_program_knows_that_it_is_watched(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    assert not {"teho", "traceml", "fault", "probe"} & set(text.replace("_", " ").split())


def test_the_first_cause_of_lost_time_is_the_top_cause() -> None:
    report = {
        "findings": [
            {"kind": "memory_overasked", "action": "less"},
            {"kind": "input_skewed", "action": "sort"},
            {"kind": "python_bound", "action": "vectorise"},
        ],
        "abstentions": [{"kind": "double_precision"}, {"kind": "gpu_throttled"}],
    }
    assert found_in(report, 3.0) == Found("input_skewed", "sort", ("double_precision",), 3.0)
    report["findings"] = report["findings"][:1]
    assert found_in(report).top is None


def test_the_change_is_what_the_action_says() -> None:
    kind = "input_too_few_workers"
    change = changed_setting(SLOW, found(kind, action="`DataLoader(…, num_workers=4)`"))
    assert change == Setting("--workers 4")
    assert changed_setting(SLOW, found(kind, action="More of them.")) is None
    assert changed_setting(SLOW, found("python_bound", action="num_workers=4")) is None
    assert changed_setting(BY_KEY["8"], found("input_workers_restarted")) == BY_KEY["8"].ideal


def test_regained_is_the_share_of_the_ideal_gain() -> None:
    result = Result(SLOW, faulty=[found(None, 10.0)], ideal=[found(None, 20.0)])
    assert result.regained == 0.0
    result.changed = [found(None, 18.0)]
    assert result.regained == pytest.approx(0.8)
    result.ideal = [found(None, 10.4)]
    assert result.regained is None


def test_scores_count_runs() -> None:
    slow = Result(
        SLOW,
        faulty=[found("input_too_few_workers"), found("input_skewed")],
        ideal=[found("input_too_few_workers"), found(None)],
        peer=[Found("INPUT_BOUND")],
    )
    control = Result(
        CONTROL, faulty=[found(None), found("python_bound")], peer=[Found("INPUT_BOUND")]
    )
    missing = Result(MISSING, faulty=[Found(None, "", ("input_skewed",))])
    lines = {line.partition(":")[0]: line.partition(": ")[2] for line in summary(
        [slow, control, missing]
    )}  # fmt: skip
    assert lines["Runs with a fault in which the top cause is right"].startswith("1 of 2, 50 %")
    assert lines["Runs of controls in which Teho names no cause"].startswith("1 of 2")
    again = "Runs of repaired programs in which Teho still names the cause"
    assert lines[again].startswith("1 of 2")
    silent = "Runs without the signal of the fault in which Teho names no cause"
    assert lines[silent].startswith("1 of 1")
    abstained = "Runs without this signal in which a rule says that the signal is missing"
    assert lines[abstained].startswith("1 of 1")
    peer = "Runs with a fault in which another tool, TraceML, names the class of the fault"
    assert lines[peer].startswith("1 of 1")
    assert lines["Runs of controls in which TraceML names no problem"].startswith("0 of 1")


def test_the_confusion_table_has_planted_rows_and_found_columns() -> None:
    slow = Result(SLOW, faulty=[found("input_too_few_workers"), found(None)])
    control = Result(CONTROL, faulty=[found(None)])
    assert confusion([slow, control]) == [
        "| Planted | input_too_few_workers | no finding |",
        "| --- | --- | --- |",
        "| 2: input_too_few_workers | **1** | 1 |",
        "| control busy: no finding |  | **1** |",
    ]
    text = page([slow, control], facts=["today", "two cores"], seconds=10, recordings="None.")
    assert "| 2: input_too_few_workers | **1** | 1 |" in text
    assert "*Measured on today, on this machine: two cores*" in text


@pytest.mark.parametrize("name", ["train_images", "train_table", "train_files", "train_tokens"])
def test_traceml_gets_the_lines_that_it_asks_for(name: str) -> None:
    source = (FAULTS / "programs" / f"{name}.py").read_text(encoding="utf-8")
    changed = with_traceml(source)
    compile(changed, name, "exec")
    assert changed.count("traceml.trace_step(model):") == 1
    added = [line for line in changed.splitlines() if "traceml" in line]
    assert len(added) == 3


def test_traceml_has_no_steps_in_other_programs() -> None:
    with pytest.raises(RuntimeError, match="no single call"):
        with_traceml((FAULTS / "programs" / "orbits.py").read_text(encoding="utf-8"))


def test_opening_is_slow_only_below_one_folder(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "slow.so"
    source = FAULTS / "slow_open.c"
    subprocess.run(
        [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl"],
        check=True,
    )
    for folder in ("slow", "fast"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("x")
    code = "import sys, time as t; s = t.monotonic(); open(sys.argv[1]); print(t.monotonic() - s)"
    env = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "OPEN_DELAY_BELOW": f"{tmp_path}/slow/",
        "OPEN_DELAY_US": "500000",
    }
    began_s = time.monotonic()
    took_s = {
        folder: float(
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code, tmp_path / folder / "file"],
                env=env, capture_output=True, text=True, check=True,
            ).stdout
        )
        for folder in ("slow", "fast")
    }  # fmt: skip
    assert took_s["slow"] >= 0.5
    assert took_s["fast"] < 0.5 or time.monotonic() - began_s > 5  # a machine that stands still


@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="no .frameworks: `make test` makes it")
def test_the_runner_prints_its_table_and_writes_the_page(tmp_path: Path) -> None:
    written = tmp_path / "faults.md"
    done = subprocess.run(
        [sys.executable, FAULTS / "run.py", "--quick", "--only=control short", "--write", written],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| control short: no finding |" in done.stdout
    text = written.read_text(encoding="utf-8")
    assert text.startswith("# Planted faults\n")
    assert "Runs of controls in which Teho names no cause: " in text
    assert f"Python {sys.version.split()[0]}" in text


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("key", "framework", "has_fault"),
    [("tf map", "tensorflow", True), ("tf cache", "tensorflow", False), ("+iterator", "jax", True)],
)
def test_faults_of_other_frameworks_are_found(
    tmp_path: Path, key: str, framework: str, has_fault: bool
) -> None:
    if reason := lacks_framework(framework):
        pytest.skip(reason)
    case, here = BY_KEY[key], {name: os.environ[name] for name in PATHS if name in os.environ}
    setting = case.faulty if has_fault or case.ideal is None else case.ideal
    expected = case.expected if has_fault else None
    # On a busy machine, a short run is mostly the start of its framework: then a longer run counts.
    for number, seconds in enumerate((7.0, 30.0)):
        workshop = Workshop(tmp_path, seconds, env={**environment(tmp_path), **here})
        found = workshop.under_teho(case, setting, 0, f"run-{number}")
        if found.top == expected or not (has_fault or found.top == "fixed_costs_dominate"):
            break
    assert found.top == expected
    assert found.steps_per_s > 1


def test_a_key_that_no_case_has_is_named() -> None:
    argv = [sys.executable, FAULTS / "run.py", "--only", "21"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("--only 21: no such case, expected some of 1, 2,")
