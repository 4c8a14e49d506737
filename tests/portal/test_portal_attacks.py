"""What other users, hostile recordings and hostile pages try, each as a real request.

The list begins with what ClusterCockpit had to mend in 2026, all of it in its own web page:

- a way around the token: `test_without_the_link_a_port_shows_nothing`,
  `test_no_way_around_the_link`;
- SQL in the name of a metric: `test_an_address_is_never_a_part_of_a_query`;
- a path that leads out of the folder: `test_no_address_leads_out_of_the_recordings`,
  `test_a_link_in_a_recording_is_not_followed`;
- stored XSS: `test_text_from_outside_stays_text`, and in Chromium
  `test_portal_browser.py::test_a_hostile_recording_runs_nothing`;
- CORS: `test_other_pages_cannot_load_anything`, and in Chromium
  `test_portal_browser.py::test_a_hostile_page_cannot_frame_or_read_the_portal`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from portal_process import PortalProcess, portal

from made_runs import make_run
from other_users import ALICE, EVE, as_user, root
from teho.store.share import share

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
ATTACK = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' \x1b[31m\u202e"
RUN = "20261123-094500-one-aaaa"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacked")
    home = folder / "home"
    shutil.copytree(EXAMPLE, home / "runs" / RUN)
    make_run(home, 1, command=("python", ATTACK), name=ATTACK, tags={ATTACK: ATTACK}, gpus=1,
             gpu=ATTACK, cluster=ATTACK, partition=ATTACK, host="h<b>")  # fmt: skip
    make_run(home, 2, command=("python", "other.py"), gpus=2, cluster="lumi")
    (folder / "secret.txt").write_text("the secret of the machine")
    return folder


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[PortalProcess]:
    with portal(folder) as one:
        yield one


@pytest.fixture(scope="module")
def on_port(folder: Path) -> Iterator[PortalProcess]:
    with portal(folder, on_port=True) as one:
        yield one


class Elements(HTMLParser):
    """The elements of a page, and all attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


# Another user of the machine


def test_only_the_user_can_connect_to_the_socket(running: PortalProcess) -> None:
    assert running.path is not None
    assert stat.S_IMODE(running.path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user needs root")
def test_another_user_cannot_connect_to_the_socket(running: PortalProcess, folder: Path) -> None:
    for above in (folder, *folder.parents):
        if "pytest" in above.name or above == folder:
            above.chmod(0o711)  # so that only the socket's own mode refuses
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(running.path))
            os.write(write_end, b"connected")
        except PermissionError:
            os.write(write_end, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read_end, 100) == b"refused"
    os.close(read_end)
    os.close(write_end)


def test_without_the_link_a_port_shows_nothing(on_port: PortalProcess) -> None:
    for address in ("/", "/runs", f"/run?id={RUN}", "/style.css", "/events", "/file?id=x&name=y"):
        answer = on_port.ask(address)
        assert answer.status == 403
        assert answer.text.startswith("This portal opens only with its link.")
    assert on_port.ask("/?token=").status == 403
    assert on_port.ask("/?token=wrong").status == 403
    assert on_port.ask("/", Cookie="teho_00000000=wrong").status == 403
    assert on_port.ask("/", Cookie="=;;\x01,").status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer null"},
        {"Authorization": "Basic cm9vdDo="},
        {"X_Forwarded_For": "127.0.0.1"},
        {"X_Forwarded_User": "root"},
        {"X_Original_URL": "/style.css"},
        {"X_HTTP_Method_Override": "OPTIONS"},
        {"Cookie": "teho_"},
        {"Cookie": "token="},
        {"Origin": "null"},
    ],
)
def test_no_way_around_the_link(on_port: PortalProcess, headers: dict[str, str]) -> None:
    for address in (
        "/runs",
        "//runs",
        "/./runs",
        "/%72uns",
        "/style.css/../runs",
        "/events",
        "/runs?token=&token=",
        "/runs?token[]=x",
        "/runs?TOKEN=x",
        "/runs?token=%00",
        "/runs?token=" + "a" * 43,
    ):
        for method in ("GET", "HEAD"):
            answer = on_port.ask(address, method, **headers)
            assert answer.status == 403, address
            assert "set-cookie" not in answer.headers


@root
def test_another_real_user_gets_nothing_from_a_port(on_port: PortalProcess) -> None:
    tokens = [link.partition("token=")[2] for link in on_port.links]

    port = on_port.port

    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", port), 20) as raw:
            raw.sendall(b"GET /runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return raw.makefile("rb").read()

    answer = as_user(EVE, [], ask)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"This portal opens only with its link." in answer
    commands = as_user(EVE, [], command_lines)
    assert any(" portal --port 0" in one for one in commands), "this user sees the process"
    assert not any(token in one for one in commands for token in tokens)
    environment_file = Path(f"/proc/{on_port.process.pid}/environ")
    with pytest.raises(PermissionError):
        as_user(EVE, [], environment_file.read_bytes)


def command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace").replace("\0", " "))
    return found


def test_a_link_becomes_a_cookie_and_works_once(on_port: PortalProcess) -> None:
    link = on_port.links[-1]
    address = "/" + link.rpartition("/")[2]
    answer = on_port.ask(address)
    assert (answer.status, answer.headers["location"]) == (303, "?")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    assert link.partition("token=")[2] not in cookie
    pair = cookie.partition(";")[0]
    page = on_port.ask("/runs", Cookie=f"other=1; {pair}")
    assert page.status == 200
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "token" not in page.text
    # Whoever finds the link in a history or a chat is too late, and the user sees a new link.
    assert on_port.ask(address).status == 403
    assert on_port.links[-1] != link


def test_the_log_has_no_requests(on_port: PortalProcess) -> None:
    on_port.ask("/?token=guessed-by-an-attacker")
    assert "guessed-by-an-attacker" not in on_port.said
    assert "GET" not in on_port.said


# A hostile page in the same browser


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8750", "localhost.evil.example", "127.0.0.1.evil", ""]
)
def test_a_name_that_was_bound_to_this_address_is_refused(
    running: PortalProcess, host: str
) -> None:
    assert running.ask("/", Host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8750", "127.0.0.1:1", "[::1]:8750"])
def test_the_loopback_is_the_portal_s_own_name(running: PortalProcess, host: str) -> None:
    assert running.ask("/", Host=host).status == 200


def test_another_name_can_be_allowed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "home", tmp_path / "home")
    with portal(tmp_path, "--allow-host", "Ondemand.example.org") as one:
        assert one.ask("/", Host="ondemand.example.org").status == 200
        assert one.ask("/", Host="evil.example.org").status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_request_can_write(running: PortalProcess, method: str) -> None:
    answer = running.ask("/runs", method, "a=1" if method in {"POST", "PUT"} else None)
    assert answer.status == 405
    assert "access-control-allow-origin" not in answer.headers


def test_a_request_with_data_is_refused(running: PortalProcess) -> None:
    assert running.ask("/runs", "GET", "a=1").status == 413


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_cannot_load_anything(running: PortalProcess, site: str) -> None:
    for mode, dest in (("cors", "empty"), ("no-cors", "script"), ("navigate", "iframe")):
        answer = running.ask(
            "/runs", Sec_Fetch_Site=site, Sec_Fetch_Mode=mode, Sec_Fetch_Dest=dest,
            Origin="https://evil.example",
        )  # fmt: skip
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    link = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert running.ask("/runs", **link).status == 200


def test_every_answer_has_the_headers_that_protect_it(running: PortalProcess) -> None:
    for address in ("/", "/runs", f"/run?id={RUN}", "/nothing", "/style.css", "/runs?page=0",
                    f"/file?id={RUN}&name=run.json"):  # fmt: skip
        headers = running.ask(address).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
    assert running.ask("/").headers["cache-control"] == "no-store"


def test_there_is_no_inline_script_or_style(running: PortalProcess) -> None:
    for address in ("/", "/runs", f"/run?id={RUN}", "/runs?by=program", "/usage", "/clusters"):
        for tag, attributes in Elements(running.ask(address).text).found:
            assert tag != "style"
            assert "style" not in attributes
            assert not any(name.startswith("on") for name in attributes)
            if tag == "script":
                assert "src" in attributes or attributes["type"] == "application/json"


# A hostile recording


@pytest.mark.parametrize(
    "address",
    ["/", "/runs", "/runs?by=program", "/usage?by=command", "/usage?by=cluster", "/usage?by=name",
     "/run?id=20261101-090000-made-0001", "/runs?text=%3Cscript%3Ealert(1)%3C/script%3E",
     "/runs?kind=%22%3E%3Cscript%3E", "/run?id=%3Cscript%3Ealert(1)%3C/script%3E",
     "/cluster?name=%3Cscript%3Ealert(1)%3C/script%3E", "/usage?by=%3Cscript%3E",
     "/usage?since=%3Cscript%3E", "/plan?gpus=%3Cscript%3Ealert(1)%3C/script%3E",
     "/%3Cscript%3Ealert(1)%3C/script%3E"],
)  # fmt: skip
def test_text_from_outside_stays_text(running: PortalProcess, address: str) -> None:
    page = running.ask(address).text
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    for tag, attributes in Elements(page).found:
        assert tag not in {"img", "b"} or attributes == {}
        assert "onerror" not in attributes


@pytest.mark.parametrize(
    "address",
    ["/runs?sort=began_s;drop+table+run", "/runs?sort=(select+1)", "/runs?order=desc;--",
     "/runs?user='+or+1=1+--", "/runs?text=%25'+or+'1'='1", "/runs?kind='+union+select+1",
     "/runs?gpu=%22", "/runs?since=now", "/runs?page=1+union", "/usage?by=runs;drop+table+run",
     "/usage?of=x'"],
)  # fmt: skip
def test_an_address_is_never_a_part_of_a_query(running: PortalProcess, address: str) -> None:
    answer = running.ask(address)
    assert answer.status in {200, 400}
    for hostile in ("user='+or+1=1+--", "text=%25'+or+'1'='1", "kind='+union"):
        if hostile in address:
            assert "No run matches." in answer.text
    assert 'value="20261101-100000-made-0002"' in running.ask("/runs").text


@pytest.mark.parametrize(
    "address",
    ["/run?id=../../secret.txt", "/run?id=..%2f..%2fsecret.txt", f"/run?id={RUN}/../{RUN}",
     f"/file?id={RUN}&name=../run.json", f"/file?id={RUN}&name=..%2f..%2f..%2fsecret.txt",
     f"/file?id={RUN}&name=/etc/passwd", f"/file?id={RUN}&name=run.json%00.parquet",
     f"/file?id={RUN}&name=", "/file?id=..&name=secret.txt", "/../../secret.txt",
     "/..%2f..%2fsecret.txt", "/style.css/../../secret.txt", f"/events?id=../{RUN}"],
)  # fmt: skip
def test_no_address_leads_out_of_the_recordings(running: PortalProcess, address: str) -> None:
    answer = running.ask(address)
    assert answer.status == 404
    assert "secret of the machine" not in answer.text
    assert "root:" not in answer.text


def test_a_link_in_a_recording_is_not_followed(running: PortalProcess, folder: Path) -> None:
    directory = folder / "home" / "runs" / "20261123-094501-link-aaaa"
    shutil.copytree(EXAMPLE, directory)
    (samples,) = (directory / "samples").glob("*.parquet")
    samples.unlink()
    samples.symlink_to(folder / "secret.txt")
    answer = running.ask(f"/file?id={directory.name}&name={samples.name}")
    assert answer.status == 404
    assert samples.name not in running.ask(f"/run?id={directory.name}").text.split("Files")[-1]
    description = directory / "run.json"
    description.rename(directory / "kept.json")
    description.symlink_to(directory / "kept.json")
    assert running.ask(f"/file?id={directory.name}&name=run.json").status == 404
    shutil.rmtree(directory)


def test_a_file_that_is_not_what_it_seems_ends_only_its_own_page(
    running: PortalProcess, folder: Path
) -> None:
    directory = folder / "home" / "runs" / "20261123-094502-bomb-aaaa"
    shutil.copytree(EXAMPLE, directory)
    (samples,) = (directory / "samples").glob("*.parquet")
    write_bomb(samples)
    assert samples.stat().st_size < 1_000_000
    answer = running.ask(f"/run?id={directory.name}")
    assert answer.status == 500
    assert "the samples of this run need too much memory" in answer.text
    assert running.ask("/").status == 200
    memory = Path(f"/proc/{running.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
    assert int(memory) < 300_000, "the portal itself has not read the samples"
    shutil.rmtree(directory)


def write_bomb(path: Path) -> None:
    """Write a small Parquet file that is very large in memory: one long text in every row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = table.take(pa.array([0] * 20_000))
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * 1_000_000])
    place = rows.column_names.index("device")
    # Without Arrow's own schema, the reader does not know that the texts are all the same.
    pq.write_table(rows.set_column(place, "device", long), path, store_schema=False)


@root
def test_a_run_that_another_user_shares_is_shown_only_while_it_is_sound(tmp_path: Path) -> None:
    for above in (tmp_path, *tmp_path.parents):
        if "pytest" in str(above):
            above.chmod(0o711)
    project, theirs = tmp_path / "project", tmp_path / "theirs"
    project.mkdir()
    project.chmod(0o1777)
    run = theirs / "runs" / RUN
    shutil.copytree(EXAMPLE, run)
    for path in (theirs, *theirs.rglob("*")):
        os.chown(path, ALICE, ALICE)
    copy = as_user(ALICE, [0], lambda: share(run, project, "root"))
    (tmp_path / "private.parquet").write_bytes(b"PAR1 of root")
    with portal(tmp_path, env={"TEHO_SHARED": str(project)}) as one:
        page = one.ask("/runs?of=group").text
        assert "games" in page
        address = f"run?id={RUN}&by=games"
        assert "GPU 3 on g1 was never used." in one.ask(f"/{address}").text
        assert one.ask(f"/file?id={RUN}&by=games&name=g1.parquet").body.startswith(b"PAR1")
        assert one.ask(f"/run?id={RUN}").status == 404, "it is not an own run"
        assert one.ask(f"/run?id={RUN}&by=root").status == 404

        def replace() -> None:
            (samples,) = (copy / "samples").iterdir()
            samples.unlink()
            samples.symlink_to(tmp_path / "private.parquet")

        as_user(ALICE, [0], replace)
        for hostile in (f"/{address}", f"/file?id={RUN}&by=games&name=g1.parquet"):
            answer = one.ask(hostile)
            assert answer.status == 404
            assert b"PAR1 of root" not in answer.body


def test_requests_have_a_largest_size(running: PortalProcess) -> None:
    assert running.ask("/runs?text=" + "a" * 5000).status == 414
    with _raw(running) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n")
        answer = raw.recv(100)
    assert answer.split()[1] in {b"400", b"431"}
    assert running.ask("/").status == 200


def test_a_request_that_does_not_end_is_cut_off(running: PortalProcess) -> None:
    requests = {
        "nothing": b"",
        "half of the headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        "half of the data": b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
    }
    open_ = {name: _raw(running) for name in requests}
    # A page that shows live values stays connected.
    live = _raw(running)
    live.sendall(b"GET /events?shown= HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for name, head in requests.items():
        open_[name].sendall(head)
    began_s = time.monotonic()
    while open_ and time.monotonic() - began_s < 25:
        time.sleep(0.5)
        for name, raw in list(open_.items()):
            if _is_closed(raw, b"" if name == "nothing" else b"x"):
                raw.close()
                del open_[name]
    assert list(open_) == []
    assert time.monotonic() - began_s > 5, "a slow network needs some time"
    live.settimeout(5)
    assert live.recv(10_000)
    live.recv(10_000)
    assert not _is_closed(live, b"")
    live.close()


def _is_closed(raw: socket.socket, more: bytes) -> bool:
    """Send a little more, and return whether the other side has closed the connection."""
    raw.setblocking(False)
    try:
        if more:
            raw.sendall(more)
        while True:
            if not raw.recv(65_536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def _raw(running: PortalProcess) -> socket.socket:
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(20)
    raw.connect(str(running.path))
    return raw
