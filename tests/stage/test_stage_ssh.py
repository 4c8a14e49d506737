"""`teho stage` to another machine, with a real sshd on this one."""

from __future__ import annotations

import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trees import content, make_tree, program, result

from sshd import Server, lacking, server
from support import TEHO
from teho.stage.machine import Place, problem_of, read_place, shown

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking")
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("sshd")) as found:
        yield found


def test_files_go_over_one_connection(teho: Call, tmp_path: Path, cluster: Server) -> None:
    data, to = make_tree(tmp_path), tmp_path / "it's $HOME" / "new"
    before = cluster.logins
    said = teho("stage", data, f"cluster:{to}", "--checksums", "all", env=cluster.environment)
    assert said.returncode == 0, said.stderr
    assert content(data) == content(to / "data")
    assert cluster.logins == before + 1
    said = teho("stage", data, f"cluster:{to}", "--format", "json", env=cluster.environment)
    found = result(said.stdout)
    assert (said.returncode, found["copy_count"], found["host"]) == (0, 0, "cluster")
    (to / "data" / "run.sh").write_text("mine")
    assert teho("stage", data, f"cluster:{to}", env=cluster.environment).returncode == 1
    assert (to / "data" / "run.sh").read_text() == "mine"


def test_an_archive_needs_no_rsync_and_a_login_may_print(
    teho: Call, tmp_path: Path, cluster: Server
) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    env = cluster.ssh('case "$*" in *exec*) echo Welcome; echo "{}";; esac')
    said = teho("stage", data, f"cluster:{to}", "--archive", "--checksums", "all", env=env)
    assert said.returncode == 0, said.stderr
    with tarfile.open(to / "data.tar") as archive:
        assert "data/sub/f5" in archive.getnames()
    assert f"on cluster: `teho submit --stage {to}/data.tar" in " ".join(said.stdout.split())


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("locked", "locked asks for a password or a second factor: "),
        (
            "locked",
            "Next: run `ssh-copy-id locked`, or keep a connection open with `ControlMaster`",
        ),
        ("nohost.invalid", "no connection to nohost.invalid: ssh: Could not resolve hostname"),
    ],
)
def test_an_ssh_that_fails_says_why(
    teho: Call, tmp_path: Path, cluster: Server, host: str, words: str
) -> None:
    data = make_tree(tmp_path)
    said = teho("stage", data, f"{host}:/tmp/x", env=cluster.environment)
    assert said.returncode == 2
    assert words in said.stderr
    assert "Traceback" not in said.stderr
    assert said.stderr.count("\n") == 1


def test_the_other_machine_may_lack_something(teho: Call, tmp_path: Path, cluster: Server) -> None:
    data = make_tree(tmp_path)
    env = cluster.ssh('case "$*" in *exec*) exit 126;; esac')
    said = teho("stage", data, f"cluster:{tmp_path}/to", env=env)
    assert said.returncode == 2
    assert "cluster has no python3; expected Python 3.6 or newer" in said.stderr
    env = cluster.ssh(
        'case "$*" in *--server*) echo "rsync: command not found" >&2; exit 127;; esac'
    )
    said = teho("stage", data, f"cluster:{tmp_path}/to", env=env)
    assert said.returncode == 2
    assert "cluster has no command rsync. Next: load a module" in said.stderr


def test_an_open_connection_of_the_user_is_used(
    teho: Call, tmp_path: Path, cluster: Server
) -> None:
    data, to = make_tree(tmp_path), tmp_path / "to"
    config = cluster.folder / "ssh_config"
    old = config.read_text()
    config.write_text(f"ControlPath /tmp/teho-test-{os.getpid()}\n{old}")
    ssh = [cluster.folder / "bin" / "ssh"]
    try:
        subprocess.run([*ssh, "-fNM", "cluster"], check=True, stderr=subprocess.DEVNULL)
        before = cluster.logins
        # With a wrong key: only the open connection leads there.
        config.write_text(config.read_text().replace(f"IdentityFile {cluster.folder}/key", ""))
        said = teho("stage", data, f"cluster:{to}", env=cluster.environment)
        assert said.returncode == 0, said.stderr
        assert cluster.logins == before
    finally:
        subprocess.run([*ssh, "-O", "exit", "cluster"], check=True, capture_output=True)
        config.write_text(old)


def test_a_lost_connection_keeps_the_part(teho: Call, tmp_path: Path, cluster: Server) -> None:
    data, to = tmp_path / "data", tmp_path / "to"
    data.mkdir()
    (data / "a").write_bytes(os.urandom(20 << 20))
    rsync = program(tmp_path / "bin", "rsync", 'exec /usr/bin/env -u X rsync --bwlimit=2000 "$@"')
    text = (rsync / "rsync").read_text().replace("rsync --bw", f"{_real('rsync')} --bw")
    (rsync / "rsync").write_text(text)
    env = {**os.environ, "PATH": f"{rsync}:{cluster.environment['PATH']}"}
    process = subprocess.Popen(
        [*TEHO, "stage", data, f"cluster:{to}"], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until_s = time.monotonic() + 60
    while not any(one.stat().st_size > 1 << 20 for one in to.rglob("*") if one.is_file()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.02)
    for pid in _sessions(cluster):
        os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert b"Traceback" not in errors
    assert not (to / "data" / "a").exists()
    said = teho("stage", data, f"cluster:{to}", "--checksums", "all", env=cluster.environment)
    assert said.returncode == 0, said.stderr
    assert content(data) == content(to / "data")
    assert [path.name for path in to.iterdir()] == ["data"]


def _real(name: str) -> str:
    return subprocess.run(
        ["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _sessions(cluster: Server) -> list[int]:
    """Return the processes of this server that serve a connection."""
    found = []
    mark = f"{cluster.folder}/sshd_config".encode()
    listening = [
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline")
        if mark in path.read_bytes()
    ]  # fmt: skip
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) in listening:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/a/b", Place("", "/a/b")),
        ("./a:b", Place("", "./a:b")),
        ("host:", Place("host", "")),
        ("me@host:~/x", Place("me@host", "~/x")),
        ("[::1]:/x:y", Place("[::1]", "/x:y")),
        ("a b:c", Place("", "a b:c")),
    ],
)
def test_places(text: str, place: Place) -> None:
    assert read_place(text, "DEST") == place


def test_names_are_shown_on_one_line() -> None:
    assert shown("a\nb\x1b\udcff ä") == r"a\nb\x1b\xff ä"


def test_other_failures_name_the_machine() -> None:
    said = str(problem_of("host", 255, ["Host key verification failed."]))
    assert "run `ssh host` once, and check the key of the host" in said
    assert str(problem_of("host", 1, [])) == "a command failed on host: exit code 1"
