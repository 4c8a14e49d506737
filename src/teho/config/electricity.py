"""What a kilowatt-hour costs and emits, from a file of the user's or the site's."""

from __future__ import annotations

from pathlib import Path
from typing import Union

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.errors import InputError

__all__ = ["Electricity", "load_electricity"]


class Electricity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The site's electricity. What is not given is not guessed, and has no line in the report."""

    carbon_g_per_kwh: Union[float, None] = None
    """Carbon intensity: grams of CO2 equivalents for each kWh."""
    price_per_kwh: Union[float, None] = None
    """Price of a kWh, in `currency`."""
    currency: str = ""
    """Such as `EUR`; needed with a price."""
    pue: float = 1.0
    """Power usage effectiveness: what the whole building draws for each kWh of its computers."""
    source: str = ""
    """Who says so, and for when."""


def load_electricity(path: Path) -> Electricity:
    """Read such a file.

    Raises:
        InputError: it cannot be read, has a key that is not known, or a figure that cannot be.
    """
    found = to_noun(read_toml(path), Electricity, path)
    for key, least in (("carbon_g_per_kwh", 0.0), ("price_per_kwh", 0.0), ("pue", 1.0)):
        value = getattr(found, key)
        if value is not None and not value >= least:
            raise InputError(f"{path}: {key} = {value}", f"a number from {least:g} on")
    if found.price_per_kwh is not None and not found.currency:
        raise InputError(f"{path}: a price without a currency", 'currency = "EUR"')
    return found
