"""`teho clusters discover`: a file for a new cluster, differences for a known one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from show.golden import check as check_golden
from teho.clusters.catalogue import load_cluster, read_cluster
from teho.clusters.check import mistakes_in
from teho.clusters.differences import Difference
from teho.model.cluster import Source
from teho.show.build.clusters import differences_document
from teho.show.text.document import render_text

DATA = Path(__file__).parents[1] / "data"
ANSWERS = DATA / "discover" / "slurm"

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that commands are looked for in; empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def slurm(path: Path) -> Path:
    """A Slurm of 23.11 without JSON and without accounting."""
    script = path / "scontrol"
    script.write_text(
        f"""#!{sys.executable}
import pathlib, sys
if "--json" in sys.argv:
    sys.exit("scontrol: unrecognized option '--json'")
print(pathlib.Path({str(ANSWERS)!r}, sys.argv[-1] + ".txt").read_text(), end="")
"""
    )
    script.chmod(0o755)
    return script


def test_a_new_cluster_is_written(teho: Teho, slurm: Path, tmp_path: Path) -> None:
    result = teho("clusters", "discover")
    assert result.returncode == 0
    assert result.stdout.startswith("# Facts from the scheduler of oak, by ")
    assert "--output ~/.config/teho/clusters/oak.toml" in result.stderr
    written = tmp_path / "oak.toml"
    written.write_text(result.stdout)
    assert mistakes_in(written) == []
    cluster = read_cluster(written)
    assert [part.name for part in cluster.partitions] == [
        "gpu", "mig", "cpu", "debug", "priority", "grace"
    ]  # fmt: skip
    # What accounting would have told is marked.
    assert "max_gpus" in cluster.partitions[0].unknown
    assert all(len(line) <= 98 for line in result.stdout.splitlines() if line.startswith("#"))


def test_it_is_found_where_it_is_put(teho: Teho, slurm: Path, tmp_path: Path) -> None:
    file = tmp_path / "config" / "teho" / "clusters" / "oak.toml"
    first = teho("clusters", "discover", "--output", file)
    assert (first.returncode, first.stdout) == (0, "")
    assert str(file) in first.stderr
    shown = teho("clusters", "show", "oak")
    assert shown.stdout.startswith("✓ oak (Slurm) accepts jobs")
    # Now that it is known, it is compared; and it is not overwritten.
    again = teho("clusters", "discover")
    told = f"Slurm 23.11.7 on {os.uname().nodename}"
    assert again.stdout == f"✓ oak: everything that {told} reports agrees with Teho's file.\n"
    refused = teho("clusters", "discover", "--output", file)
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"teho: {file} already exists. Next: `--force` overwrites it"
    ]
    assert teho("clusters", "discover", "--output", file, "--force").returncode == 0


def test_a_known_cluster_is_compared(teho: Teho, slurm: Path) -> None:
    result = teho("clusters", "discover", "--name", "puhti")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert "  partition gpu, max_nodes: 20 in Teho's file, 4 on this cluster" in lines
    assert "  partition gputest, name: gputest in Teho's file, none on this cluster" in lines
    assert "CSC batch-job-partitions.md 2026-08-05, deprecated section" in result.stdout
    both = teho("clusters", "discover", "--name", "puhti", "--output", "-")
    assert both.stdout.startswith("# Facts from the scheduler of oak, ")
    assert 'name = "puhti"\n' in both.stdout
    assert "max_nodes" in both.stderr


def test_a_name_is_given_once(teho: Teho, slurm: Path, tmp_path: Path) -> None:
    result = teho("clusters", "discover", "--name", "elm", "--output", tmp_path / "ash.toml")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "elm.toml" in line
    teho("clusters", "discover", "--output", tmp_path / "ash.toml")
    assert read_cluster(tmp_path / "ash.toml").name == "ash"


def test_without_a_scheduler_it_says_where_to_ask(teho: Teho, path: Path) -> None:
    result = teho("clusters", "discover")
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "`scontrol`" in line
    assert "Next: log in to the cluster" in line


def test_a_scheduler_that_refuses_is_one_line(teho: Teho, path: Path) -> None:
    for name in ("scontrol", "qconf"):
        script = path / name
        script.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('{name}: no\\nreally')\n")
        script.chmod(0o755)
    result = teho("clusters", "discover")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "`scontrol show config` says: scontrol: no really" in line


@pytest.mark.parametrize("width", [60, 80])
def test_differences_as_text(width: int) -> None:
    puhti = load_cluster("puhti", {})
    live = msgspec.structs.replace(
        puhti, sources={"SLURM": Source(document="Slurm 22.05.8 on puhti-login11")}
    )
    source = "CSC batch-job-partitions.md 2026-08-05, deprecated section"
    items = [
        Difference("partition gpu", "max_time", "3d", "36h", source),
        Difference("partition gpu", "max_gpus", "80", "64", source),
        Difference("nodes gpu", "count", "80", "76", "CSC systems-puhti.md 2026-07-31"),
        Difference("partition hugemem_longrun", "name", "not documented", "x\x1b[31m", ""),
    ]
    text = render_text(differences_document(puhti, live, items), width=width, color=False)
    check_golden(DATA / "cli" / f"clusters-differences-{width}.txt", text)
