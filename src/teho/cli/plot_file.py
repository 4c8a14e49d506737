"""The file of `--plot`, and the pictures of an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from teho.cli import say
from teho.cli.declare import option
from teho.errors import InputError

if TYPE_CHECKING:
    import msgspec

    from teho.cli.output import Output
    from teho.model.document import Document

__all__ = ["plot_file", "plot_option", "show_and_draw"]

plot_option = option("--plot FILE", "Draw the result to this file, .svg or .png; needs matplotlib.",
                     unset="no plot")  # fmt: skip
_FORMS = (".svg", ".png")


def plot_file(text: str | None) -> Path | None:
    """Return the file to draw to, or None. Mistakes are found before the measurement.

    Raises:
        InputError: the name has another ending, its folder does not exist, or matplotlib is
            missing.
    """
    if not text:
        return None
    path = Path(text)
    if path.suffix not in _FORMS:
        raise InputError(f"--plot {text}", f"a name that ends in {' or '.join(_FORMS)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot {text}: the folder {path.parent} does not exist")
    from teho.show.plot.drawn import need_matplotlib

    need_matplotlib("--plot")
    return path


def show_and_draw(
    output: Output,
    document: Document,
    noun: msgspec.Struct,
    drawings: Mapping[str, Callable[[str], bytes]],
    path: Path | None,
) -> None:
    """Print a result, and draw it to the file of `--plot`.

    Args:
        output: the format and file of the result.
        document: the result for people.
        noun: the result for programs.
        drawings: by name, each draws `svg` or `png`; several are several files with their names.
        path: the file to draw to; None: none.
    """
    output.show(document, noun, pictures=lambda: (draw("svg") for draw in drawings.values()))
    if path is None:
        return
    for name, draw in drawings.items():
        own = path if len(drawings) == 1 else path.with_stem(f"{path.stem}-{name}")
        own.write_bytes(draw(path.suffix[1:]))
        say(f"wrote {own}")
    if not drawings:
        say(f"--plot {path}: the plot is not written, because nothing could be measured")
