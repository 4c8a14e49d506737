"""Run programs with planted faults, and count how often Teho and TraceML find the fault.

python benchmarks/faults/run.py                            all of them, about 25 minutes
python benchmarks/faults/run.py --only 1,6 --seeds 1
python benchmarks/faults/run.py --home FOLDER              keep the recordings there
python benchmarks/faults/run.py --write docs/faults.md
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[1] / "tests")]

from cases import CASES, Case, Setting
from common import CACHE, ROOT, machine, say
from measured import Skipped, Workshop, found_in
from scores import Result, changed_setting, confusion, details, page, summary

_RECORDINGS = _HERE / "recordings"
_SECONDS = 7.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count how often Teho finds planted faults.")
    parser.add_argument(
        "--only", metavar="KEYS", help="only these: 1,4a,12; control, m: all of these"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="training time of each run")
    parser.add_argument("--quick", action="store_true", help="only check that it runs: 1 seed, 4 s")
    parser.add_argument("--no-peer", action="store_true", help="leave TraceML out")
    parser.add_argument("--home", type=Path, help="keep the recordings in this folder")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of the docs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.seconds = 1, 4.0
    results = [Result(case) for case in _chosen(options.only)]
    with tempfile.TemporaryDirectory(prefix="teho-faults-") as folder:
        home = (options.home or Path(folder)).resolve()
        workshop = Workshop(home, options.seconds)
        for seed in range(options.seeds):
            for result in results:
                _run(result, workshop, seed, with_peer=not options.no_peer and seed == 0)
        recorded = _judge_recordings(workshop, home)
    tables = ["", *confusion(results), "", *details(results), "", *summary(results), recorded]
    print("\n".join(tables))
    if options.write:
        facts = [*_facts(), f"random seeds 0 to {options.seeds - 1}"]
        text = page(results, facts=facts, seconds=options.seconds, recordings=recorded)
        options.write.write_text(text, encoding="utf-8")
        say(f"wrote {options.write}")
    return int(any(result.skipped == "failed" for result in results))


def _chosen(only: str | None) -> list[Case]:
    """Return the cases of some keys; `4` is 4a and 4b, `control` all controls."""
    if only is None:
        return list(CASES)
    chosen = [
        case
        for case in CASES
        if any(case.key == key or case.key.rstrip("ab") == key for key in only.split(","))
        or case.key.partition(" ")[0] in only.split(",")
    ]
    if not chosen:
        keys = ", ".join(case.key for case in CASES)
        sys.exit(f"--only {only}: no such case, expected some of {keys}")
    return chosen


def _run(result: Result, workshop: Workshop, seed: int, *, with_peer: bool) -> None:
    """Run all settings of a case with one seed."""
    case = result.case
    if result.skipped:
        return
    settings = [("faulty", case.faulty), *([("ideal", case.ideal)] if case.ideal else [])]
    try:
        for name, setting in settings if seed % 2 == 0 else reversed(settings):
            _measure(result, workshop, seed, name, setting)
        change = changed_setting(case, result.faulty[-1])
        if change and change == case.ideal:
            result.changed.append(result.ideal[-1])
        elif change and change == case.faulty:
            result.changed.append(result.faulty[-1])
        elif change:
            _measure(result, workshop, seed, "changed", change)
    except Skipped as error:
        result.skipped = f"skipped: {error}"
        say(f"{case.key}: {result.skipped}")
        return
    except RuntimeError as error:  # it must not cost the others
        result.skipped = "failed"
        say(f"{case.key}: failed: {error}")
        return
    if with_peer and case.peer:
        try:
            found = workshop.under_traceml(case, case.faulty, seed)
        except (Skipped, RuntimeError) as error:
            result.peer_skipped = f"skipped: {error}" if isinstance(error, Skipped) else "failed"
            say(f"{case.key}: TraceML: {error}")
        else:
            result.peer.append(found)
            say(f"{case.key}: TraceML: {found.top}, {found.steps_per_s:.1f} steps/s")


def _measure(result: Result, workshop: Workshop, seed: int, name: str, setting: Setting) -> None:
    run = f"{result.case.key}-{name}-{seed}".replace(" ", "-").lstrip("+")
    found = workshop.under_teho(result.case, setting, seed, run)
    getattr(result, name).append(found)
    say(f"{run}: {found.top or 'nothing found'}, {found.steps_per_s:.1f} steps/s")


def _judge_recordings(workshop: Workshop, home: Path) -> str:
    """Return a sentence: how many recorded faults (FOLDER/RUN, FOLDER/expected.json) are found."""
    right, wrong = 0, []
    for path in sorted(_RECORDINGS.glob("*/expected.json")):
        expected = json.loads(path.read_bytes())
        (run,) = (entry for entry in path.parent.iterdir() if entry.is_dir())
        copy = home / "recordings" / path.parent.name  # a report writes files beside it
        shutil.copytree(run, copy, dirs_exist_ok=True)
        found = found_in(workshop.report(copy)).top
        # For a program without the fault, the report must not name this fault.
        is_right = found == expected["kind"] if "kind" in expected else found != expected["not"]
        right += is_right
        wrong += [] if is_right else [f"{path.parent.name}: {found or 'nothing'}"]
    if not right and not wrong:
        return "There are no recordings yet."
    counted = f"Teho's first finding is as expected in {right} of {right + len(wrong)} recordings"
    return f"{counted} ({'; '.join(wrong)})." if wrong else f"{counted}."


def _facts() -> list[str]:
    """Return the machine and the versions."""
    script = (
        "import importlib.metadata as m;"
        "print(', '.join(f'{n} {m.version(n)}' for n in ('torch', 'jax', 'numpy')))"
    )
    frameworks = ROOT / ".frameworks" / "bin" / "python"
    theirs = subprocess.run([frameworks, "-c", script], capture_output=True, text=True, check=False)
    place = CACHE / "traceml" / "lib"
    traceml = [path.name for path in place.glob("python3*/site-packages/traceml_ai-*.dist-info")]
    facts = [fact for fact in machine() if not fact.startswith(("GPUs:", "teho"))]
    return [
        *facts,
        f"teho {_version()}, {theirs.stdout.strip()}",
        *(name.removesuffix(".dist-info").replace("traceml_ai-", "TraceML ") for name in traceml),
    ]


def _version() -> str:
    from teho.version import __version__

    return __version__


if __name__ == "__main__":
    sys.exit(main())
