"""Two nodes on one machine, with a network, a host name, processes and a disk of their own.

Each is a process that owns Linux namespaces, and the two are joined by a pair of virtual
Ethernet devices. The machine's own interfaces, names and files are untouched: what is made or
mounted is seen from inside alone, and goes away with the process that owns it, and so do all
processes there. It ends when its pipe closes, so that nothing outlives a test that is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stopped import Stopped

__all__ = ["NodePair", "why_no_nodes"]

UNSHARE = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child")
ADDRESSES = ("10.0.77.1", "10.0.77.2")
ETHERNET = "eth0"

# Number 1 of its node's processes: bash, because it takes up those whose parents have ended.
# Its number outside is to be had from the machine's /proc alone, before the node's own.
NODE = """set -e
read -r outside _ < /proc/self/stat
mount -t proc proc /proc
mount --bind "$HOSTS" /etc/hosts
mount -t tmpfs tmpfs "$DISK"
hostname "$NAME"
ip link set lo up
echo "$outside"
read -r _ || exit 0
"""


def why_no_nodes() -> str:
    """Return why no nodes can be had here; empty where they can."""
    missing = [name for name in ("ip", "mount", "nsenter", "unshare") if not shutil.which(name)]
    if missing:
        return f"no {', '.join(missing)} here, to make nodes with"
    trial = "mount -t proc proc /proc && ip link add eth0 type veth peer name eth1"
    tried = subprocess.run(
        [*UNSHARE, "sh", "-c", trial],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join(tried.stderr.split())
    return f"nodes need root and network namespaces: {said}" if tried.returncode else ""


class NodePair(Stopped):
    """Two nodes, as a context manager.

    Args:
        names: what they are called, by their `hostname` and by each other.
        directory: an empty one, for what they share and where each one's disk is mounted.
    """

    def __init__(self, names: tuple[str, str], directory: Path) -> None:
        self._addresses = dict(zip(names, ADDRESSES, strict=True))
        self.disk = directory / "disk"
        """Where either node has an empty file system that the other does not see."""
        self._hosts = directory / "hosts"
        self._owners: dict[str, subprocess.Popen[str]] = {}
        self._pids: dict[str, str] = {}

    def __enter__(self) -> NodePair:  # noqa: PYI034 - Self is not in Python 3.10
        try:
            self.disk.mkdir(parents=True)
            # The short names too, after the full ones, as in most sites' files.
            rows = ["127.0.0.1 localhost"]
            for name, address in self._addresses.items():
                rows.append(f"{address} {name} {name.partition('.')[0]}")
            self._hosts.write_text("\n".join(rows) + "\n")
            for name in self._addresses:
                self._start(name)
            self._join()
        except BaseException:
            self.stop()
            raise
        return self

    def inside(self, name: str, argv: Sequence[str], cwd: Path) -> list[str]:
        """Return the command that runs another one on a node."""
        enter = ["nsenter", "--target", self._pids[name], "--net", "--uts", "--mount", "--pid"]
        return [*enter, "env", f"--chdir={cwd}", *argv]

    def stop(self) -> None:
        """End all that runs on the nodes; to be called twice does no harm."""
        for owner in self._owners.values():
            assert owner.stdin is not None
            assert owner.stdout is not None
            owner.stdin.close()
            owner.stdout.close()
        for owner in self._owners.values():
            owner.wait()
        self._owners.clear()

    def _start(self, name: str) -> None:
        owner = self._owners[name] = subprocess.Popen(
            [*UNSHARE, "bash", "-c", NODE],
            env={**os.environ, "NAME": name, "HOSTS": str(self._hosts), "DISK": str(self.disk)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert owner.stdout is not None
        said = owner.stdout.readline().strip()
        if not said.isdigit():
            raise RuntimeError(f"{name} does not start: {said}{owner.stdout.read()}")
        self._pids[name] = said

    def _join(self) -> None:
        """Join them with a pair of devices; a third node would need a bridge between them."""
        first, second = self._pids.values()
        # Not in its process namespace: there the other's number is not known.
        device = ("type", "veth", "peer", "name", ETHERNET, "netns", second)
        _must("nsenter", "--target", first, "--net", "ip", "link", "add", ETHERNET, *device)
        for name, address in self._addresses.items():
            for words in (
                ("address", "add", f"{address}/24", "dev", ETHERNET),
                ("link", "set", ETHERNET, "up"),
            ):
                _must(*self.inside(name, ("ip", *words), Path("/")))


def _must(*argv: str) -> None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr}")
