"""How fast bytes move: from disk to memory, within memory, to a GPU and back.

A GPU's link is some fifty times slower than its own memory, and a disk is slower still. A GPU reads
pinned memory by itself, so it is copied twice as fast as other memory.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Iterator

import numpy as np
from harness import Phase, Point, serve
from libraries import Library


class Bandwidth:
    """The point has `bytes`, a multiple of 8."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def check(self, point: Point) -> list[float]:
        """Return the sum of the data, and the largest error of all copies."""
        source = np.arange(point["bytes"] // 8, dtype=np.float64)
        if self.library.device == "gpu":
            back = self.library.to_host(self.library.to_device(source))
            pinned = pinned_like(self.library, source)
            arrays = [back] if pinned is None else [back, pinned]
        else:
            target = np.zeros_like(source)
            np.copyto(target, source)
            with on_disk(source) as path:
                arrays = [target, read(path, np.zeros_like(source))]
        wrong = max(float(np.abs(array - source).max()) for array in arrays)
        return [float(source.sum()), wrong]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield each kind of copy of this number of bytes."""
        library, size = self.library, point["bytes"]
        source = np.ones(size // 8)
        if library.device == "gpu":
            yield from self._link(source)
            return
        target = np.empty_like(source)
        yield Phase("memory to memory", lambda: np.copyto(target, source), bytes=size)
        with on_disk(source) as path:
            yield Phase("cached file to memory", lambda: read(path, target), bytes=size)
            if is_on_disk(path):
                yield Phase("disk to memory", lambda: read(path, target, forget=True), bytes=size)

    def _link(self, source: Any) -> Iterator[Phase]:
        library, size = self.library, source.nbytes
        yield Phase("host to device", lambda: library.to_device(source), bytes=size)
        here = library.to_device(source)
        yield Phase("device to host", library.way_back(here), bytes=size)
        pinned = pinned_like(library, source)
        if pinned is None:
            return
        if library.name == "torch":
            on_host = library.module.from_numpy(pinned)
            yield Phase(
                "host to device, pinned",
                lambda: here.copy_(on_host, non_blocking=True),
                bytes=size,
            )
            yield Phase(
                "device to host, pinned",
                lambda: on_host.copy_(here, non_blocking=True),
                bytes=size,
            )
        else:
            yield Phase("host to device, pinned", lambda: here.set(pinned), bytes=size)
            yield Phase("device to host, pinned", lambda: here.get(out=pinned), bytes=size)


def pinned_like(library: Library, source: Any) -> Any:
    """Return a copy as a NumPy array in pinned memory; None if the library has none."""
    if library.name == "torch":
        pinned = library.module.empty(len(source), dtype=library.module.float64, pin_memory=True)
        pinned = pinned.numpy()
    elif library.name == "cupy":
        import cupyx

        pinned = cupyx.empty_pinned(source.shape, source.dtype)
    else:
        return None
    pinned[:] = source
    return pinned


@contextlib.contextmanager
def on_disk(source: Any) -> Iterator[str]:
    """Write an array to a temporary file (in `TMPDIR`), through to the disk."""
    with tempfile.NamedTemporaryFile(prefix="teho-bench-") as file:
        source.tofile(file)
        file.flush()
        os.fsync(file.fileno())
        yield file.name


def is_on_disk(path: str) -> bool:
    """Return whether a file is not in memory (tmpfs, ramfs)."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        mounts = [line.split()[1:3] for line in file]
    inside = os.path.realpath(path) + "/"
    around = [mount for mount in mounts if inside.startswith(mount[0].rstrip("/") + "/")]
    return max(around, key=lambda mount: len(mount[0]))[1] not in ("tmpfs", "ramfs")


def read(path: str, target: Any, *, forget: bool = False) -> Any:
    """Read a file into an array.

    Args:
        path: of the file.
        target: array of its size.
        forget: whether the kernel first drops the file from its page cache.
    """
    with open(path, "rb", buffering=0) as file:
        if forget:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        view = memoryview(target).cast("B")
        done = 0
        while done < len(view):
            count = file.readinto(view[done:])
            if not count:
                raise OSError("%s ends after %d of %d bytes" % (path, done, len(view)))
            done += count
    return target


if __name__ == "__main__":
    serve(Bandwidth, libraries=("numpy", "cupy", "jax", "torch"))
