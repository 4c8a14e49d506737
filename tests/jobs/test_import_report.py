"""Reports on imported logs: what they say, and what they do not claim."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.imports import CHANGED_S, LOGS, loaded, only, run_of, written
from show.golden import ROOT
from support import check_golden
from teho.model.finding import Certainty
from teho.model.missing import Missing
from teho.model.summary import PartlyKnown, Stat
from teho.show.html.page import render_html
from teho.show.json.report import render_json
from teho.show.text.document import render_text

GOLDEN = ROOT / "tests" / "data" / "show"


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Read times without a zone in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


_HEAD = (
    "timestamp, index, name, utilization.gpu [%], memory.total [MiB], memory.used [MiB], "
    "power.draw [W], power.limit [W]"
)


def long_log(
    folder: Path, busy: Callable[[int, int], int], gpus: int = 4, seconds: int = 300
) -> Path:
    """Write what `nvidia-smi -l 1` prints about A100s with this use in percent."""
    lines = [_HEAD]
    for second in range(seconds):
        for index in range(gpus):
            use = busy(second, index)
            lines.append(
                f"2026/11/18 10:{second // 60:02d}:{second % 60:02d}.{index:03d}, {index}, NVIDIA "
                f"A100-SXM4-40GB, {use} %, 40960 MiB, {30000 if use else 4} MiB, "
                f"{60 + 3 * use}.00 W, 400.00 W"
            )
    return written(folder, "gpu.csv", "\n".join(lines))


def text_of(directory: Path) -> str:
    """Return the report without the random end of the run's id."""
    run = run_of(directory)
    text = render_text(loaded(directory).view, width=80, color=False, detail="why")
    return text.replace(run.id, run.id[:-4] + "xxxx")


def kinds(directory: Path) -> dict[str, Certainty]:
    return {finding.kind: finding.certainty for finding in loaded(directory).findings}


def test_report_of_a_log_with_an_idle_gpu(tmp_path: Path) -> None:
    path = long_log(tmp_path, lambda second, index: 0 if index == 3 else 90 + second % 10)
    directory = only(path)
    check_golden(GOLDEN / "import-idle-gpu.txt", text_of(directory))
    # The log may have GPUs of other jobs.
    assert kinds(directory) == {"gpu_never_used": Certainty.POSSIBLE}


def test_report_of_jobstats(tmp_path: Path) -> None:
    path = shutil.copy(LOGS / "jobstats.json", tmp_path)
    os.utime(path, (CHANGED_S, CHANGED_S))
    directory = only(Path(path))
    check_golden(GOLDEN / "import-jobstats.txt", text_of(directory))
    (gpu,) = loaded(directory).summary.gpus
    busy, memory = gpu.stats["gpu_busy_percent"], gpu.stats["gpu_memory_used_bytes"]
    assert isinstance(busy, PartlyKnown)
    assert (busy.mean, busy.max) == (pytest.approx(98.6, abs=0.01), None)
    assert isinstance(memory, PartlyKnown)
    assert (memory.mean, memory.max) == (None, 83314868224)


@pytest.mark.parametrize(("percent", "kind"), [(0.4, "gpu_low_use"), (0.0, "gpu_never_used")])
def test_a_low_mean_of_jobstats_is_low_use(tmp_path: Path, percent: float, kind: str) -> None:
    text = (LOGS / "jobstats.json").read_text().replace("98.6", str(percent))
    directory = only(written(tmp_path, "jobstats.json", text))
    assert {"gpu_never_used", "gpu_low_use"} & set(kinds(directory)) == {kind}


def test_used_gpus_of_a_log_are_good_use(tmp_path: Path) -> None:
    directory = only(long_log(tmp_path, lambda second, _: 90 + second % 10, gpus=1))
    view = loaded(directory).view
    assert view.verdict_severity == "good"
    assert view.verdict == "The GPU was busy 94 % of the time (run time 5 min). No problems found."


def test_report_of_the_log_of_csc_s_example(tmp_path: Path) -> None:
    """The first round is idle. Then three of the four GPUs work."""
    head, *idle = (LOGS / "nvidia-smi-csc.log").read_text().splitlines()
    busy = [f"{gpu}, 55, {0 if gpu == 3 else 80 + gpu} %, 30 %" for gpu in range(4)]
    path = written(tmp_path, "gpu.log", "\n".join([head, *idle * 6, *busy * 54]))
    directory = only(path, every_s=5.0)
    view = loaded(directory).view
    assert view.verdict.startswith("GPU 3 on unknown-host was never used.")
    assert kinds(directory) == {"gpu_never_used": Certainty.POSSIBLE}
    means = [stat.mean for stat in busy_of(directory)]
    assert means == [pytest.approx(0.9 * use) for use in (80, 81, 82, 0)]


def busy_of(directory: Path) -> list[Stat]:
    found = [gpu.stats["gpu_busy_percent"] for gpu in loaded(directory).summary.gpus]
    return [stat for stat in found if isinstance(stat, Stat)]


def test_low_use_does_not_invent_a_number_of_cores(tmp_path: Path) -> None:
    directory = only(long_log(tmp_path, lambda second, _: 40 * (second % 2), gpus=1))
    (finding,) = [one for one in loaded(directory).findings if one.kind == "gpu_low_use"]
    assert "num_workers=CORES_PER_GPU" in finding.action


def test_a_gpu_of_a_known_job_was_surely_never_used(tmp_path: Path) -> None:
    first = 1_795_000_000
    series = [
        {
            "metric": {
                "__name__": "slurm_job_utilization_gpu", "slurmjobid": "4711", "gpu": gpu,
                "instance": "g1:9798",
            },
            "values": [[first + 10 * step, value] for step in range(40)],
        }
        for gpu, value in (("0", "90"), ("1", "0"))
    ]  # fmt: skip
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    directory = only(written(tmp_path, "q.json", json.dumps(answer)))
    assert kinds(directory)["gpu_never_used"] is Certainty.SURE
    facts = {fact.key: fact.value for fact in loaded(directory).view.facts}
    assert facts["job_id"] == "4711"


_OF_THE_JOB = {"job_memory_bytes", "job_processes"}
"""Values of a node that are in some logs."""


@pytest.mark.parametrize(
    "name", sorted(path.name for path in LOGS.iterdir() if path.suffix != ".md")
)
def test_nothing_is_invented(name: str) -> None:
    columns = "timestamp,index,utilization.gpu,memory.total,memory.used,power.draw"
    given = columns if "noheader" in name else ""
    directory = only(LOGS / name, every_s=1.0, columns=given)
    run, report = loaded(directory).run, loaded(directory)
    view = report.view
    assert (view.command, run.environment, run.directory) == ("", {}, "")
    facts = {fact.key: fact.value for fact in view.facts}
    assert facts["ended"] == "not known"
    for node in report.summary.nodes:
        known = [metric for metric, total in node.totals.items() if isinstance(total, float)]
        assert known in ([], ["job_cpu_s"])
        assert all(
            isinstance(figure, Missing) or metric in _OF_THE_JOB
            for metric, figure in node.stats.items()
        )
        for figures in (node.stats, node.totals, *(gpu.stats for gpu in node.gpus)):
            missing = [one for one in figures.values() if not isinstance(one, (Stat, float))]
            assert all(one.detail for one in missing)
    page, noun = render_html(view), json.loads(render_json(view))
    assert run.id in page
    assert noun["command"] == ""


def test_the_page_shows_this_report(tmp_path: Path) -> None:
    path = long_log(tmp_path, lambda second, index: 0 if index == 3 else 90 + second % 10)
    text = render_text(loaded(only(path)).view, width=80, color=False)
    page = (ROOT / "docs" / "import.md").read_text()
    (shown,) = re.findall(r"\$ teho report \S+\n(.*?)\n```", page, re.DOTALL)
    # `teho report` adds when the run began, and hides nothing of the table.
    table = shown[shown.index("GPUs  Node") :]
    action = shown[shown.index("  → ") : shown.index("\n\nGPUs")]
    assert action in text
    assert [line.split() for line in table.splitlines()[3:]] == [
        line.split() for line in text[text.index("GPUs  Node") :].splitlines()[3:7]
    ]
