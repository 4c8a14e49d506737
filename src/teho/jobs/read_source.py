"""Reads a file to import: plain or gzip, in the character sets that shells and Excel write."""

from __future__ import annotations

import gzip
import sys
import time
import zlib
from hashlib import sha256
from pathlib import Path

from teho.errors import InputError
from teho.jobs.log import Source

__all__ = ["SQLITE", "read_source"]

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_8 = b"\xef\xbb\xbf"
_MOST_BYTES = 2 * 1024**3
SQLITE = "SQLite format 3\0"
"""Begin of a database (sqlite.org/fileformat.html). The text of such a source has only this: the
database may have many GB, and its importer opens it."""
_PIECE_BYTES = 2**20


def read_source(path: Path) -> Source:
    """Return the text of a file, or of standard input for the path `-`.

    The text of a database is only its begin.

    Raises:
        InputError: it cannot be read.
    """
    try:
        if str(path) == "-":
            path, content, changed_s = Path("stdin"), sys.stdin.buffer.read(), time.time()
        else:
            changed_s = path.stat().st_mtime
            if digest := _digest_of_database(path):
                return Source(path, SQLITE, changed_s, digest=digest)
            content = path.read_bytes()
        digest = sha256(content).hexdigest()
        if content.startswith(_GZIP):
            content = _unpacked(path, content)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", "a file that you can read"
        ) from error
    charset = "utf-16" if content.startswith(_UTF_16) else "utf-8"
    text = content.removeprefix(_UTF_8).decode(charset, errors="replace")
    return Source(path, text, changed_s, digest=digest)


def _digest_of_database(path: Path) -> str:
    """Return the SHA-256 of a database; empty if the file is another one, or a pipe."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE.encode():
            return ""
        file.seek(0)
        found = sha256()
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def _unpacked(path: Path, content: bytes) -> bytes:
    """Return an unpacked file; what comes before a missing end is used."""
    unpacker = zlib.decompressobj(wbits=31)  # 31: gzip
    parts: list[bytes] = []
    try:
        while content:
            parts.append(unpacker.decompress(content, _MOST_BYTES))
            if unpacker.unconsumed_tail:
                raise InputError(f"{path} has more than 2 GiB", "a smaller log")
            content = unpacker.unused_data
            unpacker = zlib.decompressobj(wbits=31)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: {error}", "a complete gzip file") from error
    return b"".join(parts)
