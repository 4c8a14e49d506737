"""The program that works on one side of a copy: here, or on another machine over ssh.

`machine.py` sends this text to a Python, followed by one line with a request. System Pythons of
clusters are old, so it needs only Python 3.6 and the standard library. All names are bytes, because
not every name is a text. In the answers, they are decoded with `surrogateescape`.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from typing import Any, List, Tuple

READY = b"teho-stage 1"
"""The first line of the answer. What a login script prints before it does not count."""
PART = ".teho-part"
"""Ending of an unfinished archive, and the folder of rsync's unfinished files."""
_CHUNK = 1 << 20
_QUOTA_S = 2


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _answer(answer: Any) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _kind(mode: int) -> str:
    """Return `d`, `f` or `l` for a folder, file or symbolic link; otherwise what it is."""
    for test, kind in (
        (stat.S_ISDIR, "d"), (stat.S_ISREG, "f"), (stat.S_ISLNK, "l"), (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a device"), (stat.S_ISCHR, "a device"),
    ):  # fmt: skip
        if test(mode):
            return kind
    return "an unknown kind of file"


def describe(path: bytes, quotas: bool) -> None:
    """Describe a path and its file system; if it does not exist, that of the folder above it."""
    if path == b"~" or path[:2] == b"~/" or not path:
        path = os.path.expanduser(b"~") + path[1:]
    real = os.path.realpath(path)
    above = real
    while not os.path.exists(above):
        above = os.path.dirname(above)
    found = os.statvfs(above)
    mounted_on, file_system, device = _mount_of(above)
    is_folder = os.path.isdir(above)
    _answer(
        {
            "path": _text(real),
            "kind": _kind(os.stat(real).st_mode) if os.path.exists(real) else "",
            "folder": {
                "path": _text(above),
                "file_system": file_system,
                "mounted_on": _text(mounted_on),
                "total_bytes": found.f_blocks * found.f_frsize,
                "free_bytes": found.f_bavail * found.f_frsize,
                "total_files": found.f_files,
                "free_files": found.f_favail,
                "is_writable": is_folder and os.access(above, os.W_OK | os.X_OK),
            },
            "device": device,
            "rsync": shutil.which("rsync") or "",
            "quotas": _quotas(above, file_system) if quotas else [],
        }
    )


def _mount_of(real: bytes) -> Tuple[bytes, str, str]:
    """Return where the file system of a path is mounted, its type, and its device (proc(5))."""
    best = (b"", "", "")
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return best
    for line in lines:
        before, _, after = line.partition(b" - ")
        fields = before.split(b" ")
        if len(fields) < 5 or not after:
            continue
        place = fields[4]
        for octal in (b"040", b"011", b"012", b"134"):
            place = place.replace(b"\\" + octal, bytes([int(octal, 8)]))
        covers = real == place or real.startswith(place.rstrip(b"/") + b"/")
        if covers and len(place) >= len(best[0]):
            kind, device = after.decode("utf-8", "replace").split(" ")[:2]
            best = (place, kind, device)
    return best


def _quotas(path: bytes, file_system: str) -> List[str]:
    """Return what the commands for quotas print."""
    if file_system != "lustre":
        return [_output_of([b"quota", b"-wp"])]
    quota = [b"lfs", b"quota", b"-q"]
    texts = [_output_of([*quota, b"-u", str(os.getuid()).encode(), path])]
    # If a folder belongs to a project, the project has the limit.
    project = _output_of([b"lfs", b"project", b"-d", path]).split()[:1]
    if project and project[0].isdigit() and project[0] != "0":
        texts.append(_output_of([*quota, b"-p", project[0].encode(), path]))
    return texts


def _output_of(command: List[bytes]) -> str:
    """Return what a command prints; empty if it is missing or slow."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=_QUOTA_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def list_all(path: bytes, name: bytes) -> None:
    """List a file, or a folder with all that is in it.

    Each answer is `[name, kind, bytes, time in ns, target of a link, why it cannot be read, mode]`.
    The name begins with `name`.
    """
    waiting = [name]
    while waiting:
        relative = waiting.pop()
        full = os.path.join(path, relative)
        try:
            found = os.lstat(full)
            kind = _kind(found.st_mode)
            target = _text(os.readlink(full)) if kind == "l" else ""
        except OSError as error:
            if relative != name or not isinstance(error, FileNotFoundError):
                _answer([_text(relative), "", 0, 0, "", _why(error)])
            continue
        why = ""
        if kind == "d":
            try:
                inside = sorted(os.listdir(full), reverse=True)
            except OSError as error:
                why = _why(error)
                inside = []
            waiting += [os.path.join(relative, one) for one in inside if one != PART.encode()]
        elif kind == "f" and not os.access(full, os.R_OK):
            why = "Permission denied"
        mode = stat.S_IMODE(found.st_mode)
        _answer([_text(relative), kind, found.st_size, found.st_mtime_ns, target, why, mode])


def sums(path: bytes, ranges: List[Tuple[str, int, int]]) -> None:
    """Hash parts of files: of each `[name, offset, bytes]`, SHA-256 or why it cannot be read."""
    for name, offset, size in ranges:
        left = size
        hashed = hashlib.sha256()
        try:
            with open(os.path.join(path, _bytes(name)), "rb") as file:
                file.seek(offset)
                while left:
                    chunk = file.read(min(left, _CHUNK))
                    if not chunk:
                        break
                    hashed.update(chunk)
                    left -= len(chunk)
        except OSError as error:
            _answer(["", _why(error)])
            continue
        _answer(["", "the file is too short"] if left else [hashed.hexdigest(), ""])
        sys.stdout.buffer.flush()


def receive(path: bytes, name: bytes, mark: bytes, size: int, mtime_ns: int, replace: bool) -> None:
    """Write a file from standard input, after the bytes that are here from an earlier try.

    Args:
        path: the folder.
        name: the file's final name.
        mark: identifies the content: only a part with the same mark is continued.
        size: of the whole file.
        mtime_ns: its time.
        replace: whether to replace a file with this name.
    """
    begin = b"." + name + b"."
    part = begin + mark + PART.encode()
    for other in os.listdir(path):
        # Only this program makes such names: parts of older content.
        if other.startswith(begin) and other.endswith(PART.encode()) and other != part:
            os.unlink(os.path.join(path, other))
    final, part = os.path.join(path, name), os.path.join(path, part)
    with open(part, "ab") as file:
        had = file.tell()
        if had > size:
            file.truncate(0)
            had = 0
        _answer({"had": had})
        sys.stdout.buffer.flush()
        left = size - had
        while left:
            chunk = sys.stdin.buffer.read1(min(left, _CHUNK))  # type: ignore[union-attr]
            if not chunk:
                break
            file.write(chunk)
            left -= len(chunk)
        file.flush()
        os.fsync(file.fileno())
    if left:
        _answer({"why": "the connection ended; %d bytes are missing" % left})
        return
    os.utime(part, ns=(mtime_ns, mtime_ns))
    if replace:
        os.rename(part, final)
    else:
        try:
            os.link(part, final)  # it fails if there is a file, rename does not
        except FileExistsError:
            _answer({"why": "a file with this name has appeared"})
            return
        except OSError:
            if os.path.lexists(final):
                raise
            os.rename(part, final)  # a file system without hard links
        else:
            os.unlink(part)
    _answer({"why": ""})


def main() -> None:
    """Do what the request says."""
    request = json.loads(sys.stdin.buffer.readline().decode())
    sys.stdout.buffer.write(READY + b"\n")
    path = _bytes(request["path"])
    try:
        if request["do"] == "describe":
            describe(path, request["quotas"])
        elif request["do"] == "list":
            list_all(path, _bytes(request["name"]))
        elif request["do"] == "sums":
            sums(path, request["ranges"])
        elif request["do"] == "make":
            os.makedirs(path, exist_ok=True)
        elif request["do"] == "clean" and path.endswith(PART.encode()):
            shutil.rmtree(path, ignore_errors=True)
        elif request["do"] == "receive":
            receive(
                path, _bytes(request["name"]), request["mark"].encode(), request["size"],
                request["mtime_ns"], request["replace"],
            )  # fmt: skip
        _answer("done")
    except OSError as error:
        name = error.filename
        shown = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
        _answer({"failed": "%s: %s" % (shown, _why(error)) if shown else _why(error)})
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
