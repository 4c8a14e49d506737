"""webdataset reads what `pack` has written: the same samples as `packed`, each once."""

import sys
from pathlib import Path

import webdataset

from teho.feed import packed

shards = sorted(map(str, Path(sys.argv[1]).glob("*.tar")))
theirs = {}
for sample in webdataset.WebDataset(shards, shardshuffle=False):
    assert sample["__key__"] not in theirs, "each sample once"
    theirs[sample["__key__"]] = {name: sample[name] for name in ("cls", "seg.bin")}
ours = {sample.pop("__key__"): sample for sample in packed(sys.argv[1])}
assert theirs == ours
assert theirs["a/257"] == {"cls": b"257", "seg.bin": b"\x01" * 257}
assert len(theirs) == 300
