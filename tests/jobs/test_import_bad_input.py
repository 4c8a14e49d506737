"""Logs that are damaged, mixed, repeated or incomplete: what is read, what is said, what is not."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.imports import LOGS, column, imported, notes, only, rows, run_of, written
from support import TEHO
from teho.errors import InputError
from teho.jobs.cells import number_of
from teho.jobs.importer import Importer, importers
from teho.jobs.js1 import Js1, encode_js1, js1_from_json
from teho.jobs.log import Log, Source
from teho.jobs.moments import moment_of
from teho.jobs.positions import positions_by_time
from teho.jobs.writers import writer_count
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.store.pack import seal

HEAD = "timestamp, index, utilization.gpu [%], power.draw [W]"


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Read times without a zone in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def row(second: int, index: int = 0, busy: str = "50 %", power: str = "300.00 W") -> str:
    return f"2026/11/18 10:00:{second:02d}.000, {index}, {busy}, {power}"


def csv(tmp_path: Path, *lines: str) -> Path:
    return written(tmp_path, "gpu.csv", "\n".join(lines) + "\n")


@pytest.mark.parametrize("power", ["187,80 W", "187,80", "187.8", "1.878e2 W", '"187,80 W"'])
def test_decimal_commas_and_units(tmp_path: Path, power: str) -> None:
    directory = only(csv(tmp_path, HEAD, row(0, power=power), row(1, power=power)))
    assert column(directory, "gpu-0", "gpu_power_w") == pytest.approx([187.8, 187.8])


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    lines = (HEAD, row(0), row(1, busy="98 %"))
    directory = only(csv(tmp_path, *(line.replace(", ", separator) for line in lines)))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [50, 98]


def test_lines_of_other_programs_are_skipped(tmp_path: Path) -> None:
    lines = [
        "Loading modules…", "epoch, loss, accuracy, time", HEAD, row(0), "1, 0, 0.5, 0.9",
        "Epoch 1, 0, 55 %, 0.9", row(1), "2026/11/18 10:00:02.000, 0, 7", "Traceback (most recent",
        row(3), "nan, nan, nan, nan",
    ]  # fmt: skip
    directory = only(csv(tmp_path, *lines))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [50, 50, 50]
    assert "7 lines of gpu.csv are not from nvidia-smi and were skipped." in notes(directory)


def test_the_same_log_twice_counts_once(tmp_path: Path) -> None:
    lines = [HEAD, *(row(second) for second in range(20))]
    directory = only(csv(tmp_path, *lines, *lines))
    assert len(rows(directory, "gpu-0")) == 20
    assert "20 rows of gpu.csv are in the file twice, and counted once." in notes(directory)


def test_the_same_import_is_made_once(tmp_path: Path, home: Path) -> None:
    path = csv(tmp_path, HEAD, *(row(second) for second in range(5)), row(59), row(58))
    first = imported(path)
    assert imported(path) == first
    assert imported(path, name="other") != first
    path.write_text(path.read_text() + row(57) + "\n")
    assert imported(path) != first
    assert len(list((home / "runs").iterdir())) == 3


def test_if_one_of_two_recordings_fails_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    later = "2026/11/18 15:00:{:02d}.000, 0, 50 %, 300.00 W"
    lines = [row(second) for second in range(5)] + [later.format(second) for second in range(5)]
    calls: list[object] = []

    def seal_once(run: Path, node: str) -> bool:
        calls.append(run)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return seal(run, node)

    monkeypatch.setattr("teho.jobs.make_recording.seal", seal_once)
    with pytest.raises(OSError, match="No space"):
        imported(csv(tmp_path, HEAD, *lines))
    assert len(calls) == 2
    assert list((home / "runs").iterdir()) == []


def test_rows_out_of_order(tmp_path: Path) -> None:
    lines = [row(second, busy=f"{second} %") for second in (3, 1, 2, 0)]
    directory = only(csv(tmp_path, HEAD, *lines))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0, 1, 2, 3]


def test_machines_that_wrote_into_one_file_are_noticed(tmp_path: Path) -> None:
    lines = [row(second, busy=f"{busy} %") for second in range(20) for busy in (10, 90)]
    with pytest.raises(InputError, match="same time and GPU, but other values"):
        imported(csv(tmp_path, HEAD, *lines))


@pytest.mark.parametrize("machines", [2, 3])
def test_machines_that_wrote_at_different_times_are_noticed(tmp_path: Path, machines: int) -> None:
    lines = [
        f"2026/11/18 10:00:{second:02d}.{37 + 211 * machine + second % 5:03d}, 0, {machine} %, 9 W"
        for second in range(60)
        for machine in range(machines)
    ]
    with pytest.raises(InputError, match=f"{machines} programs wrote the rows of GPU 0"):
        imported(csv(tmp_path, HEAD, *lines))


def test_one_program_with_irregular_times_is_one() -> None:
    for seed in range(300):
        rng = Random(seed)
        times = [0.0]
        for _ in range(rng.randrange(5, 300)):
            times.append(times[-1] + 5 * (1 + rng.choice([0.0, 0.001, 0.01, 0.3, 2.0])))
        assert writer_count(times) == 1, seed


def test_machines_in_one_file_with_host_names(tmp_path: Path) -> None:
    lines = [
        f"{host}, {row(second, busy=busy)}"
        for second in range(12)
        for host, busy in (("g1", "10 %"), ("g2", "90 %"))
    ]
    directory = only(csv(tmp_path, f"hostname, {HEAD}", *lines))
    assert [node.name for node in run_of(directory).nodes] == ["g1", "g2"]
    busy = column(directory, "gpu-0", "gpu_busy_percent")
    assert sorted(set(busy)) == [10, 90]


def test_machines_in_one_file_with_uuids(tmp_path: Path) -> None:
    lines = [
        f"{row(second, busy=busy)}, {uuid}"
        for second in range(12)
        for uuid, busy in (("GPU-a", "10 %"), ("GPU-b", "90 %"))
    ]
    directory = only(csv(tmp_path, f"{HEAD}, uuid", *lines))
    assert column(directory, "GPU-a", "gpu_busy_percent") == [10] * 12
    assert column(directory, "GPU-b", "gpu_busy_percent") == [90] * 12


def test_a_gap_has_no_rows(tmp_path: Path) -> None:
    lines = [row(second) for second in (*range(10), *range(40, 50))]
    directory = only(csv(tmp_path, HEAD, *lines))
    spans = [one["span_s"] for one in rows(directory, "gpu-0")]
    assert len(spans) == 20
    assert max(spans) == 2


def test_one_sample(tmp_path: Path) -> None:
    directory = only(csv(tmp_path, HEAD, row(0)))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [50]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("[N/A]", Reason.UNSUPPORTED),
        ("[Not Supported]", Reason.UNSUPPORTED),
        ("[Insufficient Permissions]", Reason.FORBIDDEN),
        ("[Unknown Error]", Reason.FAILED),
        ("[GPU is lost]", Reason.FAILED),
        ("ERR!", Reason.FAILED),
        ("", Reason.UNRECORDED),
    ],
)
def test_cells_without_a_number_have_their_reason(
    tmp_path: Path, cell: str, reason: Reason
) -> None:
    directory = only(csv(tmp_path, HEAD, row(0, power=cell), row(1, power=cell)))
    (node,) = run_of(directory).nodes
    (found,) = [one for one in node.absences if one.metric == "gpu_power_w"]
    assert found.missing.reason is reason
    assert found.missing.detail.startswith("nvidia-smi printed")
    assert column(directory, "gpu-0", "gpu_power_w") == [None, None]


def test_gzip_utf16_and_windows_lines(tmp_path: Path) -> None:
    text = "\r\n".join([HEAD, row(0), row(1)])
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv").write_bytes(text.encode("utf-16"))
    (tmp_path / "c.csv").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\xff\xfe\x00")
    for path in sorted(tmp_path.glob("*.csv*")):
        assert column(only(path), "gpu-0", "gpu_busy_percent")[0] == 50


def test_time_lines_between_rows_without_times(tmp_path: Path) -> None:
    lines = []
    for second in range(0, 30, 10):
        lines += [f"Wed Nov 18 10:00:{second:02d} UTC 2026", "index, utilization.gpu [%]", "0, 7 %"]
    directory = only(csv(tmp_path, *lines))
    assert [one["span_s"] for one in rows(directory, "gpu-0")] == [10, 10, 10]
    assert run_of(directory).started_at.isoformat() == "2026-11-18T09:59:50+00:00"


def test_several_rounds_below_one_time_need_the_time_between_them(tmp_path: Path) -> None:
    lines = ["Wed Nov 18 10:00:00 UTC 2026", "index, utilization.gpu [%]", "0, 7 %", "0, 9 %"]
    path = csv(tmp_path, *lines)
    with pytest.raises(InputError, match="--every"):
        imported(path)
    directory = only(path, every_s=5.0)
    assert column(directory, "gpu-0", "gpu_busy_percent") == [7, 9]
    end = run_of(directory).end
    assert end is not None
    assert end.at.isoformat() == "2026-11-18T10:00:05+00:00"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("hello\nworld\n", "no format that Teho recognises"),
        ("a,b,c\n1,2,3\n", "no format that Teho recognises"),
        ("index, name\n0, A100\n", "no format that Teho recognises"),
        (HEAD, "no samples of nvidia-smi"),
        (f"{HEAD}\nnot a row\n", "no samples of nvidia-smi"),
        ("index, utilization.gpu [%]\n0, 5 %\n", "`--every`"),
        ("utilization.gpu [%]\n5 %\n6 %\n", "`--gpus 1`"),
        ("JS1:Short", "too short for Jobstats"),
        ("JS1:H4sI", "cannot be read"),
        ('{"nodes": {"g1": {"cpus": 1}}}', "the run time is not in it"),
        ('{"status":"error","data":{"resultType":"x"},"error":"parse error"}', "parse error"),
        ('{"status":"success","data":{"resultType":"vector","result":[]}}', "of one moment"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "no samples"),
    ],
)
def test_what_cannot_be_imported_says_why(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, "log", text)
    with pytest.raises(InputError, match=words) as raised:
        imported(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "check the program that writes this file"),
        ("hello\nworld\n", "`teho import --help` names the programs"),
        ("2026-11-18 10:00:00,123 INFO 3 steps\n", "`teho import --help` names the programs"),
        ('{"a": 1, "b": [2, 3]}\n', "`teho import --help` names the programs"),
        ("2026/11/18 10:00:00.000, 0, 37 %, 412 MiB\n", "add `--columns`"),
        ("0, 37, [N/A]\n", "add `--columns`"),
        ("37 %\n", "add `--columns`"),
    ],
)
def test_columns_are_advised_only_if_a_line_has_values(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(InputError) as raised:
        imported(written(tmp_path, "log", text))
    assert words in raised.value.next_step


@pytest.mark.parametrize(
    ("host", "next_step"),
    [("a/b c", "`--host a-b-c`"), ("", "`--host NAME`"), ("-g1", "`--host g1`")],
)
def test_a_host_name_is_refused_and_not_changed(
    teho, tmp_path: Path, home: Path, host: str, next_step: str
) -> None:
    failed = teho("import", csv(tmp_path, HEAD, row(0), row(1)), f"--host={host}")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert f"--host {host!r} is not a host name; expected letters" in failed.stderr
    assert f"Next: {next_step}" in failed.stderr
    assert not home.exists()


def test_series_of_several_jobs(tmp_path: Path) -> None:
    text = (LOGS / "prometheus-slurm-job-exporter.json").read_text()
    both = written(tmp_path, "q.json", text + text.replace('"4711"', '"4712"'))
    with pytest.raises(InputError, match="the series of 2 jobs: 4711, 4712"):
        imported(both)


def test_a_summary_is_not_mixed_with_samples(tmp_path: Path) -> None:
    path = csv(tmp_path, HEAD, row(0), row(1))
    with pytest.raises(InputError, match="one of which is a summary of Jobstats"):
        imported(path, LOGS / "jobstats.json")


def test_given_columns_need_a_known_one(tmp_path: Path) -> None:
    path = written(tmp_path, "log", "1, 2\n")
    with pytest.raises(InputError, match="--columns a,b: no column that Teho uses"):
        imported(path, columns="a,b")


def test_a_given_host_is_not_given_to_several(tmp_path: Path) -> None:
    lines = [f"{host}, {row(second)}" for second in range(3) for host in ("g1", "g2")]
    path = csv(tmp_path, f"hostname, {HEAD}", *lines)
    with pytest.raises(InputError, match="2 hosts: g1, g2"):
        imported(path, host="g3")


def test_a_counter_that_is_never_available_costs_no_sample(tmp_path: Path) -> None:
    head = f"{HEAD}, ecc.errors.corrected.volatile.total"
    lines = [f"{row(second)}, [N/A]" for second in range(3)]
    assert len(rows(only(csv(tmp_path, head, *lines)), "gpu-0")) == 3


def test_a_recording_that_cannot_be_completed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def refuse(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("teho.jobs.make_recording.seal", refuse)
    with pytest.raises(OSError, match="No space"):
        imported(csv(tmp_path, HEAD, row(0), row(1)))
    assert list((home / "runs").iterdir()) == []


@pytest.mark.parametrize("name", [path.name for path in LOGS.iterdir() if path.suffix != ".md"])
def test_every_log_cut_off_anywhere_is_read_or_refused(tmp_path: Path, name: str) -> None:
    content = (LOGS / name).read_bytes()
    path = tmp_path / name
    for part in range(1, 8):
        path.write_bytes(content[: len(content) * part // 8])
        try:
            directories = imported(path, every_s=1.0, gpus=1)
        except InputError:
            continue
        assert all(run_of(one).end for one in directories)


BEGINNINGS = [
    "", HEAD, "# gpu pwr\n0 1", "#Entity GPUTL\nGPU 0 1", '{"card0": {"GPU use (%)": "1"}}',
    "timestamp,gpu,gfx_activity\n", '{"resultType": "matrix", "data": ', '{"nodes": {',
    '{"_timestamp": 1795165201.25, "system.gpu.0.gpu": 80}',
]  # fmt: skip
PARTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["0", "GPU", "card0", "1795165201", "2026/11/18 10:00:00", "N/A", "7 %", "{", "}"]
    ),
)


def check_read(importer: Importer, source: Source) -> None:
    """Read a file: the samples have metrics of Teho, or the error names the file."""
    log, named = Log(tool=importer.title), source.path.name
    try:
        log = importer.read(source)
    except InputError as error:
        named = error.found
    assert source.path.name in named
    assert log.tool
    for sample in log.samples:
        assert sample.values.keys() <= METRICS_BY_NAME.keys()
        for value in sample.values.values():
            assert isinstance(value, Missing) or isfinite(value)


@given(st.sampled_from(BEGINNINGS), st.lists(PARTS), st.sampled_from([" ", ", ", ",", "\n"]))
def test_any_text_is_read_or_refused(beginning: str, parts: list[str], separator: str) -> None:
    source = Source(Path("of-a-job"), f"{beginning}\n{separator.join(parts)}", 0.0)
    for importer in importers().values():
        if importer.recognises(source):
            check_read(importer, source)


NAMES = st.sampled_from(
    ["data", "result", "resultType", "metric", "values", "timestamps", "__name__", "gpu", "card0",
     "GPU use (%)", "usage", "gfx_activity", "value", "gpu_data", "timestamp", "_timestamp",
     "system.gpu.0.gpu", "nodes", "total_time", "status"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(0, 2 * 10**9),
    st.sampled_from(["matrix", "DCGM_FI_DEV_GPU_UTIL", "0", "7 %", "error", "GPU-1"]),
)  # fmt: skip
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, NESTED, max_size=5))
def test_any_json_is_read_or_refused(value: dict[str, object]) -> None:
    source = Source(Path("of-a-job"), json.dumps(value), 0.0)
    for importer in importers().values():
        check_read(importer, source)


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("2026/11/26 18:58:17.250", 1795719497.25),
        ("2026-11-26T18:58:17+02:00", 1795712297.0),
        ("2026-11-26_18:58:17", 1795719497.0),
        ("2026-11-26T18:58:17,123456789+00:00", 1795719497.123456789),
        ("Thu Nov 26 18:58:17 UTC 2026", 1795719497.0),
        ("Thu 26 Nov 2026 06:58:17 PM EET", 1795712297.0),
        ("Thu Nov 26 12:00:00 AM CET 2026", 1795647600.0),
        ("1795719497", 1795719497.0),
        ("1795719497.25", 1795719497.25),
        ("1795719497250", 1795719497.25),
        ("1795719497250000000", 1795719497.25),
    ],
)
def test_times(text: str, at_s: float) -> None:
    moment = moment_of(text)
    assert moment is not None
    assert moment.at_s == pytest.approx(at_s, abs=1e-5)


def test_a_line_with_only_a_clock_is_no_time_of_rows(tmp_path: Path) -> None:
    lines = [HEAD, row(0), "10:00:00", "12:30:00 GPU DONE", row(1)]
    directory = only(csv(tmp_path, *lines))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [50, 50]
    assert "2 lines of gpu.csv are not from nvidia-smi" in notes(directory)


@pytest.mark.parametrize(
    "text",
    ["", "12", "2026", "Epoch 3", "0, 3", "Step 10:00", "2026/13/45 10:00:00", "10:00:00 done"],
)
def test_other_text_is_no_time(text: str) -> None:
    assert moment_of(text) is None


@given(st.floats(0, 1e9), st.sampled_from(["", " W", " %", "W", " MiB"]), st.booleans())
def test_numbers_are_read_as_they_were_printed(value: float, unit: str, has_comma: bool) -> None:
    text = f"{value:.3f}".replace(".", "," if has_comma else ".")
    factor = 2**20 if "MiB" in unit else 1
    assert number_of(text + unit, 1.0, "tool") == pytest.approx(round(value, 3) * factor)


def test_text_is_no_number() -> None:
    assert number_of("0.5 loss of 3", 1.0, "tool") is None
    assert isinstance(number_of("N/A", 1.0, "tool"), Missing)


@given(
    st.integers(1, 16), st.integers(3, 40), st.floats(0.5, 60), st.randoms(use_true_random=False)
)
def test_rounds_are_found_by_their_times(
    gpus: int, count: int, period_s: float, random: Random
) -> None:
    times = [
        round_ * period_s + position * 0.004 + random.random() * 0.001
        for round_ in range(count)
        for position in range(gpus)
    ]
    assert positions_by_time(times) == [*range(gpus)] * count


def test_one_gpu_with_pauses_is_one_gpu() -> None:
    times = [0.0, 1.0, 2.0, 3.1, 4.0, 9.0, 10.0, 11.2, 30.0, 31.0]
    assert positions_by_time(times) == [0] * len(times)


def test_rounds_of_different_lengths_are_refused() -> None:
    times = [0.0, 0.004, 1.0, 2.0, 2.004, 2.008, 3.0, 4.0, 4.004]
    assert positions_by_time(times) is None


def test_standard_input(home: Path) -> None:
    found = js1_from_json((LOGS / "jobstats.json").read_bytes())
    assert isinstance(found, Js1)
    summary = encode_js1(found)
    done = subprocess.run(
        [*TEHO, "import", "-"], input=f"AdminComment\n{summary}\n",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    run = run_of(home / "runs" / done.stdout.strip())
    assert run.imported is not None
    assert run.imported.files == ("stdin",)
    assert run.host == "della-k1g1"


def test_the_command_prints_the_id_and_its_errors_name_the_next_step(tmp_path: Path) -> None:
    path = csv(tmp_path, "index, utilization.gpu [%]", "0, 5 %", "0, 6 %")
    failed = subprocess.run([*TEHO, "import", path], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "Next: add `--every 5s`, with the number after -l or -d" in failed.stderr
    done = subprocess.run(
        [*TEHO, "import", path, "--every", "5s", "--name", "baseline"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    listed = subprocess.run([*TEHO, "list"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in listed.stdout
    assert "imported" in listed.stdout
