"""The user's settings, from a file or from the environment, which overrides the file."""

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

ReportLevel = Literal["none", "brief", "full"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of `teho`, as in `~/.config/teho/config.toml`."""

    home: str = ""
    """Directory of the recordings, which all nodes of a job must be able to use. Variable:
    TEHO_HOME."""
    every: str = "1s"
    """Time between two samples, at least 0.1s. Variable: TEHO_EVERY."""
    report: ReportLevel = "brief"
    """How much `teho run` prints at the end: none, brief or full. Variable: TEHO_REPORT."""
    cluster: str = ""
    """Cluster to use, such as `roihu`, if a command has no `--cluster`, and if Teho does not
    recognise the machine. Variable: TEHO_CLUSTER."""
    account: str = ""
    """Project that pays for a job if you give no `--account`. Variable: TEHO_ACCOUNT."""
    my_clusters: str = ""
    """Names of the clusters that you use, such as `roihu, lumi`. Plans show these clusters first.
    Variable: TEHO_MY_CLUSTERS."""
    thresholds: str = ""
    """A TOML file with thresholds that replace Teho's thresholds; see
    [Rules](../rules.md#other-thresholds-for-a-site-or-a-user). Variable: TEHO_THRESHOLDS."""
    electricity: str = ""
    """A TOML file with the price and carbon intensity of the site's electricity; see
    [Energy](../energy.md). Variable: TEHO_ELECTRICITY."""
    shared: str = ""
    """A folder in which the members of your project share their runs; see
    [Sharing](../portal.md#share-runs-with-your-group). Variable: TEHO_SHARED."""
    keep: str = "90d"
    """How long Teho keeps a recording of [`teho always`](../always.md). Variable: TEHO_KEEP."""
    keep_gb: float = 5.0
    """Largest disk space, in GB, for all recordings of [`teho always`](../always.md). Variable:
    TEHO_KEEP_GB."""

    monitoring: str = ""
    """Address of the site's Prometheus or VictoriaMetrics, such as `https://metrics.example.org`;
    see [Stores](../stores.md). Empty: Teho uses the address in the cluster's file. Variable:
    TEHO_MONITORING."""
    monitoring_token_file: str = ""
    """A file with a token for the store in `monitoring`, or with `NAME:PASSWORD`. Variable:
    TEHO_MONITORING_TOKEN_FILE."""
    monitoring_exporters: str = ""
    """A TOML file that describes more exporters of the store in `monitoring`; see
    [Stores](../stores.md#another-exporter). Variable: TEHO_MONITORING_EXPORTERS."""

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
            UnitError: the setting is not a length of time.
            InputError: the period is shorter than 0.1 s or longer than 1 h.
        """
        return parse_period(self.every, "every")

    @property
    def keep_s(self) -> float:
        """How long to keep recordings that the user did not start, in seconds.

        Raises:
            UnitError: the setting is not a length of time.
        """
        return parse_duration(self.keep, "keep")

    @property
    def keep_bytes(self) -> float:
        """Disk space for these recordings.

        Raises:
            InputError: the setting is negative, or not a number.
        """
        if not 0 <= self.keep_gb < float("inf"):
            raise InputError(f"keep_gb: {self.keep_gb:g}", "a number of GB, such as 5")
        return self.keep_gb * 1e9


def parse_period(text: str, what: str) -> float:
    """Read a sampling period and return seconds.

    Raises:
        UnitError: the text is not a length of time.
        InputError: the period is shorter than 0.1 s, which would slow the program, or over 1 h.
    """
    period_s = parse_duration(text, what)
    if not 0.1 <= period_s <= 3600:
        raise InputError(f"{what}: {text!r}", "a time between 0.1s and 1h")
    return period_s


def settings_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the settings file, which may not exist."""
    config = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return expanded(config) / "teho" / "config.toml"


def in_utf8(path: Path) -> Path:
    """Return a path of a recording after a check: Arrow opens only files with names in UTF-8.

    Raises:
        InputError: the path is not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path}: the path has bytes that are not UTF-8",
            next_step="rename the directory, or make a symbolic link to it, and set TEHO_HOME to "
            "the new name",
        ) from error
    return path


def expanded(text: str) -> Path:
    """Return a path with `~` replaced by the home directory.

    Raises:
        InputError: the home directory is not known.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"{text}: this user's home directory is not known",
            next_step="write the full path, without `~`; the variable TEHO_HOME sets the directory "
            "of the recordings",
        ) from error


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        InputError: a value in the file or the environment is not valid.
    """
    settings = Settings()
    try:
        path = settings_file(environment)
    except InputError:
        path = None  # a user without a home directory has no settings file
    # os.path.exists: no error if another user's home cannot be read.
    if path is not None and os.path.exists(path):  # noqa: PTH110
        from teho.config.toml import read_toml, to_noun

        settings = to_noun(read_toml(path), Settings, path)
    changes: dict[str, str | float] = {
        name: environment[variable]
        for name in Settings.__struct_fields__
        if environment.get(variable := f"TEHO_{name.upper()}")
    }
    if changes.get("report", "none") not in get_args(ReportLevel):
        raise InputError(f"TEHO_REPORT: {changes['report']!r}", "none, brief or full")
    if "keep_gb" in changes:
        changes["keep_gb"] = _as_gb(str(changes["keep_gb"]))
    return msgspec.structs.replace(settings, **changes)


def _as_gb(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"TEHO_KEEP_GB: {text!r}", "a number of GB, such as 5") from None
