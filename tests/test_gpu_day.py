"""The GPU day: its stages run without a GPU and a network, and bad input is said in their files."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from drawn import cases_that_run
from support import FRAMEWORKS

ROOT = Path(__file__).parents[1]
GPU = ROOT / "benchmarks" / "gpu"
sys.path[:0] = [str(GPU), str(GPU.parent)]

import day
import keep
import nvml_stub
import page
import smi
import stage_truth
import wheels
from install import InstallError, install
from result import STAGES, Piece, Result, Row, read_result, write_result

import stage as stage_module
from stage import LackingError, OutOfTimeError, Stage

PYTHON = FRAMEWORKS / "bin" / "python"
NEEDED = (
    "click", "jinja2", "markdown-it-py", "markupsafe", "mdurl", "msgspec", "nvidia-ml-py",
    "pyarrow", "pygments", "rich", "tomli-w", *(["tomli"] if sys.version_info < (3, 11) else []),
)  # fmt: skip


def no_namespace() -> str:
    """Return why no program can be started without a network; empty if it can."""
    try:
        done = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return "there is no unshare"
    return "" if done.returncode == 0 else "unshare -n is not allowed here"


def repack(name: str, folder: Path) -> None:
    """Make a wheel of what is installed, so that no test needs an index."""
    told = importlib.metadata.distribution(name)
    stem = f"{re.sub(r'[-_.]+', '_', told.metadata['Name'])}-{told.version}"
    (tag, *_) = re.findall(r"^Tag: (\S+)", told.read_text("WHEEL") or "", re.MULTILINE)
    files = [
        path
        for path in told.files or ()
        if path.parts[0] != ".."
        and path.suffix != ".pyc"
        and not {"include", "tests", "src"} & set(path.parts)
    ]
    record = next(path for path in files if path.name == "RECORD")
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w") as wheel:
        for path in files:
            if path != record:
                wheel.write(path.locate(), str(path))
        wheel.writestr(str(record), "".join(f"{path},,\n" for path in files))


def stages_that_run(request) -> set[str]:
    """Return the drawn stages; `truth`, whose file other tests need, is always one of them."""
    return {"truth", *map(str, cases_that_run(request, "name"))}


@pytest.fixture(scope="module")
def rehearsal(request, tmp_path_factory) -> tuple[Path, str]:
    """Rehearse the drawn stages from a folder of wheels; say why if there was a network."""
    if not PYTHON.exists():
        pytest.skip("no .frameworks: `make test` makes it")
    folder = tmp_path_factory.mktemp("carried")
    try:
        nvml_stub.build(folder / "lib")
    except nvml_stub.NoCompilerError as error:
        pytest.skip(str(error))
    for name in ("Makefile", "src", "benchmarks", "tests/stubs", "tests/data/nvml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    theirs = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    version = theirs.stdout.strip()
    if version != "{}.{}".format(*sys.version_info):
        pytest.skip(f".frameworks has Python {version}, whose wheels are not at hand")
    place = folder / "build" / "gpu" / f"wheels-{version}"
    place.mkdir(parents=True)
    for name in NEEDED:
        repack(name, place)
    why = no_namespace()
    stages = " ".join(stages_that_run(request))
    make = ["make", "gpu", "REHEARSE=1", "FIRST=1", f"STAGE={stages}", f"GPU_PYTHON={PYTHON}"]
    # `lo` is down in a new namespace, and what a program binds to on 127.0.0.1 would fail.
    up = '(ip link set lo up || ifconfig lo up) 2>/dev/null; exec "$@"'
    done = subprocess.run(
        make if why else ["unshare", "-n", "sh", "-c", up, "sh", *make],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "build" / "gpu" / "rehearsal", why


def test_a_rehearsal_needs_no_network(request, rehearsal) -> None:
    folder, why = rehearsal
    if why:
        pytest.skip(f"the network was there: {why}")
    assert {path.stem for path in folder.glob("*.json")} == stages_that_run(request)


@pytest.mark.drawn(1, always=("truth",))
@pytest.mark.parametrize("name", STAGES)
def test_each_stage_leaves_its_file_and_its_section(name: str, rehearsal) -> None:
    folder, _ = rehearsal
    content = (folder / f"{name}.json").read_bytes()
    result = msgspec.json.decode(content, type=Result)
    assert result == read_result(folder / f"{name}.json")
    assert (result.state, result.why, result.is_rehearsal) == ("ended", "", True)
    assert result.machine["GPU"] == "1 × NVIDIA H100 80GB HBM3"
    assert str(folder.parents[2]) not in content.decode()
    states = {piece.name: f"{piece.state}: {piece.why}" for piece in result.pieces}
    assert result.pieces[0].state == "done", states
    assert result.pieces[0].rows
    assert all(row.why for row in result.pieces[0].rows if row.teho is None and row.other is None)
    result.is_rehearsal = False
    text = page.page([result])
    is_shown = name != "strangers"  # docs/blind.md has the verdicts on its programs
    assert all((f"### {piece.name}\n" in text) == is_shown for piece in result.pieces)


def test_what_is_left_is_within_the_limits(rehearsal) -> None:
    files = list(rehearsal[0].rglob("*"))
    assert len(files) <= 8
    assert all(path.stat().st_size <= 16 * 2**20 for path in files)


def test_a_rehearsal_is_never_written_into_the_docs(rehearsal) -> None:
    before = page.PAGE.read_text()
    with pytest.raises(SystemExit, match="is a rehearsal"):
        keep.main([str(rehearsal[0])])
    assert page.PAGE.read_text() == before
    with pytest.raises(ValueError, match="a rehearsal"):
        page.page([read_result(rehearsal[0] / "truth.json")])


def options(tmp_path: Path) -> Namespace:
    return Namespace(
        stage="truth", rehearse=True, python="python3", out=tmp_path, kept=tmp_path, first=None
    )


def a_stage(tmp_path: Path, left_s: float = 100.0) -> Stage:
    return Stage(options(tmp_path), dict(os.environ), tmp_path, time.monotonic() + left_s)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (LackingError("no such thing"), "skipped"),
        (OutOfTimeError("too late"), "out of time"),
        (KeyError("surprise"), "failed"),
    ],
)
def test_a_piece_that_fails_keeps_its_rows_and_the_next_one_comes(
    error: Exception, state: str, tmp_path: Path
) -> None:
    stage = a_stage(tmp_path)

    def measure():
        yield Row("before", teho=1.0)
        raise error

    stage.piece("one", measure)
    stage.piece("two", lambda: [Row("after")])
    stage.end()
    result = read_result(tmp_path / "truth.json")
    assert [piece.state for piece in result.pieces] == [state, "done"]
    assert result.pieces[0].rows == [Row("before", teho=1.0)]
    assert str(error) in result.pieces[0].why


def test_the_reason_that_stops_a_piece_is_reported(tmp_path: Path, monkeypatch) -> None:
    def never():
        raise AssertionError

    stage = a_stage(tmp_path)
    stage.no_gpu = "the driver hangs"
    assert stage.piece("one", never).why == "no GPU: the driver hangs"
    assert stage.piece("two", list, needs_gpu=False).state == "done"
    assert a_stage(tmp_path, 0.1).piece("three", never).state == "out of time"
    full = shutil._ntuple_diskusage(100, 99, 1)
    monkeypatch.setattr(stage_module.shutil, "disk_usage", lambda _: full)
    assert "MiB of disk are free" in stage.piece("four", never, needs_gpu=False).why


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stage_module, "_INTERRUPTED_S", 0.2)
    stage = a_stage(tmp_path)
    with pytest.raises(OutOfTimeError, match="was ended after"):
        stage.run(["sh", "-c", f"sleep 987 & echo $! > {tmp_path}/pid; wait"], limit_s=1.0)
    assert is_gone(int((tmp_path / "pid").read_text()))
    with pytest.raises(LackingError, match="there is no no-such-command"):
        stage.run(["no-such-command"])
    with pytest.raises(LackingError, match="No module named 'nowhere'"):
        stage.run([sys.executable, "-c", "import nowhere"])


def is_gone(pid: int) -> bool:
    """Tell whether a process ends; one that was killed on a busy machine takes a moment."""
    end_s = time.monotonic() + 10.0
    while time.monotonic() < end_s:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("line", "piece", "why"),
    [
        ("init DRIVER_NOT_LOADED", "how often each signal changes", "its driver is not loaded"),
        ("fail nvmlGpmSampleGet * NO_PERMISSION", "teho devices", "forbidden:"),
        ("mig 0 2", "teho devices", "MIG"),
    ],
)
def test_what_is_missing_is_in_the_file(line: str, piece: str, why: str, tmp_path: Path) -> None:
    result = one_stage("signals", tmp_path, ["gpus 1", line])
    assert result.state == "ended"
    found = result.piece(piece)
    assert found is not None
    assert why in " ".join([found.why, *(row.why for row in found.rows)])


def test_a_driver_that_hangs_costs_the_gpu_only(tmp_path: Path) -> None:
    (library := tmp_path / "lib").mkdir()
    source = tmp_path / "hangs.c"
    names = ("nvmlInit_v2", "nvmlInitWithFlags")
    lines = [f"int {name}(void) {{ for (;;) sleep(99); }}" for name in names]
    source.write_text("\n".join(["#include <unistd.h>", *lines, ""]))
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    target = library / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source], check=True)
    env = {"LD_LIBRARY_PATH": str(library)}
    result = run_one_stage("truth", tmp_path, env, seconds=10.5)
    assert result.state == "ended"
    assert {piece.state for piece in result.pieces} == {"skipped"}
    assert "`teho devices` gave no answer" in result.pieces[0].why


def one_stage(name: str, tmp_path: Path, lines: list[str]) -> Result:
    """Run a stage over a driver of one's own, as with a real one."""
    try:
        library = nvml_stub.build(tmp_path / "lib")
    except nvml_stub.NoCompilerError as error:
        pytest.skip(str(error))
    scenario = tmp_path / "scenario.txt"
    scenario.write_text("\n".join([*lines, ""]))
    return run_one_stage(name, tmp_path, nvml_stub.environment(library, scenario), seconds=30)


def run_one_stage(name: str, tmp_path: Path, env: dict[str, str], seconds: float) -> Result:
    (tmp_path / "work").mkdir()
    argv = [sys.executable, GPU / "one_stage.py", name, "--out", tmp_path, "--seconds", seconds]
    argv += ["--kept", tmp_path / "kept", "--python", sys.executable, "--work", tmp_path / "work"]
    subprocess.run(list(map(str, argv)), env={**os.environ, **env}, check=True, capture_output=True)
    return read_result(tmp_path / f"{name}.json")


def test_what_no_sample_has_is_missing_with_the_reason(monkeypatch) -> None:
    monkeypatch.setattr(stage_truth.Window, "__post_init__", lambda self: None)
    monkeypatch.setattr(stage_truth.Window, "values", lambda *_: [])
    signals = {"gpu_busy_percent": {"type": "missing", "reason": "unsupported", "detail": "MIG"}}
    window = stage_truth.Window(Path(), 0.0, 1.0, signals)
    row = window.row("gpu_busy_percent", 100.0)
    assert (row.teho, row.other, row.why) == (None, 100.0, "unsupported: MIG")


def test_without_a_known_peak_the_rate_is_shown() -> None:
    class Window:
        def row(self, metric: str, truth: float | None, why: str = "") -> Row:
            return Row(metric, other=truth, why=why)

    told = {"flop_a_call": 1e12, "count": 10, "elapsed_s": 2.0}
    first = next(iter(stage_truth._rate("matmul-bf16", told, Window(), None, "X1")))
    assert first.other is None
    assert first.why == "achieved: 5 TFLOP/s, no peak of X1 is known"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time; time.sleep(99)", "did not end by itself"),
        ("raise OSError('no space left')", "ended with 1: OSError: no space left"),
        ("import os; os.kill(os.getpid(), 9)", "ended with -9"),
        ("pass", "it left no file"),
    ],
)
def test_a_stage_that_breaks_has_a_file_that_says_so(
    code: str, why: str, tmp_path: Path, monkeypatch
) -> None:
    if "sleep" in code:
        monkeypatch.setattr(day, "_GRACE_S", -4.8)
    argv = [sys.executable, "-c", code]
    day.run_stage("bench", argv, tmp_path, 5.0, is_rehearsal=True)
    result = read_result(tmp_path / "bench.json")
    assert result.state == "broken"
    assert why in result.why
    assert result.is_rehearsal


def test_what_a_stage_leaves_behind_is_ended_whatever_its_session(tmp_path: Path) -> None:
    code = (
        "import subprocess as s; c = s.Popen(['sleep', '986'], start_new_session=True);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(c.pid))"
    )
    day.run_stage("bench", [sys.executable, "-c", code], tmp_path, 20.0, is_rehearsal=True)
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_the_archive_leaves_out_what_has_no_room(tmp_path: Path, monkeypatch) -> None:
    kept = tmp_path / "kept"
    for name, size in (("truth/small", 100), ("faults/large", 50_000)):
        (kept / name).mkdir(parents=True)
        (kept / name / "rows").write_bytes(os.urandom(size))
    monkeypatch.setattr(day, "LARGEST_BYTES", 10_000)
    result = Result("faults", "2026-11-23T12:00:00+00:00")
    day.pack(result, kept, tmp_path)
    assert result.files == {"large": -1}
    assert (tmp_path / "recordings.tar.gz").stat().st_size < 10_000


def real(**fields) -> Result:
    rows = [Row("GPU busy", "%", teho=99.0, other=100.0, whose="truth", why="a | b <c>")]
    pieces = [Piece("block", rows=rows), Piece("copy", "skipped", "no time")]
    machine = {"GPU": "1 × NVIDIA H200", "driver": "580.1"}
    told = {"machine": machine, "pieces": pieces, "state": "ended", **fields}
    return Result("truth", "2026-11-23T12:00:00+00:00", **told)


def test_the_page_is_written_from_the_files(tmp_path: Path) -> None:
    write_result(real(), tmp_path)
    text = page.page([read_result(tmp_path / "truth.json")])
    assert "*The machine: GPU: 1 × NVIDIA H200; driver: 580.1.*" in text
    assert "*Stage `truth`, measured on 2026-11-23*" in text
    assert "| GPU busy | % | 99 | truth: 100 | -1 | a \\| b &lt;c> |" in text
    assert "This part was not completed (*skipped*): no time." in text
    assert "These stages have not been run yet: `signals`, `faults`" in text
    cut_off = page.page([real(state="running")])
    assert (
        "**The state of this stage is *running*.** Until the stage stopped, it had measured:"
        in cut_off
    )


def test_rows_that_differ_only_in_their_name_are_one_row() -> None:
    rows = [Row(f"GPM {number}", teho=0.0) for number in range(9)]
    rows += [Row("power", "W", teho=81.0), *(Row(f"link {one}", teho=1.0) for one in range(4))]
    text = page.page([real(pieces=[Piece("calls", rows=rows)])])
    assert "| 9 signals, from *GPM 0* to *GPM 8* |  | 0 |" in text
    assert "| GPM" not in text
    assert "| power | W | 81 |" in text
    assert all(f"| link {one} |" in text for one in range(4))


def test_facts_that_differ_between_stages_are_in_their_sections() -> None:
    other = real(machine={"GPU": "1 × NVIDIA H200", "driver": "590.2"})
    other.stage = "signals"
    text = page.page([real(), other])
    assert "*The machine: GPU: 1 × NVIDIA H200.*" in text
    assert "*Stage `signals`, measured on 2026-11-23; driver: 590.2*" in text
    assert "*Stage `truth`, measured on 2026-11-23; driver: 580.1*" in text


def test_without_results_the_page_says_so() -> None:
    text = page.page([])
    assert "No stage has been run on a real GPU yet" in text
    assert "make gpu-wheels" in text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "teho.gpu-day/2", "pieces": []}'])
def test_a_file_of_another_shape_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"truth\.json"):
        read_result(path)


def test_the_shape_is_documented() -> None:
    readme = (GPU / "README.md").read_text()
    for noun in (Result, Piece, Row):
        for name in noun.__dataclass_fields__:
            assert f"`{name}`" in readme, f"{noun.__name__}.{name}"


def test_nvidia_smi_is_read() -> None:
    xml = (
        "<?xml version='1.0'?><!DOCTYPE nvidia_smi_log SYSTEM 'x.dtd'><nvidia_smi_log><gpu>"
        "<utilization><gpu_util>97 %</gpu_util><memory_util>N/A</memory_util></utilization>"
        "<fb_memory_usage><used>512 MiB</used></fb_memory_usage>"
        "<power_readings><power_draw>70.25 W</power_draw></power_readings></gpu></nvidia_smi_log>"
    )
    found = smi.query_figures(xml)
    assert found["gpu_busy_percent"] == 97
    assert found["gpu_memory_busy_percent"] == "N/A"
    assert found["gpu_memory_used_bytes"] == 512 * 2**20
    assert found["gpu_power_w"] == 70.25
    assert found["gpu_sm_clock_mhz"] == "not printed"
    table = "# gpu  pwr  sm\n# Idx    W   %\n    0   70  10\n    0   80   -\n    1  500  99\n"
    figures = smi.dmon_figures(table)
    assert (figures["gpu_power_w"], figures["gpu_busy_percent"]) == (75.0, 10.0)
    for broken in ("", "No devices were found"):
        with pytest.raises(ValueError, match="nvidia-smi"):
            smi.query_figures(broken)
        with pytest.raises(ValueError, match="nvidia-smi"):
            smi.dmon_figures(broken)


def test_what_is_there_already_is_not_carried() -> None:
    has = wheels.has_of("PyArrow==23.0.0\nrich==9.0\nsix==1.17.0\nteho @ file:///x\n")
    assert wheels.is_there("pyarrow-26.0.1-cp312-cp312-manylinux_2_28_x86_64.whl", has)
    assert not wheels.is_there("rich-15.0.0-py3-none-any.whl", has)  # older than Teho takes
    assert wheels.is_there("six-1.17.0-py2.py3-none-any.whl", has)
    assert not wheels.is_there("msgspec-0.22.0-cp312-cp312-any.whl", has)


def test_without_wheels_the_next_step_is_shown(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="next: `make gpu-wheels PY="):
        install(Path(sys.executable), tmp_path)


def test_an_unknown_stage_is_named() -> None:
    done = subprocess.run(
        [sys.executable, GPU / "day.py", "truht"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no stage 'truht', expected some of signals, truth" in done.stderr


def test_places_of_the_machine_have_neutral_names(monkeypatch: pytest.MonkeyPatch) -> None:
    import result as module

    monkeypatch.setattr(module.sys, "prefix", "/scratch/day/venv-3.12")
    site = "/appl/torch/.venv/lib/python3.12/site-packages"
    monkeypatch.setattr(module.sys, "path", ["/usr/lib/python3.12/site-packages", site])
    text = f'{{"command":["/appl/torch/.venv/bin/python3"],"directory":"{ROOT}","file":"{site}/x"}}'
    assert module.without_places(text) == (
        '{"command":["/venv/bin/python3"],"directory":"/teho",'
        '"file":"/venv/lib/python3.12/site-packages/x"}'
    )
    assert module.without_places(f"{ROOT}-2/x") == f"{ROOT}-2/x"
