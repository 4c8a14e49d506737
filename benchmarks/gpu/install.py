"""Install Teho for a Python that has the frameworks, from a folder of wheels, without a network.

The new environment has all packages of this Python, and in addition the packages from the wheels.
Teho itself is not installed: its source code in the repository is used. This module needs only the
standard library, and the Python's pip.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

__all__ = ["InstallError", "install", "wheels_for"]

_ROOT = Path(__file__).resolve().parents[2]
_WHERE = (
    "import sys, sysconfig; print('%d.%d' % sys.version_info[:2]); "
    "print(sysconfig.get_path('purelib')); print(sysconfig.get_path('platlib'))"
)
_SCRIPT = """\
#!{python}
import sys

from teho.cli import main

sys.exit(main())
"""
_NEEDED = "click, jinja2, msgspec, pyarrow.parquet, pynvml, rich, tomli_w, teho.cli"


class InstallError(Exception):
    """Teho cannot be installed here; the text says what is missing and what to do."""


def wheels_for(version: str, build: Path) -> Path:
    """Return the folder with the wheels for a Python such as `3.12`."""
    return build / f"wheels-{version}"


def install(python: Path, build: Path) -> Path:
    """Make an environment with Teho and with all packages of a Python, and return its Python.

    Raises:
        InstallError: wheels are missing, or do not fit this Python.
    """
    version, *places = _told(python, _WHERE).splitlines()
    wheels = wheels_for(version, build)
    if not any(wheels.glob("*.whl")):
        raise InstallError(f"no wheels in {wheels}; next: `make gpu-wheels PY={version}`")
    place = build / f"venv-{version}"
    shutil.rmtree(place, ignore_errors=True)
    _run(python, "-m", "venv", "--without-pip", place)
    own = place / "bin" / "python"
    site = Path(_told(own, _WHERE).splitlines()[1])
    # Teho comes first, then the packages from the wheels, then the packages of the Python.
    lines = [str(_ROOT / "src"), *dict.fromkeys(places)]
    (site / "gpu_day.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _run(
        python, "-m", "pip", "--disable-pip-version-check", "--python", own, "install", "-q",
        "--no-index", "--no-deps", "--no-compile", *sorted(wheels.glob("*.whl")),
    )  # fmt: skip
    script = place / "bin" / "teho"
    script.write_text(_SCRIPT.format(python=own), encoding="utf-8")
    script.chmod(0o755)
    try:
        _told(own, f"import {_NEEDED}")
    except InstallError as error:
        raise InstallError(
            f"{error}; next: `make gpu-wheels PY={version}` without HAS, or with what "
            f"`{python} -m pip list --format freeze` prints on that machine"
        ) from None
    return own


def _told(python: Path, code: str) -> str:
    return _run(python, "-c", code)


def _run(*argv: object) -> str:
    try:
        done = subprocess.run(
            list(map(str, argv)), capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it printed no error"]
        raise InstallError(f"{argv[0]} {argv[1]} {argv[2]}: {lines[-1]}")
    return done.stdout
