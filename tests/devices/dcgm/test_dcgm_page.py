"""DCGM's figures from the page of a dcgm-exporter, which is served here."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from dcgm_stub import FIRST, SECOND, SLICES, Exporter, failed, figures, line, wait_for

from teho.devices.dcgm import page as dcgm_page
from teho.devices.dcgm.fields import FIELDS, METRICS
from teho.errors import DeviceError
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason


def test_the_fields_are_metrics_of_a_gpu() -> None:
    assert all(METRICS_BY_NAME[metric].scope == "gpu" for metric in METRICS)
    assert [field.number for field in FIELDS] == [*range(1002, 1013), 1016]
    for field in FIELDS:
        assert METRICS_BY_NAME[field.metric].unit == ("%" if field.factor == 100 else "bytes/s")
        # What the GPU transmits leaves it: it sends.
        assert ("_TX_" in field.name) == ("send" in field.metric)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    monkeypatch.setattr(dcgm_page, "_EVERY_S", 0.02)
    exporter = Exporter()
    yield exporter
    exporter.close()


def test_figures_of_a_page_go_by_uuid_and_become_percent(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.1"))
    dcgm = opened(SECOND, FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(
        line("SM_ACTIVE", "GPU-aaaa", "0.512", ',container="",pod="a}b\\"c"'),
        line("PIPE_TENSOR_ACTIVE", "GPU-aaaa", "0.25"),
        line("PCIE_RX_BYTES", "GPU-aaaa", "123456789"),
        line("SM_ACTIVE", "GPU-bbbb", "0.75"),
        line("SM_ACTIVE", "GPU-of-another-job", "0.99"),
        line("GR_ENGINE_ACTIVE", "GPU-aaaa", "0.9"),
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aaaa"} 98',
    )
    assert figures(dcgm) == {
        "gpu_sm_active_percent": pytest.approx(51.2),
        "gpu_tensor_percent": 25.0,
        "gpu_pcie_receive_bytes_per_s": 123456789.0,
    }
    assert figures(dcgm, "GPU-bbbb") == {"gpu_sm_active_percent": 75.0}
    assert set(dcgm.read()) == {"GPU-aaaa", "GPU-bbbb"}
    lacking = dcgm.read()["GPU-bbbb"]["gpu_tensor_percent"]
    assert isinstance(lacking, Missing)
    assert "does not have this metric" in lacking.detail
    assert "30 s" in dcgm.notes[0]


def test_what_was_on_the_page_before_the_run_is_not_the_runs(exporter, opened) -> None:
    # Naive: the first page is taken, though its figures are of up to 30 s before.
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.9"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    time.sleep(0.2)
    assert dcgm.read() == {"GPU-aaaa": {}}
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.2"))
    assert figures(dcgm) == {"gpu_sm_active_percent": 20.0}


def test_a_mig_instance_is_not_its_gpu(exporter, opened) -> None:
    # Naive: by UUID alone the last instance's figure becomes the whole GPU's.
    exporter.show(line("SM_ACTIVE", "GPU-bbbb", "0.1"))
    instances = {"MIG-0000": 3, "MIG-1111": 4}
    dcgm = opened(*SLICES, SECOND, instances=instances, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(
        line("SM_ACTIVE", "GPU-bbbb", "0.5"),
        line("SM_ACTIVE", "GPU-bbbb", "0.8", ',GPU_I_PROFILE="3g.20gb",GPU_I_ID="3"'),
        line("SM_ACTIVE", "GPU-bbbb", "0.2", ',GPU_I_PROFILE="3g.20gb",GPU_I_ID="4"'),
    )
    readings = wait_for(dcgm, lambda found: len(found) == 3 and all(found.values()))
    values = {id_: found["gpu_sm_active_percent"] for id_, found in readings.items()}
    assert values == {"MIG-0000": 80.0, "MIG-1111": 20.0, "GPU-bbbb": 50.0}


def test_an_instance_without_a_known_number_is_left_out(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.1"))
    dcgm = opened(FIRST, *SLICES, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(
        line("SM_ACTIVE", "GPU-aaaa", "0.2"),
        line("SM_ACTIVE", "GPU-bbbb", "0.8", ',GPU_I_ID="3"'),
    )
    figures(dcgm)
    assert set(dcgm.read()) == {"GPU-aaaa"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9223372036854775794", Reason.UNSUPPORTED),
        ("140737488355328", Reason.UNSUPPORTED),
        ("NaN", Reason.FAILED),
        ("-0.5", Reason.FAILED),
        ("1.5", Reason.FAILED),
        ("nonsense", Reason.FAILED),
    ],
)
def test_what_is_no_ratio_is_no_figure(exporter, opened, text: str, reason: Reason) -> None:
    # Naive: 9223372036854775794 is a number, too.
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", text))
    value = figures(dcgm)["gpu_sm_active_percent"]
    assert isinstance(value, Missing)
    assert value.reason is reason


def test_a_ratio_that_is_a_little_above_one_is_one(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "1.003"))
    assert figures(dcgm)["gpu_sm_active_percent"] == 100.0


def test_a_page_that_no_longer_changes_has_no_values(exporter, opened, monkeypatch) -> None:
    # Naive: an exporter whose host engine hangs shows its last figures for ever.
    monkeypatch.setattr(dcgm_page, "_STALE_S", 0.5)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.6"))
    figures(dcgm)
    readings = wait_for(dcgm, lambda found: failed(found, "has not changed"))
    assert set(readings["GPU-aaaa"]) == set(METRICS)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.7"))
    wait_for(dcgm, lambda found: found["GPU-aaaa"].get("gpu_sm_active_percent") == 70.0)


def test_time_stamps_of_long_ago_are_believed(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.6", stamp=f" {int(time.time() * 1000)}"))
    assert figures(dcgm) == {"gpu_sm_active_percent": 60.0}
    old_ms = int((time.time() - 120) * 1000)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.7", stamp=f" {old_ms}"))
    wait_for(dcgm, lambda found: failed(found, "s old"))


def test_a_page_that_hangs_delays_no_sample(exporter, opened, monkeypatch) -> None:
    monkeypatch.setattr(dcgm_page, "_TIMEOUT_S", 0.2)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.hangs = True
    wait_for(dcgm, lambda found: failed(found, "timed out"))


def test_a_page_without_end_is_given_up(exporter, opened, monkeypatch) -> None:
    # Naive: a time-out for each read of the socket never comes where bytes trickle.
    monkeypatch.setattr(dcgm_page, "_TIMEOUT_S", 0.3)
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.trickles = True
    wait_for(dcgm, lambda found: failed(found, "timed out"))


def test_a_page_that_goes_and_comes_back(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    exporter.status = 503
    wait_for(dcgm, lambda found: failed(found, "HTTP status 503"))
    exporter.status = 200
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.6"))
    wait_for(dcgm, lambda found: found["GPU-aaaa"].get("gpu_sm_active_percent") == 60.0)


def test_a_page_that_hangs_from_the_start_costs_a_second(exporter, opened, monkeypatch) -> None:
    monkeypatch.setattr(dcgm_page, "_FIRST_ANSWER_S", 0.2)
    exporter.hangs = True
    began_s = time.monotonic()
    with pytest.raises(DeviceError, match=r"does not answer within.*`dcgmi` is not on the PATH"):
        opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    assert time.monotonic() - began_s < 2


def test_a_page_without_profiling_figures_says_so(exporter, opened) -> None:
    exporter.show('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aaaa"} 98')
    with pytest.raises(DeviceError, match="no DCGM_FI_PROF value for the GPUs"):
        opened(FIRST, DCGM_EXPORTER_URL=exporter.url)


def test_proxies_are_not_asked_for_a_page(exporter, opened, monkeypatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=exporter.url)
    assert figures(dcgm) == {"gpu_sm_active_percent": 50.0}


def test_an_address_without_a_scheme_will_do(exporter, opened) -> None:
    exporter.show(line("SM_ACTIVE", "GPU-aaaa", "0.5"))
    address = exporter.url.removeprefix("http://").removesuffix("/metrics")
    dcgm = opened(FIRST, DCGM_EXPORTER_URL=address)
    assert figures(dcgm) == {"gpu_sm_active_percent": 50.0}


@pytest.mark.parametrize("url", ["https://g1:9400/metrics", "http://", "http://g1:port/"])
def test_an_address_that_is_none_is_named(opened, url: str) -> None:
    with pytest.raises(DeviceError, match="DCGM_EXPORTER_URL is not the address"):
        opened(FIRST, DCGM_EXPORTER_URL=url)


def test_a_password_in_the_address_is_not_repeated(opened) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(DeviceError) as caught:
            opened(FIRST, DCGM_EXPORTER_URL=f"http://me:s3cr3t@{place}/metrics?token=s3cr3t")
    assert place in caught.value.found
    assert "s3cr3t" not in str(caught.value)
