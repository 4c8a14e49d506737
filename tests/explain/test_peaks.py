"""What devices can do at most: the file agrees with itself, and names are found as drivers say."""

from __future__ import annotations

import re

import pytest

from teho.clusters.catalogue import load_catalogue
from teho.config.toml import read_toml
from teho.explain import peaks as module
from teho.explain.peaks import RATES, TENSOR_RATES, all_peaks, no_peaks, peaks_of
from teho.model.device import Device

OPTIONAL = (*RATES, "pcie_generation")

CATALOGUE = {
    "p100": ["Tesla P100-PCIE-12GB"],
    "p100l": ["Tesla P100-PCIE-16GB"],
    "v100": ["Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "Tesla V100-PCIE-32GB"],
    "v100l": ["Tesla V100-SXM2-32GB"],
    "t4": ["Tesla T4"],
    "a5000": ["NVIDIA RTX A5000"],
    "a100": ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"],
    "l40": ["NVIDIA L40"],
    "l40s": ["NVIDIA L40S"],
    "h100": ["NVIDIA H100 80GB HBM3"],
    "gh200": ["NVIDIA GH200 120GB", "NVIDIA GH200 480GB"],
    "mi250": ["AMD Instinct MI250X"],
    "mi300a": ["AMD Instinct MI300A"],
}
"""What drivers call each type of the catalogue's GPUs; slices are found by their whole."""


def device(name: str) -> Device:
    return Device(id="GPU-1", index=0, name=name, vendor="nvidia")


@pytest.mark.parametrize("peaks", all_peaks(), ids=lambda peaks: peaks.names[0])
class TestEachDevice:
    def test_what_has_no_figure_says_why(self, peaks):
        for name in OPTIONAL:
            given = [getattr(peaks, name) is not None, name in peaks.lacks, name in peaks.unknown]
            assert given.count(True) == 1, name
        assert set(peaks.lacks) | set(peaks.unknown) <= set(OPTIONAL)

    def test_has_a_source_with_its_year(self, peaks):
        assert re.match(r"(NVIDIA|AMD), .*\((20\d\d)\)", peaks.source)

    def test_figures_are_in_their_units(self, peaks):
        """In other units than TFLOP/s and GB/s they would be off by a thousand."""
        assert all(0.2 <= rate <= 2000 for name in RATES if (rate := getattr(peaks, name)))
        assert 300 <= peaks.memory_gb_per_s <= 10_000
        assert peaks.memory_bytes_per_s == peaks.memory_gb_per_s * 1e9
        assert peaks.flop_per_s("fp32_tflops") == peaks.fp32_tflops * 1e12

    def test_fewer_bits_are_never_slower(self, peaks):
        for wide, narrow in (
            ("fp64_tflops", "fp32_tflops"),
            ("fp32_tflops", "fp16_tflops"),
            ("tensor_fp64_tflops", "tensor_tf32_tflops"),
            ("tensor_tf32_tflops", "tensor_16bit_tflops"),
            ("fp64_tflops", "tensor_fp64_tflops"),
        ):
            rates = [getattr(peaks, name) for name in (wide, narrow)]
            if None not in rates:
                assert rates[0] <= rates[1], (wide, narrow)

    def test_no_other_device_has_its_names(self, peaks):
        names = [name.casefold() for other in all_peaks() for name in other.names]
        assert all(names.count(name.casefold()) == 1 for name in peaks.names)


def test_every_gpu_of_the_catalogue_is_known():
    kinds = [
        node.gpu
        for cluster in load_catalogue({"XDG_CONFIG_HOME": "/"}).values()
        for node in cluster.nodes
        if node.gpu
    ]
    assert len(kinds) > 20
    for kind in kinds:
        for name in CATALOGUE[kind.part_of or kind.type]:
            assert peaks_of(device(name)) is not None, name


@pytest.mark.parametrize(
    ("name", "memory_gb_per_s"),
    [
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("A100-SXM4-40GB", 1555),
        ("Tesla V100-SXM2-32GB", 900),
        ("NVIDIA H200", 4800),
        ("AMD Instinct MI250X", 1638.4),
        ("AMD INSTINCT MI250X", 1638.4),
        ("AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", 1638.4),
    ],
)
def test_names_are_found_as_drivers_say_them(name, memory_gb_per_s):
    assert peaks_of(device(name)).memory_gb_per_s == memory_gb_per_s


@pytest.mark.parametrize(
    "name", ["", "NVIDIA H2000", "H100", "NVIDIA GeForce RTX 4090", "NVIDIA A100-SXM-64GB"]
)
def test_what_is_not_in_the_file_is_not_guessed(name):
    assert peaks_of(device(name)) is None
    assert name in no_peaks(device(name)).detail


@pytest.mark.parametrize(
    ("name", "sevenths", "eighths"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 1, 1),
        ("NVIDIA A100-SXM4-40GB MIG 1g.10gb", 1, 2),
        ("NVIDIA A100-SXM4-40GB MIG 2g.10gb", 2, 2),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 3, 4),
        ("NVIDIA A100-SXM4-40GB MIG 7g.40gb", 7, 8),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 1, 1),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 1, 1),
        ("NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", 1, 4),
        ("NVIDIA H200 MIG 1g.18gb", 1, 1),
        ("NVIDIA H200 MIG 3g.71gb", 3, 4),
    ],
)
def test_a_slice_has_its_part(name, sevenths, eighths):
    whole, part = peaks_of(device(name.split(" MIG")[0])), peaks_of(device(name))
    assert part.fp32_tflops == pytest.approx(whole.fp32_tflops * sevenths / 7)
    assert part.memory_gb_per_s == pytest.approx(whole.memory_gb_per_s * eighths / 8)
    assert part.part == (
        f"the slice has {sevenths}/7 of the multiprocessors and {eighths}/8 of the memory "
        "bandwidth of the whole GPU"
    )
    assert part.pcie_bytes_per_s is None
    assert "pcie_generation" in part.lacks


@pytest.mark.parametrize("whole", ["Tesla V100-SXM2-32GB", "NVIDIA H100 80GB HBM3"])
def test_what_is_no_slice_of_a_device_is_unknown(whole):
    assert peaks_of(device(f"{whole} MIG 1g.5gb")) is None


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [("Tesla T4", 15.75), ("NVIDIA L40S", 31.5), ("NVIDIA H100 80GB HBM3", 63.0)],
)
def test_a_link_is_counted_in_one_direction(name, gb_per_s):
    """Datasheets add up both: 32, 64 and 128 GB/s."""
    assert peaks_of(device(name)).pcie_bytes_per_s == pytest.approx(gb_per_s * 1e9, rel=0.001)


def test_tensor_cores():
    assert not peaks_of(device("Tesla P100-PCIE-12GB")).has_tensor_cores
    assert peaks_of(device("Tesla V100-SXM2-32GB")).has_tensor_cores
    assert set(TENSOR_RATES) < set(RATES)


def test_no_figure_of_the_file_goes_unread():
    fields = set(module.Peaks.__struct_fields__)
    assert all(set(entry) <= fields for entry in read_toml(module._FILE)["device"])
