"""`teho pack`: what goes in comes out, also after kills; what is damaged is named."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tarfile
import tempfile
import time
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import TEHO
from teho.errors import InputError, TehoError
from teho.feed import shards
from teho.feed.index import read_index, split_name
from teho.feed.packing import pack
from teho.feed.shards import packed

NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12
).filter(lambda name: name not in {".", ".."})
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=3000), min_size=1,
    max_size=30,
)  # fmt: skip


def made(folder: Path, tree: dict[tuple[str, ...], bytes]) -> dict[str, bytes]:
    """Write the files of a tree; return those that could be written, by their names."""
    found = {}
    for parts, content in tree.items():
        path = folder.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (NotADirectoryError, FileExistsError, IsADirectoryError, OSError):
            continue
        found["/".join(parts)] = content
    return found


def many(folder: Path, count: int, size: int = 700) -> dict[str, bytes]:
    chance = random.Random(count)
    return made(
        folder,
        {(f"c{n % 7}", f"{n:04d}.{end}"): chance.randbytes(size) for n in range(count)
         for end in ("bin", "txt")},
    )  # fmt: skip


def content(out: Path) -> dict[str, bytes]:
    """Return all files of a packed folder, by their names."""
    found = {}
    for sample in packed(out):
        key = sample.pop("__key__")
        found |= {f"{key}.{rest}" if rest else key: data for rest, data in sample.items()}
    return found


@given(TREES, st.integers(1, 20_000))
@example({("a.b.c",): b"1", ("a",): b"2", ("a-b.c",): b"3", (".d",): b"4", ("x.",): b"5"}, 1)
def test_what_goes_in_comes_out(tree: dict[tuple[str, ...], bytes], shard_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name, "source"), Path(name, "out")
        source.mkdir()
        files = made(source, tree)
        done = pack(source, out, shard_bytes=shard_bytes)
        assert content(out) == files
        assert done.members == len(files)
        assert done.content_bytes == sum(map(len, files.values()))
        unpacked: dict[str, bytes] = {}
        for shard in sorted(out.glob("*.tar")):
            with tarfile.open(shard) as archive:
                keys = [split_name(one.name)[0] for one in archive]
                # As webdataset needs it: the files of a sample follow each other.
                assert len(list(groupby(keys))) == len(set(keys))
                unpacked |= {one.name: archive.extractfile(one).read() for one in archive}
        assert unpacked == files


def test_tar_and_sha256sum_agree(tmp_path: Path) -> None:
    files = many(tmp_path / "source", 100)
    pack(tmp_path / "source", tmp_path / "out", shard_bytes=50_000)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "out", check=True)
    shards = sorted((tmp_path / "out").glob("*.tar"))
    assert len(shards) > 3
    listed = [subprocess.run(["tar", "-tf", shard], capture_output=True, text=True, check=True)
              for shard in shards]  # fmt: skip
    assert sorted(name for done in listed for name in done.stdout.split()) == sorted(files)


def test_a_killed_call_continues(tmp_path: Path) -> None:
    files = many(tmp_path / "source", 2000)
    out = tmp_path / "out"
    chance, kills = random.Random(1), 0
    while not (out / "pack.json").exists():
        started = subprocess.Popen(
            [*TEHO, "pack", tmp_path / "source", out, "--shard-size", "50kB", "--short"],
            start_new_session=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        before = len(list(out.glob("*.tar")))
        until = before + chance.randrange(1, 15)
        while started.poll() is None and len(list(out.glob("*.tar"))) < until and kills < 5:
            time.sleep(0.001)
        if started.poll() is None and kills < 5:
            os.killpg(started.pid, signal.SIGKILL)
            kills += 1
        started.wait()
    assert kills >= 2
    assert content(out) == files
    assert not list(out.glob("*.part"))


def test_a_second_call_keeps_all_and_a_changed_source_is_refused(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    many(source, 20)
    first = pack(source, out, shard_bytes=5000)
    assert first.kept_samples == 0
    assert pack(source, out, shard_bytes=5000).kept_samples == first.samples == 20
    (source / "new.txt").write_text("new")
    with pytest.raises(InputError, match="the source has changed since"):
        pack(source, out)


def test_damage_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    many(tmp_path / "source", 20)
    pack(tmp_path / "source", out)
    shard = out / "shard-000000.tar"
    data = bytearray(shard.read_bytes())
    index = read_index(shard.with_suffix(".idx"))
    data[index.offsets[7] + 3] ^= 1
    shard.write_bytes(data)
    dataset = packed(out)
    damaged = split_name(index.name(7))[0]
    fine = [number for number in range(20) if number != 7 // 2]
    assert len([dataset[number] for number in fine]) == 19
    for reader in (dataset, dataset.in_blocks()):
        with pytest.raises(InputError, match=rf"{damaged}.* is damaged: its checksum differs"):
            reader[7 // 2]
    shard.write_bytes(data[:4000])
    with pytest.raises(InputError, match="too short"):
        dataset[19]
    for text in (b"", b"{}\n", b'{"format": "teho.shards/1", "members": "x"}\n'):
        shard.with_suffix(".idx").write_bytes(text)
        with pytest.raises(InputError, match="is damaged"):
            read_index(shard.with_suffix(".idx"))


def test_a_block_is_small_even_if_the_files_are_tiny(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(tmp_path / "source", 500, size=1)
    pack(tmp_path / "source", tmp_path / "out")
    sizes = []
    read = shards._read
    monkeypatch.setattr(shards, "_BLOCK_BYTES", 50_000)
    monkeypatch.setattr(shards, "_read", lambda *place: sizes.append(place[2]) or read(*place))
    assert len(list(packed(tmp_path / "out"))) == 500
    assert len(sizes) > 15
    assert max(sizes) <= 50_000


def test_what_cannot_be_packed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with pytest.raises(InputError, match="is not a folder"):
        pack(source, tmp_path / "out")
    source.mkdir()
    with pytest.raises(InputError, match="nothing to pack"):
        pack(source, tmp_path / "out")
    with pytest.raises(InputError, match="is inside"):
        pack(source, source / "out")
    with (source / "large").open("wb") as file:
        file.truncate(2 * 1024**3)
    with pytest.raises(InputError, match=r"2\.00 GiB; expected files of at most 1\.00 GiB"):
        pack(source, tmp_path / "out")
    (source / "large").unlink()
    (source / "gone").symlink_to("nowhere")
    (source / "file").write_text("x")
    (source / "loop").symlink_to(source)
    assert pack(source, tmp_path / "out").members == 1, "links to files are followed, not loops"
    with pytest.raises(InputError, match=r"has no pack\.json.*Next: `teho pack SOURCE"):
        packed(source)


def test_two_calls_at_the_same_time(tmp_path: Path) -> None:
    import fcntl

    many(tmp_path / "source", 3)
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another process is packing"):
            pack(tmp_path / "source", tmp_path / "out")


class Samples:
    """A dataset without PyTorch."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return 40

    def __getitem__(self, row: int) -> Any:
        return self.sample(row)


def test_samples_of_a_dataset_come_back(tmp_path: Path) -> None:
    for number, sample in enumerate((
        lambda row: (np.full((2, 3), row, np.uint8), row),
        lambda row: {"x": np.float32([row]), "text": "ä", "raw": b"\0", "a.b": None},
        lambda row: row / 2,
        lambda row: [1, [row]],
    )):  # fmt: skip
        dataset = Samples(sample)
        pack(dataset, tmp_path / f"{number}", workers=2, shard_bytes=3000)
        back = packed(tmp_path / f"{number}")
        for row in range(40):
            wanted, found = dataset[row], back[row]
            parts = wanted.items() if isinstance(wanted, dict) else enumerate(
                wanted if isinstance(wanted, (tuple, list)) else [])  # fmt: skip
            assert isinstance(wanted, (dict, tuple, list)) or found == wanted
            for key, value in parts:
                assert np.array_equal(found[key], value)
                assert np.asarray(found[key]).dtype == np.asarray(value).dtype
    with pytest.raises(InputError, match="a part of type object"):
        pack(Samples(lambda _: object()), tmp_path / "object")


def test_a_process_that_is_killed_is_an_error(tmp_path: Path) -> None:
    def dies(row: int) -> int:
        if row == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return row

    with pytest.raises(TehoError, match="was killed, probably because memory was full"):
        pack(Samples(dies), tmp_path / "out", workers=2, shard_bytes=2000)


def test_the_command(teho, tmp_path: Path) -> None:
    many(tmp_path / "source", 30)
    done = teho("pack", "source", "out", "--shard-size", "10kB", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "✓ 60 files, 41.0 KiB, are in 8 archives in out."
    assert 'packed("out", decode), 256, shuffle=True' in done.stdout
    assert "cd out && sha256sum -c SHA256SUMS" in done.stdout
    again = json.loads(teho("pack", "source", "out", "--format", "json", cwd=tmp_path).stdout)
    assert (again["kept_samples"], again["samples"], again["members"]) == (30, 30, 60)
    schema = resources.files("teho.show") / "pack.schema.json"
    jsonschema.validate(again, json.loads(schema.read_text()))
    wrong = teho("pack", "source", "other", "--workers", "0", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (2, "teho: --workers 0; expected a number above 0\n")
    assert not (tmp_path / "other").exists()
