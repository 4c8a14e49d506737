"""What all plots share: the house's style, PNG, and SVG that follows the reader's light or dark."""

from __future__ import annotations

import io
import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

__all__ = ["COLORS", "drawn", "inlined", "need_matplotlib"]

COLORS = ("#1793a0", "#d4622a", "#7a67dd", "#3b9a50", "#cf4179", "#3f86d8", "#a17a12", "#74828b")
"""Each has a contrast of 3 or more to white and to the dark page's background."""
_INK = "#010203"
"""What becomes the reader's own colour of text in an SVG."""
_ADAPTS = "<style>svg{color:#30383d}@media(prefers-color-scheme:dark){svg{color:#cfd6da}}</style>"


def need_matplotlib(option: str) -> None:
    """Make sure that plots can be drawn.

    Args:
        option: that asks for one, for the message.

    Raises:
        InputError: matplotlib is not installed.
    """
    # `teho` hides NumPy from pyarrow, which does not need it.
    if sys.modules.get("numpy", sys) is None:
        del sys.modules["numpy"]
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{option}: matplotlib is not installed", "", "`pip install 'teho[plots]'`"
        )


def drawn(
    paint: Callable[[Figure], None], form: str, *, inches: tuple[float, float], salt: str
) -> bytes:
    """Draw a figure in the house's style.

    Args:
        paint: fills the figure.
        form: `svg` or `png`.
        inches: width and height.
        salt: what the names within an SVG are made from; the same gives the same file.

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


def _following_the_page(svg: str) -> str:
    """Let an SVG take the reader's colours; without the drawer's own description."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace(_INK, "currentColor")
    return re.sub(r"(<svg\b[^>]*>)", rf"\1{_ADAPTS}", svg, count=1)


def inlined(svg: bytes) -> str:
    """Return an SVG as it stands inside of a page: in the page's colour, without name spaces."""
    text = svg.decode().replace(_ADAPTS, "")
    text = text[text.index("<svg") :]
    return re.sub(r'(<svg\b[^>]*?) xmlns="[^"]*"', r"\1", re.sub(r' xmlns:\w+="[^"]*"', "", text))
