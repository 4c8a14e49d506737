"""Reads lists of packages from conda, mamba, pip and lock files."""

from __future__ import annotations

import re
import sys
from typing import Any, Literal, NamedTuple

import msgspec

from teho.errors import InputError
from teho.model.software import Package
from teho.patterns import lazy_pattern
from teho.units import counted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Listing", "package_of", "read_listing"]

_Origin = Literal["conda", "pip", ""]
_NAME = r"[A-Za-z0-9_][\w.-]*?"
_VERSION = r"[0-9][\w.!+*-]*"
_BUILD = r"[A-Za-z0-9_][\w.]*"


class Listing(NamedTuple):
    """The packages in a list."""

    form: str
    """Such as `conda list`."""
    packages: list[Package]


class _Form(NamedTuple):
    name: str
    line: re.Pattern[str]
    origin: _Origin


# Tried on each line in this order. The list has the form of most lines.
_FORMS = (
    # URL/conda-forge/linux-64/pytorch-2.4.1-cuda120_py313h6ccb88c_302.conda#md5
    _Form("conda explicit list", lazy_pattern(
        rf"(?:- (?:conda|url): |url: )?(?:https?|file)://\S*/(?:linux-\w+|noarch|osx-\w+|win-\w+)/"
        rf"(?P<name>{_NAME})-(?P<version>[^-/]+)-(?P<build>[^-/]+)\.(?:conda|tar\.bz2)(?:#\S+)?"
    ), "conda"),
    # pytorch   conda-forge/linux-64::pytorch-2.4.1-cuda120_py313h6ccb88c_302
    _Form("conda create", lazy_pattern(
        rf"\S+\s+(?:\S+\s+-->\s+)?[\w./-]+::"
        rf"(?P<name>{_NAME})-(?P<version>[^-\s]+)-(?P<build>[^-\s]+)\s*"
    ), "conda"),
    # + pytorch  2.4.1  cuda120_py313h6ccb88c_302  conda-forge  37MB
    _Form("mamba create", lazy_pattern(
        rf"\+ (?P<name>{_NAME})\s+(?P<version>{_VERSION})\s+(?P<build>{_BUILD})\s+\S+(?:\s+\S+)?"
    ), "conda"),
    # - pytorch=2.4.1=cuda120_py313h6ccb88c_302
    _Form("conda export", lazy_pattern(
        rf"(?:- )?(?P<name>{_NAME})=(?P<version>{_VERSION})=(?P<build>{_BUILD})"
    ), "conda"),
    # torch==2.5.1+cu124 --hash=..., with markers behind a semicolon
    _Form("pip freeze", lazy_pattern(
        rf"(?:- )?(?P<name>{_NAME})(?:\[[\w,.-]+\])?===?(?P<version>{_VERSION})"
        r"(?:\s*[;\\#].*|\s+--hash.*)?"
    ), "pip"),
    # torch @ file:///wheels/torch-2.9.0+computecanada-cp311-cp311-linux_x86_64.whl
    _Form("pip freeze", lazy_pattern(
        rf"(?P<name>{_NAME}) @ \S*/[\w.]+-(?P<version>[0-9][^-/#]*)-[^/]*\.whl(?:#\S*)?"
    ), "pip"),
    # pytorch  2.4.1  cuda120_py313h6ccb88c_302  conda-forge, and of pip: torch  2.5.1  pypi_0  pypi
    _Form("conda list", lazy_pattern(
        rf"(?P<name>{_NAME})\s+(?P<version>{_VERSION})\s+(?P<build>{_BUILD})(?:\s+(?P<channel>\S+))?"
    ), "conda"),
    # torch  2.5.1+cu124
    _Form("pip list", lazy_pattern(
        rf"(?P<name>{_NAME})\s+(?P<version>{_VERSION})(?:\s+/\S+)?"
    ), "pip"),
)  # fmt: skip

_TABLES = frozenset(("conda list", "pip list"))
"""Tables of columns, with a package in each line. Other tables may have similar lines."""


def read_listing(text: str, source: str) -> Listing:
    """Read a list of packages of any known form.

    Args:
        text: conda's explicit lists, `conda create`, `conda list` and `conda env export`;
            `pip freeze` and `pip list`; lock files of pylock, uv, poetry and pixi; JSON of conda
            and pip.
        source: the file's name, for the error.

    Raises:
        InputError: no line names a package, or too few lines of a table.
    """
    for read in (_json, _toml):
        if found := read(text):
            return found
    counts: dict[str, int] = {}
    lines = (_of_line(line.strip(), counts) for line in text.splitlines())
    packages = [package for package in lines if package]
    filled = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not packages or (counts.keys() <= _TABLES and 2 * len(packages) < len(filled)):
        count = len(text.splitlines())
        raise InputError(
            f"{source}: {f'only {len(packages)}' if packages else 'none'} of "
            f"{counted(count, 'line')} "
            f"name{'' if len(packages) > 1 else 's'} a package",
            "the output of `conda list`, `conda create` or `pip freeze`, or a lock file",
            "run `pip freeze > FILE` in the environment, or `teho env check --python PATH`",
        )
    return Listing(max(counts, key=lambda form: counts[form]), packages)


def _of_line(line: str, counts: dict[str, int]) -> Package | None:
    if not line or line.startswith(("#", "@", "//")):
        return None
    for form in _FORMS:
        if found := form.line.fullmatch(line):
            fields = found.groupdict(default="")
            by_pip = "pypi" in {fields.get("channel"), fields.get("build")} or (
                fields.get("build", "").startswith("pypi_")
            )
            counts[form.name] = counts.get(form.name, 0) + 1
            return _package(
                fields["name"],
                fields["version"],
                "" if by_pip else fields.get("build", ""),
                "pip" if by_pip else form.origin,
            )
    return None


def _json(text: str) -> Listing | None:
    if text.lstrip()[:1] not in {"[", "{"}:
        return None
    try:
        content = msgspec.json.decode(text.encode(errors="replace"))
    except msgspec.DecodeError:
        return None
    if isinstance(content, dict):
        actions = content.get("actions")  # of `conda create --json`
        content = content.get("packages", actions.get("LINK") if isinstance(actions, dict) else ())
    rows = list(content.values()) if isinstance(content, dict) else content  # an older conda-lock
    return _of_rows(rows, "JSON list")


def _toml(text: str) -> Listing | None:
    """Read a lock file in TOML: pylock's `[[packages]]`, uv's and poetry's `[[package]]`."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return _of_rows(content.get("packages") or content.get("package"), "lock file")


def _of_rows(rows: object, form: str) -> Listing | None:
    if not isinstance(rows, list):
        return None
    packages = [one for row in rows if isinstance(row, dict) and (one := package_of(row))]
    return Listing(form, packages) if packages else None


def package_of(record: dict[str, Any]) -> Package | None:
    """Return a package from JSON or TOML. conda's packages have a build string, pip's do not."""
    name, version = record.get("name"), record.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    build = record.get("build_string") or record.get("build") or ""
    by_pip = not build or record.get("channel") == "pypi" or str(build).startswith("pypi_")
    return _package(name, version, "" if by_pip else str(build), "pip" if by_pip else "conda")


def _package(name: str, version: str, build: str, origin: _Origin) -> Package:
    plain = re.sub(r"[-_.]+", "-", name).lower() if origin == "pip" else name.lower()
    return Package(name=plain, version=version, build=build, origin=origin)
