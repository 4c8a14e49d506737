"""`teho pack`: many small files into a few tar archives."""

from __future__ import annotations

import time

import click

from teho.cli import say
from teho.cli.declare import option, plain_command
from teho.cli.output import Output, output_options
from teho.errors import InputError

__all__ = ["command"]


@plain_command("""\
  teho pack images /scratch/ada/images.packed
  teho pack images packed --shard-size 1GiB
  teho pack images packed --format json""")
@click.argument("source", metavar="SRC")
@click.argument("folder", metavar="OUT")
@option("--shard-size SIZE", "Begin a new archive when an archive has reached this size.",
        default="256MiB")  # fmt: skip
@option("--workers N", "Read this number of files at the same time.", type=int, default=32)
@output_options()
def command(source: str, folder: str, shard_size: str, workers: int, output: Output) -> None:
    """Pack the files in the folder SRC into a few tar archives in the new folder OUT.

    A training program reads large archives faster than many small files, above all on file systems
    such as Lustre. Files with the same name up to the first dot are one sample, such as `a.jpg`
    and `a.txt`. Programs read the archives with `packed` of `teho.feed`, with webdataset, or with
    tar. If the packing is interrupted, run the same command again: the packing continues. SRC is
    not changed.

    Reads: SRC.

    Writes: OUT, and the -o file.

    Network: not used.
    """
    from teho.feed.packing import pack
    from teho.model.packed import Packed
    from teho.units import parse_bytes

    shard_bytes = parse_bytes(shard_size, "--shard-size")
    for name, value in (("--shard-size", shard_bytes), ("--workers", workers)):
        if value < 1:
            raise InputError(f"{name} {value}", "a number above 0")
    began_s = time.monotonic()
    try:
        done = pack(source, folder, shard_bytes=shard_bytes, workers=workers)
    except KeyboardInterrupt:
        say("interrupted. Run the same command again: the packing continues.")
        raise click.exceptions.Exit(130) from None
    packed = Packed(
        source=source,
        folder=folder,
        samples=done.samples,
        members=done.members,
        content_bytes=done.content_bytes,
        shards=done.shards,
        kept_samples=done.kept_samples,
        elapsed_s=time.monotonic() - began_s,
    )
    from teho.show.build.pack import pack_document

    output.show(pack_document(packed), packed)
