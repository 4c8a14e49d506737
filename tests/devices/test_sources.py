"""A vendor is one folder: it is found, read and listed without a change to any other file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import TEHO
from teho.devices.sources import VENDORS, visible_variables

ACME = """\
import time

from teho.devices.vendor import Vendor
from teho.model.device import Device

GPUS = tuple(
    Device(id=f"ACME-{n}", index=n, name="Acme X1", vendor="acme", memory_bytes=16 << 30)
    for n in range(2)
)


class AcmeSource:
    devices = GPUS[:1]
    notes = ("a note of Acme",)

    def __init__(self, environment, root):
        from teho.devices.acme.power import POWER_W

        self.power_w = POWER_W
        self.opened_s = time.monotonic()

    def read(self, pids, *, ends=False):
        return {
            "ACME-0": {
                "gpu_busy_percent": 81.0,
                "gpu_memory_used_bytes": 5 << 30,
                "gpu_power_w": self.power_w,
                "gpu_energy_j": 42.0 + self.power_w * (time.monotonic() - self.opened_s),
            }
        }

    def details(self):
        return {}

    def alerts(self):
        return []

    def close(self):
        pass


VENDOR = Vendor(
    name="acme",
    open_source=AcmeSource,
    all_gpus=lambda root: GPUS,
    versions=lambda root: [("Acme driver", "1.2.3")],
    visible_variables=("ACME_VISIBLE_DEVICES",),
)
"""
# What stands for a folder in the package's own.
WITH_FOLDER = """\
import sys, teho.devices
teho.devices.__path__.append(sys.argv.pop(1))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    acme = tmp_path / "vendors" / "acme"
    acme.mkdir(parents=True)
    (acme / "__init__.py").write_text(ACME)
    (acme / "power.py").write_text("POWER_W = 123.5\n")
    return acme.parent


def with_folder(folder: Path, code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITH_FOLDER + code, str(folder), *words],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    return done.stdout


def test_vendors_are_found_by_their_folders() -> None:
    assert list(VENDORS) == ["nvidia", "amd"]
    variables = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    assert visible_variables() == variables


def test_a_new_vendor_is_listed_by_teho_devices(folder: Path) -> None:
    told = with_folder(folder, "from teho.cli import main\nmain()", "devices", "--format", "json")
    acme = next(gpus for gpus in json.loads(told)["gpus"] if gpus["of"] == "acme")
    assert acme["state"] == "answered"
    assert [device["name"] for device in acme["devices"]] == ["Acme X1"]
    assert acme["signals"]["ACME-0"]["gpu_power_w"] == 123.5
    assert [device["id"] for device in acme["others"]] == ["ACME-1"]
    assert acme["versions"] == {"Acme driver": "1.2.3"}
    text = with_folder(folder, "from teho.cli import main\nmain()", "devices", "--why")
    assert "Acme X1" in text
    assert "a note of Acme" in " ".join(text.split())


def test_a_new_vendor_is_opened_and_metered(folder: Path) -> None:
    code = """\
from teho.devices.meter import Meter
from teho.devices.sources import open_gpus, visible_variables
from teho.experiment.placement import Machine, Placement

sources, _ = open_gpus({})
# Last: a machine of the tests may have GPUs of its own.
assert sources[-1].devices[0].vendor == "acme"
assert 42.0 <= Meter().read()[-1] < 42.0 + 100 * 123.5
assert visible_variables()[-1] == "ACME_VISIBLE_DEVICES"
on_gpu = Placement("gpu:1", (0,), sources[-1].devices)
assert on_gpu.environment({})["ACME_VISIBLE_DEVICES"] == "0"
assert Placement("cpu:1", (0,)).environment({})["ACME_VISIBLE_DEVICES"] == "-1"
"""
    with_folder(folder, code)


def test_a_run_records_the_gpus_of_a_new_vendor(folder: Path) -> None:
    with_folder(
        folder, "from teho.cli import main\nmain()",
        "run", "-q", "--every", "100ms", "--name", "on acme", "--", "sleep", "2",
    )  # fmt: skip
    # The report is made by a Teho that does not have the folder.
    words = [*TEHO, "report", "on acme"]
    report = json.loads(subprocess.check_output([*words, "--format", "json"], timeout=100))
    (table,) = [table for table in report["tables"] if table["key"] == "gpus"]
    (row,) = [row for row in table["rows"] if row["model"] == "Acme X1"]
    assert row["load_mean"] == 81.0
    assert row["memory_max"] == 5 << 30
    assert row["power_mean"] == 123.5
    elapsed_s = next(fact["value"] for fact in report["facts"] if fact["key"] == "elapsed_s")
    assert 0.5 * elapsed_s < row["energy"] / 123.5 <= elapsed_s * 1.05
    # The GPU of another job is not in the recording.
    text = subprocess.check_output([*words, "--why"], text=True, timeout=100)
    assert "Acme X1" in text
    assert "ACME-1" not in text


def test_the_standard_library_is_enough_to_find_the_vendors() -> None:
    code = """\
import sys
import teho.devices.sources
loaded = {name.partition(".")[0] for name in sys.modules if not name.startswith("_")}
print(*sorted(loaded - sys.stdlib_module_names - {"teho", "sitecustomize"}))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"msgspec", "pynvml", "pyarrow"} & set(done.stdout.split())
