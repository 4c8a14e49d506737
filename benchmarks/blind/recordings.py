"""Keep the recordings of a blind round, and judge them again after the rules have changed.

python benchmarks/blind/recordings.py keep round1 FOLDER      from the folder that run.py filled
python benchmarks/blind/recordings.py unpack round1 FOLDER    then TEHO_HOME=FOLDER teho report NAME
python benchmarks/blind/recordings.py findings round1         write findings.toml again
python benchmarks/blind/recordings.py search round1 FOLDER    unpack, and search in the source again

`recordings.tar.xz` has the recordings of the first try, without paths of the machine that made
them. `findings.toml` has what the rules of today find in them: a test compares the two. At the end
of a run, Teho also searches in the program's source, and the recording has the results. `search`
makes this search again, with the stacks of the recording. With `--packages`, it knows the libraries
of a folder `site-packages`. It does not know what only a running program shows.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.config.settings import Settings
from teho.model.finding import Finding
from teho.model.stack import Frame
from teho.observe.source_search import source_lines
from teho.show.loaded import LoadedRun

HERE = Path(__file__).resolve().parent
_THRESHOLDS = HERE / "thresholds.toml"
_OF_SOURCE = frozenset(
    ("repeated", "unneeded", "repeated_plans", "reopened", "in_turn", "wholes", "column_filters",
     "missing_indexes", "costly_options")
)  # fmt: skip
"""Keys of the lines that the search in the source writes."""
_PLACES = (
    (r"(?:/[\w.+-]+)+/lib/(python3\.\d+)/site-packages", r"/home/user/env/lib/\1/site-packages"),
    (r"(?:/[\w.+-]+)+/src/teho/", "/home/user/env/lib/python3/site-packages/teho/"),
    (r"/(?!home/user/)(?:[\w.+-]+/)+lib/(python3\.\d+)/", r"/usr/lib/\1/"),
    (r"/tmp/(?:teho-blind-\w+|gpu-day-\w+/\w+/strangers)", "/home/user/study"),
    (r"(?:/[\w.+-]+)+/benchmarks/blind/round\d+", "/home/user/study"),
    (r"/tmp/te[\w-]*…", "/home/user/…"),  # of a long command, only the begin is recorded
    (r"/tmp/[\w./+-]+/bin/", "/home/user/env/bin/"),
)
"""Paths of the machine that recorded, and what is kept instead."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Keep the recordings of a blind round.")
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("keep", "unpack", "findings", "search"):
        one = actions.add_parser(action)
        one.add_argument("round", help="a folder beside this file, such as round1")
        if action != "findings":
            one.add_argument("folder", type=Path)
        if action == "search":
            one.add_argument("--packages", action="append", default=[], help="site-packages")
    options = parser.parse_args(arguments)
    place = HERE / options.round
    if options.action == "keep":
        keep(place, options.folder / "home" / "home" / "runs")
    elif options.action == "unpack":
        unpack(place, options.folder)
    elif options.action == "search":
        for directory in unpack(place, options.folder):
            for file in sorted(directory.glob("probe/*stacks*.jsonl")):
                search_again(file, place, options.packages)
    else:
        (place / "findings.toml").write_bytes(msgspec.toml.encode(findings(place)))
    return 0


def keep(place: Path, runs: Path) -> None:
    """Pack the recordings of a round, with neutral paths, always into the same bytes."""
    with tarfile.open(place / "recordings.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(runs.rglob("*")):
            if not path.is_file():
                continue
            content = path.read_bytes()
            if path.suffix in (".json", ".jsonl"):
                content = _neutral(content.decode()).encode()
            entry = tarfile.TarInfo(f"runs/{path.relative_to(runs)}")
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))


def unpack(place: Path, folder: Path) -> list[Path]:
    """Unpack the recordings of a round, and return their directories."""
    with tarfile.open(place / "recordings.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return sorted((folder / "runs").iterdir())


def search_again(file: Path, place: Path, packages: Sequence[str]) -> None:
    """Replace what the source showed at the end of the run, in a file of the stack sampler.

    Args:
        file: of a recording, with neutral paths.
        place: the round, which has the programs.
        packages: folders with the libraries of the programs.
    """
    lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    numbers: dict[Frame, int] = {}
    stacks: dict[int, list[Frame]] = {}
    times: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    frames: dict[int, Frame] = {}
    for line in lines:
        if "is" in line:
            frames[line["frame"]] = Frame(*line["is"][:4])
            numbers[frames[line["frame"]]] = line["frame"]
        elif "frames" in line:
            stacks[line["stack"]] = [frames[number] for number in line["frames"]]
        for stack, states in line.get("seen", {}).items():
            key = line["process"], int(line["process"].partition("-")[0])
            times[key][int(stack)] += round(1e3 * sum(seconds for _, seconds in states.values()))

    def read(_: int, path: str) -> list[bytes]:
        own = place / path.removeprefix("/home/user/study/")
        return own.read_bytes().split(b"\n") if own.is_file() else []

    kept = [line for line in lines if not set(line) & _OF_SOURCE]
    found = source_lines(
        times, [stacks[number] for number in sorted(stacks)], numbers, read, packages
    )
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in [*kept, *found]))


def findings(place: Path) -> dict[str, list[str]]:
    """Return what the rules find in each program of a round, most important first."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for directory in unpack(place, Path(folder)):
            run = LoadedRun(directory, Settings(thresholds=str(_THRESHOLDS)))
            assert run.run.name
            found[run.run.name] = [_in_short(one) for one in run.findings]
    return dict(sorted(found.items()))


def _in_short(finding: Finding) -> str:
    """Return a finding without its words: its kind, how severe it is, and its slowest line."""
    lines = (str(one.value).split()[0] for one in finding.evidence if one.label == "slowest line")
    return ", ".join((finding.kind, finding.severity.value, *lines))


def _neutral(text: str) -> str:
    for path, instead in _PLACES:
        text = re.sub(rf"(?<![\w.+-]){path}", instead, text)
    return text


if __name__ == "__main__":
    sys.exit(main())
