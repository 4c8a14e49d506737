"""Draw sentences of Teho, each in its place, for strangers who judge the words.

python benchmarks/draw_sentences.py messages --seed 1               50 sentences
python benchmarks/draw_sentences.py pages --seed 1
python benchmarks/draw_sentences.py messages --seed 1 --count 1000  all of them

A sentence is shown in its place: in the finding as the report prints it, or in its paragraph of a
page or of a command's output. `>>>` marks it. The findings are those of the tests' scenarios, of
the planted faults on a GPU and of the blind rounds. The evidence of a finding is one sentence.
Among sentences with the same words, only the first is drawn.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

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
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`“])|\n+(?=\s*(?:[-*]|\d+\.) )")
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_NOT_PROSE = re.compile(r"^\s*([|#!<]|---|\[[^]]+\]:)|^(?!.*[.!?:])", re.DOTALL)
_MARK = re.compile(r"^[✓✗!→i?] ")
_WRAPPED = 62
"""Width from which on a line of a screen of 80 columns may go on in the next line."""
_BEFORE, _AFTER = 5, 3
"""Sentences of a long passage that are shown before and after the marked one."""


class Passage(NamedTuple):
    """A passage that a reader has before her, in the order in which she reads it."""

    source: str
    sentences: tuple[str, ...]

    def showing(self, number: int) -> str:
        """Return the passage with one of its sentences marked."""
        lines = [f"{'>>>' if n == number else '   '} {one}" for n, one in enumerate(self.sentences)]
        near = lines[max(0, number - _BEFORE) : number + _AFTER + 1]
        return "\n".join([f"[{self.source}]", *near])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw sentences for strangers to judge.")
    parser.add_argument("kind", choices=("messages", "pages"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=50, help="how many; the default is 50")
    options = parser.parse_args(arguments)
    different: dict[str, str] = {}
    for passage in _messages() if options.kind == "messages" else _paragraphs():
        for number, sentence in enumerate(passage.sentences):
            different.setdefault(_VALUE.sub("", sentence), passage.showing(number))
    print(f"{len(different)} different sentences", file=sys.stderr)
    drawn = sorted(different.values())
    random.Random(options.seed).shuffle(drawn)
    for number, shown in enumerate(drawn[: options.count], 1):
        print(f"{number}. {shown}\n")
    return 0


def _messages() -> Iterator[Passage]:
    for name, made in SCENARIOS.items():
        for finding in judge_all(*made(), load_policy())[0]:
            yield _finding(f"scenario {name}", finding)
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
                if not any(_TABLE.search(line.strip()) for line in lines):
                    yield Passage(path.name, tuple(_of_screen(lines)))


def _of_screen(lines: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of a paragraph; a long line goes on in the next one."""
    whole = ""
    for line in lines:
        whole = f"{whole} {_MARK.sub('', line.strip())}".strip()
        if len(line) < _WRAPPED:
            yield from _sentences(whole)
            whole = ""
    yield from _sentences(whole)


def _of_run(directory: Path) -> Iterator[Passage]:
    for finding in LoadedRun(directory, Settings()).findings:
        yield _finding(directory.name, finding)


def _finding(source: str, finding: Finding) -> Passage:
    evidence = " · ".join(f"{one.label} {_value(one.value, one.unit)}" for one in finding.evidence)
    sentences = (*_sentences(finding.sentence), evidence, *_sentences(finding.action))
    return Passage(source, tuple(plain(one) for one in sentences if one))


def _value(value: float | str | Missing, unit: str) -> str:
    return quantity(value, unit) if isinstance(value, (int, float)) else str(value)


def _paragraphs() -> Iterator[Passage]:
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for page in pages:
        heading = ""
        for paragraph in _CODE.sub("", page.read_text(encoding="utf-8")).split("\n\n"):
            if paragraph.startswith("#"):
                heading = paragraph.strip("# \n")
            elif not _NOT_PROSE.match(paragraph):
                source = f"{page.relative_to(ROOT)}, section “{heading}”"
                yield Passage(source, _sentences(paragraph))


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in _SENTENCE.split(text) if one.strip())


if __name__ == "__main__":
    sys.exit(main())
