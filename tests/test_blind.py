"""Blind rounds: the page says what the readers found, and no report was changed afterwards."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[1]
BLIND = ROOT / "benchmarks" / "blind"
sys.path.insert(0, str(BLIND))

import recordings  # noqa: E402 - the path above leads to it

ROUNDS = sorted(one.parent for one in BLIND.glob("round*/verdicts.toml"))


def test_the_page_is_what_the_verdicts_give() -> None:
    script = str(BLIND / "score.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == (ROOT / "docs" / "blind.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ROUNDS, ids=lambda place: place.name)
def test_answers_and_reports_are_those_of_the_first_try(place: Path) -> None:
    readme = (place / "README.md").read_text(encoding="utf-8")
    sealed = set(re.findall(r"`([0-9a-f]{64})`", readme))
    reports = b"".join(one.read_bytes() for one in sorted((place / "reports").glob("*.txt")))
    patches = b"".join(one.read_bytes() for one in sorted((place / "cured").glob("*.patch")))
    answers = (place / "answers.toml").read_bytes()
    assert {hashlib.sha256(one).hexdigest() for one in (reports, patches, answers)} == sealed


@pytest.mark.drawn(1)
@pytest.mark.parametrize("place", ROUNDS, ids=lambda place: place.name)
def test_a_changed_rule_changes_no_other_finding_of_the_rounds(place: Path) -> None:
    """If the change is meant: `python benchmarks/blind/recordings.py findings ROUND`."""
    kept = msgspec.toml.decode((place / "findings.toml").read_bytes())
    assert recordings.findings(place) == kept


@pytest.mark.parametrize("place", ROUNDS, ids=lambda place: place.name)
def test_recordings_name_no_path_of_the_machine_that_made_them(place: Path, tmp_path: Path) -> None:
    recorded = recordings.unpack(place, tmp_path)
    left_out = {"ridge_sunlight_hours"}  # it did not start on the machine of round 11
    wanted = {name[:24] for name in set(_names(place)) - left_out}  # as the ids of runs
    assert {one.name.split("-")[2] for one in recorded} >= wanted
    answers = (place / "answers.toml").read_text()
    for path in (tmp_path / "runs").rglob("*.json*"):
        found = re.findall(
            r"(?<![\w.-])/(?:tmp|root|work|opt|home/(?!user/))[^\" ]*", path.read_text()
        )
        # The writer's own command may name a file in /tmp.
        foreign = [one for one in found if one not in answers]
        assert foreign == [], path


def _names(place: Path) -> list[str]:
    return list(msgspec.toml.decode((place / "answers.toml").read_bytes()))
