"""The file of price and carbon intensity, and mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from teho.config.electricity import Electricity, load_electricity
from teho.errors import InputError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "electricity.toml"


def test_all_keys(file: Path) -> None:
    file.write_text(
        "carbon_g_per_kwh = 70.5\nprice_per_kwh = 0.12\ncurrency = 'EUR'\npue = 1.04\n"
        "source = 'the grid operator, 2025'\n"
    )
    assert load_electricity(file) == Electricity(
        carbon_g_per_kwh=70.5, price_per_kwh=0.12, currency="EUR", pue=1.04,
        source="the grid operator, 2025",
    )  # fmt: skip


def test_nothing_has_a_default_that_is_a_guess(file: Path) -> None:
    file.write_text("")
    found = load_electricity(file)
    assert (found.carbon_g_per_kwh, found.price_per_kwh, found.pue) == (None, None, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("carbon_per_kwh = 70", ["carbon_per_kwh", "did you mean 'carbon_g_per_kwh'?"]),
        ("carbon_g_per_kwh = '70 g'", ["carbon_g_per_kwh"]),
        ("carbon_g_per_kwh = -1", ["carbon_g_per_kwh = -1", "0 or more"]),
        ("carbon_g_per_kwh = nan", ["carbon_g_per_kwh"]),
        ("pue = 0.9", ["pue = 0.9", "1 or more"]),
        ("price_per_kwh = 0.1", ["currency"]),
        ("price_per_kwh = ", ["TOML"]),
    ],
)
def test_a_mistake_names_the_file_and_the_key(file: Path, content: str, words: list[str]) -> None:
    file.write_text(content)
    with pytest.raises(InputError) as error:
        load_electricity(file)
    for word in (file.name, *words):
        assert word in str(error.value)


def test_no_such_file(file: Path) -> None:
    with pytest.raises(InputError, match=r"electricity\.toml"):
        load_electricity(file)
