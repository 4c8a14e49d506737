"""What is installed beside the Python that runs this: one object of JSON on standard output.

It is run by the user's own Python, 3.8 or later, as a program. It imports no framework, so that
it is quick and touches no driver; what a framework's own files say of their build is read as text.
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
    """Print it."""
    said = {"torch": _torch(), "tensorflow": _tensorflow()}
    answer = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": [*_of_conda(), *_of_pip()],
        "facts": {name: words for name, words in said.items() if words},
    }
    json.dump(answer, sys.stdout)


def _of_conda() -> Iterator[dict[str, str]]:
    """Yield what conda keeps a record of; a record's name is NAME-VERSION-BUILD.json."""
    for path in sorted(Path(sys.prefix, "conda-meta").glob("*-*-*.json")):
        name, version, build = path.stem.rsplit("-", 2)
        yield {"name": name, "version": version, "build": build}


def _of_pip() -> Iterator[dict[str, str]]:
    """Yield every distribution; the first of a name is the one that is in use."""
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
        # Of Intel's it names the compiler.
        return "xpu" if kind == "xpu" else f"{'rocm' if kind == 'hip' else kind} {version}"
    return "cpu" if _NO_CUDA.search(text) else ""


def _tensorflow() -> str:
    """Return the same of TensorFlow."""
    facts = dict(_TENSORFLOW.findall(_text_of("tensorflow/python/platform/build_info.py")))
    if facts.get("is_cuda_build") == "True":
        return f"cuda {facts.get('cuda_version', '')}".strip()
    if facts.get("is_rocm_build") == "True":
        return "rocm"
    return "cpu" if facts else ""


def _text_of(path: str) -> str:
    """Return a file of an installed package; empty if it is not there."""
    for folder in sys.path:
        try:
            return Path(folder, path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
    return ""


if __name__ == "__main__":
    main()
