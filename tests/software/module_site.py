"""A site of the test's own: modules, commands and wheels in a folder, and bash that sees them."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["MODULE_SYSTEMS", "run", "write_command", "write_module", "write_wheel"]

MODULE_SYSTEMS = {
    "Environment Modules": Path("/usr/share/modules/init/bash"),
    "Lmod": Path("/usr/share/lmod/lmod/init/bash"),
}
"""What defines `module`, by the system's name."""


def write_module(site: Path, name: str, *lines: str) -> None:
    """Write a module file, `NAME/VERSION`."""
    path = site / "modulefiles" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#%Module", *lines, ""]))


def write_command(path: Path, *lines: str) -> None:
    """Write a command, in bash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    path.chmod(0o755)


def write_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], needs: Sequence[str] = ()
) -> Path:
    """Write a wheel of a few lines of Python, such as pip installs."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {one}\n" for one in needs)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def run(
    script: str, init: Path, site: Path, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a login shell's stead: with `module`, and the site's modules and commands.

    What tells pip and Python of this machine's packages is left out.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith(("PIP_", "VIRTUALENV_"))
    }
    path = variables.pop("PATH", os.environ["PATH"])
    return subprocess.run(
        ["bash", "-c", f". {init}; module use {site}/modulefiles\n{script}"],
        cwd=cwd or site,
        env={**clean, **variables, "PATH": f"{site}/bin:{path}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
