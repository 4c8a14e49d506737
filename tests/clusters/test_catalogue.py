"""Where files of clusters come from, and what is said about a file that is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teho.clusters.catalogue import cluster_files, load_catalogue, load_cluster, read_cluster
from teho.errors import InputError

NOWHERE = {"XDG_CONFIG_HOME": "/nonexistent"}
ALL = "aire arc4 beluga cedar fir graham lumi mahti narval nibi puhti roihu rorqual trillium"


def test_the_catalogue_is_complete_and_every_file_is_sound():
    found = load_catalogue(NOWHERE)
    assert " ".join(found) == ALL
    assert {one.successor for one in found.values()} <= {*found, ""}


def test_a_users_file_hides_a_sites_and_a_sites_hides_tehos_own(tmp_path: Path):
    site, user = tmp_path / "site", tmp_path / "config" / "teho" / "clusters"
    own = cluster_files(NOWHERE)
    for folder, name in ((site, "puhti"), (site, "mahti"), (user, "mahti")):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(own[name], folder)
    shutil.copy(own["fir"], site / "ours.toml")
    found = cluster_files(
        {"XDG_CONFIG_HOME": str(tmp_path / "config"), "TEHO_CLUSTERS": f"{tmp_path}/none:{site}"}
    )
    assert (found["puhti"].parent, found["mahti"].parent) == (site, user)
    assert found["fir"] == own["fir"]
    assert set(found) == {*own, "ours"}
    with pytest.raises(InputError, match="name 'fir'; expected the name of the file, 'ours'"):
        read_cluster(found["ours"])


def test_an_unknown_cluster():
    with pytest.raises(InputError, match=r"no cluster 'pughti'.*did you mean 'puhti'\?"):
        load_cluster("pughti", NOWHERE)


MISTAKES = [
    ('site = "CSC"', 'site = "CSC"\nsties = 1', "unknown key 'sties', did you mean 'site'?"),
    ('max_time = "3d"', 'max_tim = "3d"',
     "partitions[1] (gpu): unknown key 'max_tim', did you mean 'max_time'?"),
    ('scheduler = "slurm"', 'scheduler = "slrum"',
     "unknown scheduler 'slrum', did you mean 'slurm'?"),
    ('scheduler = "slurm"', 'scheduler = "local"', "unknown scheduler 'local'; known are"),
    ('vendor = "nvidia"', 'vendr = "nvidia"',
     "nodes[6] (gpu).gpu: unknown key 'vendr', did you mean 'vendor'?"),
    ('{ of = "cores", times = 1 }', '{ of = "cores", tims = 1 }', "did you mean 'times'?"),
    ("[account]\nrequired", "[account]\nrequird",
     "account: unknown key 'requird', did you mean 'required'?"),
    ('document = "CSC', 'page = 3\ndocument = "CSC',
     "sources.CSC: unknown key 'page'; known are commit, document"),
    ("cores = 40", 'cores = "40"', "nodes[0] (M).cores = '40': Expected `int`, got `str`"),
    ('kinds = ["gpu"]', 'kinds = ["gpus"]',
     "partition 'gputest': unknown node kind 'gpus', did you mean 'gpu'?"),
    ('billing = "gpu"', 'billing = "gpuu"', "billing 'gpuu'; expected a table [billing.NAME]"),
    ('max_time = "3d"', 'max_time = "3 moons"', "max_time: '3 moons' is not a length of time"),
    ('gpu = "v100"', 'gpu = "v10"', "names the unknown GPU type 'v10', did you mean 'v100'?"),
    ('name = "gputest"', 'name = ""', "neither name nor label; expected a label"),
    ('purpose = "test"', 'purpose = "test"\nunknown = ["max_job"]', "did you mean 'max_jobs'?"),
    ('purpose = "test"', 'purpose = "test"\nunknown = ["max_cores"]',
     "max_cores has a value, but the list `unknown` also names max_cores"),
    ("retired_on = 2026-07-31\n", "retired_on = 31\n", "retired_on = 31: Expected `date`"),
    ('source = "CSC hpc', 'source = "XYZ hpc', "source 'XYZ hpc"),
    ('source = "CSC apps', 'source = "XYZ apps', "source 'XYZ apps"),
    ('notes = "Without an', 'note = "Without an',
     "account: unknown key 'note', did you mean 'notes'?"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_named_with_what_is_near(number: int, tmp_path: Path):
    before, after, words = MISTAKES[number]
    text = cluster_files(NOWHERE)["puhti"].read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "puhti.toml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_cluster(path)
    assert words in str(caught.value)
    if "length of time" not in words:
        assert str(path) in str(caught.value)


def test_a_retired_cluster_has_a_date_or_a_note_on_its_absence(tmp_path: Path):
    text = cluster_files(NOWHERE)["puhti"].read_text(encoding="utf-8")
    head, rest = text.split("notes = [", 1)
    path = tmp_path / "puhti.toml"
    path.write_text(head.replace("retired_on = 2026-07-31\n", "") + rest.split("]\n", 1)[1])
    with pytest.raises(InputError, match="status is retired, but retired_on is missing"):
        read_cluster(path)
