"""Files kept open, sums of counters, disks, network file systems, network."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.proc_tree import plant
from teho.devices import procfile
from teho.devices.host.disks import Disks
from teho.devices.host.netfs import NetworkFileSystems
from teho.devices.host.network import Network
from teho.devices.host.part import Traffic
from teho.devices.procfile import ProcFile, missing_because
from teho.model.missing import Reason

# --- files and sums -----------------------------------------------------------------------


def test_a_file_is_read_each_time_and_opened_again(tmp_path: Path):
    path = tmp_path / "file"
    file = ProcFile(path)
    assert file.read().reason is Reason.ABSENT
    path.write_bytes(b"1" * 200_000)
    assert len(file.read()) == 200_000
    path.write_bytes(b"2")
    assert file.read() == b"2"
    file.close()
    file.close()
    assert file.read() == b"2"
    file.close()


def test_a_kernel_file_of_many_pages_reads_whole():
    file = ProcFile(Path("/proc/self/maps"))
    assert len(file.read().splitlines()) > 20
    assert file.read().endswith(b"\n")
    file.close()


def test_a_file_that_fails_when_read_is_missing(tmp_path: Path, monkeypatch):
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "file").write_text("x")
    file = ProcFile(tmp_path / "file")
    monkeypatch.setattr(procfile.os, "pread", fail)
    assert file.read().reason is Reason.FAILED


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errno.EACCES, Reason.FORBIDDEN),
        (errno.ENOENT, Reason.ABSENT),
        (errno.EOPNOTSUPP, Reason.UNSUPPORTED),
        (errno.EMFILE, Reason.FAILED),
    ],
)
def test_reasons(error, reason):
    missing = missing_because(OSError(error, "x"), "/proc/x")
    assert missing.reason is reason
    assert missing.detail == f"/proc/x: {os.strerror(error)}"


def test_a_sum_survives_resets_and_departures():
    traffic = Traffic(("in", "out"))
    assert traffic.add({"a": (10, 1), "b": (5, 0)}) == {"in": 15, "out": 1}
    assert traffic.add({"a": (12, 1)}) == {"in": 17, "out": 1}
    # a's first counter began anew: 3 more; b's went on: 1 more
    assert traffic.add({"a": (3, 4), "b": (6, 0)}) == {"in": 21, "out": 4}
    assert traffic.add({}) == {"in": 21, "out": 4}


counts = st.tuples(st.integers(0, 2**64), st.integers(0, 2**64))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), counts), max_size=8))
def test_a_sum_never_falls(history):
    traffic = Traffic(("in", "out"))
    sums = [traffic.add(counters) for counters in history]
    for metric in ("in", "out"):
        assert [one[metric] for one in sums] == sorted(one[metric] for one in sums)


# --- disks --------------------------------------------------------------------------------


def disk(read_sectors: int, written_sectors: int) -> str:
    return f"    10  0 {read_sectors} 5 7 0 {written_sectors} 3 0 4 9 0 0 0 0\n"


def test_whole_disks_count_once(tmp_path: Path):
    names = ("sda", "nvme0n1", "loop0", "ram0", "zram0", "dm-0", "md127", "sr0")
    root = plant(tmp_path, {f"sys/block/{name}/stat": disk(2, 4) for name in names})
    plant(root, {"sys/block/bcache0/stat": disk(2, 4), "sys/block/bcache0/slaves/sda": ""})
    plant(root, {"sys/block/sda/slaves/.keep": ""})
    (root / "sys/block/sda/slaves/.keep").unlink()
    disks = Disks(root)
    assert disks.read() == {"disk_read_bytes": 2 * 2 * 512, "disk_write_bytes": 2 * 4 * 512}
    disks.close()


def test_of_a_multipath_disk_the_paths_count(tmp_path: Path):
    files = {"sys/block/nvme0n1/stat": disk(0, 0), "sys/block/nvme0c0n1/stat": disk(8, 8)}
    files["sys/block/nvme1n1/stat"] = disk(1, 1)
    disks = Disks(plant(tmp_path, files))
    assert disks.read()["disk_read_bytes"] == 9 * 512


def test_a_disk_that_is_pulled_out_keeps_what_it_had(tmp_path: Path):
    files = {"sys/block/sda/stat": disk(5, 0), "sys/block/sdb/stat": disk(7, 0)}
    disks = Disks(plant(tmp_path, files))
    assert disks.read()["disk_read_bytes"] == 12 * 512
    disks.close()
    (tmp_path / "sys/block/sdb/stat").unlink()
    plant(tmp_path, {"sys/block/sda/stat": disk(6, 0)})
    assert disks.read()["disk_read_bytes"] == 13 * 512


def test_a_node_without_disks_says_so(tmp_path: Path):
    readings = Disks(tmp_path).read()
    assert {value.reason for value in readings.values()} == {Reason.ABSENT}


# --- network file systems -----------------------------------------------------------------

LOCAL = "device /dev/vda mounted on / with fstype ext4\n"
LUSTRE = "device 10.0.0.1@o2ib:/scratch mounted on /scratch with fstype lustre\n"
LLITE = (
    "snapshot_time             1690000000.000000 secs.nsecs\n"
    "read_bytes                10 samples [bytes] 4096 1048576 {read} 99\n"
    "write_bytes               3 samples [bytes] 1 1048576 {write}\n"
    "open                      7 samples [regs]\n"
)


def nfs(mount_point: str, read: int, written: int, fstype: str = "nfs4") -> str:
    return (
        f"device server:/export mounted on {mount_point} with fstype {fstype} statvers=1.1\n"
        "\topts:\trw,vers=4.2,device=none\n\tage:\t100\n\tevents:\t1 2 3\n"
        f"\tbytes:\t111 222 0 0 {read} {written} 5 6 \n"
        "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\tper-op statistics\n"
        "\t        READ: 1 1 0 9 9 9 9 9 0\n\n"
    )


def mounts(root: Path, stats: str, devices: dict[str, str]) -> Path:
    info = [f"9{i} 1 {dev} / {at} rw - nfs4 x rw" for i, (at, dev) in enumerate(devices.items())]
    return plant(
        root, {"proc/self/mountstats": stats, "proc/self/mountinfo": "\n".join(info) + "\n"}
    )


def values(source: NetworkFileSystems) -> tuple:
    return tuple(source.read().values())


def test_nfs_counts_each_file_system_once(tmp_path: Path):
    stats = LOCAL + nfs("/home", 1000, 2000) + nfs("/my\\040data", 30, 40, "nfs")
    stats += nfs("/bind", 1000, 2000)
    at = {"/": "8:1", "/home": "0:50", "/my\\040data": "0:51", "/bind": "0:50"}
    source = NetworkFileSystems(mounts(tmp_path, stats, at))
    assert values(source) == (1030, 2040)
    # An automounter unmounts one and mounts another.
    stats = LOCAL + nfs("/home", 1500, 2000) + nfs("/new", 7, 8)
    mounts(tmp_path, stats, {"/home": "0:50", "/new": "0:52"})
    assert values(source) == (1537, 2048)
    source.close()


def test_nfs_without_a_mount_table_goes_by_mount_point(tmp_path: Path):
    plant(tmp_path, {"proc/self/mountstats": nfs("/a", 1, 2) + nfs("/b", 3, 4)})
    assert values(NetworkFileSystems(tmp_path)) == (4, 6)


def test_no_network_file_system_is_absent(tmp_path: Path):
    readings = NetworkFileSystems(mounts(tmp_path, LOCAL, {})).read()
    assert {value.reason for value in readings.values()} == {Reason.ABSENT}


def test_a_file_system_without_counters_is_reported(tmp_path: Path):
    stats = LOCAL + "device gpfs0 mounted on /work with fstype gpfs\n"
    missing = NetworkFileSystems(mounts(tmp_path, stats, {})).read()["netfs_read_bytes"]
    assert missing.reason is Reason.UNSUPPORTED
    assert missing.detail.endswith("gpfs")


@pytest.mark.parametrize("where", ["proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite"])
def test_lustre_adds_to_nfs(tmp_path: Path, where: str):
    root = mounts(tmp_path, nfs("/home", 5, 6) + LUSTRE, {"/home": "0:50"})
    source = NetworkFileSystems(root)
    assert source.read()["netfs_read_bytes"].reason is Reason.FORBIDDEN
    plant(root, {f"{where}/scratch-ffff/stats": LLITE.format(read=1000, write=500)})
    assert values(source) == (1005, 506)
    plant(root, {f"{where}/scratch-ffff/stats": "snapshot_time 1 secs\n"})
    assert values(source) == (1005, 506)
    source.close()
    (root / where / "scratch-ffff/stats").unlink()
    assert source.read()["netfs_read_bytes"].reason is Reason.ABSENT


def test_no_mountstats_is_missing(tmp_path: Path):
    assert NetworkFileSystems(tmp_path).read()["netfs_read_bytes"].reason is Reason.ABSENT


# --- network ------------------------------------------------------------------------------

HEADER = "Inter-|   Receive      |  Transmit\n face |bytes packets|bytes packets\n"


def interfaces(root: Path, figures: dict[str, tuple[int, int]]) -> Path:
    lines = [f"{name:>6}: {r} 1 0 0 0 0 0 0 {s} 1 0 0 0 0 0 0" for name, (r, s) in figures.items()]
    return plant(root, {"proc/net/dev": HEADER + "\n".join(lines) + "\n"})


def hardware(root: Path, kinds: dict[str, str], *, real: bool = True) -> Path:
    for name, kind in kinds.items():
        files = {f"sys/class/net/{name}/type": kind + "\n"}
        plant(root, files | ({f"sys/class/net/{name}/device/vendor": ""} if real else {}))
    return root


def port(root: Path, name: str, layer: str, received: str, sent: str) -> Path:
    base = f"sys/class/infiniband/{name}/ports/1"
    counters = {"port_rcv_data": received, "port_xmit_data": sent}
    files = {f"{base}/counters/{key}": text + "\n" for key, text in counters.items()}
    return plant(root, {**files, f"{base}/link_layer": layer + "\n"})


def test_bonds_bridges_and_loopback_are_not_added_to_hardware(tmp_path: Path):
    figures = {"lo": (1, 1), "eth0": (10, 20), "eth1": (5, 6), "bond0": (15, 26), "br0": (9, 9)}
    hardware(tmp_path, {"eth0": "1", "eth1": "1"})
    hardware(tmp_path, {"lo": "772", "bond0": "1", "br0": "1"}, real=False)
    assert Network(interfaces(tmp_path, figures)).read() == {
        "net_receive_bytes": 15,
        "net_send_bytes": 26,
    }


def test_in_a_container_what_is_there_counts(tmp_path: Path):
    network = Network(interfaces(tmp_path, {"lo": (1, 1), "eth0": (10, 20)}))
    assert network.read()["net_send_bytes"] == 20
    network.close()


def test_only_loopback_is_no_network(tmp_path: Path):
    readings = Network(interfaces(tmp_path, {"lo": (1, 1)})).read()
    assert {value.reason for value in readings.values()} == {Reason.ABSENT}


def test_an_infiniband_port_counts_instead_of_its_ip_interface(tmp_path: Path):
    hardware(tmp_path, {"eth0": "1", "ib0": "32"})
    port(tmp_path, "mlx5_0", "InfiniBand", "1000", "2000")
    network = Network(interfaces(tmp_path, {"eth0": (10, 20), "ib0": (300, 400)}))
    assert tuple(network.read().values()) == (10 + 4 * 1000, 20 + 4 * 2000)
    assert network.notes == ()
    network.close()


def test_a_roce_port_is_added_to_its_ethernet_interface(tmp_path: Path):
    hardware(tmp_path, {"eth0": "1"})
    port(tmp_path, "mlx5_0", "Ethernet", "100", "200")
    network = Network(interfaces(tmp_path, {"eth0": (10, 20)}))
    assert tuple(network.read().values()) == (410, 820)


def test_a_port_that_does_not_count_leaves_the_ip_interface(tmp_path: Path):
    hardware(tmp_path, {"ib0": "32"})
    port(tmp_path, "mlx5_0", "InfiniBand", "N/A (no PMA)", "N/A (no PMA)")
    network = Network(interfaces(tmp_path, {"ib0": (300, 400)}))
    assert tuple(network.read().values()) == (300, 400)
    assert "mlx5_0 port 1" in network.notes[0]


def test_a_port_that_stops_answering_keeps_what_it_had(tmp_path: Path):
    port(tmp_path, "mlx5_0", "InfiniBand", "1000", "2000")
    network = Network(interfaces(tmp_path, {"lo": (0, 0), "eth0": (1, 1)}))
    assert network.read()["net_receive_bytes"] == 4001
    port(tmp_path, "mlx5_0", "InfiniBand", "N/A", "N/A")
    assert network.read()["net_receive_bytes"] == 4001


def test_no_table_is_missing(tmp_path: Path):
    assert Network(tmp_path).read()["net_send_bytes"].reason is Reason.ABSENT
