"""N systems of linear equations, each M × M, all at once.

For few systems, starting the GPU takes most of the time. Numbers that are made on the CPU have to
be copied first. So make random numbers on the device that uses them.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
from harness import Phase, Point, serve
from libraries import Library

_SHOWN = 32
"""Number of figures that are compared with other libraries."""


class Solve:
    """The point has `systems` and `rows`; numbers are float64."""

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.name == "jax":
            # First of all, because otherwise JAX computes in float32.
            library.package.config.update("jax_enable_x64", True)
            self.solve = library.package.jit(library.module.linalg.solve)
        else:
            self.solve = library.module.linalg.solve

    def check(self, point: Point) -> list[float]:
        """Return the first unknowns and the sum of all, for systems with a dominant diagonal."""
        a, b = generate(point)
        a += point["rows"] * np.eye(point["rows"])
        x = self.library.to_host(self.solve(*map(self.library.to_device, (a, b))))
        return [*map(float, x.ravel()[:_SHOWN]), float(x.sum())]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the solution, the copies and random numbers, and all steps together."""
        yield from self._kernel(point)
        yield from self._end_to_end(point)

    def _kernel(self, point: Point) -> Iterator[Phase]:
        library, solve, systems, rows = self.library, self.solve, point["systems"], point["rows"]
        on_host = generate(point)
        a, b = map(library.to_device, on_host)
        # An LU decomposition, and the two triangular systems after it.
        flop = systems * (2 / 3 * rows**3 + 2 * rows**2)
        yield Phase("kernel", lambda: solve(a, b), flop=flop, items=systems)
        if library.device == "gpu":
            copied = sum(array.nbytes for array in on_host)
            yield Phase("copy in", lambda: [*map(library.to_device, on_host)], bytes=copied)
            back = solve(a, b)
            library.wait(back)
            yield Phase("copy out", library.way_back(back), bytes=on_host[1].nbytes)

    def _end_to_end(self, point: Point) -> Iterator[Phase]:
        library, solve, systems = self.library, self.solve, point["systems"]

        def copied() -> Any:
            return library.to_host(solve(*map(library.to_device, generate(point))))

        yield Phase("generate on the host", lambda: generate(point), items=systems)
        yield Phase("end to end", copied, items=systems)
        if library.device == "gpu":
            yield Phase("generate on the device", lambda: self.generate_here(point), items=systems)
            yield Phase(
                "end to end, data generated on the device",
                lambda: library.to_host(solve(*self.generate_here(point))),
                items=systems,
            )

    def generate_here(self, point: Point) -> tuple[Any, Any]:
        """Return random systems, made on the device."""
        a, b = _shapes(point)
        return self.library.random(a, "float64"), self.library.random(b, "float64")


def generate(point: Point) -> tuple[Any, Any]:
    """Return matrices [systems, rows, rows] and right-hand sides [systems, rows, 1], by NumPy."""
    rng = np.random.default_rng(1)
    a, b = _shapes(point)
    return rng.random(a), rng.random(b)


def _shapes(point: Point) -> tuple[tuple[int, ...], tuple[int, ...]]:
    systems, rows = point["systems"], point["rows"]
    return (systems, rows, rows), (systems, rows, 1)


if __name__ == "__main__":
    serve(Solve, libraries=("numpy", "cupy", "jax", "torch"))
