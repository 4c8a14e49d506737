"""Jobstats' summaries of jobs: read, written, damaged."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.jobs.js1 import Js1, Js1Node, decode_js1, encode_js1, js1_from_json, js1_to_json
from teho.model.missing import Missing, Reason

# From tests/test_jobstats.py of PrincetonUniversity/jobstats, commit 3287b294.
CPU_JOB = (
    "JS1:H4sIADelIWcC/1WNQQqDMBBF7zLrtEzG0ZhcphQzqGBM0bgQyd0bUii4fe8//gVr9LKDuyDNo2yPibpBr00FMb2X"
    "V5AQtxOcRtMY1j0xKjh28X/TdsRMhRfxa9IcBJyxbPsnKRg+R3lgzPk+ICSrYKwW8xcnjeJ8iwAAAA=="
)
GPU_JOB = (
    "JS1:H4sIAKA3KmcC/12OTQ6DIBCF7zJra4AZYPAyxlRiSFBMi4vWcPdqbZvY5cv73s8KU+r9HZoVeh9jd4lCDhJ3nVPu"
    "Yjv6Md0e0Ei0hOw0klUVLHff/ywmw2iFUrtzpHIYPTTaGiVqruA6L9uE3OxhXtpz8Qpyq9DsHJJ2SpQDOi0cDKIkNqwU"
    "fZkcYnh2OaTpwziuTSnl74ZwRO/EfqK8APTfhRDzAAAA"
)


def packed(content: bytes) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(content, mtime=0)).decode()


def unpacked(comment: str) -> bytes:
    return gzip.decompress(base64.b64decode(comment.removeprefix("JS1:")))


def test_summary_of_a_gpu_job() -> None:
    found = decode_js1(GPU_JOB)
    assert isinstance(found, Js1)
    assert (found.elapsed_s, found.gpu_count) == (50944, 1)
    (name, node), *others = found.nodes.items()
    assert (name, others) == ("della-l01g13", [])
    assert node == Js1Node(
        memory_limit_bytes=128 * 1024**3,
        memory_peak_bytes=84683702272,
        cpu_s=57620.8,
        core_count=12,
        gpu_memory_bytes={"1": 80 * 1024**3},
        gpu_memory_peak_bytes={"1": 83314868224},
        gpu_busy_percent={"1": 98.6},
    )
    assert node.gpus() == ["1"]


@pytest.mark.parametrize("comment", [CPU_JOB, GPU_JOB])
def test_jobstats_own_summaries_are_written_back_byte_for_byte(comment: str) -> None:
    found = decode_js1(comment)
    assert isinstance(found, Js1)
    assert js1_to_json(found) == unpacked(comment)
    assert unpacked(encode_js1(found)) == unpacked(comment)
    assert js1_from_json(json.dumps(json.loads(unpacked(comment)), indent=4).encode()) == found


@pytest.mark.parametrize(
    ("comment", "reason", "detail"),
    [
        ("", Reason.ABSENT, "not from Jobstats"),
        ("checked by the operators", Reason.ABSENT, "not from Jobstats"),
        ("JS1:", Reason.UNRECORDED, "no data"),
        ("JS1:Short", Reason.UNRECORDED, "too short for Jobstats"),
        ("JS1:None", Reason.UNRECORDED, "found no data"),
        (GPU_JOB[:100], Reason.FAILED, "its end is missing"),
        (GPU_JOB[:101], Reason.FAILED, "not complete base64"),
        ("JS1:" + "ä" * 20, Reason.FAILED, "not complete base64"),
        ("JS1:" + base64.b64encode(b"text").decode(), Reason.FAILED, "not gzip"),
        (packed(b"{"), Reason.FAILED, "truncated"),
        (packed(b"{}"), Reason.FAILED, "nodes"),
        (packed(b'{"nodes":{}}'), Reason.UNRECORDED, "found no data"),
        (packed(b'{"nodes":{"g1":{"cpus":"many"}}}'), Reason.FAILED, "cpus"),
        (packed(b'{"nodes":{"g1":{"total_time":NaN}}}'), Reason.FAILED, "malformed"),
        (packed(b"[" * 1_000_000), Reason.FAILED, "cannot be read"),
        (packed(b" " * (65 * 1024**2)), Reason.FAILED, "more than 64 MiB of JSON"),
        ("JS1:" + "A" * (17 * 1024**2), Reason.FAILED, "more than 16 MiB"),
    ],
)
def test_comments_without_a_summary(comment: str, reason: Reason, detail: str) -> None:
    found = decode_js1(comment)
    assert isinstance(found, Missing)
    assert found.reason is reason
    assert detail in found.detail


def test_every_truncation_is_noticed() -> None:
    for length in range(len(GPU_JOB)):
        assert isinstance(decode_js1(GPU_JOB[:length]), Missing), length


@pytest.mark.parametrize("comment", [f"seen {GPU_JOB} by ops", f' "{GPU_JOB}"\n', f"{GPU_JOB} +"])
def test_text_around_the_summary_is_ignored(comment: str) -> None:
    assert decode_js1(comment) == decode_js1(GPU_JOB)


def test_absent_keys_stay_absent() -> None:
    content = b'{"nodes":{"g1":{"gpu_utilization":{"10":0,"2":7.5}}}}'
    found = js1_from_json(content)
    assert isinstance(found, Js1)
    node = found.nodes["g1"]
    assert (node.cpu_s, node.core_count, found.gpu_count) == (None, None, None)
    assert node.gpus() == ["2", "10"]
    assert node.gpu_busy_percent["10"] == 0
    assert js1_to_json(found) == content
    assert encode_js1(Js1(nodes={})) == "JS1:None"


NUMBERS = st.one_of(
    st.integers(0, 2**50), st.floats(0, 1e15, allow_nan=False, allow_infinity=False)
)
GPUS = st.dictionaries(st.integers(0, 15).map(str), NUMBERS, max_size=4)
NODES = st.builds(
    Js1Node,
    memory_limit_bytes=st.none() | NUMBERS,
    memory_peak_bytes=st.none() | NUMBERS,
    cpu_s=st.none() | NUMBERS,
    core_count=st.none() | NUMBERS,
    gpu_memory_bytes=GPUS,
    gpu_memory_peak_bytes=GPUS,
    gpu_busy_percent=GPUS,
)


@given(
    st.builds(
        Js1,
        nodes=st.dictionaries(st.text(min_size=1, max_size=8), NODES, min_size=1, max_size=3),
        elapsed_s=st.none() | NUMBERS,
        gpu_count=st.none() | st.integers(0, 10_000),
    )
)
def test_what_is_written_is_read_back(summary: Js1) -> None:
    assert decode_js1(encode_js1(summary)) == summary
