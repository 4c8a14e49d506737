"""The file that `--plot` names."""

from __future__ import annotations

from pathlib import Path

from teho.errors import InputError

__all__ = ["plot_file"]

_FORMS = (".svg", ".png")


def plot_file(text: str | None) -> Path | None:
    """Return where to draw, None: nowhere; what would fail in ten minutes fails now.

    Raises:
        InputError: the name has another ending, there is no such folder, or matplotlib is missing.
    """
    if not text:
        return None
    path = Path(text)
    if path.suffix not in _FORMS:
        raise InputError(f"--plot {text}", f"a name that ends in {' or '.join(_FORMS)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot {text}: there is no folder {path.parent}")
    from teho.show.plot.drawn import need_matplotlib

    need_matplotlib("--plot")
    return path
