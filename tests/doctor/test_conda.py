"""The configuration files of conda: where they are, and what is read of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.doctor.conda import read_channels, read_conda
from teho.doctor.snapshot import CondaFile

LISTS = {
    "a guide's": ("channels:\n  - conda-forge\n  - defaults # with miniconda\nssl_verify: true\n",
                  ("conda-forge", "defaults")),
    "without indent": ("channels:\n- defaults\n- conda-forge\n", ("defaults", "conda-forge")),
    "in brackets": ("channels: [defaults, 'conda-forge' ]  # why\n", ("defaults", "conda-forge")),
    "over lines": ("channels: [ # all\n  defaults,\n  conda-forge, # x\n]\n",
                   ("defaults", "conda-forge")),
    "quoted": ("'channels':\n\n  # first\n  - \"conda-forge\"\n  - 'defaults'\nx: 1\n",
               ("conda-forge", "defaults")),
    "addresses": ("channels:\n  - https://mirror.example/conda-forge#frag\n  - ~/mine\n",
                  ("https://mirror.example/conda-forge#frag", "~/mine")),
    "CRLF and a mark": ("\ufeffchannels:\r\n  - defaults\r\n", ("defaults",)),
    "empty": ("channels: []\n", ()),
    "null": ("channels:\nssl_verify: true\n", ()),
    "of other keys": ("envs_dirs:\n  - /x\nmigrated_channels:\n  - defaults\n", ()),
    "nothing": ("", ()),
}  # fmt: skip
BROKEN = {
    "a tab": ("channels:\n\t- defaults\n", "line 2 is not an item"),
    "a mapping": ("channels:\n  first: defaults\n", "line 2 is not an item"),
    "an item with a key": (
        "channels:\n  - name: defaults\n",
        "line 2 has an item that is not the name",
    ),
    "no end": ("channels: [defaults,\n", "has no closing bracket"),
    "a word": ("channels: defaults\n", "line 1: `channels` is not a list"),
    "two": ("channels: [a]\nchannels: [b]\n", "line 2 sets `channels` a second"),
    "an alias": ("channels:\n  - *mine\n", "not the name of a channel"),
    "another indent": ("channels:\n  - a\n - b\n", "line 3: the indent"),
    "no space": ("channels:\n  -defaults\n", "line 2 is not an item"),
}


@pytest.mark.parametrize("name", LISTS)
def test_the_list_of_channels_is_read(name: str) -> None:
    text, channels = LISTS[name]
    assert read_channels(text) == (channels, False)


@pytest.mark.parametrize("name", BROKEN)
def test_a_list_that_is_not_understood_is_not_guessed(name: str) -> None:
    text, why = BROKEN[name]
    with pytest.raises(ValueError, match=why):
        read_channels(text)


def test_other_default_channels_are_noticed() -> None:
    assert read_channels("default_channels:\n  - conda-forge\nchannels: [defaults]\n") == (
        ("defaults",), True,
    )  # fmt: skip


@given(st.text())
def test_any_text_gives_channels_or_a_reason(text: str) -> None:
    channels: tuple[str, ...] = ("none",)
    with contextlib.suppress(ValueError):
        channels, _ = read_channels(f"channels:{text}")
    assert all(channels)


def test_conda_s_places_in_their_order(tmp_path: Path) -> None:
    home, prefix, install = tmp_path / "home", tmp_path / "env", tmp_path / "install"
    places = [
        tmp_path / "etc" / "conda" / ".condarc",
        install / "condarc.d" / "site.yml",
        home / ".config" / "conda" / "condarc",
        home / ".conda" / ".condarc",
        home / ".condarc",
        prefix / ".condarc",
        tmp_path / "mine",
    ]
    for place in (*places, install / "condarc.d" / "notes.txt"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"channels: [c{len(place.name)}]\n")
    environment = {
        "HOME": str(home),
        "PATH": str(tmp_path),
        "CONDA_EXE": str(install / "bin" / "conda"),
        "CONDA_PREFIX": str(prefix),
        "CONDARC": str(tmp_path / "mine"),
    }
    found = read_conda(environment, tmp_path)
    assert found.command == str(install / "bin" / "conda")
    assert [file.path for file in found.files] == [str(place) for place in reversed(places)]
    assert found.files[0].channels == ("c4",)
    assert read_conda({"HOME": str(home)}, tmp_path).command == ""
    assert [file.path for file in read_conda({**environment, "CONDARC": "~/.condarc"}, tmp_path)
            .files].count(str(home / ".condarc")) == 1  # fmt: skip


def test_no_conda_is_no_file(tmp_path: Path) -> None:
    found = read_conda({"HOME": str(tmp_path), "PATH": str(tmp_path)}, tmp_path)
    assert (found.command, found.files) == ("", ())
    assert read_conda({}, tmp_path).files == ()


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    rc = tmp_path / ".condarc"

    def only() -> CondaFile:
        (file,) = read_conda(environment, tmp_path).files
        return file

    rc.write_bytes(b"channels: [\xff]\n")
    assert only().why == "the file is not a text in UTF-8"
    rc.write_text("channels: {")
    assert only().why == "line 1: `channels` is not a list"
    rc.unlink()
    rc.symlink_to(rc.name)
    assert only().why == "Too many levels of symbolic links"
    rc.unlink()
    rc.mkdir()
    assert read_conda(environment, tmp_path).files == ()
