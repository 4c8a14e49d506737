"""Bytes that the node's network interfaces and InfiniBand ports received and sent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from teho.devices.host.part import FilePart, Traffic
from teho.devices.procfile import ProcFile, read_text
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["Network"]

# ARPHRD_INFINIBAND in the kernel's if_arp.h.
_IP_OVER_INFINIBAND = "32"
# The ports count in lanes of 32 bits (InfiniBand specification, PortRcvData and PortXmitData).
_BYTES_PER_WORD = 4
_PORT_FILES = ("port_rcv_data", "port_xmit_data")


class Network(FilePart):
    """The node's hardware interfaces, and its InfiniBand and RoCE ports.

    Every byte is counted once, at the hardware:

    - Traffic of bonds, bridges, VLANs and container interfaces also passes a hardware interface.
      They count only if no hardware is visible (in a container).
    - An InfiniBand port counts all its traffic. If it can be read, the IP-over-InfiniBand
      interfaces (`ib0`) are left out.
    - A RoCE port counts only RDMA, and its Ethernet interface the rest. Both count.

    Attributes:
        notes: InfiniBand ports that could not be read.
    """

    metrics: tuple[str, ...] = ("net_receive_bytes", "net_send_bytes")

    def __init__(self, root: Path) -> None:
        super().__init__(root / "proc/net/dev")
        self._traffic = Traffic(self.metrics)
        self.notes: tuple[str, ...] = ()
        self._ports: dict[str, list[ProcFile]] = {}
        has_infiniband = self._open_ports(root)
        links = sorted((root / "sys/class/net").glob("*"))
        self._skipped = {
            path.name
            for path in links
            if has_infiniband and read_text(path / "type") == _IP_OVER_INFINIBAND
        }
        self._hardware = {path.name for path in links if (path / "device").exists()}

    def values_in(self, data: bytes) -> dict[str, Reading]:
        """Return `net_receive_bytes` and `net_send_bytes`."""
        counters = self._interfaces(data)
        for port, files in self._ports.items():
            counts = _port_bytes(files)
            # A port that cannot be read any more keeps its count.
            if not isinstance(counts, Missing):
                counters[port] = counts
        if not counters:
            why = "this node has no network interface except loopback"
            return self._all(Missing(Reason.ABSENT, why))
        return self._traffic.add(counters)

    def _open_ports(self, root: Path) -> bool:
        """Find the ports that can be read; return whether one of them is InfiniBand, not RoCE."""
        has_infiniband = False
        for port in sorted((root / "sys/class/infiniband").glob("*/ports/*")):
            files = [self._open(port / "counters" / name) for name in _PORT_FILES]
            name = f"{port.parts[-3]} port {port.name}"
            counts = _port_bytes(files)
            if isinstance(counts, Missing):
                self.notes += (f"the traffic of InfiniBand {name} is not counted: {counts.detail}",)
                continue
            self._ports[name] = files
            has_infiniband |= read_text(port / "link_layer") != "Ethernet"
        return has_infiniband

    def _interfaces(self, data: bytes) -> dict[str, tuple[int, int]]:
        counters = {}
        for line in data.splitlines()[2:]:
            name, _, figures = line.decode(errors="replace").partition(":")
            words, name = figures.split(), name.strip()
            counts = name in self._hardware if self._hardware else name != "lo"
            if counts and name not in self._skipped and len(words) > 8:
                counters[name] = (int(words[0]), int(words[8]))
        return counters


def _port_bytes(files: Iterable[ProcFile]) -> tuple[int, int] | Missing:
    """Return the received and the sent bytes of a port."""
    counts = []
    for file in files:
        data = file.read()
        if isinstance(data, Missing):
            return data
        # A virtual port without counters writes `N/A (no PMA)`.
        if not data.strip().isdigit():
            return Missing(Reason.UNSUPPORTED, f"{file.path}: {data[:40].decode(errors='replace')}")
        counts.append(int(data) * _BYTES_PER_WORD)
    return counts[0], counts[1]
