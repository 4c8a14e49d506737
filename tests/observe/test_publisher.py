"""Samples on their way from the recorder to viewers."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support import wait_for
from teho.model.live import Lease, LiveSample, ProcessNow, file_period_s
from teho.model.run import Node
from teho.observe import publisher as publisher_module
from teho.observe.publisher import Publisher
from teho.observe.run_changes import RunChanges, announce
from teho.observe.viewer import Viewer
from teho.store.layout import lease_folder, now_file, replace_file

HERE = "localhost"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    lease_folder(directory).mkdir(parents=True)
    return directory


def node(name: str = HERE) -> Node:
    return Node(name=name, started_at=datetime.now(timezone.utc), period_s=1.0)


def sample(elapsed_s: float, name: str = HERE, **values: float) -> LiveSample:
    row = {"kind": "node", "device": "node", "cpu_busy_percent": 50.0, **values}
    return LiveSample(node=name, elapsed_s=elapsed_s, rows=[row])


def lease(run: Path, name: str = "v.json", **values: object) -> Path:
    path = lease_folder(run) / name
    replace_file(path, msgspec.json.encode(Lease(**{"number": 1, **values})))
    return path


def publish_until_received(
    publisher: Publisher, viewer: Viewer, way: str, processes: Sequence[ProcessNow] = ()
) -> None:
    """Publish samples until the viewer has one that came in this way."""
    elapsed_s = 0.0

    def received() -> bool:
        nonlocal elapsed_s
        elapsed_s += 1.0
        made = msgspec.structs.replace(sample(elapsed_s), processes=list(processes))
        publisher.publish(made, time.monotonic())
        viewer.poll(0.05)
        newest = viewer.newest.get(HERE)
        return newest is not None and newest.way == way and newest.before is not None

    wait_for(received)


def test_a_sample_reaches_a_viewer_over_a_connection(run: Path) -> None:
    viewer, publisher = Viewer(run, [node()]), Publisher(run, HERE, 1)
    publisher.read_leases(time.monotonic())
    assert publisher.watching(time.monotonic())
    publish_until_received(publisher, viewer, "connection")
    received = viewer.newest[HERE]
    assert received.sample.rows[0]["cpu_busy_percent"] == 50.0
    assert received.before is not None
    assert received.before.elapsed_s < received.sample.elapsed_s
    viewer.close()
    assert list(lease_folder(run).iterdir()) == []
    publisher.read_leases(time.monotonic())
    assert not publisher.watching(time.monotonic())
    publisher.close()


def test_the_first_sample_waits_for_the_connection(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder takes its first sample when it has just found the lease."""
    viewer, publisher = Viewer(run, [], [HERE]), Publisher(run, HERE, 1)
    connect, may_connect = socket.create_connection, threading.Event()

    def late(*arguments: Any, **others: Any) -> socket.socket:
        may_connect.wait(10)
        return connect(*arguments, **others)

    monkeypatch.setattr(socket, "create_connection", late)
    assert publisher.watching(0.0)
    publisher.publish(sample(1.0), 0.0)
    may_connect.set()
    # The node is not described yet; its host is expected.
    wait_for(lambda: (viewer.poll(0.02), HERE in viewer.newest)[1])
    assert viewer.newest[HERE].sample.elapsed_s == 1.0
    viewer.close()
    publisher.close()


def test_a_connection_that_is_open_only_after_the_end_is_closed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer, publisher = Viewer(run, [], [HERE]), Publisher(run, HERE, 1)
    connect, may_connect = socket.create_connection, threading.Event()
    opened: list[socket.socket] = []

    def late(*arguments: Any, **others: Any) -> socket.socket:
        may_connect.wait(10)
        opened.append(connect(*arguments, **others))
        return opened[0]

    monkeypatch.setattr(socket, "create_connection", late)
    publisher.read_leases(0.0)
    (reached,) = publisher._viewers.values()
    publisher.close()
    may_connect.set()
    wait_for(lambda: not reached.is_connecting)
    assert opened[0].fileno() == -1
    assert not reached.is_connected
    viewer.close()


def test_many_nodes_are_connected_by_one_reading(run: Path) -> None:
    """A screen looks only twice per second, and must not need half a minute for 64 nodes."""
    names = [f"n{number}" for number in range(64)]
    viewer = Viewer(run, [node(HERE), *map(node, names)])
    publishers = {name: Publisher(run, name, 1) for name in names}
    for publisher in publishers.values():
        publisher.read_leases(time.monotonic())
    reached = [next(iter(publisher._viewers.values())) for publisher in publishers.values()]
    wait_for(lambda: all(one._socket is not None for one in reached))
    for name, publisher in publishers.items():
        publisher.publish(sample(1.0, name), time.monotonic())
    viewer.poll(0.0)
    assert set(viewer.newest) == set(names)
    viewer.close()
    for publisher in publishers.values():
        publisher.close()


def test_a_node_that_starts_later_is_watched_too(run: Path) -> None:
    viewer, publisher = Viewer(run, []), Publisher(run, HERE, 1)
    publisher.read_leases(time.monotonic())
    viewer.add([node()])
    viewer._renew()  # the address on the route to the node is known only now

    def look_and_publish() -> bool:
        publisher.read_leases(time.monotonic())
        publisher.publish(sample(time.monotonic()), time.monotonic())
        viewer.poll(0.05)
        return HERE in viewer.newest and viewer.newest[HERE].way == "connection"

    wait_for(look_and_publish)
    viewer.close()
    publisher.close()


def test_without_more_threads_the_sample_is_a_file(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    lease(run, addresses=("127.0.0.1:9",))
    publisher = Publisher(run, HERE, 1)
    publisher.read_leases(0.0)
    publisher.publish(sample(1.0), 0.0)
    assert now_file(run, HERE).exists()
    publisher.close()


def test_the_lease_of_a_connected_viewer_is_not_read_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer, publisher = Viewer(run, [node()]), Publisher(run, HERE, 1000)
    assert publisher.watching(0.0) or publisher.watching(5.0)
    publish_until_received(publisher, viewer, "connection")
    read = []
    monkeypatch.setattr(publisher_module, "_leases", lambda *_: iter(read.append(1) or ()))
    # A lease that is not renewed expires after 40 s.
    assert [publisher.watching(at_s) for at_s in (20.0, 40.0, 60.0, 80.0)] == [True] * 4
    assert read == []
    viewer.close()

    def is_closed() -> bool:
        publisher.publish(sample(1e6), 80.0)
        return not any(one.is_connected for one in publisher._viewers.values())

    wait_for(is_closed)
    assert not publisher.watching(81.0)
    assert len(read) == 1
    publisher.close()


def test_two_viewers_get_each_sample(run: Path) -> None:
    viewers, publisher = [Viewer(run, [node()]) for _ in range(2)], Publisher(run, HERE, 1)
    publisher.read_leases(time.monotonic())
    for viewer in viewers:
        publish_until_received(publisher, viewer, "connection")
        viewer.close()
    publisher.close()


def test_if_the_viewer_cannot_be_reached_the_sample_is_a_file(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Viewer, "_own_addresses", lambda _: ["127.0.0.1:9"])  # nobody listens
    viewer, publisher = Viewer(run, [node()]), Publisher(run, HERE, 1)
    monkeypatch.setattr("teho.observe.viewer._FILE_S", 0.0)
    publisher.read_leases(time.monotonic())
    publish_until_received(publisher, viewer, "file")
    publisher.close()
    assert not now_file(run, HERE).exists()
    viewer.close()


def test_a_firewall_that_drops_packets_does_not_delay_the_files(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()

    def dropped(*_: object, **__: object) -> socket.socket:
        may_end.wait(10)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", dropped)
    lease(run, addresses=("192.0.2.1:9", "192.0.2.2:9"))
    publisher = Publisher(run, HERE, 1)
    written: list[int] = []
    for second in range(30):
        if second % 5 == 0:
            lease(run, number=second, addresses=("192.0.2.1:9", "192.0.2.2:9"))
            may_end.clear()
        if second % 5 == 4:  # each attempt lasts for 4 s
            may_end.set()
            wait_for(lambda: not any(one.is_connecting for one in publisher._viewers.values()))
        assert publisher.watching(float(second))
        publisher.publish(sample(float(second)), float(second))
        if now_file(run, HERE).exists():
            stored = msgspec.json.decode(now_file(run, HERE).read_bytes(), type=LiveSample)
            written.append(int(stored.elapsed_s))
    # Only the first attempt may be successful, so each sample after it is a file.
    assert written == list(range(4, 30))
    may_end.set()
    publisher.close()


OWNERS = ("own", 1234, "other", None)


@pytest.mark.parametrize(
    ("way", "owners"),
    [("connection", OWNERS), ("file", ("own", "other", "other", None))],
)
def test_the_id_of_another_user_is_sent_but_not_stored(
    run: Path, monkeypatch: pytest.MonkeyPatch, way: str, owners: Sequence[object]
) -> None:
    if way == "file":
        monkeypatch.setattr(Viewer, "_own_addresses", lambda _: ["127.0.0.1:9"])  # nobody listens
    monkeypatch.setattr("teho.observe.viewer._FILE_S", 0.0)
    viewer, publisher = Viewer(run, [node()]), Publisher(run, HERE, 1)
    processes = [
        ProcessNow(pid=pid, parent=1, command="x", resident_bytes=1, threads=1, owner=owner)
        for pid, owner in enumerate(OWNERS)
    ]
    publisher.read_leases(time.monotonic())
    publish_until_received(publisher, viewer, way, processes)
    received = viewer.newest[HERE].sample.processes
    assert [one.owner for one in received] == list(owners)
    stored = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert not any(b"1234" in content for content in stored if b"elapsed_s" in content)
    publisher.close()
    viewer.close()


def test_the_lease_of_an_unreachable_viewer_is_read_as_seldom_as_files_are_written(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, opened = [], []
    list_names, open_file = os.listdir, Path.open

    def count_opened(path: Path, *arguments: object) -> object:
        opened.append(path)
        return open_file(path, *arguments)

    # All 1,250 nodes together replace 12 files per second: each its own every 104 s.
    monkeypatch.setattr(
        publisher_module.os, "listdir", lambda path: (listed.append(path), list_names(path))[1]
    )
    monkeypatch.setattr(Path, "open", count_opened)
    path = lease(run, addresses=("127.0.0.1:9",))
    os.utime(run, (1, 1))
    publisher = Publisher(run, HERE, 1250)
    assert file_period_s(1250) == pytest.approx(104.2, abs=0.1)
    written = []
    for second in range(300):
        if second % 5 == 0:
            lease(run, number=second, addresses=("127.0.0.1:9",))
        if publisher.watching(float(second)):
            publisher.publish(sample(float(second)), float(second))
        # The attempt to connect is in a thread.
        wait_for(lambda: not any(one.is_connecting for one in publisher._viewers.values()))
        written.append(now_file(run, HERE).stat().st_mtime_ns if second > 10 else 0)
    assert len(set(written)) - 1 == 3
    # The folder is listed at the beginning, and when the folder of the files is created.
    assert len(listed) == 2
    assert opened.count(path) <= 6
    publisher.close()


def test_a_viewer_reads_only_the_files_that_were_replaced(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number}" for number in range(200)]
    viewer = Viewer(run, list(map(node, names)))
    monkeypatch.setattr("teho.observe.viewer._FILE_S", 0.0)
    monkeypatch.setattr("teho.observe.viewer._NODES_PER_S", 1e9)
    monkeypatch.setattr(Viewer, "_read_recording", lambda *_: None)
    read: list[str] = []
    open_file = Path.open

    def note_opened(path: Path, mode: str = "r", *arguments: object, **others: object) -> object:
        is_file = path.parent == now_file(run, "").parent and not path.name.startswith(".")
        if is_file and mode == "rb":
            read.append(path.stem)
        return open_file(path, mode, *arguments, **others)

    monkeypatch.setattr(Path, "open", note_opened)
    now_file(run, "").parent.mkdir()
    for name in names:
        replace_file(now_file(run, name), msgspec.json.encode(sample(1.0, name)))
    viewer.poll(0.0)
    assert sorted(read) == sorted(names)
    assert all(viewer.newest[name].way == "file" for name in names)
    read.clear()
    viewer.poll(0.0)
    assert read == []
    replace_file(now_file(run, "n7"), msgspec.json.encode(sample(2.0, "n7")))
    (now_file(run, "").parent / ".n8.json.1.1").write_text("{")  # a recorder writes it just now
    viewer.poll(0.0)
    assert read == ["n7"]
    assert viewer.newest["n7"].sample.elapsed_s == 2.0
    # A file system may give the number of a replaced file to the next one.
    read.clear()
    viewer._files = {name: (inode, read_s - 100) for name, (inode, read_s) in viewer._files.items()}
    viewer.poll(0.0)
    assert sorted(read) == sorted(names)
    viewer.close()


def test_each_of_twenty_nodes_writes_every_sample_into_a_file(run: Path) -> None:
    lease(run)
    publisher = Publisher(run, HERE, 20)
    publisher.read_leases(100.0)
    # A period is 1 s, but samples are not exactly 1 s apart.
    for now_s in (101.0, 101.99, 103.002, 103.997, 105.001):
        publisher.publish(sample(now_s), now_s)
        stored = msgspec.json.decode(now_file(run, HERE).read_bytes(), type=LiveSample)
        assert stored.elapsed_s == now_s
    publisher.close()


def test_many_nodes_write_their_files_less_often(run: Path) -> None:
    lease(run)
    publisher = Publisher(run, HERE, 1000)
    publisher.read_leases(100.0)
    written = []
    for second in range(100):
        publisher.publish(sample(float(second)), 100.0 + second)
        written.append(now_file(run, HERE).stat().st_ino)
        # The lease is renewed: it would expire after 20 s.
        lease(run, number=second)
        publisher.read_leases(100.0 + second)
    assert len(set(written)) == 2  # 1,000 nodes replace 12 files per second: one each in 83 s


@pytest.mark.parametrize(("node_count", "sent"), [(400, 20), (1250, 6)])
def test_a_very_large_job_sends_fewer_samples(run: Path, node_count: int, sent: int) -> None:
    lease(run)
    turns = []
    for name in ("n1", "n2", "n3"):
        publisher = Publisher(run, name, node_count)
        turns.append([second for second in range(100, 120) if publisher.watching(float(second))])
    assert all(len(one) in {sent, sent + 1} for one in turns)
    # Not all nodes send at the same time.
    assert node_count == 400 or any(one != turns[0] for one in turns)


def test_a_lease_that_is_not_renewed_expires(run: Path) -> None:
    lease(run)
    publisher = Publisher(run, HERE, 1)
    assert publisher.watching(100.0)
    assert publisher.watching(119.0)
    assert not publisher.watching(121.0)
    # The file of a viewer that was killed is still there.
    assert not publisher.watching(500.0)
    lease(run, number=2)
    announce(run)
    assert publisher.watching(505.0)
    publisher.close()


@pytest.mark.parametrize(("node_count", "looks"), [(99, 6), (100, 15), (1250, 15)])
def test_many_nodes_list_an_unchanged_folder_less_often(
    run: Path, node_count: int, looks: int
) -> None:
    changes = RunChanges(run, node_count)
    counts = [changes.count(20.0 * number) for number in range(31)]
    assert counts.index(2) == looks
    assert counts.count(1) == looks


@pytest.mark.parametrize(("node_count", "looks"), [(1, 100), (5, 13), (11, 5), (1000, 5)])
def test_many_nodes_read_leases_less_often(run: Path, node_count: int, looks: int) -> None:
    changes = RunChanges(run, node_count)
    for second in range(100):
        os.utime(run, (second, second))
        changes.count(float(second))
    assert changes.count(99.0) == looks


def test_a_folder_that_does_not_change_is_listed_now_and_then(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []
    monkeypatch.setattr(publisher_module, "_leases", lambda *_: iter(listed.append(1) or ()))
    publisher = Publisher(run, HERE, 1)
    for second in range(18):
        publisher.watching(float(second))
    assert len(listed) == 3
    os.utime(run, (1, 1))
    publisher.watching(18.0)
    publisher.watching(19.0)
    assert len(listed) == 4


def test_the_lease_of_another_user_is_ignored(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease(run)
    monkeypatch.setattr(publisher_module.os, "getuid", lambda: os.geteuid() + 1)
    publisher = Publisher(run, HERE, 1)
    publisher.read_leases(0.0)
    assert not publisher.watching(0.0)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"number": "x"}', b"\xff" * 70_000])
def test_a_damaged_lease_is_ignored(run: Path, content: bytes) -> None:
    (lease_folder(run) / "v.json").write_bytes(content)
    publisher = Publisher(run, HERE, 1)
    publisher.read_leases(0.0)
    assert not publisher.watching(0.0)


def test_an_address_that_is_no_address_does_no_harm(run: Path) -> None:
    lease(run, addresses=("nonsense", "127.0.0.1:x", ":", "127.0.0.1:99999"))
    publisher = Publisher(run, HERE, 1)
    publisher.read_leases(0.0)

    def is_filed() -> bool:
        publisher.publish(sample(1.0), 0.0)
        return now_file(run, HERE).exists()

    wait_for(is_filed)  # while it tries to connect, it writes no file
    assert msgspec.json.decode(now_file(run, HERE).read_bytes())["elapsed_s"] == 1.0
    publisher.close()


def test_a_viewer_that_does_not_read_stops_nothing(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lease(run, addresses=(f"127.0.0.1:{listener.getsockname()[1]}",), token="t")
        publisher = Publisher(run, HERE, 1)
        publisher.read_leases(time.monotonic())
        peer, _ = listener.accept()
        large = {f"metric{number}": 1.0 for number in range(20_000)}
        began_s = time.monotonic()
        for second in range(100):  # 30 MB: more than the buffers of a connection
            publisher.publish(sample(float(second), **large), time.monotonic())
        assert time.monotonic() - began_s < 20
        # What arrives are whole lines: a line that was begun is completed before the next.
        peer.settimeout(0.2)
        data = bytearray()
        for _ in range(1000):
            try:
                data += peer.recv(1 << 20)
            except TimeoutError:
                publisher.publish(sample(1000.0), time.monotonic())
                if b'"elapsed_s":1000.0' in data[-200_000:] and data.endswith(b"\n"):
                    break
        lines = bytes(data).splitlines()
        assert msgspec.json.decode(lines[0])["token"] == "t"
        seen = [msgspec.json.decode(line, type=LiveSample).elapsed_s for line in lines[1:]]
        assert seen == sorted(seen)
        assert len(seen) < 101  # the others were dropped
        peer.close()
        publisher.close()


def hello(viewer: Viewer, *lines: bytes) -> socket.socket:
    address = msgspec.json.decode(next(lease_folder(viewer._directory).iterdir()).read_bytes())
    host, _, port = address["addresses"][0].rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=5)
    for line in lines:
        connection.sendall(line + b"\n")
    return connection


@pytest.mark.parametrize(
    "line",
    [
        b'{"token": "wrong", "node": "localhost"}',
        b'{"token": 5, "node": "localhost"}',
        b'{"node": "localhost"}',
        b'{"token": "RIGHT", "node": "another"}',
        b'{"token": "RIGHT", "node": ["localhost"]}',
        b"GET / HTTP/1.1",
        b"x" * (5 << 20),
    ],
)
def test_a_stranger_is_not_listened_to(run: Path, line: bytes) -> None:
    viewer = Viewer(run, [node()])
    token = viewer._token.encode()
    forged = msgspec.json.encode(sample(1.0))
    with hello(viewer) as connection:

        def send() -> None:
            with contextlib.suppress(OSError):  # it is closed while the long line is sent
                connection.sendall(line.replace(b"RIGHT", token) + b"\n" + forged + b"\n")

        sender = threading.Thread(target=send)
        sender.start()
        wait_for(lambda: (viewer.poll(0.02), not sender.is_alive() and not viewer._open)[1])
        sender.join()
    assert viewer.newest == {}
    viewer.close()


def test_a_node_reports_only_itself(run: Path) -> None:
    viewer = Viewer(run, [node(), node("other")])
    first = msgspec.json.encode({"token": viewer._token, "node": HERE})
    forged, own = (msgspec.json.encode(sample(1.0, name)) for name in ("other", HERE))
    with hello(viewer, first, forged, own):
        wait_for(lambda: (viewer.poll(0.05), HERE in viewer.newest)[1])
    assert "other" not in viewer.newest
    viewer.close()


def test_an_older_sample_does_not_replace_a_newer_one(run: Path) -> None:
    viewer = Viewer(run, [node()])
    viewer._keep(sample(5.0), "connection")
    viewer._keep(sample(4.0), "file")
    assert viewer.newest[HERE].sample.elapsed_s == 5.0
    viewer.close()


def test_if_the_last_sample_is_after_the_end_its_processes_are_kept(run: Path) -> None:
    """The program may end between two samples, and then only the later one had the processes."""
    sleeps = ProcessNow(pid=7, parent=1, command="sleep 120", resident_bytes=1, threads=1)
    viewer, publisher = Viewer(run, [node()]), Publisher(run, HERE, 1)
    publisher.read_leases(time.monotonic())
    publish_until_received(publisher, viewer, "connection", [sleeps])
    last_s = viewer.newest[HERE].sample.elapsed_s
    viewer.end({HERE: last_s})
    assert HERE not in viewer.newest  # its other values are of the time after the end
    publisher.publish(sample(last_s - 0.5), time.monotonic())  # it has no processes, as a row
    wait_for(lambda: viewer.poll(0.05) or HERE in viewer.newest)
    assert viewer.newest[HERE].processes == [sleeps]
    viewer.close()
    publisher.close()


def test_the_lease_of_a_killed_viewer_is_deleted(run: Path) -> None:
    host = os.uname().nodename
    dead, other = lease(run, f"{host}-4194305-aa.json"), lease(run, "elsewhere-4194305-aa.json")
    viewer = Viewer(run, [node()])
    assert not dead.exists()
    assert other.exists()
    viewer.close()


def test_without_a_folder_for_leases_the_viewer_says_so(tmp_path: Path) -> None:
    viewer = Viewer(tmp_path / "old", [node()])
    assert "No such file" in viewer.problem
    viewer.close()
