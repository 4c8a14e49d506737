"""What a user can set once: in a file, or in the environment, which wins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from teho.errors import InputError
from teho.units import parse_duration

__all__ = [
    "ReportLevel",
    "Settings",
    "expanded",
    "in_utf8",
    "load_settings",
    "parse_period",
    "settings_file",
]

ReportLevel = Literal["none", "short", "full"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of `teho`, as in `~/.config/teho/config.toml`."""

    home: str = ""
    """Where recordings are kept; it must be visible to all nodes of a job. Variable: TEHO_HOME."""
    every: str = "1s"
    """Time between two samples, at least 0.1s. Variable: TEHO_EVERY."""
    report: ReportLevel = "short"
    """How much `teho run` prints at the end: none, short or full. Variable: TEHO_REPORT."""
    cluster: str = ""
    """Cluster of commands without `--cluster` on a machine that Teho does not recognise, such as
    `roihu`. Variable: TEHO_CLUSTER."""
    account: str = ""
    """Project that pays for jobs without `--account`. Variable: TEHO_ACCOUNT."""
    my_clusters: str = ""
    """Names of the clusters that you use, such as `roihu, lumi`: plans show them first. Variable:
    TEHO_MY_CLUSTERS."""
    thresholds: str = ""
    """A TOML file whose thresholds replace Teho's own. Variable: TEHO_THRESHOLDS."""
    electricity: str = ""
    """A TOML file with the price and carbon intensity of the site's electricity; see
    [Energy](../energy.md). Variable: TEHO_ELECTRICITY."""

    @property
    def home_directory(self) -> Path:
        """The directory of all recordings."""
        if self.home:
            return in_utf8(expanded(self.home))
        return in_utf8(expanded(os.environ.get("XDG_DATA_HOME") or "~/.local/share")) / "teho"

    @property
    def period_s(self) -> float:
        """Time between two samples in seconds.

        Raises:
            UnitError: not a length of time.
            InputError: shorter than 0.1 s.
        """
        return parse_period(self.every, "every")


def _read(path: Path) -> Settings:
    from teho.config.toml import read_toml, to_noun

    return to_noun(read_toml(path), Settings, path)


def parse_period(text: str, what: str) -> float:
    """Read a sampling period and return seconds.

    Raises:
        UnitError: not a length of time.
        InputError: shorter than 0.1 s, which would cost the program too much, or over an hour.
    """
    period_s = parse_duration(text, what)
    if not 0.1 <= period_s <= 3600:
        raise InputError(f"{what}: {text!r}", "a time between 0.1s and 1h")
    return period_s


def settings_file(environment: Mapping[str, str]) -> Path:
    """Return where the settings file lies, whether it exists or not."""
    config = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return expanded(config) / "teho" / "config.toml"


def in_utf8(path: Path) -> Path:
    """Return a path of a recording, whose rows Arrow opens by names in UTF-8 alone.

    Raises:
        InputError: it has bytes that are none.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path}: the path has bytes that are not UTF-8",
            next_step="move it, or link to it, under another name; TEHO_HOME names the recordings",
        ) from error
    return path


def expanded(text: str) -> Path:
    """Return a path with `~` replaced by the home directory.

    Raises:
        InputError: this user has no home directory.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"{text}: this user's home directory is not known",
            next_step="give the path in full (TEHO_HOME is that of the recordings)",
        ) from error


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        InputError: the file or a variable holds something else than expected.
    """
    settings = Settings()
    try:
        path = settings_file(environment)
    except InputError:
        path = None  # without a home there is no file either
    # os.path.exists: no error where another user's home may not be looked into.
    if path is not None and os.path.exists(path):  # noqa: PTH110
        settings = _read(path)
    changes = {
        name: environment[variable]
        for name in Settings.__struct_fields__
        if environment.get(variable := f"TEHO_{name.upper()}")
    }
    if changes.get("report", "none") not in get_args(ReportLevel):
        raise InputError(f"TEHO_REPORT: {changes['report']!r}", "none, short or full")
    return msgspec.structs.replace(settings, **changes)
