"""What a placement costs by a site's own prices, and when that compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.samples import place
from teho.clusters.catalogue import load_cluster, read_cluster
from teho.experiment.compare import terms_of
from teho.experiment.prices import Prices

CLUSTERS = Path(__file__).parents[1] / "data" / "cli" / "clusters"
PLACES = [place("cpu:1"), place("cpu:8"), place("gpu:1"), place("gpu:2")]


@pytest.fixture
def birch() -> Prices:
    """A GPU with its 15 cores for 75 BU, a core for 1 BU; 64 cores are the most of a job's node."""
    return Prices(load_cluster("birch", {"TEHO_CLUSTERS": str(CLUSTERS)}))


def changed(folder: Path, before: str, after: str) -> Prices:
    """Return the prices of a cluster like Birch but for one thing."""
    text = (CLUSTERS / "birch.toml").read_text()
    assert before in text
    path = folder / "oak.toml"
    text = text.replace('name = "birch"', 'name = "oak"').replace(
        'title = "Birch"', 'title = "Oak"'
    )
    path.write_text(text.replace(before, after))
    return Prices(read_cluster(path))


CPU_BILLING = '[billing.cpu]\nunit = "BU"\nlargest = [{ of = "cores" }'


def test_prices_of_an_hour(birch: Prices) -> None:
    assert [birch.hourly("cpu", count).amount for count in (1, 8, 64)] == [1, 8, 64]
    assert [birch.hourly("gpu", count).amount for count in (1, 2, 4)] == [75, 150, 300]
    assert birch.hourly("gpu", 4000) is None


def test_cores_of_the_same_cost_also_beyond_the_largest_job(birch: Prices) -> None:
    assert birch.same_cost_cores(1) == 75
    assert birch.same_cost_cores(2) == 150


def test_cores_of_the_same_cost_within_one_job(tmp_path: Path) -> None:
    # 32 BU for a GPU, and one for each core.
    cheap = changed(tmp_path, 'times = 60, gpu_part = true }, { of = "cores", times = 1 }',
                    "times = 32, gpu_part = true }")  # fmt: skip
    assert cheap.same_cost_cores(1) == 32
    # 1.5 BU for each core.
    odd = changed(tmp_path, CPU_BILLING, CPU_BILLING.replace('"cores" }', '"cores", times = 1.5 }'))
    assert odd.same_cost_cores(1) == 50


def test_cores_that_are_dearer_than_a_gpu_have_no_such_number(tmp_path: Path) -> None:
    dear = changed(
        tmp_path, CPU_BILLING, CPU_BILLING.replace('"cores" }', '"cores", times = 1000 }')
    )
    assert dear.same_cost_cores(1) is None
    terms, _, _ = terms_of(PLACES, dear, None)
    assert terms.same_cost_cores == {}
    assert terms.hourly["cpu:1"] == 1000


def test_terms_of_a_site_whose_units_compare(birch: Prices) -> None:
    terms, unit, notes = terms_of(PLACES, birch, None)
    assert terms.hourly == {"cpu:1": 1, "cpu:8": 8, "gpu:1": 75, "gpu:2": 150}
    assert terms.same_cost_cores == {1: 75, 2: 150}
    assert (unit, notes) == ("BU", [])


def test_units_that_do_not_compare_are_not_compared(tmp_path: Path) -> None:
    oak = changed(tmp_path, '[billing.gpu]\nunit = "BU"', '[billing.gpu]\nunit = "GPU BU"')
    terms, unit, notes = terms_of(PLACES, oak, None)
    assert (terms.hourly, terms.same_cost_cores, unit) == ({}, {}, "")
    (note,) = notes
    assert note.startswith("Oak bills cores and GPUs in different units (BU and GPU BU)")
    assert "`--gpu-cost CORES`" in note
    terms, _, notes = terms_of(PLACES, oak, 20)
    assert (terms.same_cost_cores, notes) == ({1: 20, 2: 40}, [])


def test_what_the_user_says_of_a_gpu_goes_before_the_sites_prices(birch: Prices) -> None:
    terms, unit, _ = terms_of(PLACES, birch, 20)
    assert terms.same_cost_cores == {1: 20, 2: 40}
    assert (terms.hourly["gpu:1"], unit) == (75, "BU")


def test_without_a_site_only_the_user_knows() -> None:
    assert terms_of(PLACES, None, None) == (({}, {}), "", [])
    assert terms_of(PLACES, None, 16)[0].same_cost_cores == {1: 16, 2: 32}


def test_a_site_without_documented_prices(tmp_path: Path) -> None:
    silent = changed(tmp_path, 'billing = "cpu"', 'unknown = ["billing"]')
    assert silent.hourly("cpu", 1) is None
    terms, _, notes = terms_of([place("cpu:1")], silent, None)
    assert notes == ["Teho does not know what the variants cost on Oak."]
    assert terms.hourly == {}
