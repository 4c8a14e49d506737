"""A file system whose reads are never answered: `silent_files.py FOLDER`, as root.

It mounts itself on the folder, prints `ready`, and has a file for every name that ends with `.bin`.
It answers every request but those for the content of a file. A program that reads the file waits
for a page that the kernel has locked, as on an NFS whose server does not answer: the state of the
program is D, and only a signal that ends it can end the wait. A program that looks for a name that
ends with `.silent` also waits, and no signal can end this wait. When this process ends, the kernel
answers all requests with an error, so no program waits for ever.

The kernel sends the requests through /dev/fuse (linux/fuse.h).
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = 1
_KEEP_CACHE = 2
"""With it, the kernel opens a file again although another program waits for a page of it."""
_SIZE = 1 << 20
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _STATFS = 1, 2, 3, 14, 15, 17
_RELEASE, _FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR = 18, 25, 26, 27, 28, 29
_INTERRUPT, _BATCH_FORGET = 36, 42
_UNANSWERED = frozenset({_READ, _FORGET, _INTERRUPT, _BATCH_FORGET})
_ENOENT, _ENOSYS = 2, 38
_ASYNC_READ = 1
"""Reads are sent in the background; the reader waits for the page."""
_NOSUID, _NODEV, _DETACH = 2, 4, 2
_END_S = 30
_LIBC = ctypes.CDLL(None, use_errno=True)


def mount(folder: str, device: int) -> None:
    """Mount the file system.

    Raises:
        OSError: the kernel does not permit it.
    """
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    wrong = _LIBC.mount(b"silent", folder.encode(), b"fuse", _NOSUID | _NODEV, options.encode())
    if wrong:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)


def unmount(folder: str) -> None:
    """Unmount it, if it is mounted."""
    _LIBC.umount2(folder.encode(), _DETACH)


def _attributes(node: int) -> bytes:
    is_file = node != _ROOT
    mode = (stat.S_IFREG | 0o755) if is_file else (stat.S_IFDIR | 0o755)
    now_s = int(time.time())
    return struct.pack("<6Q10I", node, _SIZE if is_file else 0, 0, now_s, now_s, now_s, 0, 0, 0,
                       mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)  # fmt: skip


def _answer(kind: int, node: int, body: bytes, names: dict[bytes, int]) -> bytes | int:
    """Return the answer to a request, or the number of an error.

    Args:
        kind: of the request.
        node: number of the file.
        body: of the request.
        names: of the known files, with their numbers.
    """
    if kind == _INIT:
        return struct.pack("<4I2H2I2H2I24x", 7, 31, 1 << 17, _ASYNC_READ, 8, 6, 1 << 17, 1, 32, 0,
                           0, 0)  # fmt: skip
    if kind == _GETATTR:
        return struct.pack("<Q2I", 60, 0, 0) + _attributes(node)
    if kind == _LOOKUP:
        name = body.partition(b"\0")[0]
        if not name.endswith(b".bin"):
            return _ENOENT
        found = names.setdefault(name, _ROOT + 1 + len(names))
        return struct.pack("<4Q2I", found, 0, 60, 60, 0, 0) + _attributes(found)
    if kind in {_OPEN, _OPENDIR}:
        return struct.pack("<Q2I", 1, _KEEP_CACHE, 0)
    if kind == _STATFS:
        return struct.pack("<5Q4I24x", 1, 0, 0, 2, 0, 4096, 255, 4096, 0)
    return b"" if kind in {_RELEASE, _RELEASEDIR, _FLUSH, _READDIR} else _ENOSYS


def serve(device: int) -> None:
    """Answer requests until the file system is unmounted."""
    names: dict[bytes, int] = {}
    while True:
        try:
            request = os.read(device, 1 << 20)
        except InterruptedError:
            continue
        except OSError:
            return
        _, kind, unique, node = struct.unpack_from("<IIQQ", request)
        is_silent = request[40:].partition(b"\0")[0].endswith(b".silent")
        if kind in _UNANSWERED or (kind == _LOOKUP and is_silent):
            continue
        answer = _answer(kind, node, request[40:], names)
        error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


@contextmanager
def mounted(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Serve the file system on a folder, in another process, until it is terminated.

    Raises:
        OSError: the kernel does not permit it.
    """
    with subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            if server.stdout.readline() != "ready\n":
                why = server.communicate()[1].strip().splitlines()
                raise OSError(why[-1] if why else "no reason")
            yield server
        finally:
            # The kernel then answers with an error, and all programs that wait go on.
            server.terminate()
            server.wait(_END_S)
            unmount(str(folder))


def main(folder: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(folder, device)

    def end(*_: object) -> None:
        unmount(folder)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    serve(device)


if __name__ == "__main__":
    main(sys.argv[1])
