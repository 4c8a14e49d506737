"""A list of many runs in another tool: `peer_portal.py TOOL COUNT FOLDER`.

TOOL is `mlflow`, `tensorboard`, `trackio` or `aim`. The program writes the runs into FOLDER, starts
the tool's own server on a port of this machine, and prints JSON: the time until the server lists
the runs for the first time, and the times of later requests for the first page. MLflow uses SQLite,
as by default. The page of MLflow asks for 100 runs, and the page of Aim for 45. The pages of
TensorBoard and Trackio ask for the names of all runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 7
WITHIN_S = 600.0


def write_mlflow(folder: Path, count: int) -> None:
    """Write runs with a command and a time, as `mlflow.start_run` does."""
    import mlflow
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    client = MlflowClient()
    experiment = client.create_experiment("bench", artifact_location=str(folder / "artifacts"))
    for number in range(count):
        run = client.create_run(experiment)
        client.log_batch(
            run.info.run_id,
            metrics=[Metric("elapsed_s", 60.0 + number, number, 0)],
            params=[Param("command", f"python train.py --seed {number}")],
        )
        client.set_terminated(run.info.run_id)


def write_tensorboard(folder: Path, count: int) -> None:
    """Write a folder with one file of events for each run."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for number in range(count):
        writer = EventFileWriter(str(folder / "logs" / f"run-{number:06d}"))
        value = Summary.Value(tag="elapsed_s", simple_value=60.0 + number)
        writer.add_event(Event(step=1, wall_time=time.time(), summary=Summary(value=[value])))
        writer.close()


def write_trackio(folder: Path, count: int) -> None:
    """Write runs with a command and a time, as `trackio.log` does."""
    os.environ["TRACKIO_DIR"] = str(folder)
    from trackio.sqlite_storage import SQLiteStorage

    for number in range(count):
        SQLiteStorage.bulk_log(
            project="bench",
            run=f"run-{number:06d}",
            metrics_list=[{"elapsed_s": 60.0 + number}],
            config={"command": f"python train.py --seed {number}"},
        )


def write_aim(folder: Path, count: int) -> None:
    """Write runs with a command and a time, as `aim.Run` does, without its own recorder."""
    import aim

    repo = aim.Repo.from_path(str(folder), init=True)
    for number in range(count):
        run = aim.Run(repo=repo, experiment="bench", system_tracking_interval=None,
                      log_system_params=False, capture_terminal_logs=False)  # fmt: skip
        run["command"] = f"python train.py --seed {number}"
        run.track(60.0 + number, name="elapsed_s")
        run.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
        return json.load(answer)


def measure(argv: list[str], environment: dict[str, str], first_page: Callable[[], int],
            wanted: int) -> dict[str, Any]:  # fmt: skip
    """Start a server; measure until it lists the runs, then each request."""
    began_s = time.perf_counter()
    process = subprocess.Popen(argv, env={**os.environ, **environment}, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        while True:
            try:
                if first_page() >= wanted:
                    break
            except (urllib.error.URLError, OSError):
                pass
            if time.perf_counter() - began_s > WITHIN_S:
                return {"first_s": None, "times_ms": []}
            time.sleep(0.1)
        first_s = time.perf_counter() - began_s
        times = []
        for _ in range(ROUNDS):
            one_s = time.perf_counter()
            first_page()
            times.append((time.perf_counter() - one_s) * 1000)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return {"first_s": first_s, "times_ms": times}


def main(tool: str, count: int, folder: Path) -> dict[str, Any]:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    began_s = time.perf_counter()
    bin_folder = Path(sys.executable).parent
    if tool == "mlflow":
        write_mlflow(folder, count)
        written_s = time.perf_counter() - began_s
        store = f"sqlite:///{folder}/mlflow.db"
        argv = [str(bin_folder / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port),
                "--workers", "1", "--backend-store-uri", store]  # fmt: skip

        def page() -> int:
            found = ask(
                f"{base}/api/2.0/mlflow/runs/search",
                {"experiment_ids": ["1"], "max_results": 100,
                 "order_by": ["attributes.start_time DESC"]},
            )  # fmt: skip
            return len(found.get("runs", ()))

        found = measure(argv, {}, page, min(100, count))
    elif tool == "trackio":
        write_trackio(folder, count)
        written_s = time.perf_counter() - began_s
        code = "import sys, trackio; trackio.show('bench', open_browser=False, host='127.0.0.1', "
        code += "block_thread=True, server_port=int(sys.argv[1]))"
        environment = {"TRACKIO_DIR": str(folder)}
        argv = [sys.executable, "-c", code, str(port)]

        def runs() -> int:
            return len(ask(f"{base}/api/get_runs_for_project", {"project": "bench"})["data"])

        found = measure(argv, environment, runs, count)
    elif tool == "aim":
        write_aim(folder, count)
        written_s = time.perf_counter() - began_s
        argv = [str(bin_folder / "aim"), "up", "--repo", str(folder), "--host", "127.0.0.1",
                "--port", str(port)]  # fmt: skip
        shown = f"{base}/api/runs/search/run/?q=&limit=45&exclude_params=false&exclude_traces=false"

        def first() -> int:
            with urllib.request.urlopen(shown, timeout=WITHIN_S) as answer:
                return int(answer.read().count(b"Run: "))

        found = measure(argv, {}, first, min(45, count))
    else:
        write_tensorboard(folder, count)
        written_s = time.perf_counter() - began_s
        argv = [str(bin_folder / "tensorboard"), "--logdir", str(folder / "logs"), "--port",
                str(port)]  # fmt: skip
        found = measure(argv, {}, lambda: len(ask(f"{base}/data/runs")), count)
    shutil.rmtree(folder, ignore_errors=True)
    return {**found, "written_s": written_s}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
