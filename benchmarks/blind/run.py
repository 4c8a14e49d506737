"""Record the programs of a blind round, and measure how much time each fault costs.

python benchmarks/blind/run.py round1 --into FOLDER              all of them, about an hour
python benchmarks/blind/run.py round1 --into FOLDER --only NAME,NAME     adds to what is there

FOLDER gets the report of each program, NAME.txt as a user sees it, NAME.json, and the recordings.
`measured.toml` has the seconds of each program, and of its repaired version. A person or a program
that does not know the rules then compares the reports with `answers.toml`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

from common import ROOT, SCRIPTS, environment, say  # noqa: E402 - the path above leads to it

_LONGEST_S = 300
_ENDS_WITHIN_S = 30


@dataclass(frozen=True)
class Ran:
    """A program that has ended."""

    seconds: float
    exit_code: int
    output: str


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Record the programs of a blind round.")
    parser.add_argument("round", help="a folder beside this file, such as round1")
    parser.add_argument("--into", type=Path, required=True, help="folder for the reports")
    parser.add_argument("--only", help="names of programs, with commas")
    parser.add_argument("--no-cured", action="store_true", help="do not run repaired versions")
    parser.add_argument("--only-cured", action="store_true", help="run only repaired versions")
    frameworks = ROOT / ".frameworks" / "bin"
    parser.add_argument("--bin", type=Path, default=frameworks, help="folder of the Python to use")
    options = parser.parse_args(arguments)
    place = _HERE / options.round
    cases = msgspec.toml.decode((place / "answers.toml").read_bytes())
    into = options.into.resolve()
    env = _environment(into, options.bin.resolve())
    measured = into / "measured.toml"
    found = msgspec.toml.decode(measured.read_bytes()) if measured.exists() else {}
    for name in options.only.split(",") if options.only else cases:
        if name not in cases:
            parser.error(f"{name} is not in {options.round}; it has {', '.join(cases)}")
        line = cases[name]["run"]
        words = shlex.split(line)
        run = ["sh", "-c", line] if "&&" in words else words
        if options.only_cured and name not in found:
            parser.error(f"{name} was not recorded in {into}: run it first without --only-cured")
        if not options.only_cured:
            ran = _recorded(place, name, run, into, env)
            found[name] = {"seconds": round(ran.seconds, 1), "exit_code": ran.exit_code}
            found[name] |= _certainty(into / f"{name}.json")
        if (place / "cured" / f"{name}.patch").exists() and not options.no_cured:
            cured = _in_a_copy(place, run, env, patch=place / "cured" / f"{name}.patch")
            share = max(0.0, 1 - cured.seconds / found[name]["seconds"])
            found[name] |= {"cured_seconds": round(cured.seconds, 1), "share": round(share, 2)}
            if cured.exit_code:
                say(f"{name}, repaired: exit code {cured.exit_code}: {cured.output[-500:]}")
        say(f"{name}: {found[name]}")
        measured.write_bytes(msgspec.toml.encode(found))
    return 0


def _environment(into: Path, scripts: Path) -> dict[str, str]:
    """Return the environment of the programs: in no job, with the Python of this folder."""
    (into / "home").mkdir(parents=True, exist_ok=True)
    path = f"{scripts}:{os.environ['PATH']}"
    thresholds = str(_HERE / "thresholds.toml")
    return environment(into / "home") | {"PATH": path, "TEHO_THRESHOLDS": thresholds}


def _recorded(
    place: Path, name: str, run: Sequence[str], into: Path, env: Mapping[str, str]
) -> Ran:
    teho = str(SCRIPTS / "teho")
    ran = _in_a_copy(place, [teho, "run", "--report", "none", "--name", name, "--", *run], env)
    if ran.exit_code:
        say(f"{name}: exit code {ran.exit_code}: {ran.output[-500:]}")
    for ending, options in (("txt", []), ("json", ["--format", "json"])):
        argv = [teho, "report", name, *options]
        report = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        (into / f"{name}.{ending}").write_text(report.stdout or report.stderr, encoding="utf-8")
    return ran


def _certainty(report: Path) -> dict[str, str]:
    """Return how certain the first finding about the program is; empty without such a finding."""
    try:
        findings = msgspec.json.decode(report.read_bytes())["findings"]
    except (msgspec.DecodeError, KeyError):
        return {}
    about = [one["certainty"] for one in findings if one["kind"] != "job_too_short"]
    return {"certainty": about[0]} if about else {}


def _in_a_copy(
    place: Path, argv: Sequence[str], env: Mapping[str, str], *, patch: Path | None = None
) -> Ran:
    """Run a command in a copy of the round's programs, which it may write into."""
    with tempfile.TemporaryDirectory(prefix="teho-blind-") as folder:
        work = Path(folder)
        shutil.copytree(place / "programs", work / "programs")
        (work / "tmp").mkdir()
        if patch:
            subprocess.run(["patch", "-s", "-p1", "-d", work / "programs", "-i", patch], check=True)
        began_s = time.monotonic()
        try:
            program = subprocess.Popen(
                argv,
                cwd=work,
                env={**env, "TMPDIR": str(work / "tmp")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except FileNotFoundError as error:
            return Ran(time.monotonic() - began_s, 127, str(error))
        try:
            output, _ = program.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            # Its children too: they would compete with the next program.
            os.killpg(program.pid, signal.SIGTERM)
            try:
                output, _ = program.communicate(timeout=_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                output, _ = program.communicate()
            return Ran(_LONGEST_S, 124, output)
        return Ran(time.monotonic() - began_s, program.returncode, output)


if __name__ == "__main__":
    sys.exit(main())
