"""Batches that the CPU converts before the copy to the GPU, and batches that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

PREPARE = """
def prepare(crops, device):
    {lines}
    return {end}
def main(net, crops, device):
    for step in range(99):
        net(prepare(crops[step], device)).mean().backward()
"""
CAST = "x = crops.astype(np.float32) / 255.0"
SENT = "torch.from_numpy(x).to(device)"


def prepared(active, lines=CAST, end=SENT):
    return found(PREPARE.format(lines=lines, end=end), "prepare(crops[step], device)", active)


@pytest.mark.parametrize(
    ("lines", "end", "active"),
    [
        (CAST, SENT, "crops.astype(np.float32)"),
        (CAST, SENT, SENT),
        (CAST, "torch.as_tensor(x).cuda(non_blocking=True)", CAST.removeprefix("x = ")),
        (f"{CAST}\n    x = (x - MEAN) / STD", SENT, "(x - MEAN) / STD"),
        ("pass", "torch.from_numpy(crops.astype('float32') / 255).to(device)",
         "crops.astype('float32') / 255"),
        ("x = crops.astype(np.float32) / 127.5 - 1.0", SENT, "crops.astype(np.float32) / 127.5"),
        ("x = torch.from_numpy(crops).float() / 255", "x.to(device)", "x.to(device)"),
        ("x = torch.from_numpy(crops).float().div(255)", "x.to(device)",
         "torch.from_numpy(crops).float()"),
        ("x = crops.float() / 255.0\n    x = x.to(device)", "x", "crops.float()"),
        ("x = crops.astype('float32')\n    x /= 255.0", SENT, "crops.astype('float32')"),
        (CAST, "torch.tensor(x, device=device)", "crops.astype(np.float32)"),
        ("x = torch.tensor(crops, dtype=torch.float32) / 255", "x.to(device)",
         "torch.tensor(crops, dtype=torch.float32)"),
        ("pass", "(crops.to(torch.float32) / 255.0).to(device, non_blocking=True)",
         "crops.to(torch.float32)"),
    ],
)  # fmt: skip
def test_bytes_that_are_converted_before_the_copy(lines, end, active):
    assert "converted_before_copy" in prepared(active, lines, end)


@pytest.mark.parametrize(
    ("lines", "end", "active"),
    [
        ("x = crops.astype(np.float32)", SENT, "crops.astype(np.float32)"),  # perhaps no bytes
        ("x = crops / 255.0", SENT, "crops / 255.0"),
        (CAST, "torch.from_numpy(x)", "crops.astype(np.float32)"),  # perhaps for the CPU
        (CAST, "torch.from_numpy(x).to('cpu')", "crops.astype(np.float32)"),
        ("x = resize(crops.astype(np.float32) / 255.0)", SENT, "crops.astype(np.float32)"),
        ("x = crops.astype(np.float64) / 255.0", SENT, "crops.astype(np.float64)"),
        ("x = np.log(crops.astype(np.float32) / 255.0)", SENT, "crops.astype(np.float32)"),
        ("x = torch.from_numpy(crops).to(device).float() / 255.0", "x", "torch.from_numpy(crops)"),
        ("x = crops.to(device).float() / 255.0", "x", "crops.to(device)"),
        ("x = crops.to(device)\n    x = (x.float() / 255).to(device)", "x", "x.float()"),
        ("x = crops.float()", "x.to(device)", "crops.float()"),
    ],
)
def test_other_preparations(lines, end, active):
    assert "converted_before_copy" not in prepared(active, lines, end)


def test_what_a_worker_converts_beside_the_gpu():
    source = PREPARE.format(lines=CAST, end=SENT)
    worker = "lib:torch/utils/data/_utils/worker.py:_worker_loop"
    assert found(source, worker, "crops.astype(np.float32)") == {}


def test_the_code_of_a_conversion():
    words = prepared(SENT, f"{CAST}\n    x = (x - MEAN) / STD")["converted_before_copy"]
    assert words["code"] == (
        "`x = torch.from_numpy(crops).to(device).float() / 255.0`; "
        "`x = (x - MEAN_ON_GPU) / STD_ON_GPU`; `return x`"
    )
    assert (
        "after `MEAN` and `STD`: `MEAN_ON_GPU = torch.as_tensor(MEAN, device=device)`"
        in (words["before"])
    )
