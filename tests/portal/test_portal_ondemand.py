"""The app for Open OnDemand: its scripts in the right order, behind a proxy that works alike.

Open OnDemand itself is not used. What it does is written here again, from its documentation: it
fills the templates, sources `before.sh`, starts `script.sh`, sources `after.sh`, and writes the
connection parameters. Its proxy changes `Host`, `Location` and the path of cookies.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nginx_process import NGINX, nginx_of
from portal_process import environment

from made_runs import make_run
from support import TEHO, wait_for

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

APP = Path(__file__).parents[2] / "contrib/ondemand"
NODE = "gpu1"
"""A name without a domain, as `hostname` prints it on many nodes."""
JOB = """\
set -u
find_port() {{ echo {port}; }}
clean_up() {{ echo "cleaned up"; kill "$SCRIPT_PID" 2> /dev/null; exit "$1"; }}
export host port
host={node}
source ./before.sh
./script.sh &
SCRIPT_PID=$!
source ./after.sh
(umask 077; printf '%s\\n' "$host" "$port" "$token" > connection)
wait "$SCRIPT_PID"
"""
CONFIGURATION = """
location ~ ^/rnode/(?<job_host>[^/]+)/(?<job_port>\\d+)(?<rest>/.*)$ {{
  proxy_pass http://127.0.0.1:$job_port$rest$is_args$args;
  proxy_set_header Host $job_host:$job_port;
  # A redirection gets the path of the portal in front of its first slash.
  proxy_redirect ~^([^/?]*)(/.*)$ $1/rnode/$job_host/$job_port$2;
}}
"""


def filled(name: str, **context: str) -> str:
    """Fill a template, as far as this app uses the language of the templates."""
    text = (APP / "template" / name).read_text()

    def kept(match: re.Match[str]) -> str:
        return match[2] if context.get(match[1]) else ""

    text = re.sub(
        r"<% unless context\.(\w+)\.to_s\.empty\? %>(.*?)<% end %>", kept, text, flags=re.DOTALL
    )
    text = re.sub(
        r"<%= context\.(\w+)\.shellescape %>", lambda match: shlex.quote(context[match[1]]), text
    )
    assert "<%" not in text
    return text


@contextmanager
def job(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Start a job of the app."""
    session = folder / "session"
    session.mkdir()
    for name in ("before.sh", "script.sh", "after.sh"):
        path = session / name
        path.write_text(filled(f"{name}.erb", teho_home=str(folder / "home"), teho_shared=""))
        path.chmod(0o700)
    tools = folder / "bin"
    tools.mkdir()
    (tools / "teho").write_text(f'#!/bin/sh\nexec {shlex.join(TEHO)} "$@"\n')
    (tools / "teho").chmod(0o755)
    env = {**os.environ, **environment(folder), "PATH": f"{tools}:{os.environ['PATH']}"}
    env.pop("TEHO_HOME")
    process = subprocess.Popen(
        ["bash", "-c", JOB.format(port=port, node=NODE)], cwd=session, env=env, text=True,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        if process.stdout:
            process.stdout.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.skipif(NGINX is None, reason="no nginx; tests/debian-packages.sh installs it")
def test_the_link_of_the_app_opens_the_portal(tmp_path: Path) -> None:
    make_run(tmp_path / "home", 1, name="from the job")
    port = free_port()
    with job(tmp_path, port), nginx_of(tmp_path, CONFIGURATION.format()) as proxy:
        connection = tmp_path / "session/connection"
        wait_for(connection.exists, 60)
        wait_for(lambda: connection.read_text().count("\n") == 3)
        assert connection.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "session/portal.log").stat().st_mode & 0o777 == 0o600
        host, found, token = connection.read_text().split()
        assert (host, found) == (NODE, str(port))
        view = (APP / "view.html.erb").read_text()
        (link,) = re.findall(r'href="([^"]*)"', view)
        for name, value in (("host", host), ("port", found), ("token", token)):
            link = link.replace(f"<%= {name} %>", value)
        opened, _ = get(proxy, link)
        assert opened.status == 303
        cookie = opened.headers["set-cookie"].partition(";")[0]
        # A browser resolves the new address against the old one.
        base = link.partition("?")[0]
        assert opened.headers["location"] == "?"
        page, text = get(proxy, base + "?", Cookie=cookie)
        assert page.status == 200
        assert "from the job" in text
        assert get(proxy, base + "runs", Cookie=cookie)[0].status == 200
        assert get(proxy, base + "runs")[0].status == 403


def get(port: int, address: str, **headers: str) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", address, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_a_portal_that_does_not_start_ends_the_job(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with job(tmp_path, int(taken.getsockname()[1])) as process:
            said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "The portal did not start:" in said
    assert "a free port" in said
    assert not (tmp_path / "session/connection").exists()


def test_the_parts_of_the_app_name_each_other() -> None:
    attributes, _, form = (APP / "form.yml").read_text().partition("\nform:\n")
    fields = set(re.findall(r"^  - (\w+)$", form, re.MULTILINE))
    described = set(re.findall(r"^  (\w+):", attributes, re.MULTILINE))
    assert described - {"bc_num_slots"} <= fields
    scripts = "".join(path.read_text() for path in (APP / "template").iterdir())
    assert set(re.findall(r"context\.(\w+)", scripts)) <= fields
    shown = set(re.findall(r"<%= (\w+) %>", (APP / "view.html.erb").read_text()))
    parameters = set(
        re.findall(r"^    - (\w+)$", (APP / "submit.yml.erb").read_text(), re.MULTILINE)
    )
    assert shown == parameters | {"host", "port"}
