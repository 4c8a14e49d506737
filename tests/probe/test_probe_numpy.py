"""What the probe notes of NumPy, and of a stand-in for CuPy: that needs a GPU to be imported."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from probe.probed import Probed


@pytest.mark.parametrize("threads", ["1", ""])
def test_the_library_below_numpy_is_recorded_with_its_threads(probed: Probed, threads: str) -> None:
    if "openblas" not in np.__config__.CONFIG["Build Dependencies"]["blas"]["name"]:
        pytest.skip("this NumPy computes with another library, which the probe does not ask")
    probed.environment = {"OPENBLAS_NUM_THREADS": threads} if threads else {}
    probed.both(
        """
        import numpy, pickle
        print(numpy.__version__, sorted(sys.modules) == sorted(set(sys.modules)))
        print(pickle.dumps(numpy.add), numpy.ones((9, 9)) @ numpy.ones((9, 9)))
        """
    )
    (process,) = probed.watched()
    facts = process.libraries["numpy"]
    assert facts["version"] == np.__version__
    assert "openblas" in facts["blas"]
    cores = len(process.cores or ())
    assert facts["blas_threads"] == (1 if threads else min(cores, 64))


STAND_IN = '''
import numpy
__version__ = "14.0"
class ndarray:
    def __init__(self, host): self._host = numpy.asarray(host)
    dtype = property(lambda self: self._host.dtype)
    nbytes = property(lambda self: self._host.nbytes)
    def get(self, out=None): return self._host
    def set(self, host): self._host = host
def array(obj, dtype=None):
    """Make an array on the device."""
    return ndarray(getattr(obj, "_host", obj))
asarray = array
def asnumpy(a): return a.get() if isinstance(a, ndarray) else numpy.asarray(a)
class _Pool:
    def used_bytes(self): return 512
    def total_bytes(self): return 1024
def get_default_memory_pool(): return _Pool()
class cuda:
    class runtime:
        getDevice = staticmethod(lambda: 3)
'''


def test_copies_between_host_and_device_are_counted(probed: Probed, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "cupy.py").write_text(STAND_IN)
    probed.path = str(tmp_path / "site")
    probed.both(
        """
        import cupy, inspect, numpy, pickle
        print(inspect.signature(cupy.array), cupy.array.__doc__, pickle.dumps(cupy.array))
        x = cupy.asarray(numpy.ones(8))
        cupy.array(x)                            # on the device already
        cupy.array([1, 2]).set(numpy.ones(2, "float32"))
        for _ in range(5): cupy.asnumpy(x)
        cupy.asnumpy(numpy.ones(8))              # on the host already
        x.get()
        try: x.get(1, 2, 3)
        except TypeError as error: print(error)
        """
    )
    (process,) = probed.watched()
    assert process.libraries["cupy"] == {
        "version": "14.0",
        "to_device": {
            "copies": 3,
            "bytes": 64 + 16 + 8,
            "dtypes": {"float64": 64, "int64": 16, "float32": 8},
        },
        "to_host": {"copies": 6, "bytes": 6 * 64, "dtypes": {"float64": 6 * 64}},
        "device": 3,
        "pool_used_bytes": 512,
        "pool_held_bytes": 1024,
    }


def test_a_library_of_another_kind_is_a_line_of_the_report(probed: Probed, tmp_path: Path) -> None:
    """A program may have a module of its own by the name of a library."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "cupy.py").write_text("answer = 42\n")
    probed.path = str(tmp_path / "site")
    probed.both("import cupy; print(cupy.answer, cupy.__spec__.name)")
    (lines,) = probed.processes()
    failed = [line["failed"] for line in lines if "failed" in line]
    assert len(failed) == 1
    assert "has no attribute '__version__'" in failed[0]


def test_a_program_that_asks_first_whether_a_library_is_there(
    probed: Probed, tmp_path: Path
) -> None:
    """As Transformers does, for each that it knows."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "cupy.py").write_text(STAND_IN)
    probed.path = str(tmp_path / "site")
    probed.both(
        """
        from importlib.util import find_spec
        print(find_spec("cupy").name, find_spec("jax.no") if find_spec("jax") else None)
        import cupy
        cupy.asarray([1])
        """
    )
    (process,) = probed.watched()
    assert process.libraries["cupy"]["to_device"]["copies"] == 1


def test_modules_that_share_a_loader_are_imported_as_ever(probed: Probed, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as archive:
        archive.writestr("cupy.py", STAND_IN)
        archive.writestr("jax.py", "__version__ = '1.0'\n")
    probed.path = str(tmp_path / "site.zip")
    probed.both(
        """
        from importlib.util import find_spec
        print(find_spec("cupy").name, find_spec("jax").name)
        import jax, cupy
        print(jax.__version__, cupy.__version__)
        """
    )
    (process,) = probed.watched()
    assert process.libraries["cupy"]["version"] == "14.0"
    assert process.libraries["jax"]["version"] == "1.0"
