"""`teho export` to a store: nothing is lost, nothing comes twice, and the job is in one series."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from metric_store import MetricStore, served

from jobs.imports import LOGS, only, rows, run_of
from jobs.test_export import log, recorded, values_of
from support import FRAMEWORKS, TEHO, lacks_framework, wait_for
from teho.config.settings import load_settings
from teho.errors import StoreBusyError, StoreError
from teho.jobs.export import push as push_module
from teho.jobs.export.dashboards import dashboard_json, dashboards
from teho.jobs.export.formats import FORMATS
from teho.jobs.export.lock import locked
from teho.jobs.export.openmetrics import openmetrics
from teho.jobs.export.parts import parts_of
from teho.jobs.export.push import Pushed, push
from teho.jobs.http import Store, request
from teho.store.protobuf import bytes_field, int_field

Values = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(push_module, "_FIRST_PAUSE_S", 0.0)


def sent(
    store: MetricStore, *directories: Path, form: str = "remote-write", wait_s: float = 0.0
) -> Pushed:
    every = [recorded(directory) for directory in directories]
    home = load_settings().home_directory
    return push(every, Store(store.address), form, home, wait_s, [])


def of_gpus(values: Values) -> dict[tuple[str, str, float], float]:
    """Return every value by metric, GPU and time; a series that comes twice has values twice."""
    found = {}
    for labels, pairs in values.items():
        own = dict(labels)
        if own["__name__"] == "teho_job_info" or "uuid" not in own:
            continue
        name = own["__name__"].removeprefix("teho_").removesuffix("_total")
        for at_s, value in pairs:
            assert (name, own["uuid"], at_s) not in found
            found[name, own["uuid"], round(at_s, 3)] = value
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_has_every_value_once(form: str, tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    with served(MetricStore([])) as store:
        done = sent(store, directory, form=form)
    assert of_gpus(store.values()) == values_of(directory)
    assert done.runs == 1
    assert done.values == sum(len(one) for one in store.values().values())
    path, headers, _ = store.written[0]
    assert path == FORMATS[form].path
    assert FORMATS[form].headers.items() <= headers.items()


def test_counters_are_sums_in_otlp(tmp_path: Path) -> None:
    with served(MetricStore([])) as store:
        sent(store, only(log(tmp_path, 30)), form="otlp")
    kinds = {dict(labels)["__name__"]: dict(labels)["kind"] for labels in store.values()}
    assert kinds["teho_gpu_ecc_corrected"] == "sum"
    assert kinds["teho_gpu_power_w"] == "gauge"


_DECODE = """
import gzip, json, sys
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
request = service.ExportMetricsServiceRequest()
request.ParseFromString(gzip.decompress(sys.stdin.buffer.read()))
(scope,) = request.resource_metrics[0].scope_metrics
points = [(m.name, p) for m in scope.metrics for p in getattr(m, m.WhichOneof("data")).data_points]
print(json.dumps([[name, p.time_unix_nano, p.as_double] for name, p in points]))
"""


@pytest.mark.skipif(
    bool(lacks_framework("opentelemetry/proto")), reason=lacks_framework("opentelemetry/proto")
)
def test_the_definition_of_otlp_reads_the_same_values(tmp_path: Path) -> None:
    with served(MetricStore([])) as store:
        sent(store, only(log(tmp_path, 60)), form="otlp")
    ((_, _, body),) = store.written
    python = FRAMEWORKS / "bin" / "python"
    done = subprocess.run([python, "-c", _DECODE], input=body, capture_output=True, check=True)
    found = [(name, at / 1e9, value) for name, at, value in json.loads(done.stdout)]
    expected = [
        (dict(labels)["__name__"], at, value)
        for labels, pairs in store.values().items()
        for at, value in pairs
    ]
    assert sorted(found) == sorted(expected)
    assert len(found) > 500


@contextmanager
def collector(store: MetricStore) -> Iterator[str]:
    """Run a real collector of OpenTelemetry that sends to the store; return its address."""
    (program,) = FRAMEWORKS.glob("lib/python*/site-packages/rotel/rotel-agent")
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    http, grpc = (f"127.0.0.1:{port}" for port in ports)
    process = subprocess.Popen(
        [program, "start", "--otlp-http-endpoint", http, "--otlp-grpc-endpoint", grpc,
         "--exporter", "otlp", "--otlp-exporter-protocol", "http",
         "--otlp-exporter-endpoint", store.address],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def listens() -> bool:
        assert process.poll() is None
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", ports[0])) == 0

    try:
        wait_for(listens)
        yield f"http://{http}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.skipif(bool(lacks_framework("rotel")), reason=lacks_framework("rotel"))
def test_a_collector_of_opentelemetry_has_every_value_once(tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    home, expected = load_settings().home_directory, values_of(directory)
    with served(MetricStore([])) as store, collector(store) as address:
        done = push([recorded(directory)], Store(address), "otlp", home, 0.0, [])
        wait_for(lambda: sum(map(len, store.values().values())) >= done.values)
    assert of_gpus(store.values()) == expected


def test_values_that_otlp_rejects_are_named(tmp_path: Path) -> None:
    answer = bytes_field(1, int_field(1, 7) + bytes_field(2, b"too old"))
    with served(MetricStore([])) as store:
        store.answers = [(200, answer, {})]
        with pytest.raises(StoreError, match="rejected 7 values: too old"):
            sent(store, only(log(tmp_path, 30)), form="otlp")


def test_the_job_is_only_in_one_series() -> None:
    directory = only(LOGS / "prometheus-slurm-job-exporter.json")
    with served(MetricStore([])) as store:
        sent(store, directory)
    names = {dict(one)["__name__"] for one in store.values() if dict(one).get("jobid") == "4711"}
    assert names == {"teho_job_info"}
    assert not any("run" in dict(one) for one in store.values() if "_info" not in str(one))
    # Labels are in the order of their names, as receivers demand.
    assert all(list(one.labels) == sorted(one.labels) for one in store.series)


@pytest.mark.parametrize("form", ["remote-write", "victoriametrics"])
def test_the_same_values_as_openmetrics(form: str) -> None:
    directory = only(LOGS / "prometheus-jobstats.json")
    text = "".join(openmetrics([recorded(directory)], []))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    with served(MetricStore([])) as store:
        sent(store, directory, form=form)
    assert sum(len(one) for one in store.values().values()) == len(lines)


# Stores that are down


def test_a_store_that_refuses_and_then_accepts(tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    with served(MetricStore([])) as store:
        store.answers = [(503, b"", {})] * 3 + [(429, b"", {})] * 2
        sent(store, directory, wait_s=60)
    assert of_gpus(store.values()) == values_of(directory)


@pytest.mark.parametrize("form", FORMATS)
def test_a_second_call_continues_after_the_last_part(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: one._replace(values=200) for name, one in FORMATS.items()}
    monkeypatch.setattr(push_module, "FORMATS", few)
    directory = only(log(tmp_path))
    with served(MetricStore([])) as store:
        real = store.take

        def fail_after_two(path: str, headers: dict[str, str], body: bytes) -> None:
            real(path, headers, body)
            if len(store.written) == 2:
                store.answers = [(503, b"", {})] * 100

        store.take = fail_after_two  # type: ignore[method-assign]
        with pytest.raises(StoreBusyError, match="it continues after the last part"):
            sent(store, directory, form=form)
        store.answers, before = [], len(store.written)
        done = sent(store, directory, form=form)
        assert len(store.written) > before + 1
        assert 0 < done.values < sum(len(one) for one in store.values().values())
        assert of_gpus(store.values()) == values_of(directory)
        # All values are there.
        assert sent(store, directory, form=form) == Pushed(0, 0)


@pytest.mark.parametrize("form", ["remote-write", "victoriametrics"])
def test_an_answer_that_is_lost_doubles_nothing(form: str, tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    with served(MetricStore([])) as store:
        store.lost = 1
        sent(store, directory, form=form, wait_s=60)
    assert len(store.written) == 1
    assert of_gpus(store.values()) == values_of(directory)


@pytest.mark.parametrize("form", ["remote-write", "victoriametrics"])
def test_a_command_that_ends_before_the_answer_doubles_nothing(form: str, tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    with served(MetricStore([])) as store:
        store.lost = 1
        with pytest.raises(StoreBusyError):
            sent(store, directory, form=form)
        sent(store, directory, form=form)
    assert len(store.written) == 1
    assert of_gpus(store.values()) == values_of(directory)


def test_a_store_that_does_not_answer_is_tried_for_the_whole_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, now_s = only(log(tmp_path, 30)), 0.0
    pauses_s: list[float] = []

    def sleep(pause_s: float) -> None:
        nonlocal now_s
        pauses_s.append(pause_s)
        now_s += pause_s

    clock = SimpleNamespace(monotonic=lambda: now_s, sleep=sleep)
    monkeypatch.setattr(push_module, "time", clock)
    monkeypatch.setattr(push_module, "_FIRST_PAUSE_S", 0.5)
    said: list[str] = []
    with served(MetricStore([])) as store:
        store.answers = [(503, b"", {})] * 100
        with pytest.raises(StoreBusyError, match="Next: repeat the command later: it continues"):
            push(
                [recorded(directory)], Store(store.address), "otlp",
                load_settings().home_directory, 60.0, [], said.append,
            )  # fmt: skip
    assert sum(pauses_s) == 60
    assert max(pauses_s) <= 30
    (line,) = said
    assert line.endswith("answers 503 Service Unavailable. Teho tries again for 1 min")


_PUSH = """
import sys
from pathlib import Path
from jobs.test_export import recorded
from teho.config.settings import load_settings
from teho.jobs.export.push import push
from teho.jobs.http import Store
home = load_settings().home_directory
done = push([recorded(Path(sys.argv[1]))], Store(sys.argv[2]), "victoriametrics", home, 60.0, [])
print(done.values)
"""


def test_two_exports_at_once_double_nothing(tmp_path: Path) -> None:
    directory = only(log(tmp_path))
    tests = Path(__file__).parents[1]  # alone: benchmarks have a module named `jobs`
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([f"{tests}", f"{tests / 'stubs'}"])}
    with served(MetricStore([])) as store:
        real, both = store.take, threading.Event()

        def wait_for_both(path: str, headers: dict[str, str], body: bytes) -> None:
            both.wait(20)  # the first request is answered after the other export has begun
            real(path, headers, body)

        store.take = wait_for_both  # type: ignore[method-assign]
        words = [sys.executable, "-c", _PUSH, str(directory), store.address]
        begun = [
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
            for _ in range(3)
        ]
        time.sleep(3)
        both.set()
        sent_values = sorted(int(one.communicate(timeout=100)[0]) for one in begun)
    assert sent_values[:2] == [0, 0] < sent_values[2:]
    assert of_gpus(store.values()) == values_of(directory)


def test_a_running_export_is_named(tmp_path: Path) -> None:
    folder, said = tmp_path / "exports", list[str]()
    with locked(folder, "a store", 0.0, said.append):
        with (
            pytest.raises(StoreBusyError, match="another `teho export` is sending to a store"),
            locked(folder, "a store", 0.1, said.append),
        ):
            pytest.fail("two exports at once")
        assert said == [
            "another `teho export` is sending to a store. Teho waits until it ends, at most 100 ms"
        ]
    with locked(folder, "a store", 0.0, said.append):
        pass


def test_a_file_system_without_locks_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    begun = []
    # Two exports are not prevented there.
    for number in range(2):
        with (
            locked(tmp_path, "a store", 0.0, pytest.fail),
            locked(tmp_path, "", 0.0, pytest.fail),
        ):
            begun.append(number)
    assert begun == [0, 1]


def certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            socket.gaierror(-2, "Name or service not known"),
            "does not answer: Name or service not known. Next: check the address, or repeat",
        ),
        (ConnectionRefusedError(111, "Connection refused"), "Next: check the address, or repeat"),
        (ssl.SSLEOFError(8, "EOF occurred"), "if the store has only http, write http:// in"),
        (
            certificate_error(),
            "or set SSL_CERT_FILE to the file with the site's certificates",
        ),
    ],
)
def test_an_error_of_the_connection_names_the_next_step(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(StoreError) as raised:
        request(Store("https://metrics.example.org"), "/api/v1/write", b"")
    assert said in str(raised.value)


def test_two_stores_have_their_own_progress(tmp_path: Path) -> None:
    directory = only(log(tmp_path, 30))
    with served(MetricStore([])) as first, served(MetricStore([])) as second:
        assert sent(first, directory).values == sent(second, directory).values > 0


def test_a_store_that_takes_no_old_values_names_the_way(tmp_path: Path) -> None:
    with served(MetricStore([])) as store:
        store.answers = [(400, b"out of order sample", {})]
        with pytest.raises(StoreError, match="promtool"):
            sent(store, only(log(tmp_path, 30)))


def test_a_run_that_continues_gets_its_new_values(tmp_path: Path) -> None:
    one = recorded(only(log(tmp_path)))
    (whole,) = parts_of(one, {}, [], 10**6)
    several = list(parts_of(one, {}, [], 300))
    assert len(several) > 2
    assert sum(part.value_count for part in several) == whole.value_count
    later = list(parts_of(one, {several[0].node: several[0].until_ms}, [], 300))
    assert [part.until_ms for part in later] == [part.until_ms for part in several[1:]]
    # A part whose answer was lost is made again with the same values.
    again = {several[0].node: several[0].until_ms}
    (first, rest) = parts_of(one, {}, [], 10**6, again)
    assert first.value_count == several[0].value_count
    assert first.value_count + rest.value_count == whole.value_count


def test_a_run_that_is_still_recorded_is_continued(home: Path) -> None:
    words = [*TEHO, "run", "--every", "0.1s", "--probe", "off", "--", "sleep", "60"]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with served(MetricStore([])) as store:
        try:
            wait_for(lambda: list((home / "runs").glob("*/run.json")), 60)
            (directory,) = (home / "runs").iterdir()
            wait_for(lambda: sent(store, directory, form="victoriametrics").values, 60)
            first = sum(len(one) for one in store.values().values())
        finally:
            run.terminate()
            run.wait(30)
        assert sent(store, directory, form="victoriametrics").values > 0
        (node,) = run_of(directory).nodes
        expected = [row["elapsed_s"] for row in rows(directory, "node")]
        found = store.values()[("__name__", "teho_load_1min"), ("node", node.name)]
        assert len(found) == len(expected) == len(dict(found))
        assert first < sum(len(one) for one in store.values().values())
        assert sent(store, directory, form="victoriametrics").values == 0


def test_runs_at_the_same_time_on_one_node_are_named(tmp_path: Path) -> None:
    first = recorded(only(log(tmp_path), host="g1", name="a"))
    second = recorded(only(log(tmp_path), host="g1", name="b"))
    with served(MetricStore([])) as store:
        problems: list[str] = []
        home = load_settings().home_directory
        push([first, second], Store(store.address), "otlp", home, 0.0, problems)
    assert any("were on g1 at the same time" in one for one in problems)


# The command


def test_command(tmp_path: Path, teho: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    directory = only(log(tmp_path, 30))
    (tmp_path / "token").write_text("s3cret")
    with served(MetricStore([])) as store:
        words = ["export", directory.name, "--to", "victoriametrics", "--store", store.address]
        env = {"TEHO_MONITORING_TOKEN_FILE": str(tmp_path / "token")}
        done = teho(*words, env=env)
        assert done.returncode == 0, done.stderr
        assert "values of 1 run to 127.0.0.1" in done.stderr
        assert store.written[0][1]["Authorization"] == "Bearer s3cret"
        assert "already had all values of 1 run" in teho(*words, env=env).stderr
        store.answers = [(401, b"", {})]
        refused = teho("export", directory.name, "--to", "otlp", "--store", store.address, env=env)
    assert refused.returncode == 2
    assert "answers 401" in refused.stderr
    assert "s3cret" not in done.stderr + refused.stderr
    for words, said in (
        (["--to", "otlp"], "--store https://metrics.example.org"),
        (["--to", "js1", "--store", "https://x"], "--store cannot be used with --to js1"),
        (["--to", "otlp", "-o", "x"], "-o cannot be used with --to otlp"),
        (["--to", "grafana"], "`-o FOLDER`"),
    ):
        assert said in teho("export", *words).stderr


def test_the_command_says_that_it_waits_and_what_is_wrong_with_an_address(
    tmp_path: Path, teho: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    directory = only(log(tmp_path, 30))
    words = ["export", directory.name, "--to", "remote-write", "--store"]
    with served(MetricStore([])) as store:
        secure = teho(*words, store.address.replace("http:", "https:"), "--wait", "0s").stderr
        store.answers = [(405, b"", {})]
        refused = teho(*words, f"{store.address}/base").stderr
        store.answers = [(413, b"", {})]
        too_large = teho(*words, store.address).stderr
    closed = teho(*words, store.address, "--wait", "1s").stderr.splitlines()
    assert "Next: if the store has only http, write http:// in the address" in secure
    assert "answers 405 Method Not Allowed" in refused
    assert "accepts requests at /base/api/v1/write. Next: check the address" in refused
    assert "Next: ask the administrators of the store" in too_large
    assert closed[0].endswith("does not answer: Connection refused. Teho tries again for 1.0 s")
    assert closed[1].endswith(
        "Connection refused. Next: check the address, or repeat the command later: it continues "
        "after the last part that the store has"
    )


@pytest.mark.parametrize(("mode", "is_named"), [(0o644, True), (0o640, True), (0o600, False)])
def test_a_token_that_others_can_read_is_named(
    tmp_path: Path, teho: Callable[..., subprocess.CompletedProcess[str]], mode: int, is_named: bool
) -> None:
    token = tmp_path / "the token"
    token.write_text("s3cret")
    token.chmod(mode)
    directory = only(log(tmp_path, 30))
    with served(MetricStore([])) as store:
        words = ["export", directory.name, "--to", "otlp", "--store", store.address]
        done = teho(*words, env={"TEHO_MONITORING_TOKEN_FILE": str(token)})
    assert done.returncode == 0, done.stderr
    assert (f"Next: `chmod 600 '{token}'`" in done.stderr) is is_named
    assert "s3cret" not in done.stderr


def test_dashboards_are_files_that_grafana_imports(
    tmp_path: Path, teho: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert teho("export", "--to", "grafana", "-o", tmp_path / "d").returncode == 0
    for name, own in dashboards().items():
        text = (tmp_path / "d" / f"teho-{name}.json").read_text()
        assert text == dashboard_json(name)
        noun = json.loads(text)
        places = [panel["gridPos"] for panel in noun["panels"]]
        cells = [
            (x, y)
            for one in places
            for x in range(one["x"], one["x"] + one["w"])
            for y in range(one["y"], one["y"] + one["h"])
        ]
        assert len(set(cells)) == len(cells)
        assert max(x for x, _ in cells) < 24
        variables = {one["name"] for one in noun["templating"]["list"]}
        assert {"source", *own.variables} == variables


# Live values


def test_serve_metrics_has_the_values_of_a_running_run(tmp_path: Path, home: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    words = [*TEHO, "run", "--every", "0.1s", "--probe", "off", "--", "sleep", "30"]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = subprocess.Popen(
        [*TEHO, "serve-metrics", "--port", "0", "--token-file", tmp_path / "token"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout
        address = server.stdout.readline().split()[4].rstrip(".")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def page(**headers: str) -> str:
            asked = urllib.request.Request(address, headers=headers)
            try:
                with opener.open(asked, timeout=10) as answer:
                    return str(answer.read().decode())
            except urllib.error.HTTPError as error:
                return str(error.code)

        token = {"Authorization": "Bearer s3cret"}
        wait_for(lambda: "teho_job_info" in page(**token), 30)
        text = page(**token)
        assert text.endswith("# EOF\n")
        assert "# TYPE teho_job_cpu_s counter" in text
        names = [line.partition(" ")[0] for line in text.splitlines() if line[0] != "#"]
        assert len(names) == len(set(names))
        assert any(name.startswith("teho_node_memory_used_bytes{node=") for name in names)
        assert page() == "401"
        assert page(**token, Host="evil.example.org") == "403"
        run.terminate()
        run.wait(30)
        assert page(**token) == "# EOF\n"
    finally:
        for process in (run, server):
            process.terminate()
            process.wait(30)
        if server.stdout:
            server.stdout.close()
