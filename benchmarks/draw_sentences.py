"""Draw messages of Teho, with real values, for strangers who judge the words.

python benchmarks/draw_messages.py --seed 1 > draw.txt           50 messages
python benchmarks/draw_messages.py --seed 1 --count 1000         all of them

A message is a whole finding (its sentence, its evidence and its advice), or a paragraph of the
output of a command. The findings are those of the tests' scenarios, of the planted faults on a GPU
and of the blind rounds. Among several messages with the same words, only the first is drawn.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import ROOT

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks" / "blind")]

import recordings  # noqa: E402 - the path above leads to it

from explain.scenarios import SCENARIOS  # noqa: E402 - as above
from teho.config.settings import Settings  # noqa: E402 - as above
from teho.explain.judge import judge_all  # noqa: E402 - as above
from teho.explain.policy import load_policy  # noqa: E402 - as above
from teho.model.finding import Finding  # noqa: E402 - as above
from teho.model.missing import Missing  # noqa: E402 - as above
from teho.show.cells import plain, quantity  # noqa: E402 - as above
from teho.show.loaded import LoadedRun  # noqa: E402 - as above

_GOLDEN = ("cli", "doctor", "launch", "show", "software/env", "stage")
_TABLE = re.compile(r" {3,}|[─━│┃]")
_VALUE = re.compile(r"[\d.,]+|/\S+|`[^`]*`|“[^”]*”")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw messages of Teho for strangers to judge.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=50, help="how many; the default is 50")
    options = parser.parse_args(arguments)
    different: dict[str, str] = {}
    for source, message in _messages():
        different.setdefault(_VALUE.sub("", message), f"{message}\n    [{source}]")
    print(f"{len(different)} different messages", file=sys.stderr)
    drawn = sorted(different.values())
    random.Random(options.seed).shuffle(drawn)
    for number, message in enumerate(drawn[: options.count], 1):
        print(f"{number}. {message}\n")
    return 0


def _messages() -> Iterator[tuple[str, str]]:
    for name, made in SCENARIOS.items():
        for finding in judge_all(*made(), load_policy())[0]:
            yield f"scenario {name}", _message(finding)
    for run in sorted((ROOT / "benchmarks" / "faults" / "recordings").glob("*/*/run.json")):
        yield from _of_run(run.parent)
    for place in sorted((ROOT / "benchmarks" / "blind").glob("round*/recordings.tar.xz")):
        with tempfile.TemporaryDirectory() as folder:
            for directory in recordings.unpack(place.parent, Path(folder)):
                yield from _of_run(directory)
    for folder in _GOLDEN:
        for path in sorted((ROOT / "tests" / "data" / folder).glob("*.txt")):
            for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
                lines = paragraph.splitlines()
                if lines and not any(_TABLE.search(line.strip()) for line in lines):
                    yield path.name, " ".join(line.strip() for line in lines)


def _of_run(directory: Path) -> Iterator[tuple[str, str]]:
    for finding in LoadedRun(directory, Settings()).findings:
        yield directory.name, _message(finding)


def _message(finding: Finding) -> str:
    evidence = ", ".join(f"{one.label} {_value(one.value, one.unit)}" for one in finding.evidence)
    return plain(" ".join(filter(None, (finding.sentence, evidence, finding.action))))


def _value(value: float | str | Missing, unit: str) -> str:
    return quantity(value, unit) if isinstance(value, (int, float)) else str(value)


if __name__ == "__main__":
    sys.exit(main())
