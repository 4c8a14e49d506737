"""The speed of matrix operators: from shapes that are known by hand, and from real PyTorch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from probe.probed import WITH_FRAMEWORKS
from profile_traces import call, kernel, operator, step, write
from support import lacks_framework
from teho.model.trace import Efficiency
from teho.profile.summary import read_trace, read_traces
from teho.show.build.profile import profile_document

H200 = [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9}]
BF16 = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNN"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32"
FP32 = "ampere_sgemm_128x64_nn"
HALF, BRAIN = "c10::Half", "c10::BFloat16"
CONVOLUTION = ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"]
GRADIENTS = ["", "", "", "[64]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
TERA = 1e12


def speeds(
    folder: Path, name: str, shapes: Any, kind: str, kernels: str, values: Any = (), **about: Any
) -> tuple[Efficiency, ...]:
    """Return the speed of one operator whose two kernels take 100 µs together."""
    called = operator(name, 0, 40)
    called["args"] = {
        "Input Dims": shapes, "Input type": [kind] * len(shapes), "Concrete Inputs": values,
    }  # fmt: skip
    events = [
        step(0, 0, 200), called, call(1, 5, 6), call(2, 7, 8), kernel(1, 10, 90, kernels),
        kernel(2, 90, 110, "splitKreduce_kernel"),
    ]  # fmt: skip
    return read_trace(write(folder, events, **{"deviceProperties": H200, **about})).efficiencies


@pytest.mark.parametrize(
    ("name", "shapes", "kind", "kernels", "values", "flop", "peak"),
    [
        ("aten::mm", [[1024, 512], [512, 256]], BRAIN, BF16, [], 2 * 1024 * 512 * 256, 989.4),
        ("aten::mm", [[1024, 512], [512, 256]], HALF, BF16, [], 2 * 1024 * 512 * 256, 989.4),
        ("aten::mm", [[1024, 512], [512, 256]], "float", TF32, [], 2 * 1024 * 512 * 256, 494.7),
        ("aten::mm", [[1024, 512], [512, 256]], "float", FP32, [], 2 * 1024 * 512 * 256, 67),
        ("aten::addmm", [[9], [7, 8], [8, 9], [], []], "float", FP32, [], 2 * 7 * 8 * 9, 67),
        ("aten::bmm", [[5, 7, 8], [5, 8, 9]], "double", "dgemm", [], 2 * 5 * 7 * 8 * 9, 33.5),
        ("aten::baddbmm", [[5, 7, 9], [5, 7, 8], [5, 8, 9], [], []], "float", FP32, [],
         2 * 5 * 7 * 8 * 9, 67),
        ("aten::cudnn_convolution", [[8, 3, 224, 224], [64, 3, 7, 7], *[[]] * 7], "float",
         TF32.replace("gemm", "fprop"), CONVOLUTION,
         2 * 8 * 64 * 112 * 112 * 3 * 7 * 7, 494.7),
        ("aten::convolution_backward",
         [[8, 64, 112, 112], [8, 3, 224, 224], [64, 3, 7, 7], *[[]] * 8], "float",
         TF32.replace("gemm", "wgrad"), [*GRADIENTS, "[False, True, False]"],
         2 * 8 * 64 * 112 * 112 * 3 * 7 * 7, 494.7),
        ("aten::convolution_backward",
         [[8, 64, 112, 112], [8, 3, 224, 224], [64, 3, 7, 7], *[[]] * 8], "float",
         TF32.replace("gemm", "dgrad"), [*GRADIENTS, "[True, True, True]"],
         4 * 8 * 64 * 112 * 112 * 3 * 7 * 7, 494.7),
    ],
)  # fmt: skip
def test_operations_and_peak(
    tmp_path: Path, name: str, shapes: Any, kind: str, kernels: str, values: Any, flop: float,
    peak: float,
) -> None:  # fmt: skip
    (one,) = speeds(tmp_path, name, shapes, kind, kernels, values)
    assert (one.operator, one.number_type, one.count) == (name, kind, 1)
    assert one.flop == flop
    assert one.time_s == pytest.approx(100e-6)  # with the second kernel
    assert one.peak_flop_per_s == pytest.approx(peak * TERA, rel=0.01)
    assert one.share == pytest.approx(flop / 100e-6 / (peak * TERA), rel=0.01)


@pytest.mark.parametrize(
    ("name", "shapes", "kind", "values"),
    [
        ("aten::mm", [], "float", []),
        ("aten::mm", [[3, 4], [5, 6]], "float", []),  # they do not fit
        ("aten::mm", [[3, 4], [4, 6]], "long int", []),
        ("aten::mm", [[3, 4], "?"], "float", []),
        ("aten::mm", [[0, 4], [4, 6]], "float", []),
        ("aten::cudnn_convolution", [[8, 3, 9, 9], [4, 3, 3, 3]], "float", []),
        ("aten::cudnn_convolution", [[8, 3, 9, 9], [4, 3, 3, 3]], "float", ["", "", "?", "", ""]),
        ("aten::relu", [[3, 4]], "float", []),
    ],
)
def test_without_known_shapes_there_is_no_speed(
    tmp_path: Path, name: str, shapes: Any, kind: str, values: Any
) -> None:
    assert speeds(tmp_path, name, shapes, kind, FP32, values) == ()


def test_of_an_unknown_gpu_only_the_speed_is_known(tmp_path: Path) -> None:
    (one,) = speeds(
        tmp_path, "aten::mm", [[2, 3], [3, 4]], "float", FP32,
        deviceProperties=[{"id": 0, "name": "NVIDIA ZZ1"}],
    )  # fmt: skip
    assert (one.peak, one.peak_flop_per_s, one.share) == ("", None, None)
    assert one.flop_per_s == pytest.approx(48 / 100e-6)


def test_the_document_has_the_speed(tmp_path: Path) -> None:
    assert speeds(tmp_path, "aten::mm", [[1024, 1024], [1024, 1024]], BRAIN, BF16)
    document = profile_document(read_traces([tmp_path / "trace.json"]))
    (fact,) = [fact for fact in document.facts if fact.key == "matrix_speed"]
    assert fact.value == pytest.approx(100 * 2 * 1024**3 / 100e-6 / (989.4 * TERA), rel=0.01)
    (made,) = [one for one in document.tables if one.key == "speed"]
    (row,) = made.rows
    assert (row["sizes"], row["type"]) == ("1024×1024 · 1024×1024", "BFloat16")
    assert row["speed"] == pytest.approx(21.47, abs=0.01)


REAL = """
import json, sys, torch
from torch.profiler import profile
a, b = torch.rand(64, 32, requires_grad=True), torch.rand(32, 48)
c, d = torch.rand(5, 16, 8, requires_grad=True), torch.rand(5, 8, 24)
with profile(record_shapes=True, with_flops=True) as found:
    (a @ b).sum().backward()
    (c @ d).sum().backward()
    torch.nn.functional.linear(torch.rand(10, 32), torch.rand(48, 32), torch.rand(48))
found.export_chrome_trace(sys.argv[1])
print(json.dumps([
    [one.key, one.count, one.flops] for one in found.key_averages()
    if one.key in ("aten::mm", "aten::bmm", "aten::addmm")
]))
"""


@pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
def test_real_pytorch_counts_the_same_operations(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    command = [WITH_FRAMEWORKS, "-c", REAL, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    expected = {name: (count, flop) for name, count, flop in json.loads(done.stdout)}
    assert set(expected) == {"aten::mm", "aten::bmm", "aten::addmm"}
    document = json.loads(path.read_text())
    # There is no GPU here: each of these operators launches a kernel of 1 µs.
    meant = [one for one in document["traceEvents"] if one.get("name") in expected]
    last = max(one["ts"] + one.get("dur", 0) for one in document["traceEvents"] if "ts" in one)
    for number, one in enumerate(meant, 1):
        launched = call(number, one["ts"] + 0.01, one["ts"] + 0.02)
        launched |= {"pid": one["pid"], "tid": one["tid"]}
        document["traceEvents"] += [launched, kernel(number, last + number, last + number + 1)]
    path.write_text(json.dumps(document))
    found = dict.fromkeys(expected, (0, 0.0))
    for one in read_trace(path).efficiencies:
        count, flop = found[one.operator]
        found[one.operator] = (count + one.count, flop + one.flop)
    assert found == expected
