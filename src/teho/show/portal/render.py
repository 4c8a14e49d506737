"""Fills the templates of the portal, and gives its styles and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2

from teho.show.cells import plain
from teho.show.html.markup import breakable, copyable, prose
from teho.show.html.page import shipped
from teho.show.portal.languages import language, say, say_count
from teho.show.portal.words import moment_text, quantity_text, seconds_text
from teho.version import __version__

__all__ = ["ASSETS", "asset", "render"]

_STYLES = (
    "vendor/uPlot.min.css",
    "templates/report.css",
    "portal/templates/portal.css",
)
_FILES = {
    "report.js": ("vendor/uPlot.iife.min.js", "templates/report.js"),
    "portal.js": ("portal/templates/portal.js",),
    "icon.svg": ("portal/templates/icon.svg",),
}
ASSETS = ("style.css", *_FILES)
"""Names of the files that pages load."""


def asset(name: str) -> bytes | None:
    """Return the content of a style or script; None if there is none with this name."""
    if name == "style.css":
        return "".join(map(shipped, _STYLES)).encode()
    if name in _FILES:
        return "\n".join(map(shipped, _FILES[name])).encode()
    return None


def render(template: str, base: Mapping[str, Any], **values: Any) -> str:
    """Fill a template.

    Args:
        template: its name.
        base: what all pages have: `has_group`, and for a static copy `static`.
        values: what only this page has.
    """
    return _environment().get_template(template).render(base=base, **values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("teho.show.portal"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # Names and commands come from outside: no control characters, no marks of direction.
        finalize=lambda value: plain(value) if type(value) is str else value,
        trim_blocks=True,
        extensions=["jinja2.ext.i18n"],
        lstrip_blocks=True,
    )
    environment.filters |= {
        "seconds": seconds_text,
        "moment": moment_text,
        "quantity": quantity_text,
        "hours": lambda hours: quantity_text(hours, "h"),
        "copyable": copyable,
        "prose": prose,
        "breakable": breakable,
    }
    environment.globals |= {
        "gettext": say,
        "_": say,
        "ngettext": say_count,
        "language": language,
        "version": __version__,
        "asset_address": _asset_address,
    }
    return environment


@cache
def _asset_address(name: str) -> str:
    """Return the address of a style or script; it changes with the content, for the cache."""
    return f"{name}?v={sha256(asset(name) or b'').hexdigest()[:12]}"
