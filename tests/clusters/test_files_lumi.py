"""LUMI's masks and variables against its documentation."""

from __future__ import annotations

from teho.clusters.catalogue import load_cluster

LUMI = load_cluster("lumi", {"XDG_CONFIG_HOME": "/nonexistent"})

LUMI_MASKS = (
    "0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,"
    "0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000"
)


def test_lumis_masks_are_the_documented_ones_and_its_cores_each_reserved_or_bound_once():
    binding, kind = LUMI.binding, LUMI.nodes[0]
    assert binding is not None
    assert binding.only_exclusive
    masks = [sum(1 << core for core in cores) for cores in binding.cores_of_gpu]
    assert ",".join(f"0x{mask:016x}" for mask in masks) == LUMI_MASKS
    bound = [core for cores in binding.cores_of_gpu for core in cores]
    assert kind.reserved_cores == (0, 8, 16, 24, 32, 40, 48, 56)
    assert sorted((*bound, *kind.reserved_cores)) == list(range(64))
    assert len(bound) == kind.usable_cores == 56


def test_lumis_variables_by_generation():
    found = {one.generation: one.variables for one in LUMI.environment}
    cache = "/tmp/{user}-miopen-cache-{node}"
    assert [*found.items()] == [
        ("laif-rocm7", {
            "FI_MR_CACHE_MONITOR": "userfaultfd",
            "MIOPEN_CUSTOM_CACHE_DIR": "/tmp/miopen-cache-{user}",
            "MIOPEN_USER_DB_PATH": "/tmp/miopen-config-{user}",
        }),
        ("workshop-2025", {
            "NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hsn3", "NCCL_NET_GDR_LEVEL": "PHB",
            "MIOPEN_USER_DB_PATH": cache, "MIOPEN_CUSTOM_CACHE_DIR": cache,
        }),
        ("easybuild-2023", {
            "NCCL_SOCKET_IFNAME": "hsn", "NCCL_NET_GDR_LEVEL": "3", "CXI_FORK_SAFE": "1",
            "CXI_FORK_SAFE_HP": "1", "FI_CXI_DISABLE_CQ_HUGETLB": "1",
        }),
        ("cray-mpich", {"MPICH_GPU_SUPPORT_ENABLED": "1", "MPICH_OFI_NIC_POLICY": "GPU"}),
    ]  # fmt: skip
    for one in LUMI.environment:
        caches = {value for name, value in one.variables.items() if name.startswith("MIOPEN_")}
        assert caches == set(one.directories), one.generation
