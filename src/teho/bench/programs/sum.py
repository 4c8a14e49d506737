"""Three arrays, each added to the next, and the sum of all: is it faster on a CPU or a GPU?

All elements are independent, but each number is used for only one or two additions. So the time is
the time to move the arrays through memory. Libraries that do one operation after another move each
array several times. JAX compiles all operations into one that moves each array once.
"""

from __future__ import annotations

from typing import Any, Iterator, Tuple

import numpy as np
from harness import Phase, Point, serve
from libraries import Library

_CONSTANT = 3.0

Arrays = Tuple[Any, Any, Any]
"""data, others and more, float32 [elements]."""


class Sum:
    """The point has `elements`; numbers are float32."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.total = library.package.jit(_total) if library.name == "jax" else _total

    def check(self, point: Point) -> list[float]:
        """Return the sum of all elements."""
        return [float(self.total(*self._here(make_data(point))))]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the sum, the copy, and both together."""
        library, total = self.library, self.total
        on_host = make_data(point)
        here = self._here(on_host)
        moved = float(sum(array.nbytes for array in on_host))
        # Three additions for the arrays, two for the sum of each element, one for the total.
        work = {"flop": 6.0 * point["elements"], "bytes": moved}
        yield Phase("kernel", lambda: total(*here), **work)
        if library.device == "gpu":
            yield Phase("copy in", lambda: self._here(on_host), bytes=moved)

        def from_host() -> float:
            return float(total(*self._here(on_host)))

        yield Phase("end to end", from_host, **work)

    def _here(self, on_host: Arrays) -> Arrays:
        data, others, more = map(self.library.to_device, on_host)
        return data, others, more


def _total(data: Any, others: Any, more: Any) -> Any:
    data = data + _CONSTANT
    others = others + data
    more = more + others
    return (data + others + more).sum()


def make_data(point: Point) -> Arrays:
    """Return three random arrays float32 [elements]."""
    rng = np.random.default_rng(1)
    data, others, more = (rng.random(point["elements"], np.float32) for _ in range(3))
    return data, others, more


if __name__ == "__main__":
    serve(Sum, libraries=("numpy", "cupy", "jax", "torch"))
