"""A loop in which each step needs the step before, with a branch: is it faster on a CPU or a GPU?

    for i in range(1, n):
        data[i] = data[i - 1] + (data[i] if flags[i] % 2 == 0 else others[i])

Written as a loop, nothing can be done at the same time, and a GPU does each step slowly. But the
branch is a choice for each element, and the loop is a running sum. Libraries have both for whole
arrays, in a form that a GPU can divide. The results are equal.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Tuple

import numpy as np
from harness import Phase, Point, serve
from libraries import Library

_SHOWN = 32
"""Number of figures that are compared with other libraries."""
_LONGEST_LOOP = 100_000
"""Elements of the longest loop, unless JAX runs it on a CPU: it takes some seconds on a GPU."""

Arrays = Tuple[Any, Any, Any]
"""data, flags and others, int32 [elements]."""


class Loop:
    """The point has `elements`; numbers are int32, so that all results are exact."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.running_sum: Callable[..., Any]
        if library.name == "jax":
            self.running_sum = library.package.jit(self._running_sum)
            self.fused_loop = _fused_loop(library.package)
        else:
            self.running_sum = self._running_sum

    def check(self, point: Point) -> list[float]:
        """Return the last figures of both forms."""
        arrays = self._here(point)
        found = [self.running_sum(*arrays), self._loop(point)(*arrays)]
        return [float(one) for all_ in found for one in self.library.to_host(all_)[-_SHOWN:]]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the loop step by step, and the same as a running sum; data are on the device."""
        arrays, items = self._here(point), float(point["elements"])
        is_compiled_for_cpu = (self.library.name, self.library.device) == ("jax", "cpu")
        if is_compiled_for_cpu or point["elements"] <= _LONGEST_LOOP:
            loop = self._loop(point)
            yield Phase("step by step", lambda: loop(*arrays), items=items)
        yield Phase("running sum", lambda: self.running_sum(*arrays), items=items)

    def _here(self, point: Point) -> Arrays:
        data, flags, others = map(self.library.to_device, make_data(point))
        return data, flags, others

    def _loop(self, point: Point) -> Callable[..., Any]:
        return self.fused_loop if self.library.name == "jax" else self._python_loop

    def _python_loop(self, data: Any, flags: Any, others: Any) -> Any:
        """Start each step from Python, as the loop is written."""
        found = data.clone() if self.library.name == "torch" else data.copy()
        for i in range(1, len(found)):
            found[i] = found[i - 1] + (data[i] if flags[i] % 2 == 0 else others[i])
        return found

    def _running_sum(self, data: Any, flags: Any, others: Any) -> Any:
        """Choose for all elements at once, and let the library add them up."""
        module = self.library.module
        chosen = module.where(flags % 2 == 0, data, others)
        chosen = module.concatenate((data[:1], chosen[1:]))
        return module.cumsum(chosen, 0, dtype=module.int32)


def _fused_loop(jax: Any) -> Callable[..., Any]:
    """Return the loop, compiled: the device does all steps without Python."""

    def loop(data: Any, flags: Any, others: Any) -> Any:
        def step(before: Any, row: Any) -> Any:
            own, flag, other = row
            now = before + jax.numpy.where(flag % 2 == 0, own, other)
            return now, now

        _, rest = jax.lax.scan(step, data[0], (data[1:], flags[1:], others[1:]))
        return jax.numpy.concatenate((data[:1], rest))

    compiled: Callable[..., Any] = jax.jit(loop)
    return compiled


def make_data(point: Point) -> Arrays:
    """Return data, flags and others from 0 to 9, int32 [elements]."""
    rng = np.random.default_rng(1)
    data, flags, others = (rng.integers(0, 10, point["elements"], np.int32) for _ in range(3))
    return data, flags, others


if __name__ == "__main__":
    serve(Loop, libraries=("numpy", "cupy", "jax", "torch"))
