"""Write docs/gpu.md from the JSON files of stages on a real GPU, never from a rehearsal.

python benchmarks/gpu/page.py    (docs/generate.py writes the page too)
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]

from result import STAGES, Piece, Result, Row, StageState, read_result  # noqa: E402

__all__ = ["BENCHES", "PAGE", "RESULTS", "page", "section", "write_page"]

RESULTS = _HERE / "results"
"""The results that were copied here from a machine with a GPU, one file per stage."""
BENCHES = RESULTS / "bench"
"""What `teho bench --format json` printed for each example. The lessons show it."""
PAGE = _HERE.parents[1] / "docs" / "gpu.md"
_TITLES = {
    "signals": "What the driver reports",
    "truth": "Programs whose true figures are known",
    "faults": "Planted faults",
    "where": "Where the time goes",
    "bench": "CPU and GPU compared",
    "compare": "`teho compare`, `teho tune` and `teho scale` with a GPU",
    "cost": "What Teho costs in time and memory",
    "feed": "`teho.feed` compared with PyTorch's DataLoader",
    "trace": "`teho profile` on a GPU",
}
_JUDGED_LATER = "strangers"
"""This stage has no section here: `docs/blind.md` has the verdicts on its programs."""
_LESSONS = _HERE / "lessons.md"
"""What was learnt from the results, written by hand."""
_FOLDED = 5
"""So many rows that differ only in their name are one row."""
_HEADS = ("What", "Unit", "Teho", "Compared with", "Difference", "Remark")
_PREFACE = """\
# On a real GPU

<!-- Written by benchmarks/gpu/page.py; do not edit. -->

The command `make gpu` tests Teho on a real data-centre GPU, in ten stages. Each stage takes at
most nine minutes, and writes its results to files. The program `keep.py` reads these files and
writes the figures on this page.
"""
_NONE = """\
**No stage has been run on a real GPU yet.** Until now, Teho's figures about GPUs were tested only
with a [stand-in](signals.md), which is a library that behaves like NVIDIA's library, and with
generated recordings. A *rehearsal* runs the code of the stages without a GPU. This page never shows
figures from a rehearsal.
"""
_HOW = """\
## How to run it on a cluster

You need one GPU for 30 minutes, Linux on x86-64, and Python 3.10 or newer with PyTorch for the GPU.
If JAX, CuPy, Lightning or Transformers is installed, the stages use this library too. The compute
node needs no network.

**1. On the login node**, download the repository of Teho. Then download the packages that are
missing in the cluster's Python:

```bash
module load pytorch                        # or activate your environment
python3 -m pip list --format freeze > has.txt
make gpu-wheels FRAMEWORKS=no PY=3.12 HAS=has.txt    # PY: version of the cluster's Python
```

**2. Submit a job of 30 minutes.** The following script is for Slurm. Use your own account and
partition:

```bash
#!/bin/bash
#SBATCH --account=project_2001234
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=00:30:00
module load pytorch
make gpu STAGE="signals truth faults where" WITHIN=1740
```

`WITHIN=1740` limits the time of all stages to 1,740 s, so `make gpu` ends before the job ends. The
most important stages come first. If the job ends early, the files of the finished stages are
complete. The file of the stage that was running at the end of the job has only the finished parts
of this stage. Run the other stages (`bench`, `compare`, `cost`, `feed`, `trace` and `strangers`) in
a second job.

**3. Write this page again.** The job wrote its files to `build/gpu/results/`:

```bash
python3 benchmarks/gpu/keep.py build/gpu/results
```

This command copies the results to `benchmarks/gpu/results/`, and the recordings of the stage
`faults` to `benchmarks/faults/recordings/`. Then the command writes this page, `docs/gpu.md`. If
the results are from a rehearsal (`make gpu REHEARSE=1`), the command stops and does not copy the
results.

## What may be missing

| problem | result |
|---|---|
| no GPU, or the driver hangs | the parts that need a GPU are skipped; the page gives the reason |
| the peak speed of this GPU is not known | the page has only the measured speed |
| a MIG slice, or no permission to read GPM | some signals are missing; the page gives the reason |
| PyTorch, Lightning or Transformers is missing | the parts that need this library are skipped |
| no time or no disk space is left | the remaining parts are not run; the page gives the reason |

`make gpu REHEARSE=1` makes a *rehearsal*: it runs the code of all stages without a GPU. A rehearsal
takes at most about ten minutes. `benchmarks/gpu/README.md` describes the format of the result files
in `build/gpu/results/`.
"""


def page(results: Sequence[Result]) -> str:
    """Return the page.

    Raises:
        ValueError: one of the results is from a rehearsal.
    """
    rehearsed = [result.stage for result in results if result.is_rehearsal]
    if rehearsed:
        raise ValueError(f"{', '.join(rehearsed)}: from a rehearsal, so the figures mean nothing")
    shown = [result for result in results if result.stage != _JUDGED_LATER]
    ordered = sorted(shown, key=lambda result: STAGES.index(result.stage))
    shared = _shared_facts(ordered)
    parts = [
        _PREFACE,
        *([_machine(shared), _LESSONS.read_text(encoding="utf-8")] if results else []),
    ]
    parts += [section(result, shared) for result in ordered] or [_NONE]
    have = {_JUDGED_LATER, *(result.stage for result in results)}
    lacking = [stage for stage in STAGES if stage not in have]
    if results and lacking:
        names = ", ".join(f"`{stage}`" for stage in lacking)
        parts.append(f"These stages have not been run yet: {names}.\n")
    return "\n".join([*parts, _HOW])


def _shared_facts(results: Sequence[Result]) -> dict[str, str]:
    """Return the facts about the machine that are the same for all stages."""
    facts = results[0].machine.items() if results else ()
    return {
        name: words
        for name, words in facts
        if all(result.machine.get(name) == words for result in results)
    }


def _machine(facts: Mapping[str, str]) -> str:
    listed = [f"{name}: {words}" for name, words in facts.items() if name != "date"]
    return f"*The machine: {'; '.join(listed)}.*\n"


def section(result: Result, shared: Mapping[str, str]) -> str:
    """Return the section of a stage: other facts about the machine, and a table for each piece."""
    lines = [f"## {_TITLES[result.stage]}", ""]
    own = {name: words for name, words in result.machine.items() if shared.get(name) != words}
    facts = [f"{name}: {words}" for name, words in own.items() if name != "date"]
    measured = f"Stage `{result.stage}`, measured on {result.began[:10]}"
    lines += [f"*{'; '.join([measured, *facts])}*", ""]
    if result.state != StageState.ENDED:
        why = f": {result.why}" if result.why else ""
        state = f"**The state of this stage is *{result.state}*{why}.**"
        lines += [f"{state} Until the stage stopped, it had measured:", ""]
    for piece in result.pieces:
        lines += _piece(piece)
    left_out = [name for name, size in result.files.items() if size < 0]
    if left_out:
        lines += [f"Recordings that did not fit into the archive: {', '.join(left_out)}.", ""]
    return "\n".join(lines)


def _piece(piece: Piece) -> list[str]:
    lines = [f"### {piece.name}", ""]
    if piece.state != "done":
        lines += [f"This part was not completed (*{piece.state}*): {_plain(piece.why)}.", ""]
    if piece.rows:
        lines += [_line(_HEADS), _line(["---"] * len(_HEADS))]
        lines += [_line(cells) for cells in _folded(list(map(_cells, piece.rows)))] + [""]
    return lines


def _folded(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of rows, and one row instead of many that differ only in their name."""
    names: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, *rest in rows:
        names[tuple(rest)].append(name)
    for name, *rest in rows:
        alike = names[tuple(rest)]
        if len(alike) < _FOLDED:
            yield name, *rest
        elif name == alike[0]:
            yield f"{len(alike)} signals, from *{name}* to *{alike[-1]}*", *rest


def _cells(row: Row) -> tuple[str, ...]:
    other = _figure(row.other)
    beside = f"{row.whose}: {other}" if row.whose and other else other
    difference = "" if row.difference is None else f"{row.difference:+.4g}"
    return row.what, row.unit, _figure(row.teho), beside, difference, row.why


def _figure(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return str(value)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Return a text for a cell of a table: on one line, and without what Markdown or HTML reads."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def write_page() -> str:
    """Return the page with the results in `RESULTS`."""
    return page([read_result(path) for path in sorted(RESULTS.glob("*.json"))])


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
