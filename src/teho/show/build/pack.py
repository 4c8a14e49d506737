"""The result of `teho pack` as a document."""

from __future__ import annotations

from teho.model.document import Document, Fact
from teho.model.packed import Packed
from teho.show.build.layout import document, listing
from teho.units import counted, format_bytes

__all__ = ["pack_document"]

_DECODE = (
    "Your function `decode` gets a dictionary with the files of a sample, such as "
    "`{'__key__': 'a', 'jpg': …, 'txt': …}`, and returns the sample."
)


def pack_document(packed: Packed) -> Document:
    """Lay out what was packed, and how a program reads it."""
    files = _many(packed.members, "file")
    shards = _many(packed.shards, "archive")
    new = packed.samples - packed.kept_samples
    rate = new * packed.members / packed.samples / packed.elapsed_s if packed.elapsed_s else 0.0
    return document(
        title=f"teho pack {packed.source}",
        verdict=f"{files}, {format_bytes(packed.content_bytes)}, are in {shards} in "
        f"{packed.folder}.",
        verdict_severity="good",
        facts=(
            Fact("samples", "Samples", packed.samples),
            Fact("kept", "Packed earlier", packed.kept_samples or None),
            Fact("elapsed_s", "Took", packed.elapsed_s, "s", note=_rate(rate)),
        ),
        lists=(
            listing(
                "use",
                "How to read the archives",
                (
                    "`from teho.feed import loader, packed`",
                    f'`for batch in loader(packed("{packed.folder}", decode), 256, shuffle=True):`',
                    _DECODE,
                ),
            ),
        ),
        commands=(f"cd {packed.folder} && sha256sum -c SHA256SUMS",),
    )


def _many(number: int, noun: str) -> str:
    return counted(number, noun).replace(str(number), f"{number:,}", 1)


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f} files/s" if per_s else ""
