"""Least squares by gradient descent: many small steps, each of which needs the one before.

Whether a GPU is faster depends on the samples and variables of a step, and on what starts the
steps. A Python loop starts each one. A fused loop (`lax.fori_loop`, a CUDA graph) is started only
once. The arithmetic is always the same, in float32.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np
from harness import Phase, Point, serve
from libraries import Library

Loop = Callable[[Any, Any], Any]
"""From x [samples, variables + 1] and y [samples] to the coefficients [variables + 1]."""

_UPDATES_IN_A_GRAPH = 100
"""Most updates in a graph. Recording each takes time and memory; each replay is one call."""


def make_data(samples: int, variables: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return x [samples, variables + 1], its last column ones, and y [samples]."""
    rng = np.random.default_rng(0)
    x = rng.random((samples, variables + 1), np.float32)
    x[:, -1] = 1
    y = x @ rng.integers(1, 10, variables + 1).astype(np.float32)
    y += 0.1 * rng.standard_normal(samples, np.float32)
    return x.astype(dtype, copy=False), y.astype(dtype, copy=False)


def learning_rate(variables: int) -> float:
    """Return a rate that converges: less than 2 over the largest eigenvalue of the Hessian.

    The eigenvalue is at most the Hessian's trace, 2 (variables / 3 + 1) for x uniform in 0 to 1.
    """
    return 1 / (variables + 3)


def update(beta: Any, x: Any, y: Any, rate: float) -> Any:
    """Take one step, in NumPy, CuPy or PyTorch."""
    return beta - (2 * rate / len(y)) * (x.T @ (x @ beta - y))


class Regression:
    """The loops in one library.

    The point has `samples`, `variables` and `iterations`; for a check, `precision` may be `fp64`.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.name == "jax":
            # As in the other libraries: NVIDIA's TF32 only on request.
            library.package.config.update("jax_default_matmul_precision", "highest")

    def check(self, point: Point) -> list[float]:
        """Return the coefficients of the Python loop, then of the fastest loop."""
        x, y = map(self.library.to_device, self._data(point))
        python_loop, fused_loop = self._loops(point)
        found = [
            self.library.to_host(loop(x, y)) for loop in (python_loop, fused_loop or python_loop)
        ]
        return [float(one) for beta in found for one in beta]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the loops on data on the device, the copy, and all steps from host to host."""
        library, host = self.library, self._data(point)
        python_loop, fused_loop = self._loops(point)
        x, y = map(library.to_device, host)
        steps, size = point["iterations"], host[0].size
        # Two products of x with a vector, a multiplication and an addition for each element.
        work = {"flop": 4.0 * steps * size, "bytes": 2.0 * steps * host[0].nbytes}
        yield Phase("python loop", lambda: python_loop(x, y), **work)
        if fused_loop:
            yield Phase("fused loop", lambda: fused_loop(x, y), **work)
        if library.device == "gpu":
            moved = float(sum(array.nbytes for array in host))
            yield Phase("copy in", lambda: list(map(library.to_device, host)), bytes=moved)
        best = fused_loop or python_loop

        def copied() -> Any:
            return library.to_host(best(*map(library.to_device, host)))

        yield Phase("end to end", copied, **work)

    def _data(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        dtype = "float64" if point.get("precision") == "fp64" else "float32"
        return make_data(point["samples"], point["variables"], dtype)

    def _loops(self, point: Point) -> tuple[Loop, Loop | None]:
        """Return the Python loop, and the fused loop if the library has one."""
        rate, iterations = learning_rate(point["variables"]), point["iterations"]
        if self.library.name == "jax":
            return _loops_of_jax(self.library.package, rate, iterations)
        zeros, handle = self.library.module.zeros, self.library.handle

        def python_loop(x: Any, y: Any) -> Any:
            beta = zeros(x.shape[1], dtype=x.dtype, **({"device": handle} if handle else {}))
            for _ in range(iterations):
                beta = update(beta, x, y, rate)
            return beta

        # CuPy cannot record its calls of cuBLAS into a graph.
        if self.library.name == "torch" and self.library.device == "gpu":
            return python_loop, _CudaGraph(self.library.package, rate, iterations)
        return python_loop, None


def _loops_of_jax(jax: Any, rate: float, iterations: int) -> tuple[Loop, Loop]:
    def loss(beta: Any, x: Any, y: Any) -> Any:
        return ((x @ beta - y) ** 2).mean()

    def step(beta: Any, x: Any, y: Any) -> Any:
        return beta - rate * jax.grad(loss)(beta, x, y)

    compiled = jax.jit(step)

    def python_loop(x: Any, y: Any) -> Any:
        beta = jax.numpy.zeros(x.shape[1], x.dtype)
        for _ in range(iterations):
            beta = compiled(beta, x, y)
        return beta

    @jax.jit
    def fused_loop(x: Any, y: Any) -> Any:
        beta = jax.numpy.zeros(x.shape[1], x.dtype)
        return jax.lax.fori_loop(0, iterations, lambda _, beta: step(beta, x, y), beta)

    return python_loop, fused_loop


class _CudaGraph:
    """Updates in PyTorch, recorded once, which the GPU repeats without Python."""

    def __init__(self, torch: Any, rate: float, iterations: int) -> None:
        self._torch = torch
        self._rate = rate
        self._updates = math.gcd(iterations, _UPDATES_IN_A_GRAPH)
        self._replays = iterations // self._updates
        self._graph: Any = None

    def __call__(self, x: Any, y: Any) -> Any:
        if self._graph is None:
            self._record(x, y)
        elif x is not self._x:
            # A graph uses fixed addresses.
            self._x.copy_(x)
            self._y.copy_(y)
        self._beta.zero_()
        for _ in range(self._replays):
            self._graph.replay()
        return self._beta

    def _record(self, x: Any, y: Any) -> None:
        torch, self._x, self._y = self._torch, x, y
        self._beta = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
        # Run once before: the set-up of cuBLAS at its first call cannot be recorded.
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._update()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(self._updates):
                self._update()
        self._graph = graph

    def _update(self) -> None:
        self._beta.copy_(update(self._beta, self._x, self._y, self._rate))


if __name__ == "__main__":
    serve(Regression, libraries=("numpy", "cupy", "jax", "torch"))
