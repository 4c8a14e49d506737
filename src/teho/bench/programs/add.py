"""data[i] + constant, for all elements: is it faster on a CPU or a GPU?

All additions are independent, so a GPU can do thousands at once. A GPU needs some µs to start, so a
CPU is faster for few elements. If the data have to be copied to the GPU first, the copy takes
longer than all additions.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
from harness import Phase, Point, serve
from libraries import Library

_CONSTANT = 3.0
_SHOWN = 32
"""Number of figures that are compared with other libraries."""


class Add:
    """The point has `elements`; numbers are float32."""

    def __init__(self, library: Library) -> None:
        self.library = library
        # As a user would write it. JAX is faster if the function is compiled.
        self.add = library.package.jit(_add) if library.name == "jax" else _add

    def check(self, point: Point) -> list[float]:
        """Return the first sums, and the total of all."""
        found = self.library.to_host(self.add(self.library.to_device(make_data(point))))
        return [*map(float, found[:_SHOWN]), float(found.sum(dtype=np.float64))]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the additions, the copies, and all steps from host to host."""
        library, add = self.library, self.add
        on_host = make_data(point)
        here = library.to_device(on_host)
        # Each element is read and written once.
        work = {"flop": float(on_host.size), "bytes": 2.0 * on_host.nbytes}
        yield Phase("kernel", lambda: add(here), **work)
        if library.device == "gpu":
            copied = float(on_host.nbytes)
            yield Phase("copy in", lambda: library.to_device(on_host), bytes=copied)
            back = add(here)
            library.wait(back)
            yield Phase("copy out", library.way_back(back), bytes=copied)

        def from_host() -> Any:
            return library.to_host(add(library.to_device(on_host)))

        yield Phase("end to end", from_host, **work)


def _add(data: Any) -> Any:
    return data + _CONSTANT


def make_data(point: Point) -> np.ndarray:
    """Return random numbers float32 [elements]."""
    found: np.ndarray = np.random.default_rng(1).random((point["elements"],), np.float32)
    return found


if __name__ == "__main__":
    serve(Add, libraries=("numpy", "cupy", "jax", "torch"))
