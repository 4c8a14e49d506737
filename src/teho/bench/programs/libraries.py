"""Opens NumPy, CuPy, JAX or PyTorch on a CPU or a GPU, with the same functions for all.

PyTorch calls AMD GPUs `cuda` too.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import os
from typing import Any, Callable, Dict

__all__ = ["Library", "MissingLibrary", "open_library"]

_NAMES = {"numpy": "NumPy", "cupy": "CuPy", "jax": "JAX", "torch": "PyTorch"}


class MissingLibrary(Exception):  # noqa: N818 - not an error
    """A library is not installed, or sees no GPU.

    Args:
        why: `not_installed`, `cpu_only_build`, `no_gpu` or `broken`.
        text: one sentence, without its full stop.
    """

    def __init__(self, why: str, text: str) -> None:
        self.why = why
        self.text = text
        super().__init__(text)


class Library:
    """A library on one device. This class is for NumPy; the others override its methods.

    Args:
        package: `numpy`, `cupy`, `jax` or `torch`.
        device: `cpu` or `gpu`.
    """

    handle: Any = None
    """The library's object for the device: a `torch.device`, a `jax.Device`."""

    def __init__(self, package: Any, device: str) -> None:
        self.name: str = package.__name__
        self.package = package
        self.module = package
        """The module with `matmul`, `zeros`…: `numpy`, `cupy`, `jax.numpy` or `torch`."""
        self.version = str(package.__version__)
        self.device = device
        self.device_name = _cpu_name()
        self._is_peak_new = False

    @property
    def threads(self) -> int:
        """Number of threads that compute on the CPU."""
        return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))

    @property
    def has_tf32(self) -> bool:
        """Whether its device can compute in TF32, as NVIDIA's can since Ampere."""
        return False

    def to_device(self, array: Any) -> Any:
        """Return a NumPy array as an array of this library on its device."""
        return array

    def to_host(self, array: Any) -> Any:
        """Return an array of this library as a NumPy array."""
        return array

    def way_back(self, here: Any) -> Callable[[], Any]:
        """Return a function that copies an array from the device to unpinned memory."""
        return lambda: self.to_host(here)

    def random(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return random numbers from 0 to 1, made on the device, different at each call.

        Args:
            shape: of the array.
            dtype: `float64` or `float32`, and with JAX and PyTorch `bfloat16`.
        """
        return self.module.random.default_rng().random(shape, dtype=dtype)

    def wait(self, result: object) -> None:
        """Wait until the device has finished all its work; `result` is the last."""

    def free(self) -> None:
        """Free the device memory that the library keeps for later."""

    def forget_peak(self) -> None:
        """Begin a new measurement of the most memory."""
        self._is_peak_new = False
        gc.collect()
        # Otherwise memory that earlier work has freed would count. Only glibc has this function.
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
            self._is_peak_new = True

    def peak_bytes(self) -> int | None:
        """Return the most memory since the last `forget_peak`; None if it is unknown.

        On a CPU, this is the resident memory of the process. On a GPU, it is what the library has
        allocated.
        """
        if not self._is_peak_new:
            return None
        with open("/proc/self/status", encoding="utf-8", errors="replace") as lines:
            found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        return found[0] * 1024 if found else None


class _CuPy(Library):
    def __init__(self, package: Any, device: str) -> None:
        super().__init__(package, device)
        self.device_name = package.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def to_device(self, array: Any) -> Any:
        return self.package.asarray(array)

    def to_host(self, array: Any) -> Any:
        return self.package.asnumpy(array)

    def wait(self, result: object) -> None:
        self.package.cuda.get_current_stream().synchronize()

    def free(self) -> None:
        self.package.get_default_memory_pool().free_all_blocks()

    def forget_peak(self) -> None:
        self.free()

    def peak_bytes(self) -> int | None:
        # The pool keeps freed blocks until `free`, so its size is the most that it had.
        return int(self.package.get_default_memory_pool().total_bytes())


class _Jax(Library):
    def __init__(self, package: Any, device: str) -> None:
        super().__init__(package, device)
        self.module = importlib.import_module("jax.numpy")
        self.handle = package.devices(device)[0]
        self._drawn = 0
        self._peak_before: int | None = None
        if device == "gpu":
            self.device_name = self.handle.device_kind
        else:
            # Otherwise the last call may finish before the others. Older JAX does not have this
            # option.
            with contextlib.suppress(AttributeError):
                package.config.update("jax_cpu_enable_async_dispatch", False)

    @property
    def threads(self) -> int:
        return len(os.sched_getaffinity(0))  # XLA uses all of them

    @property
    def has_tf32(self) -> bool:
        # For AMD it is a name such as `gfx942`. JAX does not report which of them have TF32.
        capability = str(getattr(self.handle, "compute_capability", ""))
        return self.device == "gpu" and not capability.startswith(("5", "6", "7"))

    def to_device(self, array: Any) -> Any:
        return self.package.device_put(array, self.handle)

    def to_host(self, array: Any) -> Any:
        return importlib.import_module("numpy").asarray(array)

    def way_back(self, here: Any) -> Callable[[], Any]:
        # `numpy.asarray` would copy only once, and cache the copy.
        host = self.package.devices("cpu")[0]
        return lambda: self.package.device_put(here, host)

    def wait(self, result: object) -> None:
        self.package.block_until_ready(result)

    def random(self, shape: tuple[int, ...], dtype: str) -> Any:
        self._drawn += 1
        return self.package.random.uniform(self.package.random.key(self._drawn), shape, dtype)

    def forget_peak(self) -> None:
        if self.device == "cpu":
            super().forget_peak()
        else:
            self._peak_before = self._peak_of_all()

    def peak_bytes(self) -> int | None:
        if self.device == "cpu":
            return super().peak_bytes()
        # JAX cannot forget its peak. If another phase had a higher one, that of this is unknown.
        peak = self._peak_of_all()
        return peak if peak != self._peak_before else None

    def _peak_of_all(self) -> int | None:
        # Some devices have no statistics.
        return (self.handle.memory_stats() or {}).get("peak_bytes_in_use")


class _Torch(Library):
    def __init__(self, package: Any, device: str) -> None:
        super().__init__(package, device)
        self.handle = package.device("cuda" if device == "gpu" else "cpu")
        if device == "gpu":
            self.device_name = package.cuda.get_device_name(0)

    @property
    def threads(self) -> int:
        return int(self.package.get_num_threads())

    @property
    def has_tf32(self) -> bool:
        cuda = self.package.cuda
        is_nvidia = not self.package.version.hip
        return self.device == "gpu" and not (is_nvidia and cuda.get_device_capability(0) < (8, 0))

    def to_device(self, array: Any) -> Any:
        return self.package.from_numpy(array).to(self.handle)

    def to_host(self, array: Any) -> Any:
        return array.detach().cpu().numpy()

    def random(self, shape: tuple[int, ...], dtype: str) -> Any:
        named = getattr(self.package, dtype)
        return self.package.rand(shape, dtype=named, device=self.handle)

    def wait(self, result: object) -> None:
        if self.device == "gpu":
            self.package.cuda.synchronize()

    def free(self) -> None:
        if self.device == "gpu":
            self.package.cuda.empty_cache()

    def forget_peak(self) -> None:
        if self.device == "gpu":
            self.package.cuda.reset_peak_memory_stats()
        else:
            super().forget_peak()

    def peak_bytes(self) -> int | None:
        if self.device == "gpu":
            return int(self.package.cuda.max_memory_reserved())
        return super().peak_bytes()


_CLASSES = {"numpy": Library, "cupy": _CuPy, "jax": _Jax, "torch": _Torch}


def open_library(name: str, device: str) -> Library:
    """Import a library and find its device.

    Args:
        name: `numpy`, `cupy`, `jax` or `torch`.
        device: `cpu` or `gpu`.

    Raises:
        MissingLibrary: it is not installed, or sees no GPU.
    """
    # JAX would take three quarters of a GPU's memory, and other libraries run on the same GPU.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # Copies to the host need JAX's CPU, which this variable may exclude.
    if "cpu" not in (os.environ.get("JAX_PLATFORMS") or "cpu"):
        os.environ["JAX_PLATFORMS"] += ",cpu"
    try:
        package = importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise MissingLibrary("not_installed", "%s is not installed" % _NAMES[name]) from error
        raise _broken(name, error) from error
    only = {"numpy": "cpu", "cupy": "gpu"}.get(name, device)
    if only != device:
        raise MissingLibrary("no_gpu", "%s computes only on a %s" % (_NAMES[name], only.upper()))
    if device == "gpu":
        _require_gpu(name, package)
    try:
        return _CLASSES[name](package, device)
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> MissingLibrary:
    return MissingLibrary("broken", "%s: %s" % (_NAMES[name], _first_line(error)))


def _require_gpu(name: str, package: Any) -> None:
    if not _builds[name](package):
        raise MissingLibrary(
            "cpu_only_build",
            "%s %s is a build for CPUs only" % (_NAMES[name], package.__version__),
        )
    try:
        _ask[name](package)
    except Exception as error:
        text = "%s sees no GPU: %s" % (_NAMES[name], _first_line(error))
        raise MissingLibrary("no_gpu", text) from error


def _has_jax_plugin(jax: Any) -> bool:
    """Return whether JAX supports GPUs. Since 0.4.20, this is a separate plugin."""
    jaxlib = importlib.import_module("jaxlib")
    version = str(getattr(getattr(jaxlib, "version", None), "__version__", ""))
    return "cuda" in version or importlib.util.find_spec("jax_plugins") is not None


_builds: Dict[str, Callable[[Any], bool]] = {
    "cupy": lambda cupy: True,
    "jax": _has_jax_plugin,
    "torch": lambda torch: bool(torch.version.cuda or torch.version.hip),
}
_ask: Dict[str, Callable[[Any], Any]] = {
    "cupy": lambda cupy: cupy.cuda.runtime.getDeviceProperties(0),
    "jax": lambda jax: jax.devices("gpu"),
    # It raises the reason, which `is_available` does not give.
    "torch": lambda torch: torch.cuda.get_device_name(0),
}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(("model name", "cpu model", "Processor")):
                    return line.partition(":")[2].strip()
    return ""
