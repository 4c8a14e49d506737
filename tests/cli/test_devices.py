"""`teho devices`: every kind of node through the stubs, and drivers that hang."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import nvml_stub
import pytest
from amd_tree import build_mi250x

from teho.devices.sources import VENDORS, open_gpus
from teho.model.metric import metrics_of
from teho.model.missing import Missing
from teho.model.survey import SCHEMA, Answers, Survey
from teho.observe.survey import read_survey
from teho.show.build.devices import devices_document
from teho.show.text.document import render_text

ROOT = Path(__file__).parents[2]
GPU_METRICS = [metric.name for metric in metrics_of("gpu")]

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def stub(nvml_library: Path) -> Path:
    return nvml_library


def on(stub: Path, scenario: str, **more: str) -> dict[str, str]:
    return nvml_stub.environment(stub, nvml_stub.SCENARIOS / f"{scenario}.txt") | more


def survey_of(teho: Teho, env: dict[str, str]) -> Survey:
    result = teho("devices", "--format", "json", env=env)
    assert result.stderr == ""
    assert result.returncode == 0
    return msgspec.json.decode(result.stdout, type=Survey)


def page(teho: Teho, env: dict[str, str]) -> list[str]:
    result = teho("devices", "--why", env=env)
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout.splitlines()


def nvidia(survey: Survey) -> Answers:
    (answers,) = (one for one in survey.gpus if one.source == "nvidia")
    return answers


def test_a_machine_without_a_gpu(teho: Teho, tmp_path: Path) -> None:
    # A folder without the library comes first, whatever this machine has.
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    lines = page(teho, env)
    assert lines[0].startswith("i No GPU here: ")
    assert "Signals of the node" in lines
    assert all(len(line) <= 80 for line in lines)
    survey = survey_of(teho, env)
    assert survey.schema == SCHEMA
    assert {one.state for one in survey.gpus} == {"absent"}
    assert isinstance(survey.node.signals["node"]["cpu_busy_percent"], (int, float))


def test_a_node_of_eight_h100(teho: Teho, stub: Path) -> None:
    survey = survey_of(teho, on(stub, "h100x8_busy"))
    answers = nvidia(survey)
    assert [device.index for device in answers.devices] == list(range(8))
    assert answers.others == ()
    assert list(answers.signals) == [device.id for device in answers.devices]
    scenario = nvml_stub.Scenario.load("h100x8_busy")
    for gpu in range(8):
        signals = answers.signals[nvml_stub.gpu_uuid(gpu)]
        assert list(signals) == GPU_METRICS
        loads = {int(step.busy_percent) for step in scenario.steps(gpu)}
        assert signals["gpu_busy_percent"] in loads
        # Rates have figures too: it was read more than once.
        assert not isinstance(signals["gpu_pcie_receive_bytes_per_s"], Missing)
    lines = page(teho, on(stub, "h100x8_busy"))
    assert lines[0][2:].startswith("A program here can use 8 GPUs (NVIDIA H100 80GB HBM3)")
    assert "Energy is read" in " ".join(lines[:3])


def test_gpus_that_are_not_the_jobs_are_named(teho: Teho, stub: Path) -> None:
    job = {"CUDA_VISIBLE_DEVICES": "0,2", "SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "0,2"}
    env = on(stub, "h100x4_three_used", **job)
    answers = nvidia(survey_of(teho, env))
    assert [device.index for device in answers.devices] == [0, 2]
    assert [device.index for device in answers.others] == [1, 3]
    text = " ".join(" ".join(page(teho, env)).split())
    assert "The node has 2 more GPUs, which are not part of this job" in text
    assert "CUDA_VISIBLE_DEVICES 0,2" in text
    assert "Job Slurm 4711" in text


def test_a_job_without_a_gpu_on_a_node_that_has_some(teho: Teho, stub: Path) -> None:
    env = on(stub, "h100x4_three_used", CUDA_VISIBLE_DEVICES="")
    answers = nvidia(survey_of(teho, env))
    assert answers.state == "absent"
    assert len(answers.others) == 4
    assert page(teho, env)[0].startswith("! No GPU is visible here: none of the 4 NVIDIA GPUs")


def test_instances_of_mig_and_a_whole_gpu(teho: Teho, stub: Path) -> None:
    answers = nvidia(survey_of(teho, on(stub, "a100_mig")))
    assert [device.parent_id is None for device in answers.devices] == [False, False, True]
    instance = answers.signals[nvml_stub.mig_uuid(0, 0)]
    assert isinstance(instance["gpu_energy_j"], Missing)
    lines = page(teho, on(stub, "a100_mig"))
    assert any(line.split()[:1] == ["0:1"] for line in lines)
    # The GPU that is divided is not one that somebody else has.
    assert "not visible" not in " ".join(lines)


def test_dcgm_reports_what_an_old_driver_does_not(teho: Teho, stub: Path, tmp_path: Path) -> None:
    uuids = {str(3 - gpu): nvml_stub.gpu_uuid(gpu) for gpu in range(4)}
    rows = {f"GPU {3 - gpu}": {"1002": [f"0.{gpu + 1}00"]} for gpu in range(4)}
    scenario = tmp_path / "dcgm.json"
    scenario.write_text(json.dumps({"gpus": uuids, "rows": rows, "period_s": 0.05}))
    path = f"{ROOT / 'tests/stubs/dcgm'}:{os.environ['PATH']}"
    env = on(stub, "v100x4", PATH=path, TEHO_STUB_DCGM=str(scenario))
    lines = page(teho, env)
    assert "SM activity is available" in " ".join(map(str.strip, lines[:2]))
    (activity,) = (line.split(maxsplit=2)[2] for line in lines if line.startswith("SM activity"))
    assert activity == "10 % to 40 %"
    assert "read with `dcgmi dmon`" in " ".join(" ".join(lines).split())


def test_figures_that_a_page_has_not_renewed_yet_are_to_come(teho: Teho, stub: Path) -> None:
    uuids = map(nvml_stub.gpu_uuid, range(4))
    text = "".join(f'DCGM_FI_PROF_SM_ACTIVE{{UUID="{uuid}"}} 0.5\n' for uuid in uuids)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"127.0.0.1:{server.server_port}"
        lines = page(teho, on(stub, "v100x4", DCGM_EXPORTER_URL=url))
    finally:
        server.shutdown()
        server.server_close()
    assert lines[0].startswith("✓")
    assert "SM activity is not measured yet" in " ".join(map(str.strip, lines[:2]))
    assert any(line.startswith("Values that are not measured yet: ") for line in lines[2:])


def test_an_mi250x_node(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path, busy=[90, 80, 0, 0, 0, 0, 0, 0])
    survey = read_survey({}, tree.root)
    (answers,) = (one for one in survey.gpus if one.source == "amd")
    assert len(answers.devices) == 8
    assert answers.signals[answers.devices[0].id]["gpu_busy_percent"] == 90
    silent = answers.signals[answers.devices[1].id]["gpu_power_w"]
    assert isinstance(silent, Missing)
    text = render_text(devices_document(survey), width=80, color=False, detail="why")
    assert text[2:].startswith("A program here can use 8 GPUs (AMD Instinct MI250X)")
    assert "Signals of GPUs 0 to 7" in text
    (power,) = (line for line in text.splitlines() if line.startswith("GPU power"))
    assert power.endswith("  GPUs 0, 2, 4, 6")
    assert "(GPUs 1, 3, 5, 7):" in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for (;;) pause();", "the NVIDIA driver did not answer within 2 s"),
        ('puts("a banner"); fflush(stdout); abort();', "was ended by SIGABRT"),
    ],
)
def test_a_driver_that_hangs_or_crashes_is_a_line(tmp_path: Path, body: str, words: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a faulty driver with")
    source = tmp_path / "x.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        f"int nvmlInitWithFlags(unsigned f) {{ (void)f; {body} }}"
    )
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    program = (
        "from teho.observe.survey import read_survey\n"
        "from teho.show.build.devices import devices_document as laid_out\n"
        "from teho.show.text.document import render_text as told\n"
        "print(told(laid_out(read_survey(deadline_s=2)), width=80, color=False))"
    )
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert time.monotonic() - began_s < 10
    assert done.stderr == ""
    text = " ".join(done.stdout.split())
    assert "a banner" not in text
    assert text.startswith("✗ No GPU can be read: ")
    assert words in text
    assert "report this to the administrator" in text
    # What the others say is there all the same.
    assert "Signals of the node" in text


def test_a_mistake_of_ours_is_a_line_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def open_nothing(*_: object) -> None:
        raise ValueError("an answer that nobody expected")

    broken = VENDORS["nvidia"]._replace(open_source=open_nothing)
    monkeypatch.setitem(VENDORS, "nvidia", broken)
    answers = nvidia(read_survey({}, tmp_path))
    assert answers.state == "failed"
    assert "an answer that nobody expected" in answers.why


def test_nothing_secret_is_on_the_page(teho: Teho, stub: Path) -> None:
    secret = "s3cr3t-value"
    env = on(
        stub, "h100x8_busy", MY_TOKEN=secret, DCGM_EXPORTER_URL=f"127.0.0.1:9/{secret}",
        CUDA_VISIBLE_DEVICES="0,1", SLURM_JOB_ACCOUNT=secret,
    )  # fmt: skip
    for form in ("text", "json"):
        assert secret not in teho("devices", "--format", form, env=env).stdout


def test_the_recorder_and_the_page_open_the_same(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    sources, refusals = open_gpus({}, tree.root)
    for source in sources:
        source.close()
    assert [source.devices[0].vendor for source in sources] == ["amd"]
    assert len(refusals) == 1
