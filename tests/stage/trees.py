"""Folders to copy, and how a test compares them without Teho."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

ODD = (b"a b", b"it's", b'"q"', b"line\nend", b"\xff\xfe", "pää".encode(), b"-rf", b"*", b"$HOME")


def make_tree(folder: Path, *, count: int = 20) -> Path:
    """Make a folder with odd names, links, a pipe, an empty folder and an executable."""
    data = folder / "data"
    (data / "sub" / "deep").mkdir(parents=True)
    (data / "empty").mkdir()
    for number in range(count):
        (data / "sub" / f"f{number}").write_bytes(os.urandom(number * 100))
    for name in ODD:
        Path(os.fsdecode(os.fsencode(data / "sub" / "deep") + b"/" + name)).write_bytes(name)
    (data / "run.sh").write_text("#!/bin/sh\n")
    (data / "run.sh").chmod(0o755)
    (data / "link").symlink_to("sub/f1")
    (data / "nowhere").symlink_to("/does/not/exist")
    (data / "up").symlink_to("sub")
    os.mkfifo(data / "pipe")
    return data


def content(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """Return what is in a folder: content, whole seconds and executable bit of each file."""
    found: dict[bytes, tuple[object, ...]] = {}
    for path in folder.rglob("*"):
        about = path.lstat()
        short = os.fsencode(path.relative_to(folder))
        if stat.S_ISLNK(about.st_mode):
            found[short] = ("link", path.readlink())
        elif stat.S_ISDIR(about.st_mode):
            found[short] = ("folder",)
        elif stat.S_ISREG(about.st_mode):
            mode = bool(about.st_mode & 0o100)
            found[short] = ("file", path.read_bytes(), int(about.st_mtime), mode)
    return found


def result(text: str) -> dict[str, Any]:
    """Return the JSON of a result."""
    found: dict[str, Any] = json.loads(text)
    return found


def program(folder: Path, name: str, text: str) -> Path:
    """Make a shell script that stands in front of a program in PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return folder
