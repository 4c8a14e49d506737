"""Feeds a GPU: data in its memory, batches from workers or threads, many small files in shards.

>>> from teho.feed import resident
>>> for images, labels in resident((images, labels), batch_size=512, shuffle=True):
...     train(images, labels)

`loader` and `resident` import PyTorch when a program uses them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from teho.feed.packing import pack
from teho.feed.shards import packed

if TYPE_CHECKING:
    from teho.feed.loading import loader
    from teho.feed.on_device import resident

__all__ = ["loader", "pack", "packed", "resident"]

_WITH_TORCH = {"loader": "loading", "resident": "on_device"}


def __getattr__(name: str) -> Any:
    """Return a function that needs PyTorch.

    Raises:
        ImportError: this Python does not have PyTorch.
    """
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"teho.feed.{name} needs PyTorch, and {sys.executable} does not have it. Next: install "
            "PyTorch into this Python, or install Teho into the Python that has PyTorch. On a "
            "cluster, `teho env plan --framework pytorch` writes the commands.",
            name="torch",
        ) from error
