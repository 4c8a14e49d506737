"""Reads and writes Jobstats' summary of a job, which sites store in Slurm's `AdminComment`.

The text is `JS1:`, followed by JSON in gzip in base64. `JS1:Short` and `JS1:None` have no data.

Source: `jobstats.py` and `docs/setup/summaries.md` of PrincetonUniversity/jobstats.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from typing import Annotated, Union

import msgspec

from teho.model.missing import Missing, Reason

__all__ = [
    "Js1",
    "Js1Node",
    "decode_js1",
    "encode_js1",
    "js1_from_json",
    "js1_in",
    "js1_to_json",
]

_PREFIX = "JS1:"
_NO_DATA = {
    "": "the comment has no data",
    "Short": "the job was too short for Jobstats",
    "None": "Jobstats found no data about the job",
}
"""Jobstats writes `Short` if a job was shorter than two of its sampling periods."""
_TEXT_BYTES = 16 * 1024**2
_JSON_BYTES = 64 * 1024**2
"""A node with 8 GPUs needs about 600 bytes. So this is enough for 100,000 nodes."""


_Number = Union[int, float]
"""Jobstats writes whole numbers without a decimal point, so that both can be written back."""


class Js1Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node's part of a summary. None and an absent GPU mean: Jobstats had no data.

    The keys of GPUs are their minor numbers (`/dev/nvidiaN`), as text.
    """

    memory_limit_bytes: Union[int, float, None] = msgspec.field(name="total_memory", default=None)
    """Memory that the job was allocated on this node."""
    memory_peak_bytes: Union[int, float, None] = msgspec.field(name="used_memory", default=None)
    """Largest resident memory of the job's cgroup."""
    cpu_s: Union[int, float, None] = msgspec.field(name="total_time", default=None)
    """CPU time of the job on this node, in seconds."""
    core_count: Union[int, float, None] = msgspec.field(name="cpus", default=None)
    gpu_memory_bytes: dict[str, _Number] = msgspec.field(name="gpu_total_memory", default={})
    gpu_memory_peak_bytes: dict[str, _Number] = msgspec.field(name="gpu_used_memory", default={})
    gpu_busy_percent: dict[str, _Number] = msgspec.field(name="gpu_utilization", default={})
    """Mean over the job of the share of time with a kernel running."""

    def gpus(self) -> list[str]:
        """Return the minor numbers of all GPUs of this node, in ascending order."""
        known = {*self.gpu_busy_percent, *self.gpu_memory_peak_bytes, *self.gpu_memory_bytes}
        return sorted(known, key=lambda minor: (len(minor), minor))


class Js1(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobstats' summary of one job."""

    nodes: dict[Annotated[str, msgspec.Meta(min_length=1)], Js1Node]
    elapsed_s: Union[int, float, None] = msgspec.field(name="total_time", default=None)
    """Run time of the job in seconds."""
    gpu_count: int | None = msgspec.field(name="gpus", default=None)
    """Number of GPUs that the job was allocated; None: not reported."""


def js1_in(comment: str) -> str:
    """Return the text of the summary in a job's comment; empty if there is none."""
    _, prefix, text = comment.strip().strip('"').partition(_PREFIX)
    # The site, or sacct in a fixed width, may have added text after it.
    return prefix + (text.split(maxsplit=1)[0] if text.strip() else "")


def decode_js1(comment: str) -> Js1 | Missing:
    """Return the summary in a job's comment, or why there is none.

    Args:
        comment: the value of `AdminComment`. Text of the site before `JS1:` is allowed.
    """
    found = js1_in(comment)
    if not found:
        return Missing(Reason.ABSENT, "the comment of the job is not from Jobstats")
    text = found.removeprefix(_PREFIX)
    if text in _NO_DATA:
        return Missing(Reason.UNRECORDED, _NO_DATA[text])
    if len(text) > _TEXT_BYTES:
        return _damaged(f"it has more than {_TEXT_BYTES // 1024**2} MiB")
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _damaged("it is not complete base64 text")
    content = _unpacked(packed)
    return content if isinstance(content, Missing) else js1_from_json(content)


def js1_from_json(content: bytes) -> Js1 | Missing:
    """Return the summary in the output of `jobstats --json JOBID`, or why there is none."""
    try:
        found = msgspec.json.decode(content, type=Js1)
    except (ValueError, RecursionError) as error:
        return _damaged(str(error).splitlines()[0])
    if not found.nodes:
        return Missing(Reason.UNRECORDED, _NO_DATA["None"])
    return found


def js1_to_json(summary: Js1) -> bytes:
    """Return a summary as the JSON of `jobstats --json JOBID`, in one line."""
    return msgspec.json.encode(summary)


def encode_js1(summary: Js1) -> str:
    """Return a summary as the text that Jobstats stores in `AdminComment`."""
    if not summary.nodes:
        return f"{_PREFIX}None"
    # Without the time of packing, the same summary is always the same text.
    packed = gzip.compress(js1_to_json(summary), mtime=0)
    return _PREFIX + base64.b64encode(packed).decode("ascii")


def _unpacked(packed: bytes) -> bytes | Missing:
    """Return the JSON; a short text may unpack to an enormous one, so its size is limited."""
    unpacker = zlib.decompressobj(wbits=31)  # 31: gzip
    try:
        content = unpacker.decompress(packed, _JSON_BYTES)
    except zlib.error as error:
        return _damaged(f"it is not gzip ({error})")
    if unpacker.unconsumed_tail:
        return _damaged(f"it has more than {_JSON_BYTES // 1024**2} MiB of JSON")
    return content if unpacker.eof else _damaged("its end is missing")


def _damaged(why: str) -> Missing:
    return Missing(Reason.FAILED, f"the summary of Jobstats cannot be read: {why}")
