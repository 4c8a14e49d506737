"""The figures of the pages Home and Usage: sums of known verdicts, and of a run that goes on."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from portal_process import Events, PortalProcess, environment, portal, recorded

from made_runs import make_run
from other_users import ALICE, root
from support import wait_for
from teho.model.listed_run import Judged, Totals
from teho.show.judged import judge_of
from teho.store.index_file import IndexFile

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

from teho.show.portal.pages import _totals_facts, month_begin_s, usage_page

MONTH = datetime.fromtimestamp(month_begin_s()).astimezone()
LAST_MONTH = MONTH - timedelta(days=1)
JUDGED = {
    1: Judged(severity="warning", kind="gpu_low_use", words="gpu low use", verdict="Low.",
              advice="Add workers: `--workers 2`.", gpu_busy_percent=75.0, energy_j=3.6e6,
              cost=1.5, cost_unit="BU", unused_cost=0.375),
    2: Judged(severity="critical", kind="gpu_never_used", words="gpu never used",
              verdict="GPU 0 was never used.", advice="Request no GPU.",
              gpu_busy_percent=25.0, energy_j=1.8e6, cost=0.5, cost_unit="BU"),
    3: Judged(severity="good", words="good", verdict="Good.", cost=2.0, cost_unit="BU",
              unused_cost=1.0),
    4: Judged(severity="good", words="good", verdict="Good.", gpu_busy_percent=100.0,
              energy_j=7.2e6, cost=4.0, cost_unit="BU", unused_cost=0.0),
}  # fmt: skip
"""The third run has no GPUs. The second run has a cost, but its unused part is not known."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalProcess]:
    """Show four runs: three of this month, and one of the last day of the month before."""
    folder = tmp_path_factory.mktemp("figures")
    home = folder / "home"
    train, prepare = ("python", "train.py"), ("python", "prepare.py")
    for number, command, gpus, elapsed_s, account, exit_code in (
        (1, train, 2, 3600.0, "project_1", 0),
        (2, train, 1, 1800.0, "project_2", 1),
        (3, prepare, 0, 600.0, "project_1", 0),
        (4, train, 4, 3600.0, "project_2", 0),
    ):
        began = LAST_MONTH if number == 4 else MONTH + timedelta(milliseconds=number)
        run = make_run(home, number, command=command, gpus=gpus, elapsed_s=elapsed_s,
                       account=account, exit_code=exit_code, cluster="lumi",
                       started_at=began)  # fmt: skip
        if number == 2 and os.geteuid() == 0:
            os.chown(run / "run.json", ALICE, ALICE)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        file = IndexFile.open()
        index = file.home(home / "runs")
        index.refresh()
        found = {int(run_id[-4:]): run_id for run_id in index.ids()}
        known = {run_id: (1, JUDGED[number]) for number, run_id in found.items()}
        index.save_verdicts(judge_of(""), known)
        file.close()
    with portal(folder) as one:
        yield one


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def facts_of(page: str) -> dict[str, tuple[str, str]]:
    """Return the figure and the remark of each label."""
    found = re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)(?:<small>(.*?)</small>)?</dd>", page)
    return {text_of(label): (text_of(figure), text_of(remark)) for label, figure, remark in found}


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of each row of the table."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [[text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
            for row in rows]  # fmt: skip


def test_home_has_the_sums_of_this_month(running: PortalProcess) -> None:
    page = running.ask("/").text
    assert facts_of(page) == {
        "Runs this month": ("3", ""),
        "GPU hours": ("2.50 h", ""),
        "GPUs without a kernel": ("35 %", "of 2.50 h measured GPU hours"),
        "GPU energy": ("1.50 kWh", "of 3 runs with a report"),
        "Cost": ("4 BU", "of 3 runs with a report"),
        "Not used": ("1.38 BU", "39 % of 3.50 BU"),
    }
    found = page.partition('id="found"')[2].partition("</ol>")[0].partition("<ol")[2]
    savings = re.split(r"</li>\s*<li>", found)
    assert len(savings) == 2, "a run without a finding, and a run of last month, do not count"
    assert text_of(savings[0]).endswith(
        "GPU low use : 0.50 h in 1 run. The largest part is in made-0001 . "
        "Add workers: --workers 2 ."
    )
    assert "GPU never used : 0.38 h in 1 run." in text_of(savings[1])


def test_home_says_what_to_do_next(running: PortalProcess) -> None:
    next_steps = running.ask("/").text.partition('id="next"')[2].partition("</section>")[0]
    found = re.search(r"teho report (\S+-0002)<", next_steps)
    assert found, next_steps
    assert "Find out why the newest failed run failed:" in text_of(next_steps)
    assert "teho top" not in next_steps, "no run goes on"
    assert 'href="plan"' in next_steps


HEADS = ["Runs", "Run time", "GPU hours", "GPUs without a kernel", "GPU energy", "Cost",
         "Not used", "Runs with a report"]  # fmt: skip


@pytest.mark.parametrize(
    ("by", "head", "rows"),
    [
        (
            "month",
            "Month",
            [
                f"{MONTH:%Y-%m}|3|1 h 40 min|2.50 h|35 %|1.50 kWh|4 BU|1.38 BU (39 %)|3",
                f"{LAST_MONTH:%Y-%m}|1|1 h|4 h|0.0 %|2.00 kWh|4 BU|0 BU (0.0 %)|1",
            ],
        ),
        (
            "command",
            "Program",
            [
                "python train.py|3|2 h 30 min|6.50 h|13 %|3.50 kWh|6 BU|0.38 BU (6.8 %)|3",
                "python prepare.py|1|10 min|–|–|–|2 BU|1 BU (50 %)|1",
            ],
        ),
        (
            "account",
            "Project",
            [
                "project_2|2|1 h 30 min|4.50 h|8.3 %|2.50 kWh|4.50 BU|0 BU (0.0 %)|2",
                "project_1|2|1 h 10 min|2 h|25 %|1.00 kWh|3.50 BU|1.38 BU (39 %)|2",
            ],
        ),
        pytest.param(
            "user",
            "Person",
            [
                "root|3|2 h 10 min|6 h|8.3 %|3.00 kWh|7.50 BU|1.38 BU (18 %)|3",
                "games|1|30 min|0.50 h|75 %|500 Wh|0.50 BU|–|1",
            ],
            marks=root,
        ),
    ],
)
def test_usage_has_exact_sums(running: PortalProcess, by: str, head: str, rows: list[str]) -> None:
    page = running.ask(f"/usage?by={by}").text
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)
    assert heads == [head, *HEADS]
    assert ["|".join(row) for row in rows_of(page)] == rows


def test_usage_of_a_month_only(running: PortalProcess) -> None:
    page = running.ask(f"/usage?by=cluster&since={MONTH:%Y-%m-%d}").text
    (row,) = rows_of(page)
    assert row[:7] == ["lumi", "3", "1 h 40 min", "2.50 h", "35 %", "1.50 kWh", "4 BU"]


def test_a_user_without_gpus_sees_the_cost() -> None:
    month = Totals(
        key="", runs=2, run_s=1200.0, gpu_hours=0.0, judged=2, busy_gpu_hours=0.0,
        measured_gpu_hours=None, energy_j=None, cost=2.0, cost_unit="BU", unused_cost=1.0,
        measured_cost=2.0, newest_s=0.0,
    )  # fmt: skip
    assert _totals_facts(month) == [
        ("Runs", "2", ""),
        ("Cost", "2 BU", "of 2 runs with a report"),
        ("Not used", "1 BU", "50 % of 2 BU"),
    ]
    page = usage_page({"has_group": False, "has_search": False, "pages": []}, "month", "", "",
                      [month], [])  # fmt: skip
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)[3:5] == ["Cost", "Not used"]
    assert "GPU hours of a run" not in page


STEPS = """
import time, teho
while True:
    time.sleep(0.05)
    teho.step()
"""


def card_of(running: PortalProcess, run_id: str) -> str:
    """Return what the home page shows of a run that goes on."""
    return running.ask("/").text.partition(f'data-run="{run_id}"')[2].partition("</li>")[0]


def test_a_run_with_steps_and_a_time_limit(nvml_library: Path, tmp_path: Path) -> None:
    now_s = int(time.time())
    job = {"SLURM_JOB_ID": "77", "SLURM_GPUS_ON_NODE": "2",
           "SLURM_JOB_START_TIME": str(now_s - 60),
           "SLURM_JOB_END_TIME": str(now_s + 3300)}  # fmt: skip
    program = tmp_path / "train.py"
    program.write_text(STEPS)
    with (
        recorded(tmp_path, nvml_library, sys.executable, str(program), **job) as directory,
        portal(tmp_path) as one,
    ):
        # The recorder finds the GPUs a moment after its start.
        wait_for(lambda: facts_of(card_of(one, directory.name))["GPUs"] == ("2", ""))
        home = Events(one.connection(), f"/events?shown={directory.name}")
        facts: dict[str, str] = {}

        def has_pace() -> bool:
            ((_, _, all_facts), *_) = home.until("runs")
            facts.update(all_facts[directory.name])
            return re.fullmatch(r"[\d.]+.steps/s", facts.get("pace", "")) is not None

        wait_for(has_pace, 150)
        assert 5 < float(facts["pace"].split()[0]) < 20
        # The job ends 55 minutes after the start of the test.
        minutes = re.fullmatch(r"(\d+) min(?: \d+ s)?", facts["left"])
        assert minutes, facts["left"]
        assert 50 <= int(minutes[1]) < 55
        # A page that is opened now has the pace at once.
        assert facts_of(card_of(one, directory.name))["Pace"][0].endswith("steps/s")
        assert f"teho top {directory.name}" in one.ask("/").text
        home.close()
