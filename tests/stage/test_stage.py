"""`teho stage` from one folder to another on this machine, with a real rsync."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from trees import content, make_tree, program, result

import teho.stage.staging
from support import TEHO
from teho.cli.group import teho as commands
from teho.errors import InputError
from teho.stage.archive import Archive
from teho.stage.location import Location, location_of
from teho.stage.machine import Machine
from teho.stage.plan import entries, plan_copy

RSYNC = shutil.which("rsync") or ""
needs_rsync = pytest.mark.skipif(not RSYNC, reason="there is no rsync: tests/debian-packages.sh")
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@needs_rsync
def test_everything_is_copied_as_it_is(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "it's there" / "new"
    said = teho("stage", data, to, "--format", "json", "--checksums", "all")
    assert said.returncode == 0, said.stderr
    assert content(data) == content(to / "data")
    assert [path.name for path in to.iterdir()] == ["data"]  # and nothing that is hidden
    found = result(said.stdout)
    assert (found["state"], found["file_count"], found["link_count"]) == ("copied", 30, 3)
    assert found["skipped"] == [{"path": "data/pipe", "why": "a pipe"}]
    assert found["checksum_count"] == 29  # f0 is empty
    assert found["copy_bytes"] == sum(
        path.stat().st_size for path in data.rglob("*") if path.is_file() and not path.is_symlink()
    )


@needs_rsync
def test_a_single_file_is_copied_too(teho: Call, tmp_path: Path) -> None:
    (tmp_path / "a b").write_text("one")
    to = tmp_path / "to"
    assert teho("stage", tmp_path / "a b", to).returncode == 0
    assert (to / "a b").read_text() == "one"
    said = teho("stage", tmp_path / "a b", to, "--archive")
    assert said.returncode == 2
    assert "--archive: a b is a single file" in said.stderr


@needs_rsync
def test_the_second_time_nothing_is_copied(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    assert teho("stage", data, to).returncode == 0
    before = (to / "data" / "run.sh").stat().st_ino
    said = teho("stage", data, to, "--format", "json")
    found = result(said.stdout)
    assert (said.returncode, found["copy_count"], found["elapsed_s"]) == (0, 0, None)
    assert (to / "data" / "run.sh").stat().st_ino == before
    assert "Nothing to copy: 30 files" in said.stderr


@needs_rsync
def test_only_own_older_copies_are_replaced(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    there = to / "data"
    (there / "sub").mkdir(parents=True)
    (there / "sub" / "f1").write_text("mine")
    (there / "own").write_text("mine too")
    said = teho("stage", data, to, "--format", "json")
    assert said.returncode == 1
    (conflict,) = result(said.stdout)["conflicts"]
    assert conflict["path"] == "data/sub/f1"
    assert "`teho stage` did not copy" in conflict["why"]

    later = time.time() + 10
    for name in ("f2", "f3", "f4"):
        (data / "sub" / name).write_text(f"new {name}")
        os.utime(data / "sub" / name, (later, later))
    (there / "sub" / "f3").write_text("changed there")
    os.utime(there / "sub" / "f4", (later + 99, later + 99))
    said = teho("stage", data, to, "--format", "json")
    found = result(said.stdout)
    assert (said.returncode, found["copy_count"]) == (1, 1)
    assert [one["path"] for one in found["conflicts"]] == [
        "data/sub/f1", "data/sub/f3", "data/sub/f4",
    ]  # fmt: skip
    assert "changed after the copy" in found["conflicts"][1]["why"]
    assert (there / "sub" / "f1").read_text() == "mine"
    assert (there / "sub" / "f2").read_text() == "new f2"
    assert (there / "sub" / "f3").read_text() == "changed there"
    assert (there / "own").read_text() == "mine too"


@needs_rsync
def test_a_copy_is_never_replaced_by_an_older_file_or_from_elsewhere(
    teho: Call, tmp_path: Path
) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    assert teho("stage", data, to).returncode == 0
    old = (data / "run.sh").stat().st_mtime - 1000
    (data / "run.sh").write_text("older")
    os.utime(data / "run.sh", (old, old))
    assert teho("stage", data, to).returncode == 1
    (tmp_path / "other").mkdir()
    other = make_tree(tmp_path / "other")
    (other / "run.sh").write_text("another")
    assert teho("stage", other, to).returncode == 1
    assert (to / "data" / "run.sh").read_text() == "#!/bin/sh\n"


@needs_rsync
def test_links_and_folders_of_the_user_stay(teho: Call, tmp_path: Path) -> None:
    data, to, elsewhere = make_tree(tmp_path), tmp_path / "to", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (to / "data" / "run.sh").mkdir(parents=True)
    (to / "data" / "sub").symlink_to(elsewhere)
    (to / "data" / "link").symlink_to("run.sh")
    said = teho("stage", data, to, "--format", "json")
    assert said.returncode == 1
    assert {one["path"]: one["why"] for one in result(said.stdout)["conflicts"]} == {
        "data/link": "the link at the destination points to another file or folder",
        "data/run.sh": "a folder at the destination, but a file in the source",
        "data/sub": "a symbolic link at the destination, but a folder in the source",
    }
    assert list(elsewhere.iterdir()) == []
    assert str((to / "data" / "nowhere").readlink()) == "/does/not/exist"


def test_a_dry_run_changes_nothing(teho: Call, tmp_path: Path, home: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    for archive in ("--archive", "--no-archive"):
        said = teho("stage", data, to, "--dry-run", archive)
        assert said.returncode == 0, said.stderr
        assert "will be" in said.stdout
    assert not to.exists()
    assert not (home / "staged").exists()


@pytest.mark.parametrize(
    ("source", "destination", "words"),
    [
        ("nothing", "to", "nothing: no such file or folder; expected a file or a folder"),
        # Before the other machine is asked.
        ("nothing", "no-host.invalid:to", "nothing: no such file or folder"),
        ("data/pipe", "to", "it is a pipe; expected a file or a folder"),
        ("data", "data/sub", "is inside"),
        ("data", "data", "is inside"),
        ("data", ".", "is the folder that contains data; expected another folder as DEST"),
        ("data", "data.txt", "data.txt is a file; expected a folder"),
        ("data", "data.txt/x", "you cannot write to"),
        ("", "to", "SRC is empty; expected a path, or HOST:PATH"),
        ("data", "", "DEST is empty"),
        ("a:data", "to", "SRC is on another machine; expected a path on this machine"),
        ("data", "rsync://host/x", "a URL; expected a path, or HOST:PATH"),
        ("data", "host::module", "a module of an rsync server"),
        ("data", "-oProxyCommand=x:y", "the name of a host cannot begin with -"),
        ("/", "to", "SRC is /; expected a folder below /"),
    ],
)
def test_a_mistake_is_one_line(
    teho: Call, tmp_path: Path, source: str, destination: str, words: str
) -> None:
    make_tree(tmp_path)
    (tmp_path / "data.txt").write_text("")
    said = teho("stage", "--", source, destination, cwd=tmp_path)
    assert said.returncode == 2
    assert words.lower() in said.stderr.lower()
    assert "Traceback" not in said.stderr
    assert said.stdout == ""


def test_wrong_options(teho: Call, tmp_path: Path) -> None:
    data = make_tree(tmp_path)
    for text in ("some", "-1", "1.5", "²", ""):
        said = teho("stage", data, tmp_path / "to", f"--checksums={text}")
        assert "expected a number of files, or all" in said.stderr
        assert said.returncode == 2


def test_no_rsync_is_named_with_the_next_step(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    (tmp_path / "bin").mkdir()
    env = {"PATH": str(tmp_path / "bin")}
    said = teho("stage", data, to, env=env)
    assert said.returncode == 2
    assert "this machine has no command rsync. Next: run `conda install" in said.stderr
    assert not to.exists()
    said = teho("stage", data, to, "--archive", env=env)  # it does not need rsync
    assert said.returncode == 0, said.stderr


@needs_rsync
def test_a_damaged_copy_is_found(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    for archive in ("--no-archive", "--archive"):
        assert teho("stage", data, to, archive).returncode == 0
    whole = (data / "sub" / "f7").read_bytes()
    bad = bytes([whole[0] ^ 1]) + whole[1:]
    for path in (to / "data" / "sub" / "f7", to / "data.tar"):
        about = path.stat()
        path.write_bytes(path.read_bytes().replace(whole, bad))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    for archive in ("--no-archive", "--archive"):
        said = teho("stage", data, to, archive, "--checksums", "all", "--format", "json")
        assert said.returncode == 1
        assert result(said.stdout)["differences"] == [
            {
                "path": "data/sub/f7",
                "why": "the checksums in the source and at the destination differ",
            }
        ]
        assert teho("stage", data, to, archive, "--checksums", "0").returncode == 0


@needs_rsync
def test_what_changes_meanwhile_is_named(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    text = f'{RSYNC} "$@" && echo more >> {data}/run.sh && rm {to}/data/sub/f3'
    path = f"{program(tmp_path / 'bin', 'rsync', text)}:{os.environ['PATH']}"
    said = teho("stage", data, to, "--format", "json", "--checksums", "all", env={"PATH": path})
    assert said.returncode == 1
    assert {one["path"]: one["why"] for one in result(said.stdout)["differences"]} == {
        "data/run.sh": "the file in the source changed while Teho copied it",
        "data/sub/f3": "missing at the destination",
    }


def test_a_failing_rsync_is_reported(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    folder = tmp_path / "bin"

    def stage(text: str) -> subprocess.CompletedProcess[str]:
        path = f"{program(folder, 'rsync', text)}:{os.environ['PATH']}"
        return teho("stage", data, to, "--format", "json", env={"PATH": path})

    said = stage("echo 'rsync: it broke' >&2; echo 'rsync error: (code 12)' >&2; exit 12")
    assert said.returncode == 2
    assert "a command failed on this machine: rsync: it broke" in said.stderr
    said = stage("echo 'rsync: a file has vanished' >&2; exit 24")
    assert said.returncode == 1
    found = result(said.stdout)
    assert found["messages"] == ["rsync: a file has vanished"]
    assert len(found["differences"]) == 33


def _slowly(tmp_path: Path, to: Path, number: int, *, archive: bool) -> None:
    """Stage a file, and send a signal to all processes when a part of it has been copied."""
    path = os.environ["PATH"]
    if not archive:
        bin_ = program(tmp_path / "bin", "rsync", f'exec {RSYNC} --bwlimit=2000 "$@"')
        path = f"{bin_}:{path}"
    words = [*TEHO, "stage", tmp_path / "data", to, *(["--archive"] if archive else [])]
    process = subprocess.Popen(
        words, env={**os.environ, "PATH": path}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until_s = time.monotonic() + 60
    while not any(one.stat().st_size > 1 << 20 for one in to.rglob("*") if one.is_file()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert b"teho: interrupted. Run the same command again: the copy continues.\n" in errors


@needs_rsync
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_copy_continues(teho: Call, tmp_path: Path, number: int) -> None:
    data, to = tmp_path / "data", tmp_path / "to"
    data.mkdir()
    to.mkdir()
    (data / "a").write_bytes(os.urandom(20 << 20))
    _slowly(tmp_path, to, number, archive=False)
    assert not (to / "data" / "a").exists()  # no unfinished file has the name of a whole one
    if number != signal.SIGKILL:
        part = to / "data" / ".teho-part" / "a"
        assert (data / "a").read_bytes().startswith(part.read_bytes())
    (data / "b").write_text("new")
    assert teho("stage", data, to, "--checksums", "all").returncode == 0
    assert content(data) == content(to / "data")
    assert [path.name for path in to.iterdir()] == ["data"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_archive_continues(teho: Call, tmp_path: Path, number: int) -> None:
    data, to = tmp_path / "data", tmp_path / "to"
    data.mkdir()
    to.mkdir()
    for name in range(12):
        (data / f"{name}").write_bytes(os.urandom(10 << 20))
    _slowly(tmp_path, to, number, archive=True)
    (part,) = to.iterdir()
    had = part.stat().st_size
    with part.open("r+b") as file:  # a byte that shows whether the part is used
        for place in (700, 5000):  # in the header of the first file, and in its content
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 1]))
    assert had < 120 << 20
    said = teho("stage", data, to, "--archive", "--checksums", "all", "--format", "json")
    assert said.returncode == 1
    assert result(said.stdout)["differences"] == [
        {"path": "data/0", "why": "the checksums in the source and at the destination differ"},
        {"path": "data/0", "why": "the header of the file in the archive is damaged"},
    ]
    assert [path.name for path in to.iterdir()] == ["data.tar"]


def test_an_archive_unpacks_to_the_same(teho: Call, tmp_path: Path) -> None:
    data, to, out = make_tree(tmp_path), tmp_path / "to", tmp_path / "out"
    (data / ("n" * 200)).write_text("a long name")
    (data / "sub" / ("d" * 150)).mkdir()
    (data / "sub" / ("d" * 150) / ("n" * 150)).write_text("a long path")
    said = teho("stage", data, to, "--archive", "--checksums", "all")
    assert said.returncode == 0, said.stderr
    assert f"`teho submit --stage {to}/data.tar -- python train.py`" in " ".join(
        said.stdout.split()
    )
    out.mkdir()
    subprocess.run(["tar", "-xf", to / "data.tar", "-C", out], check=True)
    assert content(out / "data") == content(data)
    with tarfile.open(to / "data.tar") as archive:
        assert {(one.uid, one.gid, one.uname) for one in archive} == {(0, 0, "")}


def test_archives_of_others_stay_and_own_older_ones_are_replaced(
    teho: Call, tmp_path: Path
) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    to.mkdir()
    (to / "data.tar").write_text("mine")
    said = teho("stage", data, to, "--archive", "--format", "json")
    assert said.returncode == 1
    assert result(said.stdout)["conflicts"][0]["path"] == "data.tar"
    assert (to / "data.tar").read_text() == "mine"
    (to / "data.tar").unlink()
    assert teho("stage", data, to, "--archive").returncode == 0
    (data / "sub" / "f5").unlink()
    os.utime(data / "sub", (time.time() + 5, time.time() + 5))
    assert teho("stage", data, to, "--archive", "--checksums", "all").returncode == 0
    with tarfile.open(to / "data.tar") as archive:
        assert "data/sub/f5" not in archive.getnames()


def test_an_archive_can_be_sent_from_any_position(tmp_path: Path) -> None:
    data = make_tree(tmp_path)
    with Machine() as here:
        listed = entries(here.ask("list", str(tmp_path), name="data"))
    archive = Archive(plan_copy(listed, (), {}).new)
    whole = b"".join(archive.stream(tmp_path, 0))
    assert len(whole) == archive.size
    for begin in range(0, archive.size + 1, 97):
        assert b"".join(archive.stream(tmp_path, begin)) == whole[begin:]
    (data / "sub" / "f9").write_text("shorter")
    with pytest.raises(InputError, match="data/sub/f9 has become shorter"):
        list(archive.stream(tmp_path, 0))
    (data / "sub" / "f9").unlink()
    with pytest.raises(InputError, match="data/sub/f9: No such file"):
        list(archive.stream(tmp_path, 0))


def _on(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """Change what is seen of the destination's file system."""

    def changed(machine: Machine, path: str, *, quotas: bool = False) -> Location:
        found = location_of(machine, path, quotas=quotas)
        if not quotas:  # the source
            return found
        folder = msgspec.structs.replace(found.folder, **changes)
        return found._replace(folder=folder)

    monkeypatch.setattr(teho.stage.staging, "location_of", changed)


def _stage(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, ["stage", *map(str, words)], prog_name="teho")


@needs_rsync
def test_many_small_files_become_an_archive_on_lustre(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, to = make_tree(tmp_path, count=1000), tmp_path / "to"
    _on(monkeypatch, file_system="lustre")
    said = _stage(data, to, "--format", "json")
    assert said.exit_code == 0, said.output
    found = result(said.stdout)
    (finding,) = found["findings"]
    assert finding["kind"] == "many_small_files"
    assert "1,010 files are small (mean size 48.3 KiB). On lustre, each file" in finding["sentence"]
    assert [one["value"] for one in finding["thresholds"]] == [1000, 1024]
    assert (found["is_archive"], [one.name for one in to.iterdir()]) == (True, ["data.tar"])
    assert len(found["commands"]) == 2

    said = _stage(data, to, "--no-archive", "--format", "json")
    found = result(said.stdout)
    assert (found["is_archive"], len(found["findings"])) == (False, 1)
    assert "Leave out `--no-archive`" in found["findings"][0]["action"]

    _on(monkeypatch, file_system="xfs")
    assert not result(_stage(data, to, "--dry-run", "--format", "json").stdout)["findings"]


def test_files_that_are_few_or_large_stay_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_tree(tmp_path, count=100)
    _on(monkeypatch, file_system="lustre")
    found = result(_stage(data, tmp_path / "to", "--dry-run", "--format", "json").stdout)
    assert (found["is_archive"], found["findings"]) == (False, [])
    limits = tmp_path / "limits.toml"
    limits.write_text("[small_files]\nfiles_min = 110\nsize_kib = 4\n")
    monkeypatch.setenv("TEHO_THRESHOLDS", str(limits))
    found = result(_stage(data, tmp_path / "to", "--dry-run", "--format", "json").stdout)
    assert found["is_archive"] is False  # the mean is above 4 KiB
    limits.write_text("[small_files]\nfiles_min = 110\nsize_kib = 5\n")
    found = result(_stage(data, tmp_path / "to", "--dry-run", "--format", "json").stdout)
    assert found["is_archive"] is True


def test_a_full_file_system_is_named_before_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    _on(monkeypatch, free_bytes=1000, mounted_on="/scratch")
    said = _stage(data, to)
    with pytest.raises(InputError, match=r"/scratch has 1000 B free; expected 18.6 KiB"):
        raise said.exception or AssertionError
    _on(monkeypatch, free_files=5, total_files=99, mounted_on="/scratch")
    said = _stage(data, to)
    with pytest.raises(InputError, match=r"room for only 5 more files; expected room for 37 files"):
        raise said.exception or AssertionError
    assert not to.exists()


def test_a_quota_that_is_too_small_is_a_warning(teho: Call, tmp_path: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    plan = result(teho("stage", data, to, "--dry-run", "--format", "json").stdout)
    place = plan["destination_system"]["mounted_on"]
    line = f"{place} 90 95 100 - 8 0 20 -"
    folder = program(tmp_path / "bin", "quota", f"echo 'a title'; echo '{line}'; exit 1")
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    found = result(teho("stage", data, to, "--dry-run", "--format", "json", env=env).stdout)
    assert (found["quota_bytes"], found["quota_files"]) == (5 * 1024, 12)
    assert "Quota allows 5.00 KiB (12 more files)" in teho(
        "stage", data, to, "--dry-run", env=env
    ).stdout  # fmt: skip
    space, files = found["findings"]
    assert space["sentence"].startswith("The copy needs 18.6 KiB, but your quota of ")
    assert space["sentence"].endswith(" leaves only 5.00 KiB.")
    assert files["sentence"].startswith("The copy needs 33 files, but your quota of ")
    assert files["sentence"].endswith(" leaves only 12 files.")


def test_a_damaged_record_is_named(teho: Call, tmp_path: Path, home: Path) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    assert teho("stage", data, to, "--archive").returncode == 0
    (record,) = (home / "staged").iterdir()
    record.write_text("{")
    said = teho("stage", data, to, "--archive")
    assert said.returncode == 2
    assert f"Next: remove it: `rm {record}`" in said.stderr
