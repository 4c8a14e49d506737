"""C = A B, of square matrices, in the precisions that a device has.

It shows how close a device comes to its peak, from which size on, and how many digits a precision
loses.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
from harness import Phase, Point, Unsupported, serve
from libraries import Library

_TYPES = {"FP64": "float64", "FP32": "float32", "TF32": "float32", "BF16": "bfloat16"}
_SHOWN = 32
_LARGEST_COPIED = 16384
"""Larger matrices are not copied: three of them would fill the memory of many CPUs."""


class Matmul:
    """The point has `size` and `precision`: `FP64`, `FP32`, `TF32` or `BF16`."""

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.name == "jax":
            # Otherwise JAX computes in float32.
            library.package.config.update("jax_enable_x64", True)

    def check(self, point: Point) -> list[float]:
        """Return the first elements of the product, and its trace."""
        multiply = self.multiplication(point)
        rng, shape = np.random.default_rng(1), (point["size"],) * 2
        a, b = rng.standard_normal(shape), rng.standard_normal(shape)
        c = self.product_on_host(multiply, point, a, b)
        return [*map(float, c.ravel()[:_SHOWN]), float(np.trace(c, dtype=np.float64))]

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield the product, the copies to the device and back, and all of them together."""
        yield from self._kernel(point)
        if self.library.device == "gpu" and point["size"] <= _LARGEST_COPIED:
            yield from self._copied(point)

    def _kernel(self, point: Point) -> Iterator[Phase]:
        multiply, shape = self.multiplication(point), (point["size"],) * 2
        # Random numbers: with zeros, a GPU uses less power and is faster.
        a, b = (self.library.random(shape, _TYPES[point["precision"]]) for _ in range(2))
        yield Phase("kernel", lambda: multiply(a, b), flop=_flop(point))

    def _copied(self, point: Point) -> Iterator[Phase]:
        library, multiply = self.library, self.multiplication(point)
        shape = (point["size"],) * 2
        dtype = "float64" if point["precision"] == "FP64" else "float32"
        a, b = (np.random.default_rng(seed).random(shape, dtype=dtype) for seed in (1, 2))
        copied = float(a.nbytes + b.nbytes)
        yield Phase("copy in", lambda: [*map(library.to_device, (a, b))], bytes=copied)
        c = self._product(multiply, point, a, b)
        yield Phase("copy out", library.way_back(c), bytes=copied / 2)
        del c
        yield Phase(
            "end to end",
            lambda: self.product_on_host(multiply, point, a, b),
            flop=_flop(point),
        )

    def multiplication(self, point: Point) -> Callable[[Any, Any], Any]:
        """Return the function that multiplies in a precision.

        Raises:
            Unsupported: the library, or the device, does not have it.
        """
        library, precision = self.library, point["precision"]
        if precision == "TF32" and library.device == "cpu":
            raise Unsupported("only GPUs have this mode")
        if precision == "TF32" and library.name in ("jax", "torch") and not library.has_tf32:
            raise Unsupported("a GPU of this generation has no TF32 and computes in FP32 instead")
        if library.name in ("numpy", "cupy"):
            if precision not in ("FP64", "FP32"):
                raise Unsupported("the library does not offer this precision")
        elif library.name == "jax":
            # `default` is one pass of the tensor cores: TF32 for float32.
            in_passes = "default" if precision == "TF32" else "highest"
            return library.package.jit(
                lambda a, b: library.module.matmul(a, b, precision=in_passes)
            )
        else:
            in_mode = "high" if precision == "TF32" else "highest"
            library.module.set_float32_matmul_precision(in_mode)
        return library.module.matmul

    def product_on_host(self, multiply: Callable[..., Any], point: Point, *on_host: Any) -> Any:
        """Copy two NumPy arrays to the device, in the point's precision, and their product back."""
        return self.library.to_host(self._product(multiply, point, *on_host))

    def _product(self, multiply: Callable[..., Any], point: Point, *on_host: Any) -> Any:
        name, module = _TYPES[point["precision"]], self.library.module
        here = [self.library.to_device(array) for array in on_host]
        if self.library.name == "torch":
            c = multiply(*(array.to(getattr(module, name)) for array in here))
            return c.float() if name == "bfloat16" else c
        c = multiply(*(array.astype(name) for array in here))
        return c.astype("float32") if name == "bfloat16" else c


def _flop(point: Point) -> float:
    return 2.0 * point["size"] ** 3


if __name__ == "__main__":
    serve(Matmul, libraries=("numpy", "cupy", "jax", "torch"))
