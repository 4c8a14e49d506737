"""Price and carbon intensity of a kilowatt-hour, from a file of the user or the site."""

from __future__ import annotations

from pathlib import Path
from typing import Union

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.errors import InputError

__all__ = ["Electricity", "load_electricity"]


class Electricity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The site's electricity. A value that is not given has no line in the report."""

    carbon_g_per_kwh: Union[float, None] = None
    """Carbon intensity: grams of CO2 equivalents for each kWh."""
    price_per_kwh: Union[float, None] = None
    """Price of a kWh, in `currency`."""
    currency: str = ""
    """Such as `EUR`; needed with a price."""
    pue: float = 1.0
    """Power usage effectiveness: kWh of the whole building for each kWh of its computers."""
    source: str = ""
    """Who publishes the values, and for which time."""


def load_electricity(path: Path) -> Electricity:
    """Read the file.

    Raises:
        InputError: the file cannot be read, or has an unknown key or an impossible value.
    """
    found = to_noun(read_toml(path), Electricity, path)
    for key, least in (("carbon_g_per_kwh", 0.0), ("price_per_kwh", 0.0), ("pue", 1.0)):
        value = getattr(found, key)
        if value is not None and not value >= least:
            raise InputError(f"{path}: {key} = {value}", f"{least:g} or more")
    if found.price_per_kwh is not None and not found.currency:
        raise InputError(
            f"{path}: price_per_kwh has no currency", 'a line such as currency = "EUR"'
        )
    return found
