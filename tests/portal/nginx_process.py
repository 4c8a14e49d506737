"""A real nginx, as a proxy in front of a portal."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import wait_for

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  proxy_set_header Host $http_host;
  server {{
    listen 127.0.0.1:{port};
    {locations}
  }}
}}
"""


@contextmanager
def nginx_of(folder: Path, locations: str) -> Iterator[int]:
    """Start an nginx with some locations; yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    assert NGINX
    file = folder / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=folder, port=port, locations=locations))
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(file), "-e", "error.log"])
    try:
        wait_for(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (folder / "error.log").read_text()
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
