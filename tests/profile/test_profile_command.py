"""What `teho profile` prints and writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from profile_traces import call, copy, kernel, mark, operator, path_of, step, write
from show.golden import ROOT, check
from teho.model.trace import Profiled
from teho.profile.summary import read_traces
from teho.show.build.profile import profile_document
from teho.show.build.profile_names import short_kernel, short_operator
from teho.show.html.page import render_html
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import Detail, render_text

GOLDEN = ROOT / "tests" / "data" / "show"
RUNS = ROOT / "examples" / "learn" / "runs"
CASES = {
    "conv": ["conv"],
    "conv-pageable-item": ["conv-pageable-item"],
    "conv-cpu": ["conv-cpu"],
    "ddp": ["ddp-gloo-0of2", "ddp-gloo-1of2"],
    "lm-graph": ["lm-graph"],
    "lm-stacks": ["lm-stacks"],
}


def profiled(case: str) -> Profiled:
    return read_traces([path_of(name) for name in CASES[case]])


def text_of(found: Profiled, detail: Detail = "default", width: int = 80) -> str:
    return render_text(profile_document(found), width=width, color=False, detail=detail)


@pytest.mark.parametrize("case", CASES)
def test_the_text(case: str) -> None:
    text = text_of(profiled(case))
    assert len(text.splitlines()) <= 41
    assert max(map(len, text.splitlines())) <= 80
    check(GOLDEN / f"profile-{case}-80.txt", text)


def test_all_of_it() -> None:
    text = text_of(profiled("lm-stacks"), "why")
    check(GOLDEN / "profile-lm-stacks-why.txt", text)
    for words in ("Kernel time by line", "Kernels by category", "Steps", "What the figures mean"):
        assert words in text


@pytest.mark.parametrize("case", CASES)
def test_the_parts_add_up_to_the_step(case: str) -> None:
    document = profile_document(profiled(case))
    tables = [table for table in document.tables if table.key.startswith("parts")]
    for table in tables:
        assert sum(row["share"] for row in table.rows) == pytest.approx(100)
    assert bool(tables) is (case != "conv-cpu")


def test_json_and_html() -> None:
    found = profiled("ddp")
    answer = json.loads(render_noun(found))
    jsonschema.validate(answer, schema_of(Profiled))
    assert answer["schema"] == "teho.profile/1"
    assert [trace["rank"] for trace in answer["traces"]] == [0, 1]
    assert answer["traces"][0]["devices"][0]["steps"][0]["parts"]["idle"]["collective_s"] > 0
    page = render_html(profile_document(found), [])
    assert "The GPUs of 2 ranks were idle" in page
    assert "collective on CPU" in page


def test_the_page_shows_what_the_command_prints(teho) -> None:
    page = (ROOT / "docs" / "profile.md").read_text()
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    result = teho("profile", path_of("conv"), env={"COLUMNS": "80"})
    assert result.stdout == shown
    assert (result.stderr, result.returncode) == ("", 0)


def test_an_error_is_one_line(teho, tmp_path) -> None:
    truncated = tmp_path / "a.json.gz"
    truncated.write_bytes(path_of("conv").read_bytes()[:9000])
    for arguments, words in (
        ([truncated], "a.json.gz is truncated"),
        ([tmp_path / "none.json"], "No such file"),
        ([path_of("conv"), ROOT / "README.md"], "README.md is not JSON"),
        ([], "Missing argument 'FILE…'"),
    ):
        result = teho("profile", *arguments)
        assert result.returncode == 2
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("teho: ")
        assert words in line


def test_a_gpu_that_computes_is_good(tmp_path) -> None:
    path = write(
        tmp_path, [step(0, 0, 100), call(1, 0, 1), kernel(1, 2, 99, "nvjet_sm90_tst_64x64")]
    )
    document = profile_document(read_traces([path]))
    assert document.verdict == (
        "The GPU was busy for 97 % of a step, mostly with matrix multiplications (100 % of the "
        "kernel time)."
    )
    assert document.verdict_severity == "good"
    assert not document.lists[0].items


@pytest.mark.parametrize(
    ("name", "advises"), [("volta_sgemm_64x64_nt", True), ("nvjet_sm90_tst_64x64", False)]
)
def test_a_busy_gpu_without_tensor_cores_gets_advice(tmp_path, name: str, advises: bool) -> None:
    path = write(tmp_path, [step(0, 0, 100), call(1, 0, 1), kernel(1, 2, 99, name)])
    assert any("torch.autocast" in one for one in read_traces([path]).advice) is advises


def test_collectives_that_are_not_hidden(tmp_path) -> None:
    nccl = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    path = write(
        tmp_path,
        [step(0, 0, 100), call(1, 0, 1), call(2, 0.5, 1), kernel(1, 2, 60),
         kernel(2, 50, 99, nccl, stream=20)],
        distributedInfo={"rank": 1, "world_size": 8},
    )  # fmt: skip
    found = read_traces([path])
    assert found.verdict == "The GPU only exchanged data with other GPUs for 39 % of a step."
    assert "no_sync" in found.advice[0]
    assert found.notes == ("The program had 8 ranks, but there are traces of only 1.",)
    assert "exchanging data while computing: 10.0 µs" in text_of(found)


def test_a_trace_without_steps_says_so(tmp_path) -> None:
    path = write(tmp_path, [call(1, 0, 1), kernel(1, 2, 99)])
    text = text_of(read_traces([path]))
    assert "busy for 98 % of the time" in text
    assert "`profiler.step()`" in text
    assert "Parts of the trace" in text


def test_a_cpu_that_is_ahead_is_noted(tmp_path) -> None:
    path = write(
        tmp_path, [step(0, 0, 100), call(1, 0, 1), kernel(1, 2, 100), call(2, 90, 91),
                   kernel(2, 100, 150)],
    )  # fmt: skip
    (note,) = read_traces([path]).notes
    assert note.startswith("The GPU worked for 50.0 µs after the last step")


TIMES = st.integers(0, 60)
SPANS = st.tuples(TIMES, st.integers(0, 30))
ANY = st.lists(
    st.one_of(
        st.builds(lambda n, s: step(n, s[0], s[0] + s[1]), st.integers(0, 3), SPANS),
        st.builds(lambda n, s, d: kernel(n, s[0], s[0] + s[1], device=d), TIMES, SPANS,
                  st.integers(0, 1)),
        st.builds(lambda n, s: kernel(n, s[0], s[0] + s[1], "ncclKernel"), TIMES, SPANS),
        st.builds(lambda n, s: copy(n, s[0], s[0] + s[1]), TIMES, SPANS),
        st.builds(lambda n, s, t: call(n, s[0], s[0] + s[1], tid=t), TIMES, SPANS,
                  st.integers(10, 11)),
        st.builds(lambda s: call(0, s[0], s[0] + s[1], "cudaStreamSynchronize"), SPANS),
        st.builds(lambda s: mark("gloo:all_reduce", s[0], s[0] + s[1]), SPANS),
        st.builds(lambda s: mark("enumerate(DataLoader)#x", s[0], s[0] + s[1]), SPANS),
        st.builds(lambda s: operator("aten::mm", s[0], s[0] + s[1]), SPANS),
    ),
    min_size=1,
    max_size=15,
)  # fmt: skip


@given(events=ANY)
def test_any_trace_can_be_shown(tmp_path_factory: pytest.TempPathFactory, events) -> None:
    found = read_traces([write(tmp_path_factory.getbasetemp(), events)])
    for device in found.devices:
        for parts in (*(one.parts for one in device.steps), device.mean):
            assert sum(asdict(parts.idle).values()) == pytest.approx(parts.idle_s, abs=1e-12)
            shown = parts.compute_s + parts.exposed_collective_s + parts.exposed_copy_s
            assert shown == pytest.approx(parts.busy_s, abs=1e-12)
            assert -1e-12 < parts.idle_s < parts.elapsed_s + 1e-12
    for detail in ("short", "default", "why"):
        assert text_of(found, detail)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::(anonymous namespace)::softmax_warp<float, 4>(float*)", "softmax_warp"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> …"),
        ("void cutlass::Kernel2<cutlass_80_simt>(Params)", "Kernel2"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("(x)", "(x)"),
    ],
)
def test_short_names_of_kernels(name: str, short: str) -> None:
    assert short_kernel(name)[:22] == short[:22]
    assert len(short_kernel(name)) <= 23


def test_short_names_of_operators() -> None:
    assert short_operator("aten::mm") == "mm"
    assert short_operator("## Call CompiledFxGraph fiup3tuanax ##") == "compiled graph"


def test_the_lines_in_the_help_write_a_trace_with_steps(
    teho: Callable[..., subprocess.CompletedProcess[str]], torch_python: Path, tmp_path: Path
) -> None:
    shown = teho("profile", "--help").stdout
    lines = shown[shown.index("    with P.profile(") : shown.index("  With `with_stack=True`")]
    loop = textwrap.dedent(lines).replace("in loader", "in range(30)")
    program = tmp_path / "train.py"
    program.write_text(f"""\
import torch
P = torch.profiler
model = torch.nn.Linear(8, 8)
def train_one_step(batch):
    model(torch.rand(4, 8)).sum().backward()
{loop}""")
    ended = subprocess.run(
        [torch_python, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    (path,) = (tmp_path / "traces").glob("*.json")
    assert read_traces([path]).traces[0].step_count == 3


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], Path]:
    """Return a recording of a program on a GPU, with a trace."""

    def with_trace(name: str) -> Path:
        run = tmp_path / "run"
        shutil.copytree(RUNS / "20261122-100700-tiny-kernels-83zy", run)
        (run / "traces").mkdir()
        shutil.copy(path_of(name), run / "traces" / "c1-1-0-abc123.json.gz")
        (notes,) = (run / "probe").iterdir()
        use = {
            "profile": "abc123", "rank": None, "framework": "torch", "steps": [5, 7],
            "why": "", "file": "1-0-abc123.json", "began_s": 53730.0, "ended_s": 53731.0,
        }  # fmt: skip
        with notes.open("a") as file:
            file.write(json.dumps(use) + "\n")
        return run

    return with_trace


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("narval", "GPU profilers need DISABLE_DCGM=1 in the environment of sbatch or salloc"),
        (
            "fir",
            "Profiling of GPUs with DISABLE_DCGM=1, as on Narval and Rorqual, is not available",
        ),
        ("", "Ask the support of your cluster how a job can switch such a tool off."),
    ],
)
def test_a_tool_that_keeps_the_gpu_is_named_as_the_cluster_does(
    cluster: str, words: str, teho, recorded: Callable[[str], Path]
) -> None:
    """DCGM sets no variable: the trace only has no work of the GPU that the program used."""
    done = teho("profile", recorded("conv-cpu"), env={"CC_CLUSTER": cluster, "COLUMNS": "300"})
    assert "The program used a GPU, but the profiler recorded no work on it." in done.stdout
    assert words in done.stdout
    assert "nsys" not in done.stdout


def test_the_cluster_says_what_its_profilers_need(teho, recorded: Callable[[str], Path]) -> None:
    done = teho("profile", recorded("conv"), env={"CC_CLUSTER": "rorqual", "COLUMNS": "300"})
    assert "teho profile --steps 5:8 --with range -- python train.py 66" in done.stdout
    assert "GPU profilers need DISABLE_DCGM=1 in the environment of sbatch" in done.stdout
