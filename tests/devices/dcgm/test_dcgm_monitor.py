"""DCGM's figures from `dcgmi dmon`, over a stand-in that prints as the true one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dcgm_stub import FIRST, SECOND, SLICES, Engine, failed, figures, gpu, rows, wait_for

from teho.devices.dcgm import monitor as dcgm_monitor
from teho.devices.dcgm import page as dcgm_page
from teho.devices.dcgm.fields import METRICS
from teho.errors import DeviceError
from teho.model.missing import Missing, Reason


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    # Nothing answers at the usual place.
    monkeypatch.setattr(dcgm_page, "_DEFAULT", "127.0.0.1:9/metrics")
    return Engine(tmp_path)


def test_figures_of_dcgmi_go_by_uuid(engine, opened) -> None:
    # Naive: DCGM's GPU 0 is taken for ours.
    numbers = {"1002": ["0.512"], "1004": ["0.250"], "1010": ["123456789"]}
    dcgm = opened(FIRST, SECOND, **engine.has(rows=rows(GPU_1=numbers, GPU_0={"1002": ["0.1"]})))
    readings = wait_for(dcgm, lambda found: all(found.values()))
    integer = readings["GPU-aaaa"].pop("gpu_integer_percent")
    assert isinstance(integer, Missing)
    assert readings["GPU-aaaa"] == dict.fromkeys(METRICS[:-1], 0.0) | {
        "gpu_sm_active_percent": pytest.approx(51.2),
        "gpu_tensor_percent": 25.0,
        "gpu_pcie_receive_bytes_per_s": 123456789.0,
    }
    assert readings["GPU-bbbb"]["gpu_sm_active_percent"] == pytest.approx(10.0)
    assert "dcgmi" in dcgm.notes[0]


def test_only_our_gpus_are_watched(engine, opened) -> None:
    dcgm = opened(FIRST, **engine.has())
    assert set(dcgm.read()) == {"GPU-aaaa"}
    figures(dcgm)
    command = engine.calls.read_text().splitlines()[-1]
    numbers = ",".join(str(number) for number in range(1002, 1013))
    assert command == f"dmon -e {numbers} -i 1 -d 1000"


def test_a_reading_is_the_mean_of_the_rows_since_the_last(engine, opened) -> None:
    texts = ["0.000", "0.200", "0.400", "0.600"]
    scenario = engine.has(rows=rows(GPU_1={"1002": texts}), quiet_after=4, period_s=0.01)
    dcgm = opened(FIRST, **scenario)
    time.sleep(1.0)
    assert dcgm.read()["GPU-aaaa"]["gpu_sm_active_percent"] == pytest.approx(30.0)
    # Between two rows it is the newest one, not the mean again.
    assert dcgm.read()["GPU-aaaa"]["gpu_sm_active_percent"] == pytest.approx(60.0)


def test_mig_instances_by_their_entity(engine, opened) -> None:
    values = rows(GPU_I_7={"1002": ["0.800"]}, GPU_I_2={"1002": ["0.300"]})
    instances = [[0, 3, 7], [0, 4, 2], [1, 3, 5]]
    numbers = {"MIG-0000": 3, "MIG-1111": 4}
    scenario = engine.has(rows=values, instances=instances)
    dcgm = opened(FIRST, *SLICES, instances=numbers, **scenario)
    readings = wait_for(dcgm, lambda found: all(found.values()))
    assert readings["MIG-0000"]["gpu_sm_active_percent"] == pytest.approx(80.0)
    assert readings["MIG-1111"]["gpu_sm_active_percent"] == pytest.approx(30.0)
    assert engine.calls.read_text().splitlines()[-1].endswith("-i 1,i:7,i:2 -d 1000")


def test_na_is_awaited_and_then_believed(engine, opened, monkeypatch) -> None:
    # Naive: the N/A of the first rows, before the hardware has counted, is for good.
    monkeypatch.setattr(dcgm_monitor, "_SILENT_S", 2.0)
    values = rows(GPU_1={"1002": ["N/A", "N/A", "0.500"], "1011": ["N/A"]})
    dcgm = opened(FIRST, **engine.has(rows=values))
    first = figures(dcgm)
    assert "gpu_nvlink_send_bytes_per_s" not in first
    wait_for(dcgm, lambda found: found["GPU-aaaa"].get("gpu_sm_active_percent") == 50.0)
    later = wait_for(dcgm, lambda found: "gpu_nvlink_send_bytes_per_s" in found["GPU-aaaa"])
    value = later["GPU-aaaa"]["gpu_nvlink_send_bytes_per_s"]
    assert isinstance(value, Missing)
    assert value.reason is Reason.UNSUPPORTED


def test_fields_that_do_not_run_together_are_left_out(engine, opened) -> None:
    together = [str(number) for number in range(1002, 1013) if number not in {1006, 1008}]
    scenario = engine.has(one_pass=together, rows=rows(GPU_1={"1007": ["0.400"]}))
    dcgm = opened(FIRST, **scenario)
    # Nothing is known while it starts anew.
    readings = wait_for(dcgm, lambda found: "gpu_fp32_percent" in found["GPU-aaaa"])["GPU-aaaa"]
    assert readings["gpu_fp32_percent"] == 40.0
    for metric in ("gpu_fp64_percent", "gpu_fp16_percent"):
        value = readings[metric]
        assert isinstance(value, Missing)
        assert "together" in value.detail


def test_nothing_runs_in_one_pass(engine, opened) -> None:
    dcgm = opened(FIRST, **engine.has(one_pass=[]))
    wait_for(dcgm, lambda found: failed(found, "cannot be collected in a single pass"))
    assert engine.calls.read_text().count("dmon") == 2


def test_a_host_engine_that_does_not_run_is_named(engine, opened) -> None:
    with pytest.raises(DeviceError, match=r"`dcgmi discovery -l` fails: .*host engine"):
        opened(FIRST, **engine.has(no_engine=True))


def test_a_host_engine_that_knows_other_gpus(engine, opened) -> None:
    with pytest.raises(DeviceError, match="does not know the UUIDs"):
        opened(gpu("GPU-cccc"), **engine.has())


def test_a_dcgmi_that_hangs_at_the_start_is_given_up(engine, opened, monkeypatch) -> None:
    monkeypatch.setattr(dcgm_monitor, "_ASK_S", 0.5)
    with pytest.raises(DeviceError, match="did not answer within"):
        opened(FIRST, **engine.has(hang="discovery -l"))


def test_a_host_engine_that_dies_leaves_its_words(engine, opened) -> None:
    dcgm = opened(FIRST, SECOND, **engine.has(dies_after=3))
    readings = wait_for(dcgm, lambda found: failed(found, "The connection is not valid"))
    assert set(readings) == {"GPU-aaaa", "GPU-bbbb"}
    assert set(readings["GPU-aaaa"]) == set(METRICS)


def test_a_dcgmi_that_falls_silent(engine, opened, monkeypatch) -> None:
    # Naive: the last row stays for ever.
    monkeypatch.setattr(dcgm_monitor, "_SILENT_S", 0.5)
    dcgm = opened(FIRST, **engine.has(quiet_after=3))
    figures(dcgm)
    wait_for(dcgm, lambda found: failed(found, "has printed no row"))


def test_a_gpu_without_rows(engine, opened, monkeypatch) -> None:
    monkeypatch.setattr(dcgm_monitor, "_SILENT_S", 2.0)
    dcgm = opened(FIRST, SECOND, **engine.has(silent=["GPU 0"]))
    figures(dcgm)
    readings = wait_for(
        dcgm, lambda found: failed({"GPU-bbbb": found["GPU-bbbb"]}, "prints no row")
    )
    assert readings["GPU-aaaa"]["gpu_sm_active_percent"] == 0.0


def test_a_row_that_lacks_a_column_is_not_guessed_at(engine, opened) -> None:
    # Naive: each figure behind the gap becomes its neighbour's.
    scenario = engine.has(drop={"GPU 1": ["1003"]}, rows=rows(GPU_1={"1004": ["0.9"]}))
    readings = figures(opened(FIRST, **scenario))
    del readings["gpu_integer_percent"]
    assert failed({"GPU-aaaa": readings}, "10 columns")


def test_a_number_that_was_cut_short_is_none(engine, opened) -> None:
    dcgm = opened(FIRST, **engine.has(rows=rows(GPU_1={"1010": ["123456789012"]})))
    value = figures(dcgm)["gpu_pcie_receive_bytes_per_s"]
    assert isinstance(value, Missing)
    assert "12345678..." in value.detail


def test_without_either_way_both_reasons_are_given(opened, engine) -> None:
    with pytest.raises(DeviceError) as caught:
        opened(FIRST, PATH="/nonexistent")
    assert "127.0.0.1:9 cannot be read" in caught.value.found
    assert "`dcgmi` is not on the PATH" in caught.value.found
    assert "DCGM host engine" in caught.value.next_step


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids_of(engine: Engine) -> list[int]:
    """Return the processes of this scenario's `dcgmi dmon`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            b"dmon" in words
            and f"TEHO_STUB_DCGM={engine.env['TEHO_STUB_DCGM']}".encode() in environment
        ):
            found.append(int(folder.name))
    return found


def test_it_ends_with_its_owner(engine, opened) -> None:
    dcgm = opened(FIRST, **engine.has(quiet_after=1))
    figures(dcgm)
    (pid,) = pids_of(engine)
    assert os.getsid(pid) == pid, "Ctrl-C does not reach it"
    dcgm.close()
    assert not Path(f"/proc/{pid}").exists(), "ended, and no zombie"


def test_it_ends_when_its_owner_is_killed(engine) -> None:
    # Naive: a child inherits that SIGPIPE is blocked and ignored, and prints for ever.
    program = (
        "import signal, sys, time\n"
        "from teho.devices.dcgm.client import Dcgm\n"
        "from teho.model.device import Device\n"
        "import os\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "gpu = Device(id='GPU-aaaa', index=0, name='A100', vendor='nvidia')\n"
        "dcgm = Dcgm([gpu], {**os.environ, 'DCGM_EXPORTER_URL': '127.0.0.1:9'}, {})\n"
        "while not dcgm.read()[gpu.id]: time.sleep(0.01)\n"
        "print('reads', flush=True)\n"
        "time.sleep(60)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | engine.has(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "reads\n"
        (pid,) = pids_of(engine)
        owner.send_signal(signal.SIGKILL)
        deadline_s = time.monotonic() + 10
        while is_alive(pid):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
    finally:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
