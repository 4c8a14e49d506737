"""Prints the packages of the Python that runs this program, as a JSON object.

The user's Python, 3.8 or later, runs it. It imports no framework, so it is fast and uses no driver.
It reads the files in which a framework describes its build as text.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main"]

_TORCH = re.compile(r"^(cuda|hip|xpu)\b[^=\n]*=\s*['\"](\d+(?:\.\d+)?)", re.MULTILINE)
_NO_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*None", re.MULTILINE)
_TENSORFLOW = re.compile(
    r"['\"](is_cuda_build|is_rocm_build|cuda_version)['\"]\s*[,:]\s*['\"]?(\w+(?:\.\d+)?)"
)


def main() -> None:
    """Print the packages."""
    facts = {"torch": _torch(), "tensorflow": _tensorflow()}
    answer = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": [*_of_conda(), *_of_pip()],
        "facts": {name: words for name, words in facts.items() if words},
    }
    json.dump(answer, sys.stdout)


def _of_conda() -> Iterator[dict[str, str]]:
    """Yield conda's packages. The name of a record is NAME-VERSION-BUILD.json."""
    for path in sorted(Path(sys.prefix, "conda-meta").glob("*-*-*.json")):
        name, version, build = path.stem.rsplit("-", 2)
        yield {"name": name, "version": version, "build": build}


def _of_pip() -> Iterator[dict[str, str]]:
    """Yield all distributions. If a name occurs twice, Python uses the first."""
    seen = set()
    for one in metadata.distributions():
        name = one.metadata["Name"] if one.metadata else None
        if name and name.lower() not in seen:
            seen.add(name.lower())
            yield {"name": name, "version": one.version or ""}


def _torch() -> str:
    """Return what torch was built for, such as `cuda 12.6`, `xpu` or `cpu`; empty: unknown."""
    text = _text_of("torch/version.py")
    for kind, version in _TORCH.findall(text):
        # For Intel's GPUs, the version is the compiler's.
        return "xpu" if kind == "xpu" else f"{'rocm' if kind == 'hip' else kind} {version}"
    return "cpu" if _NO_CUDA.search(text) else ""


def _tensorflow() -> str:
    """Return what TensorFlow was built for; empty: unknown."""
    facts = dict(_TENSORFLOW.findall(_text_of("tensorflow/python/platform/build_info.py")))
    if facts.get("is_cuda_build") == "True":
        return f"cuda {facts.get('cuda_version', '')}".strip()
    if facts.get("is_rocm_build") == "True":
        return "rocm"
    return "cpu" if facts else ""


def _text_of(path: str) -> str:
    """Return a file of an installed package; empty if it does not exist."""
    for folder in sys.path:
        try:
            return Path(folder, path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
    return ""


if __name__ == "__main__":
    main()
