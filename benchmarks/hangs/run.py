"""Runs the programs that hang, and the controls, under `teho run`; says what the report says.

    python benchmarks/hangs/run.py --python BIN/python --torchrun BIN/torchrun [NAME…]

A person who does not know the rule wrote the programs and `cases.toml`. A program that hangs runs
until its hang has lasted for 100 s (without steps: until the rule's 5 min are over), and is then
ended with SIGTERM, as a scheduler does at a time limit. Each control runs to its end, and its
report is made again and again while it runs: the report of a run that ended well never says stuck.
`--at-once` programs run at the same time. The result is one line for each case.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
_HANG_S = 100.0
_NO_STEPS_S = 330.0
_CONTROL_S = 420.0
_LOOK_S = 10.0
_WITHOUT_STEPS = {"h08", "h09", "h10", "h11"}


def run(case: dict[str, Any], options: argparse.Namespace, home: Path) -> str:
    """Run one case, and return the first sentence of its report, and whether it says stuck."""
    name = case["name"]
    places = {"here": str(HERE), "python": options.python, "torchrun": options.torchrun}
    command = [word.format(**places) for word in case["command"]]
    env = {**os.environ, "TEHO_HOME": str(home / name)}
    teho = [sys.executable, "-m", "teho"]
    hangs = case["kind"] == "hang"
    patience_s = _NO_STEPS_S if name[:3] in _WITHOUT_STEPS else _HANG_S
    limit_s = case["hang_after_s"] + patience_s if hangs else _CONTROL_S
    process = subprocess.Popen(
        [*teho, "run", "-q", "--name", name, "--", *command],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    began_s = time.monotonic()
    said_stuck = ""
    while process.poll() is None and time.monotonic() < began_s + limit_s:
        try:
            process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            stuck, _ = _report(teho, env)
            said_stuck = said_stuck or stuck
    if process.returncode is not None:
        ended = f"ended by itself after {time.monotonic() - began_s:.0f} s"
    else:
        ended = f"ended after {limit_s:.0f} s"
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    stuck, verdict = _report(teho, env)
    # A hang must be named in the last report, and a control in none of its reports.
    right = bool(stuck) if hangs else not (stuck or said_stuck)
    said = stuck or ("" if hangs else said_stuck) or verdict
    return f"{'right' if right else 'WRONG'}  {name} ({ended}): {said}"


def _report(teho: list[str], env: dict[str, str]) -> tuple[str, str]:
    """Return what the report says of a run that is stuck, and its verdict."""
    said = subprocess.run(
        [*teho, "report", "--format", "json"], env=env, capture_output=True, text=True, check=False
    )
    if said.returncode not in (0, 2) or not said.stdout:
        return "", f"no report: {said.stderr.strip()}"
    report = json.loads(said.stdout)
    stuck = (one["sentence"] for one in report["findings"] if one["kind"] == "run_stuck")
    return next(stuck, ""), report["verdict"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--torchrun", required=True)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    cases = tomllib.loads((HERE / "cases.toml").read_text())["case"]
    chosen = [one for one in cases if not options.names or one["name"][:3] in options.names]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        for line in pool.map(lambda one: run(one, options, Path(folder)), chosen):
            print(line, flush=True)


if __name__ == "__main__":
    main()
