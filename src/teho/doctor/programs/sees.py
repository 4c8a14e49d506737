"""Loads a GPU framework and reports the GPUs that it sees: `python sees.py pytorch`.

It runs in the user's Python, 3.8 or later, and does not import Teho. It prints one JSON object, a
`FrameworkReport` of `teho.doctor.snapshot`, to stdout. Output of the frameworks goes to stderr.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Optional


def core_of_pytorch() -> Optional[Dict[str, Any]]:
    """Return the answers of PyTorch's C++ library; None if it gives none.

    PyTorch's Python modules take most of an import's time. `torch.cuda.is_available`,
    `get_arch_list` and `torch.distributed` call the same functions as this.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    bare = types.ModuleType("torch")
    bare.__path__ = [str(folder)]
    sys.modules["torch"] = bare
    try:
        version = importlib.import_module("torch.version")
        ctypes.CDLL(str(folder / "lib" / "libtorch_global_deps.so"), ctypes.RTLD_GLOBAL)
        core: Any = importlib.import_module("torch._C")
        toolkit = version.hip or version.cuda or ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = core._cuda_getDeviceCount() if toolkit else 0  # noqa: SLF001 - see above
        if toolkit and not count:
            return None
        flags = (count and core._cuda_getArchFlags()) or ""  # noqa: SLF001 - see above
        return {
            **_build_of_pytorch(version),
            "version": str(version.__version__),
            "gpus": count,
            "architectures": flags.split(),
            "collectives": hasattr(core, "_c10d_init") and hasattr(core, "_nccl_version"),
        }
    except Exception:  # another version, or a library is missing
        return None


def _build_of_pytorch(version: Any) -> Dict[str, Any]:
    # Older releases do not know Intel's GPUs.
    other = "xpu" if getattr(version, "xpu", None) else "cpu"
    return {
        "kind": "rocm" if version.hip else "cuda" if version.cuda else other,
        "toolkit": version.hip or version.cuda or "",
    }


def pytorch() -> Dict[str, Any]:
    """Return PyTorch's answers. Its warnings say why it sees no GPU."""
    torch = importlib.import_module("torch")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sees = torch.cuda.is_available()
        count = torch.cuda.device_count() if sees else 0
    toolkit = torch.version.hip or torch.version.cuda or ""
    why = " ".join(_words(one.message) for one in said)
    if toolkit and not count and not why:
        why = _error(torch.cuda.current_device)
    spread = torch.distributed
    return {
        **_build_of_pytorch(torch.version),
        "version": str(torch.__version__),
        "gpus": count,
        "architectures": torch.cuda.get_arch_list() if sees else [],
        "collectives": bool(spread.is_available() and spread.is_nccl_available()),
        "why": why,
    }


def tensorflow() -> Dict[str, Any]:
    """Return TensorFlow's answers. It contains NCCL."""
    tf = importlib.import_module("tensorflow")
    build = dict(tf.sysconfig.get_build_info())
    is_rocm, is_cuda = build.get("is_rocm_build"), build.get("is_cuda_build")
    return {
        "version": str(tf.__version__),
        "kind": "rocm" if is_rocm else "cuda" if is_cuda else "cpu",
        "toolkit": str(build.get("rocm_version" if is_rocm else "cuda_version") or ""),
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "architectures": [str(one) for one in build.get("cuda_compute_capabilities") or ()],
    }


def jax() -> Dict[str, Any]:
    """Return JAX's answers. Only a device reports what JAX's plugin was built for."""
    package = importlib.import_module("jax")
    try:
        devices = package.devices("gpu")
    except Exception as error:
        return {"version": str(package.__version__), "gpus": 0, "why": _words(error)}
    platform = str(devices[0].client.platform_version).lower()
    return {
        "version": str(package.__version__),
        "kind": "rocm" if "rocm" in platform else "cuda",
        "gpus": len(devices),
    }


def cupy() -> Dict[str, Any]:
    """Return CuPy's answers."""
    package = importlib.import_module("cupy")
    runtime = package.cuda.runtime
    is_rocm = bool(runtime.is_hip)
    number = runtime.runtimeGetVersion()
    seen: Dict[str, Any] = {"gpus": 0}
    try:
        seen["gpus"] = runtime.getDeviceCount()
    except Exception as error:
        seen["why"] = _words(error)
    return {
        "version": str(package.__version__),
        "kind": "rocm" if is_rocm else "cuda",
        "toolkit": "" if is_rocm else "%d.%d" % (number // 1000, number % 1000 // 10),
        "collectives": bool(getattr(package.cuda.nccl, "available", False)),
        **seen,
    }


def _error(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return _words(error)
    return ""


def _words(error: object) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300].rstrip(".")


def main() -> None:
    """Print the answer, and end at once, because some drivers hang when a program ends."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # This program computes nothing, and other programs may use the GPU.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    said: Optional[Dict[str, Any]] = None
    if sys.argv[1] == "pytorch" and (said := core_of_pytorch()) is None:
        # PyTorch cannot be loaded twice: start this process again, and import all of PyTorch.
        os.dup2(answer.fileno(), 1)
        os.execv(sys.executable, [sys.executable, __file__, "all of pytorch"])  # noqa: S606 - itself
    ask = {"all of pytorch": pytorch, "tensorflow": tensorflow, "jax": jax, "cupy": cupy}
    try:
        said = said or ask[sys.argv[1]]()
    except Exception as error:
        said = {"broken": "%s: %s" % (type(error).__name__, _words(error))}
    json.dump({"type": "report", **said}, answer)
    answer.close()
    os._exit(0)


if __name__ == "__main__":
    main()
