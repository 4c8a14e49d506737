"""Feeds a GPU: data in its memory, batches from workers or threads, many small files in shards.

>>> from teho.feed import resident
>>> for images, labels in resident((images, labels), batch_size=512, shuffle=True):
...     train(images, labels)

`import teho.feed` imports nothing: a function is imported when a program uses it. `loader` and
`resident` import PyTorch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from teho.feed.loading import loader
    from teho.feed.on_device import resident
    from teho.feed.packing import pack
    from teho.feed.shards import packed

__all__ = ["loader", "pack", "packed", "resident"]

_MODULES = {"loader": "loading", "pack": "packing", "packed": "shards", "resident": "on_device"}


def __getattr__(name: str) -> Any:
    """Return a function of the package.

    Raises:
        ImportError: the function needs PyTorch, and this Python does not have it.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"teho.feed.{name} needs PyTorch, and {sys.executable} does not have it. Next: install "
            "PyTorch into this Python, or install Teho into the Python that has PyTorch. On a "
            "cluster, `teho env plan --framework pytorch` writes the commands.",
            name="torch",
        ) from error
