"""The common style of all plots, as PNG and as SVG for light and dark pages."""

from __future__ import annotations

import io
import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "MARK", "drawn", "inlined", "log_axes", "mark_range", "need_matplotlib"]

COLORS = ("#1793a0", "#d4622a", "#7a67dd", "#3b9a50", "#cf4179", "#3f86d8", "#a17a12", "#74828b")
"""Colours with a contrast of 3 or more on white and on the dark page."""
MARK = "#8a949a"
"""Colour of lines and bands that are not measured, such as a limit."""
_INK = "#010203"
"""Placeholder for the text colour of the page in an SVG."""
_ADAPTS = "<style>svg{color:#30383d}@media(prefers-color-scheme:dark){svg{color:#cfd6da}}</style>"


def need_matplotlib(option: str) -> None:
    """Check that matplotlib is installed.

    Args:
        option: the option that needs it, for the message.

    Raises:
        InputError: matplotlib is not installed.
    """
    # `teho` hides NumPy from pyarrow, because pyarrow starts faster without it.
    if sys.modules.get("numpy", sys) is None:
        del sys.modules["numpy"]
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{option}: matplotlib is not installed", "", "`pip install 'teho[plots]'`"
        )


def drawn(
    paint: Callable[[Figure], None], form: str, *, inches: tuple[float, float], salt: str
) -> bytes:
    """Draw a figure in the common style.

    Args:
        paint: the function that draws into the figure.
        form: `svg` or `png`.
        inches: width and height.
        salt: text for the names in an SVG; the same salt gives the same file.

    Raises:
        InputError: matplotlib is not installed.
    """
    need_matplotlib(f".{form}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ink = _INK if form == "svg" else "#30383d"
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.size": 9,
        "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9,
        "axes.titlelocation": "left",
        "lines.linewidth": 1.6,
        "lines.markersize": 4,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=inches, layout="constrained")
        paint(figure)
        file = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else None
        figure.savefig(file, format=form, dpi=160, transparent=form == "svg", metadata=metadata)
    if form == "png":
        return file.getvalue()
    return _following_the_page(file.getvalue().decode()).encode()


def log_axes(panel: Axes) -> None:
    """Make both axes of a panel logarithmic, with a grid and without small ticks."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(visible=True, which="major", linewidth=0.5, alpha=0.25)
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_minor_locator(NullLocator())


def mark_range(panel: Axes, low: float, at: float, high: float) -> None:
    """Mark a position on the horizontal axis and the range in which it is."""
    panel.axvspan(low, high, color=MARK, alpha=0.14, linewidth=0)
    panel.axvline(at, color=MARK, linewidth=0.9, linestyle=":")


def _following_the_page(svg: str) -> str:
    """Return an SVG with the colours of the page and without metadata."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace(_INK, "currentColor")
    return re.sub(r"(<svg\b[^>]*>)", rf"\1{_ADAPTS}", svg, count=1)


def inlined(svg: bytes) -> str:
    """Return an SVG for use inside a page: in its colours, without name spaces."""
    text = svg.decode().replace(_ADAPTS, "")
    text = text[text.index("<svg") :]
    return re.sub(r'(<svg\b[^>]*?) xmlns="[^"]*"', r"\1", re.sub(r' xmlns:\w+="[^"]*"', "", text))
