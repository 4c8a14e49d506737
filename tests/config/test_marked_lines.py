"""Lines that Teho adds to a file of the user go without a trace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.config.marked_lines import add_lines, has_lines, remove_lines, why_broken
from teho.errors import InputError

LINES = ("export A='$(b)'", "# ü")


def _binary(min_size: int, max_size: int) -> st.SearchStrategy[bytes]:
    """Return bytes without half of the comments, which are an error."""
    sizes = st.binary(min_size=min_size, max_size=max_size)
    return sizes.filter(lambda content: b"teho always" not in content)


_CONTENT = st.one_of(
    st.none(),
    _binary(0, 80),
    st.lists(
        st.sampled_from([b"alias a=b", b"# >>> conda initialize >>>", b"\r", b"", b"\xff"])
    ).map(b"\n".join),
)


@given(content=_CONTENT, times=st.integers(1, 3))
def test_on_and_off_restore_every_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | None, times: int
) -> None:
    path = tmp_path_factory.mktemp("home") / ".bashrc"
    if content is not None:
        path.write_bytes(content)
    for _ in range(times):
        add_lines(path, LINES)
    assert has_lines(path)
    assert why_broken(path) == ""
    assert path.read_bytes().count("\n".join(LINES).encode()) == 1
    assert remove_lines(path)
    assert (path.read_bytes() if path.exists() else None) == content
    assert not remove_lines(path)


@given(before=_binary(0, 40), after=_binary(1, 40))
def test_what_the_user_adds_later_keeps_its_lines(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes
) -> None:
    path = tmp_path_factory.mktemp("home") / ".bashrc"
    path.write_bytes(before)
    add_lines(path, LINES)
    with path.open("ab") as file:
        file.write(after)
    path.chmod(0o640)
    assert remove_lines(path)
    joint = b"" if before.endswith(b"\n") or not before else b"\n"
    assert path.read_bytes() == before + joint + after
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_links_stay_links(tmp_path: Path) -> None:
    real, link, hard = tmp_path / "dotfiles", tmp_path / ".bashrc", tmp_path / "hard"
    real.write_text("a\n")
    link.symlink_to(real)
    os.link(real, hard)
    add_lines(link, LINES)
    assert link.is_symlink()
    assert hard.read_bytes() == real.read_bytes()
    assert remove_lines(link)
    assert link.is_symlink()
    assert hard.read_text() == "a\n"
    real.unlink()
    add_lines(link, LINES)
    assert remove_lines(link)
    assert link.is_symlink()
    assert not real.exists()


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("a\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    for path in (old, new):
        with pytest.raises(InputError, match="free space"):
            add_lines(path, LINES)
    assert old.read_text() == "a\n"
    assert not new.exists()


@pytest.mark.parametrize(
    "text", ["# >>> teho always >>>\na\n", "a\n# <<< teho always <<<\n"], ids=["begin", "end"]
)
def test_half_of_the_lines_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".bashrc"
    path.write_text(text)
    for change in (remove_lines, lambda one: add_lines(one, LINES)):
        with pytest.raises(InputError, match="only one of the two comments"):
            change(path)
    assert path.read_text() == text
    assert "only one of the two comments" in why_broken(path)


def test_what_is_not_a_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing" / "file"):
        with pytest.raises(InputError):
            add_lines(path, LINES)
        assert not has_lines(path)
        assert why_broken(path) == ""
