"""Stand-ins of what this machine lacks: a CuPy made of NumPy, and a GPU that is only a name.

JAX's is the CPU under another name, against a CPU that waits at every step.
"""

from __future__ import annotations

from pathlib import Path

from teho.experiment.placement import Placement
from teho.model.device import Device

CUPY = '''
"""A stand-in for CuPy, made of NumPy: it drives the code that CuPy would, and measures nothing."""
import numpy
from numpy import matmul, float32, float64, zeros, ones, random, linalg, sum, empty, empty_like
from numpy import concatenate, cumsum, int32, where

__version__ = "stand-in"


class ndarray(numpy.ndarray):
    def set(self, array):
        self[...] = array

    def get(self, out=None):
        if out is None:
            return numpy.array(self)
        out[...] = self
        return out


def asarray(array):
    return numpy.array(array).view(ndarray)


def asnumpy(array):
    return numpy.array(array)


class cuda:
    class runtime:
        @staticmethod
        def getDeviceProperties(number):
            return {"name": b"Stand-in GPU"}

    class _Stream:
        def synchronize(self):
            pass

    @staticmethod
    def get_current_stream():
        return cuda._Stream()


class _Pool:
    def free_all_blocks(self):
        pass

    def total_bytes(self):
        return 4096


def get_default_memory_pool():
    return _Pool()
'''
CUPYX = """
import numpy


def empty_pinned(shape, dtype):
    return numpy.empty(shape, dtype)
"""
JAX = """
import os, time
import jax

devices, jit = jax.devices, jax.jit
jax.devices = lambda kind=None: devices("cpu")


def waiting(function):
    compiled = jit(function)

    def call(*args):
        time.sleep(0.2)
        return compiled(*args)

    return call


if os.environ["CUDA_VISIBLE_DEVICES"] == "-1":  # on the CPU alone
    jax.jit = waiting
"""
GPU = Device(id="GPU-0", index=0, name="NVIDIA H100 80GB HBM3", vendor="nvidia")


def with_cupy(folder: Path) -> dict[str, str]:
    """Return the variables with which a Python imports the stand-in."""
    (folder / "cupy.py").write_text(CUPY)
    (folder / "cupyx.py").write_text(CUPYX)
    return {"PYTHONPATH": str(folder)}


def with_jax(folder: Path) -> dict[str, str]:
    """Return the variables with which JAX sees a GPU, and is slower where it may use none."""
    (folder / "jax_plugins").mkdir()
    (folder / "sitecustomize.py").write_text(JAX)
    return {"PYTHONPATH": str(folder)}


def on_gpu() -> Placement:
    return Placement("gpu:1", (0,), (GPU,))


def on_cpu(cores: int = 1) -> Placement:
    return Placement(f"cpu:{cores}", tuple(range(cores)))
