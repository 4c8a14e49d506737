from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.devices.amd.visible import visible_rocm
from teho.devices.nvidia.visible import visible_cuda
from teho.model.device import Device


def gpu(index: int, id_: str, name: str = "H100", parent: str | None = None) -> Device:
    return Device(id=id_, index=index, name=name, vendor="nvidia", parent_id=parent)


A, B, C, D = (
    gpu(0, "GPU-aa11-0"),
    gpu(1, "GPU-aa22-1"),
    gpu(2, "GPU-bb33-2"),
    gpu(3, "GPU-cc44-3"),
)
GPUS = [A, B, C, D]
PART_0, PART_1 = gpu(0, "MIG-dd55-0", parent=B.id), gpu(1, "MIG-dd66-1", parent=B.id)
WITH_MIG = [A, B, PART_0, PART_1, C]
LEGACY = {f"MIG-{B.id}/7/0": PART_0.id, f"MIG-{B.id}/8/0": PART_1.id}

R0, R1, R2 = (gpu(n, f"GPU-{n + 10:015x}f", "MI250X") for n in range(3))
DIES = [R0, R1, R2]


def cuda(text: str | None, devices=GPUS, **more: str):
    variables = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    return visible_cuda({**variables, **more}, devices, LEGACY if devices is WITH_MIG else None)


def rocm(**variables: str):
    return visible_rocm(variables, DIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (A, B, C, D)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("2", (C,)),
        ("2,0", (C, A)),
        ("0, 3", (A, D)),
        ("+1", (B,)),
        ("1x", (B,)),
        ("0,2,-1,1", (A, C)),
        ("0,9,1", (A,)),
        ("0,,1", (A,)),
        ("0,GPU-bb33", (A,)),
        ("x,0", ()),
        ("1,1", ()),
        ("GPU-bb33-2", (C,)),
        ("GPU-b", (C,)),
        ("GPU-cc44,GPU-aa1", (D, A)),
        ("GPU-aa", ()),
        ("GPU-", ()),
        ("GPU-bb33,GPU-nowhere,GPU-cc44", (C,)),
        ("GPU-bb33,0", (C,)),
        ("GPU-bb33,GPU-bb33-2", ()),
        ("99999999999999999999", ()),
    ],
)
def test_cuda_reads_its_variable(text, expected):
    assert cuda(text)[0] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (A, PART_0, PART_1, C)),
        ("1", (PART_0, PART_1)),
        ("2,1", (C, PART_0, PART_1)),
        (B.id, (PART_0, PART_1)),
        ("MIG-dd66-1", (PART_1,)),
        ("MIG-dd66-1,MIG-dd55-0", (PART_1, PART_0)),
        (f"MIG-{B.id}/8/0", (PART_1,)),
        (f"MIG-{B.id}/9/0", ()),
        (f"MIG-{B.id}/7/0,MIG-dd55-0", ()),
        ("MIG-dd55-0,GPU-bb33", (PART_0,)),
    ],
)
def test_a_gpu_in_mig_mode_means_its_instances(text, expected):
    assert cuda(text, WITH_MIG)[0] == expected


@pytest.mark.parametrize("text", ["", "-1", "NoDevFiles", "1", "0,-1", "GPU-bb33", None])
def test_what_is_plain_needs_no_note(text):
    assert cuda(text)[1] == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,9", "'9' is not a GPU here"),
        ("GPU-aa", "'GPU-aa' is not a GPU here"),
        ("GPU-zz", "CUDA ignores this entry and all later entries"),
        ("1,1", "names a GPU twice"),
    ],
)
def test_ignored_parts_are_reported(text, words):
    (note,) = cuda(text)[1]
    assert words in note
    assert f"CUDA_VISIBLE_DEVICES={text}" in note


MIXED = [A, gpu(1, "GPU-ee", name="V100")]


def test_indices_among_different_models_are_unsure():
    assert "CUDA_DEVICE_ORDER" in cuda("1", MIXED)[1][0]
    assert cuda("1", MIXED)[0] == (MIXED[1],)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("1", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        ("GPU-ee", {}),
        (None, {}),
        ("", {}),
    ],
)
def test_other_ways_of_naming_them_are_sure(text, more):
    assert cuda(text, MIXED, **more)[1] == ()


HOLDS_NONE = {"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "0", "SLURM_JOB_GPUS": ""}


@pytest.mark.parametrize("variables", [{"SLURM_JOB_ID": "7"}, HOLDS_NONE])
@pytest.mark.parametrize(("function", "devices"), [(visible_cuda, GPUS), (visible_rocm, DIES)])
def test_a_slurm_job_without_gpus_has_none(function, devices, variables):
    chosen, (note,) = function(variables, devices)
    assert chosen == ()
    assert f"the {len(devices)} GPUs of the node are not recorded" in note
    assert function(variables, []) == ((), ())


@pytest.mark.parametrize(
    "held",
    [
        {"SLURM_JOB_GPUS": "0"},
        {"SLURM_STEP_GPUS": "0,1"},
        {"SLURM_GPUS": "a100:2"},
        {"SLURM_GPUS_ON_NODE": "2"},
        {"GPU_DEVICE_ORDINAL": "0"},
    ],
)
@pytest.mark.parametrize(("function", "devices"), [(visible_cuda, GPUS), (visible_rocm, DIES)])
def test_a_slurm_job_with_gpus_sees_what_its_cgroup_opens(function, devices, held):
    assert function({"SLURM_JOB_ID": "7", **held}, devices) == (tuple(devices), ())


def test_the_variable_goes_before_slurm():
    assert cuda("1", SLURM_JOB_ID="7") == ((B,), ())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (R0, R1, R2)),
        ({"ROCR_VISIBLE_DEVICES": ""}, ()),
        ({"ROCR_VISIBLE_DEVICES": "-1"}, ()),
        ({"ROCR_VISIBLE_DEVICES": "2,0"}, (R2, R0)),
        ({"ROCR_VISIBLE_DEVICES": " 1 ,0"}, (R1, R0)),
        ({"ROCR_VISIBLE_DEVICES": "1,1,0"}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": "1,x,0"}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": "0,1,2,0"}, (R0, R1, R2)),
        ({"ROCR_VISIBLE_DEVICES": R1.id}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": R1.id.upper()}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-00000000000000b"}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0"}, ()),
        ({"ROCR_VISIBLE_DEVICES": "2,GPU-00000000000000a"}, (R2, R0)),
        ({"HIP_VISIBLE_DEVICES": "2,1"}, (R2, R1)),
        ({"HIP_VISIBLE_DEVICES": "1,1,0"}, (R1, R0)),
        ({"HIP_VISIBLE_DEVICES": "1, 0"}, (R1,)),
        ({"HIP_VISIBLE_DEVICES": "01"}, ()),
        ({"HIP_VISIBLE_DEVICES": R2.id}, (R2,)),
        ({"CUDA_VISIBLE_DEVICES": "1"}, (R1,)),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, (R0,)),
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "1"}, ()),
        ({"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1"}, (R1,)),
        ({"ROCR_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "2"}, ()),
        ({"ROCR_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7"}, (R1,)),
    ],
)
def test_rocm_reads_its_variables_one_after_the_other(variables, expected):
    assert rocm(**variables)[0] == expected


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ROCR_VISIBLE_DEVICES": "1,7"}, "ROCR_VISIBLE_DEVICES=1,7: '7' is not a GPU"),
        ({"ROCR_VISIBLE_DEVICES": "1,1"}, "or was named before; ROCr"),
        ({"HIP_VISIBLE_DEVICES": "7"}, "HIP_VISIBLE_DEVICES=7"),
        ({"CUDA_VISIBLE_DEVICES": "7"}, "CUDA_VISIBLE_DEVICES=7"),
    ],
)
def test_rocm_says_what_was_ignored(variables, words):
    (note,) = rocm(**variables)[1]
    assert words in note


INDEX_LISTS = st.lists(st.integers(-2, 5), min_size=1, max_size=6)
ANY_TEXT = st.text(st.sampled_from("0123456789,-+ GPUMIG/abcx-"), max_size=30) | st.text()


@given(INDEX_LISTS)
def test_cuda_takes_indices_up_to_the_first_bad_one(indices):
    good = []
    for index in indices:
        if index not in range(len(GPUS)):
            break
        good.append(index)
    expected = tuple(GPUS[index] for index in good) if len(set(good)) == len(good) else ()
    assert cuda(",".join(map(str, indices)))[0] == expected


@given(INDEX_LISTS)
def test_rocr_takes_indices_up_to_the_first_bad_or_repeated_one(indices):
    good: list[Device] = []
    for index in indices[: len(DIES)]:
        if index not in range(len(DIES)) or DIES[index] in good:
            break
        good.append(DIES[index])
    assert rocm(ROCR_VISIBLE_DEVICES=",".join(map(str, indices)))[0] == tuple(good)


@given(st.permutations(GPUS), st.integers(5, 11))
def test_ids_keep_their_order_however_far_they_are_cut(order, length):
    names = [device.id[: max(length, 8)] for device in order]
    assert cuda(",".join(names)) == (tuple(order), ())


@given(ANY_TEXT, st.none() | ANY_TEXT)
def test_no_text_breaks_it_and_none_invents_a_gpu(text, other):
    for devices in (GPUS, WITH_MIG, []):
        chosen, notes = cuda(text, devices)
        assert set(chosen) <= set(devices)
        assert len(set(chosen)) == len(chosen)
        assert all(notes)
    variables = {"ROCR_VISIBLE_DEVICES": text, "HIP_VISIBLE_DEVICES": other}
    chosen, _ = rocm(**{name: value for name, value in variables.items() if value is not None})
    assert set(chosen) <= set(DIES)
    assert len(set(chosen)) == len(chosen)
