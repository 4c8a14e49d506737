"""`teho clusters`: the list, one explained, files checked, a site's and a user's own files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from show.golden import check as check_golden
from teho.clusters.catalogue import cluster_files, read_cluster
from teho.clusters.check import mistakes_in
from teho.model.document import Document
from teho.show.build.clusters import cluster_document, clusters_document
from teho.show.text.document import Detail, render_text

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "cli"
OWN = sorted((DATA / "clusters").glob("*.toml"))

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def birch(tmp_path: Path) -> Path:
    """A copy of a sound file, to be spoilt."""
    path = tmp_path / "birch.toml"
    path.write_bytes((DATA / "clusters" / "birch.toml").read_bytes())
    return path


def text_of(document: Document, width: int = 80, detail: Detail = "why") -> str:
    return render_text(document, width=width, color=False, detail=detail)


def test_the_list_names_every_cluster(teho: Teho) -> None:
    result = teho("clusters")
    assert result.returncode == 0
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    for name in cluster_files():
        assert f"\n{name} " in result.stdout
    assert "retired → roihu" in result.stdout


def test_the_list_as_text() -> None:
    text = text_of(clusters_document([read_cluster(path) for path in OWN]))
    check_golden(DATA / "clusters.txt", text)


def test_one_explained_as_text() -> None:
    path = DATA / "clusters" / "birch.toml"
    text = text_of(cluster_document(read_cluster(path), Path("birch.toml")))
    check_golden(DATA / "clusters-show.txt", text)


@pytest.mark.parametrize("name", sorted(cluster_files({})))
@pytest.mark.parametrize("width", [80, 120])
def test_every_source_of_a_real_cluster_is_shown(name: str, width: int) -> None:
    path = cluster_files({})[name]
    cluster = read_cluster(path)
    text = text_of(cluster_document(cluster, path), width=width)
    shown = " ".join(text.split())
    for noun in (*cluster.nodes, *cluster.partitions, *cluster.shares, cluster.dialect,
                 cluster.account, *cluster.billing.values(), *cluster.software):  # fmt: skip
        assert " ".join(f"Source: {noun.source}".split()) in shown
    for remark in (*cluster.conflicts, *cluster.notes):
        assert " ".join(remark.split()) in shown
    for partition in cluster.partitions:
        for key in partition.unknown:
            assert key.replace("_", " ").replace("gpu", "GPU") in shown


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("puhti", ["documentation https://docs.csc.fi", "support https://docs.csc.fi/support/contact/",
                   "more modules module use /appl/soft/ai/singularity/modulefiles/"]),
        ("roihu", ["support https://docs.csc.fi/support/contact/"]),
        ("lumi", ["acknowledgement https://www.lumi-supercomputer.eu/acknowledgement/",
                  "Name the call or the course through which the project got its access."]),
        ("beluga", ["portal https://portail.beluga.calculquebec.ca"]),
        ("narval", ["portal https://portail.narval.calculquebec.ca",
                    "support https://docs.alliancecan.ca/wiki/Technical_support"]),
        ("graham", ["portal https://dashboard.graham.sharcnet.ca"]),
    ],
)  # fmt: skip
def test_pages_of_a_cluster_are_shown(teho: Teho, name: str, pages: list[str]) -> None:
    shown = " ".join(teho("clusters", "show", name, "--why").stdout.split())
    for page in pages:
        assert page in shown


def test_a_retired_cluster_names_its_successor_first(teho: Teho) -> None:
    first = " ".join(teho("clusters", "show", "puhti").stdout.splitlines()[:2])
    assert "retired on 2026-07-31. Its successor: " in first
    assert "`teho clusters show roihu`" in first


def test_only_the_path(teho: Teho) -> None:
    printed = teho("clusters", "show", "lumi", "--path").stdout
    assert printed == f"{cluster_files()['lumi']}\n"


def test_an_unknown_name_is_one_line(teho: Teho) -> None:
    result = teho("clusters", "show", "lummi")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "did you mean 'lumi'?" in line


def test_a_site_hides_the_catalogue_and_a_user_hides_both(teho: Teho, tmp_path: Path) -> None:
    original = cluster_files()["lumi"].read_text()
    site, user = tmp_path / "site", tmp_path / "config" / "teho" / "clusters"
    for folder, title in ((site, "Site's LUMI"), (user, "My LUMI")):
        folder.mkdir(parents=True)
        text = original.replace('title = "LUMI"', f'title = "{title}"')
        (folder / "lumi.toml").write_text(text)
    show = ["clusters", "show", "lumi"]
    env = {"TEHO_CLUSTERS": str(site)}
    assert teho(*show, env=env).stdout.startswith("✓ My LUMI (Slurm")
    (user / "lumi.toml").unlink()
    assert teho(*show, env=env).stdout.startswith("✓ Site's LUMI (Slurm")
    assert teho(*show).stdout.startswith("✓ LUMI (Slurm")


def test_the_whole_catalogue_is_sound(teho: Teho) -> None:
    result = teho("clusters", "check")
    assert result.stderr == ""
    assert result.stdout == f"{len(cluster_files())} files, no mistakes.\n"
    assert result.returncode == 0


def test_each_mistake_is_a_line(teho: Teho, birch: Path) -> None:
    text = birch.read_text()
    text = text.replace('max_time = "2d"', "max_tim = 3", 1).replace(
        "count = 10\n", 'count = "x"\n'
    )
    birch.write_text(text.replace('site = "', 'sitte = "'))
    absent = birch.with_name("absent.toml")
    result = teho("clusters", "check", birch, absent)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"teho: {birch}: unknown key 'sitte', did you mean 'site'?",
        f"teho: {birch}: 'site' is missing",
        f"teho: {birch}: nodes[0] (gpu).count = 'x': Expected `int`, got `str`",
        f"teho: {birch}: partitions[0] (gpu): unknown key 'max_tim', did you mean 'max_time'?",
        f"teho: {absent}: No such file or directory; expected a TOML file that you can read",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "birch"', 'name = "oak"', ["'oak'", "'birch'"]),
        ('kinds = ["thin"]', 'kinds = ["thick"]', ["'thick'", "thin"]),
        ('billing = "gpu"', 'billing = "free"', ["'free'"]),
        ('source = "GUIDE gpu.md"', 'source = "BOOK"', ["'BOOK'", "GUIDE"]),
        ('max_time = "2d"', 'max_time = "long"', ["max_time", "'long'"]),
        ("[[nodes]]", "[[nodes]", ["line"]),
    ],
)
def test_what_cannot_be_is_named(birch: Path, old: str, new: str, words: list[str]) -> None:
    assert mistakes_in(birch) == []
    assert old in birch.read_text()
    birch.write_text(birch.read_text().replace(old, new, 1))
    (line,) = mistakes_in(birch)
    for word in (str(birch), *words):
        assert word in line


def test_each_key_is_checked_separately(birch: Path) -> None:
    # What `mistakes_in` finds and what reading finds are the same: sound or not.
    for field in msgspec.structs.fields(type(read_cluster(birch))):
        text = birch.read_text()
        spoilt = birch.with_name("spoilt.toml")
        spoilt.write_text(f"{field.name} = {{ nonsense = 1 }}\n" + "\n".join(
            line for line in text.splitlines() if not line.startswith(f"{field.name} =")
        ))  # fmt: skip
        assert mistakes_in(spoilt)
