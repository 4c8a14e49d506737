"""What the probe reports about a training on a GPU, compared with PyTorch's profiler.

Each program runs twice: under `teho run`, and with the profiler. The program also measures its own
time. A share is a share of the time of all steps, without start-up and the first step. If Lightning
or the Trainer runs the training, the program has no source lines of its own in a step. Then the
activities of the main thread are compared with the calls that the profiler saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from result import Row

from stage import Rows, Stage

NETWORKS = ("resnet", "transformer", "tiny", "compiled")
TRAINERS = ("lightning", "trainer")
_PROFILER = "torch.profiler"
_DOING = {
    "waiting for the device": "waiting for the device",
    "copying to the device": "copying",
}
"""Teho's name of an activity, and the group of CUDA calls that is compared with it."""


def measure(stage: Stage) -> None:
    """Do a piece for each program."""
    for name in NETWORKS[:2]:
        stage.piece(name, lambda name=name: _network(stage, name), least_s=60)
    for name in TRAINERS:
        stage.piece(name, lambda name=name: _trainer(stage, name), least_s=50)
    for name in NETWORKS[2:]:
        stage.piece(name, lambda name=name: _network(stage, name), least_s=60)


def _network(stage: Stage, name: str) -> Rows:
    own, watched, report = _both(stage, name, "train_model")
    told = report["tables"]
    in_steps = _share_by_part(told, {int(at): part for at, part in own["lines"].items()})
    profiled = watched["profiler"]["parts"]
    sums_s = {"program": sum(own["spent_s"].values()), _PROFILER: sum(profiled.values())}
    for part, spent_s in own["spent_s"].items():
        teho = in_steps.get(part)
        profiler = 100 * profiled[part] / sums_s[_PROFILER]
        clock = 100 * spent_s / sums_s["program"]
        yield Row(
            f"{part}, share of the steps", "%",
            teho=None if teho is None else round(teho[0], 1),
            other=round(profiler, 1), whose=_PROFILER,
            why=f"measured with the program's clock, under teho run: {clock:.1f} %; "
            + (f"Teho calls it: {teho[1]}" if teho else "no line of this part is in the report"),
        )  # fmt: skip
    yield from _calls(report, watched)
    yield Row(
        "steps per second", "1/s", teho=round(own["steps"] / own["elapsed_s"], 2),
        other=round(watched["steps"] / watched["elapsed_s"], 2), whose=f"with {_PROFILER}",
    )  # fmt: skip
    compiling = _activity(report, "compiling")
    yield Row(
        "compiling, in the whole run", "s",
        teho=None if compiling is None else round(compiling["wall_s"], 2),
        other=round(own["first_s"], 2), whose="time of the first step, by the program's clock",
        why="" if compiling else "Teho saw no compiling",
    )  # fmt: skip


def _trainer(stage: Stage, name: str) -> Rows:
    _, watched, report = _both(stage, name, "train_by")
    yield from _calls(report, watched)
    rows = _table(report["tables"], "time")
    for row in rows:
        line = f"top line {row['line']}" if row["line"] else ""
        yield Row(f"{row['doing']}, share of the run", "%", teho=_rounded(row), why=line)


def _both(stage: Stage, name: str, program: str) -> tuple[Any, Any, Any]:
    """Run a program under `teho run`, then with the profiler; return the outputs and the report."""
    argv = stage.program(program, name, stage.seconds(15.0, 1.0))
    run = f"where-{name}"
    path, output = stage.record(run, argv, probe="auto")
    stage.keep(path, name)
    report = json.loads(stage.teho("report", run, "--format", "json"))
    # The profiler keeps each event in memory: a few seconds are enough.
    short = stage.program(program, name, stage.seconds(4.0, 0.3), "--watch")
    watched = json.loads(stage.run(short).splitlines()[-1])
    return json.loads(output.splitlines()[-1]), watched, report


def _calls(report: Mapping[str, Any], watched: Mapping[str, Any]) -> Rows:
    """Yield what the main thread did, and the calls that the profiler saw in all threads."""
    elapsed_s, profiler = watched["elapsed_s"], watched["profiler"]
    for doing, call in _DOING.items():
        row = _activity(report, doing)
        seen_s = {
            who: profiler["calls"].get(f"{call}, {who}", 0.0)
            for who in ("main thread", "other threads")
        }
        why = f"profiler, other threads: {100 * seen_s['other threads'] / elapsed_s:.1f} %"
        yield Row(
            f"{doing}, share of the run", "%", teho=_rounded(row) if row else None,
            other=round(100 * seen_s["main thread"] / elapsed_s, 1), whose=_PROFILER,
            why=why if row else f"Teho did not see this; {why}",
        )  # fmt: skip
    for who, spent_s in profiler["threads"].items():
        share = round(100 * spent_s / elapsed_s, 1)
        yield Row(f"operators and calls, {who}", "%", other=share, whose=_PROFILER)
    starts_s = sum(s for kind, s in profiler["calls"].items() if kind.startswith("starting"))
    yield Row("starting kernels", "%", other=round(100 * starts_s / elapsed_s, 1), whose=_PROFILER)
    busy = round(100 * profiler["device"]["busy"] / elapsed_s, 1)
    facts = {fact["key"]: fact["value"] for fact in report["facts"]}
    reported = facts.get("gpu_busy_percent")
    is_number = isinstance(reported, (int, float))
    yield Row(
        "GPU busy", "%", teho=round(reported, 1) if is_number else None, other=busy,
        whose=_PROFILER, why="Teho's figure includes the start of the run",
    )  # fmt: skip


def _share_by_part(
    tables: list[dict[str, Any]], parts: Mapping[int, str]
) -> dict[str, tuple[float, str]]:
    """Return for each part its share of the steps [%], and what Teho says that it does."""
    rows = _table(tables, "lines")
    found: dict[str, tuple[float, str]] = {}
    section, steps_percent = "", 0.0
    for row in rows:
        if not row["line"].startswith(" "):
            section = row["line"]
            if section == "steps":
                steps_percent = row["total_percent"]
            continue
        file, _, number = row["line"].strip().rpartition(":")
        part = parts.get(int(number)) if number.isdigit() and "train_model" in file else None
        if part is None or section != "steps" or not steps_percent:
            continue
        share, doing = found.get(part, (0.0, row["doing"]))
        found[part] = share + 100 * row["total_percent"] / steps_percent, doing
    return found


def _activity(report: Mapping[str, Any], doing: str) -> dict[str, Any] | None:
    rows = _table(report["tables"], "time")
    return next((row for row in rows if row["doing"] == doing), None)


def _table(tables: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return next((table["rows"] for table in tables if table["key"] == key), [])


def _rounded(row: Mapping[str, Any]) -> float:
    return round(float(row["share_percent"]), 1)
