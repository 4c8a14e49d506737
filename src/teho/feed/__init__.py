"""Feeds a GPU: data in its memory, batches from workers or threads, many small files in shards.

>>> from teho.feed import resident
>>> for images, labels in resident((images, labels), batch_size=512, shuffle=True):
...     train(images, labels)

PyTorch is imported when a function needs it.
"""

from __future__ import annotations

from teho.feed.loading import loader
from teho.feed.on_device import resident
from teho.feed.packing import pack
from teho.feed.shards import packed

__all__ = ["loader", "pack", "packed", "resident"]
