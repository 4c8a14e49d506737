"""The output of `teho devices` at fixed width, for an invented machine."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import msgspec
import pytest
from rich.cells import cell_len

from show.golden import FOLDER, ROOT, check
from teho.model.device import Device
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason
from teho.model.survey import Answers, Signal, Survey
from teho.show.build.devices import devices_document
from teho.show.text.document import render_text

GPU_METRICS = [metric.name for metric in metrics_of("gpu")]


def gpu(index: int, **more: object) -> Device:
    facts = {
        "id": f"GPU-{index:08x}-7465-686f-8000-000000000000",
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "vendor": "nvidia",
        "memory_bytes": 81559 * 1024**2,
        "pci_bus_id": f"0000:{0x17 + index:02x}:00.0",
        "numa_node": index // 2,
        "power_limit_w": 700.0,
        "architecture": "9.0",
    }
    return msgspec.convert(facts | more, Device)


HAD: dict[str, Signal] = {
    "gpu_busy_percent": 97, "gpu_memory_busy_percent": 41, "gpu_sm_active_percent": 83.2,
    "gpu_sm_occupancy_percent": 31.4, "gpu_tensor_percent": 44.6, "gpu_fp64_percent": 0.0,
    "gpu_fp32_percent": 6.2, "gpu_fp16_percent": 2.1, "gpu_integer_percent": 11.5,
    "gpu_dram_percent": 38.5, "gpu_memory_used_bytes": 61 * 1024**3, "gpu_power_w": 612.3,
    "gpu_energy_j": 3.6e8, "gpu_sm_clock_mhz": 1980, "gpu_memory_clock_mhz": 2619,
    "gpu_temperature_c": 61, "gpu_thermal_throttle_percent": 0, "gpu_power_throttle_percent": 0,
    "gpu_pcie_receive_bytes_per_s": 1.2e9, "gpu_pcie_send_bytes_per_s": 3.1e7,
    "gpu_nvlink_receive_bytes_per_s": 4.4e10, "gpu_nvlink_send_bytes_per_s": 4.4e10,
    "gpu_ecc_corrected": 0, "gpu_ecc_uncorrected": 0, "gpu_nvlink_errors": 0, "gpu_xid_errors": 0,
    "gpu_job_busy_percent": 0, "gpu_job_processes": 0, "gpu_job_memory_bytes": 0,
}  # fmt: skip
LACKING = Missing(Reason.UNSUPPORTED, "this GPU or its driver does not report this metric")
CLOSED = Missing(Reason.FORBIDDEN, "the driver does not report this metric to this user")
OLD = Missing(Reason.UNSUPPORTED, "the driver reports this metric only for Hopper and newer GPUs")
ACTIVITY = (
    "gpu_sm_active_percent", "gpu_sm_occupancy_percent", "gpu_tensor_percent", "gpu_fp64_percent",
    "gpu_fp32_percent", "gpu_fp16_percent", "gpu_integer_percent", "gpu_dram_percent",
)  # fmt: skip
SHARED = ("gpu_busy_percent", "gpu_memory_busy_percent", "gpu_power_w", "gpu_energy_j")
WHOLE = Missing(Reason.UNSUPPORTED, "measured only for the whole GPU")


def signals(factor: float = 1, **more: Signal) -> dict[str, Signal]:
    """All signals of an H100, some of them scaled."""
    scaled = ("_busy_percent", "_active_percent", "_used_bytes", "_power_w", "_energy_j")
    had = {
        name: value * factor if name.endswith(scaled) else value  # type: ignore[operator]
        for name, value in HAD.items()
    }
    return dict.fromkeys(GPU_METRICS, LACKING) | had | more


NODE = Answers(
    source="node",
    signals={
        "node": {
            "cpu_busy_percent": 12.5,
            "node_memory_used_bytes": 5 * 1024**3,
            "cpu_energy_j": Missing(Reason.FORBIDDEN, "/sys/class/powercap: Permission denied"),
            "node_energy_j": Missing(
                Reason.ABSENT, "this node has neither an ACPI power meter nor IPMI"
            ),
        }
    },
)
NO_AMD = Answers(source="amd", state="absent", why="no AMD GPU on this node")


def survey(*gpus: Answers, **more: object) -> Survey:
    facts: dict[str, object] = {
        "at": datetime(2026, 11, 21, 23, 0, tzinfo=timezone.utc),
        "host": "g1",
        "scheduler": "slurm",
        "job_id": "4711",
        "cores": tuple(range(16)),
        "core_count_node": 128,
        "memory_node_bytes": 512 * 1024**3,
        "cpu_model": "AMD EPYC 9554 64-Core Processor",
        "visible": {"CUDA_VISIBLE_DEVICES": "0,1,2"},
        "system": {"kernel": "5.14.0", "cgroup": "version 2", "container": "none", "Teho": "0.1.0"},
        "node": NODE,
        "gpus": gpus,
    }
    return Survey(**(facts | more))  # type: ignore[arg-type]


H100 = Answers(
    source="nvidia",
    devices=(gpu(0), gpu(1), gpu(2)),
    others=(gpu(3),),
    signals={
        gpu(0).id: signals(),
        gpu(1).id: signals(0.5, gpu_xid_errors=CLOSED),
        gpu(2).id: signals(0.9),
    },
    versions={"NVIDIA driver": "550.54.15", "NVML": "12.550.54.15", "CUDA of the driver": "12.4"},
    notes=("the driver does not count the work of each process (accounting mode is off)",),
)
SLICES = Answers(
    source="nvidia",
    devices=(
        gpu(0, id="MIG-0", name="NVIDIA A100 MIG 3g.20gb", parent_id="GPU-0", power_limit_w=None),
        gpu(1, id="MIG-1", name="NVIDIA A100 MIG 3g.20gb", parent_id="GPU-0", power_limit_w=None),
        gpu(1, name="NVIDIA A100-SXM4-40GB"),
    ),
    others=(gpu(0, id="GPU-0", name="NVIDIA A100-SXM4-40GB"),),
    signals={
        "MIG-0": signals(**dict.fromkeys(SHARED, WHOLE)),
        "MIG-1": signals(**dict.fromkeys(SHARED, WHOLE)),
        gpu(1).id: signals(**dict.fromkeys(ACTIVITY, OLD)),
    },
)


def render_devices(survey: Survey, *, width: int, color: bool, detail: str = "why") -> str:
    return render_text(devices_document(survey), width=width, color=color, detail=detail)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_page_at_fixed_width(width: int) -> None:
    text = render_devices(survey(H100, NO_AMD), width=width, color=False)
    check(FOLDER / f"devices-{width}.txt", text)
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_without_why_it_fits_a_screen() -> None:
    for surveyed in (survey(H100, NO_AMD), survey(SLICES, NO_AMD)):
        text = render_devices(surveyed, width=80, color=False, detail="default")
        assert len(text.splitlines()) <= 41
        assert "Add --why to see" in text


def test_the_page_of_mig() -> None:
    text = render_devices(survey(SLICES, NO_AMD), width=80, color=False)
    check(FOLDER / "devices-mig.txt", text)


def test_the_documented_page_is_the_true_one() -> None:
    shown = (ROOT / "docs" / "signals.md").read_text()
    whole = (FOLDER / "devices-80.txt").read_text()
    block = shown.split("```text\n")[1].split("```")[0]
    head, tail = block.split("…\n")
    assert whole.startswith(head)
    assert tail in whole


THREE = (
    "This job has 3 GPUs (NVIDIA H100 80GB HBM3). The node has 1 more GPU, which is not part of "
    "this job. SM activity is available. Energy is read from a counter"
)
SOME = (
    "This job has 3 GPUs (2 NVIDIA A100 MIG 3g.20gb and 1 NVIDIA A100-SXM4-40GB). SM activity is "
    "available on 2 of 3 GPUs. Energy is available on 1 of 3 GPUs"
)
OTHERS = msgspec.structs.replace(NO_AMD, others=(gpu(0),))
WHY_LOST = Missing(Reason.FAILED, "the GPU is lost")
LOST = msgspec.structs.replace(
    H100,
    devices=(gpu(0), gpu(1)),
    others=(),
    signals={gpu(0).id: signals(), gpu(1).id: dict.fromkeys(GPU_METRICS, WHY_LOST)
             | {"gpu_xid_errors": 1}},
)  # fmt: skip
HALF = "SM activity is available on 1 of 2 GPUs. Energy is available on 1 of 2 GPUs"
TWO = "This job has 2 GPUs (NVIDIA H100 80GB HBM3)."
HUNG = msgspec.structs.replace(NO_AMD, state="failed", why="it hangs")


@pytest.mark.parametrize(
    ("gpus", "verdict"),
    [
        ([H100, NO_AMD], f"✓ {THREE}."),
        ([SLICES], f"! {SOME}."),
        ([NO_AMD], "i No GPU here: no AMD GPU on this node."),
        ([OTHERS], "! No GPU is part of this job: no AMD GPU on this node."),
        ([H100, HUNG], f"✗ {THREE.replace('.', '. It hangs.', 1)}."),
        (
            [LOST],
            f"✗ {TWO} GPU 1 cannot be read: the GPU is lost. {HALF}.",
        ),
    ],
)
def test_what_matters_first(gpus: list[Answers], verdict: str) -> None:
    text = render_devices(survey(*gpus), width=300, color=False)
    assert text.splitlines()[0] == verdict


def test_a_package_is_counted_by_one_of_its_dies() -> None:
    # Naive: the die that is silent has no energy.
    pair = (
        gpu(0, package_id="card0", energy_of="package"),
        gpu(1, package_id="card0", energy_of="package"),
        gpu(2),
    )
    silent = signals(gpu_energy_j=LACKING)
    answers = Answers(
        source="nvidia", devices=pair, signals={pair[0].id: signals(), pair[1].id: silent}
        | {pair[2].id: signals()},
    )  # fmt: skip
    assert "read from a counter" in render_devices(survey(answers), width=300, color=False)
    alone = msgspec.structs.replace(answers, devices=(pair[1], pair[2]))
    shown = render_devices(survey(alone), width=300, color=False)
    assert "Energy is available on 1 of 2 GPUs" in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    bad = msgspec.structs.replace(
        H100, devices=(gpu(0, name="\x1b[31mred"),), notes=("\x1b]0;title\x07",)
    )
    text = render_devices(survey(bad), width=80, color=False)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_json_says_why_and_never_zero() -> None:
    content = json.loads(msgspec.json.encode(survey(H100, NO_AMD)))
    signal = content["gpus"][0]["signals"][gpu(1).id]["gpu_xid_errors"]
    assert signal == {"type": "missing", "reason": "forbidden", "detail": CLOSED.detail}
    assert content["gpus"][0]["signals"][gpu(0).id]["gpu_xid_errors"] == 0
