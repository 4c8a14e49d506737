"""The pages as a browser without JavaScript gets them; the files, and the copy as files."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import pyarrow.parquet as pq
import pytest
from portal_process import Events, PortalProcess, environment, portal

from made_runs import make_run
from profile_traces import path_of
from support import TEHO, wait_for
from teho.model.run import Import
from teho.show.portal.filters import ORDERS
from teho.show.portal.rows import short_command
from teho.store.search import SORTS

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
REAL = "20261123-094500-one-aaaa"
BY_FINDING = "GPU hours without a kernel, by finding"
"""Heading of the list on the pages Home and Usage."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalProcess]:
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(EXAMPLE, folder / "home/runs" / REAL)
    for number in range(120):
        make_run(
            folder / "home",
            number,
            command=("python", "train.py", "--lr", "0.1" if number % 2 else "0.2"),
            elapsed_s=100.0 - number / 2,
            exit_code=1 if number == 7 else 0,
            gpus=number % 3,
            cluster="lumi" if number < 10 else "roihu",
            account="project_1" if number < 5 else "project_2",
            name="baseline" if number == 11 else "",
            tags={"seed": str(number)} if number % 10 == 7 else {},
        )
    with portal(folder) as one:
        yield one


def titles(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*" title="([^"]*)"', page)


def links(page: str) -> dict[str, str]:
    """Return the addresses of all links, by their text."""
    found = re.findall(r'<a[^>]* href="([^"]*)"[^>]*>([^<]*)</a>', page)
    return {text: unescape(address) for address, text in found}


def follow(running: PortalProcess, page: str, text: str, at: str = "/runs") -> str:
    answer = running.ask(urljoin(at, links(page)[text]))
    assert answer.status == 200
    return answer.text


def test_the_list_is_paged(running: PortalProcess) -> None:
    first = running.ask("/runs").text
    assert titles(first)[0] == REAL
    assert "1–50 of 121" in first
    second = follow(running, first, "next page")
    assert "51–100 of 121" in second
    third = follow(running, second, "next page")
    assert "101–121 of 121" in third
    assert "next page" not in links(third)
    everything = [one for page in (first, second, third) for one in titles(page)]
    assert len(set(everything)) == 121
    assert follow(running, second, "previous page") == first
    assert "No run matches." in running.ask("/runs?page=99").text


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order(
    running: PortalProcess,
) -> None:
    longest = follow(running, running.ask("/runs").text, "Time")
    assert titles(longest)[0].endswith("made-0000")
    assert 'aria-sort="descending"' in longest
    shortest = follow(running, longest, "Time")
    assert titles(shortest)[0].endswith("made-0119")
    assert 'aria-sort="ascending"' in shortest


def test_filters_are_in_the_address_and_in_the_form(running: PortalProcess) -> None:
    page = running.ask("/runs?text=train+0.2&cluster=lumi&sort=time").text
    assert sorted(title[-4:] for title in titles(page)) == ["0000", "0002", "0004", "0006", "0008"]
    assert 'value="train 0.2"' in page
    assert '<option value="lumi" selected>' in page
    assert '<option value="time" selected>' in page
    everything = follow(running, page, "all runs")
    assert "of 121" in everything
    assert [title[-4:] for title in titles(running.ask("/runs?outcome=failed").text)] == ["0007"]
    assert len(titles(running.ask("/runs?text=baseline").text)) == 1
    since = running.ask("/runs?since=2026-11-23").text
    assert titles(since) == [REAL]
    wrong = running.ask("/runs?since=tomorrow")
    assert wrong.status == 400
    assert "a date such as 2026-11-20" in wrong.text


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/usr/bin/python train.py", "python train.py"),
        (
            "/usr/bin/python3 /home/maija/study/programs/train.py 7",
            "python3 …/programs/train.py 7",
        ),
        ("train --data=/scratch/project_1/imagenet/train", "train --data=…/imagenet/train"),
        ("train seed=/scratch/project_1/imagenet/x", "train seed=…/imagenet/x"),
        ("ls /etc/hosts /a/b/c", "ls /etc/hosts /a/b/c"),
        ("sh -c 'cat /home/maija/study/a.txt'", "sh -c 'cat /home/maija/study/a.txt'"),
        ("'/my tools/python' train.py", "'/my tools/python' train.py"),
        ("python", "python"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_list_shows_a_short_command(command: str, shown: str) -> None:
    assert short_command(command) == shown


def test_every_order_has_a_place_on_the_page(running: PortalProcess) -> None:
    page = running.ask("/runs").text
    names = page.partition('name="sort">')[2].partition("</select>")[0]
    orders = re.findall(r'<option value="(\w+)"', names)
    assert orders == list(ORDERS)
    assert set(orders) == set(SORTS)
    for order in orders:
        for direction in ("asc", "desc"):
            shown = running.ask(f"/runs?sort={order}&order={direction}")
            assert len(titles(shown.text)) == 50, order
    # A text begins with A at the first click; runs without a name are last in both orders.
    named = follow(running, page, "Run")
    assert 'aria-sort="ascending"' in named
    assert titles(named)[0].endswith("made-0011")
    turned = follow(running, named, "Run")
    assert 'aria-sort="descending"' in turned
    assert titles(turned)[0] == REAL
    by_cluster = titles(running.ask("/runs?sort=cluster&order=asc").text)
    assert sorted(title[-4:] for title in by_cluster[:10]) == [f"00{n:02d}" for n in range(10)]


def test_runs_are_filtered_by_tag_time_and_cost(running: PortalProcess) -> None:
    page = running.ask("/runs?tag=seed%3D7").text
    assert [title[-4:] for title in titles(page)] == ["0007"]
    assert 'value="seed=7"' in page
    assert '<details class="full" open>' in page
    assert '<details class="full">' in running.ask("/runs").text
    assert follow(running, running.ask("/runs?text=seed%3D7").text, "seed=7") == page
    assert len(titles(running.ask("/runs?tag=seed").text)) == 12
    assert titles(running.ask("/runs?tag=see").text) == []
    until = titles(running.ask("/runs?until=2026-11-01&order=asc").text)
    assert [title[-4:] for title in until[:2]] == ["0000", "0001"]
    assert len(until) == 16, "those that began on this day, from 8:00 on"
    longer = titles(running.ask("/runs?longer=95s").text)
    assert sorted(title[-4:] for title in longer if "made" in title) == [
        f"00{number:02d}" for number in range(11)
    ]
    # The cost of no run is known here.
    assert titles(running.ask("/runs?cost=0").text) == []
    for wrong, expected in (
        ("until=soon", "a date such as"),
        ("longer=5", "Expected:"),
        ("cost=cheap", "a number such as 10"),
        ("cost=nan", "a number such as 10"),
    ):
        answer = running.ask(f"/runs?{wrong}")
        assert answer.status == 400, wrong
        assert expected in answer.text


def test_a_program_is_one_line_with_its_trend(running: PortalProcess) -> None:
    page = running.ask("/runs?by=program").text
    assert "60 runs" in page
    assert page.count('<svg class="spark"') == 2
    assert "same time as the run before" in page
    compared = follow(running, page, "what changed")
    assert "What differed" in compared or "about equally fast" in compared
    history = follow(running, page, "one-idle-gpu") if "one-idle-gpu" in links(page) else page
    assert "train_digits.py" in history


def test_the_page_of_a_run_is_its_report(running: PortalProcess) -> None:
    page = running.ask(f"/run?id={REAL}").text
    assert "GPU 3 on g1 was never used." in page
    assert "Every GPU over time" in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert len(data["plots"]) > 5
    assert "All runs of this command" in links(page)
    missing = running.ask("/run?id=20260101-000000-none-aaaa")
    assert missing.status == 404
    assert "there is no run" in missing.text


def test_files_can_be_downloaded(running: PortalProcess) -> None:
    page = running.ask(f"/run?id={REAL}").text
    names = {name: address for name, address in links(page).items() if "file?" in address}
    assert set(names) == {"run.json", "g1.parquet", "report.json"}
    samples = running.ask("/" + names["g1.parquet"])
    assert samples.headers["content-disposition"].startswith("attachment")
    assert pq.read_table(io.BytesIO(samples.body)).num_rows > 100
    report = json.loads(running.ask("/" + names["report.json"]).body)
    assert report["verdict"] == "GPU 3 on g1 was never used."
    assert json.loads(running.ask("/" + names["run.json"]).body)["name"] == "one-idle-gpu"


def test_traces_can_be_downloaded_and_shown_in_tensorboard(running: PortalProcess) -> None:
    assert "tensorboard" not in running.ask(f"/run?id={REAL}").text
    assert running.path
    directory = running.path.parent / "home/runs/20261123-094504-traced-aaaa"
    shutil.copytree(EXAMPLE, directory)
    (directory / "traces").mkdir()
    trace = directory / "traces" / "g1-1-0-abc123.json.gz"
    shutil.copy(path_of("conv"), trace)
    (directory / "traces" / "g1-2-0-abc123.json.gz").symlink_to(path_of("conv"))
    try:
        page = running.ask(f"/run?id={directory.name}").text
        names = {name: address for name, address in links(page).items() if "file?" in address}
        assert set(names) == {"run.json", "g1.parquet", trace.name, "report.json"}
        assert running.ask("/" + names[trace.name]).body == trace.read_bytes()
        commands = [unescape(found) for found in re.findall(r"<code tabindex=.0.>(.*?)<", page)]
        assert commands[-3:-1] == [
            f"teho profile {directory.name} --trace-to logs", "tensorboard --logdir logs",
        ]  # fmt: skip
        assert re.fullmatch(r"ssh -N -L 6006:localhost:6006 \w+@\S+", commands[-1])
        assert "ui.perfetto.dev" in page
        trace.rename(trace.with_name("g1-1-0-abc123.xplane.pb.gz"))
        xla = running.ask(f"/run?id={directory.name}").text
        assert "tensorboard --logdir logs" in xla
        assert "ui.perfetto.dev" not in xla
        shutil.rmtree(directory / "traces")
        assert "tensorboard" not in running.ask(f"/run?id={directory.name}").text
    finally:
        shutil.rmtree(directory)


def test_two_runs_are_compared(running: PortalProcess) -> None:
    ids = titles(running.ask("/runs?text=train+0.2").text)[:2]
    page = running.ask(f"/compare?run={ids[0]}&run={ids[1]}").text
    assert "about equally fast" in page or "times as fast" in page
    assert page.count('<ul class="runs">') == 1
    for wrong in ("/compare", f"/compare?run={ids[0]}", f"/compare?run={ids[0]}&run={ids[0]}"):
        answer = running.ask(wrong)
        assert answer.status == 400
        assert "two to 10 different runs" in answer.text


def test_several_runs_are_compared(running: PortalProcess) -> None:
    ids = [REAL, *titles(running.ask("/runs?text=train+0.2").text)[:2]]
    page = running.ask("/compare?" + "&".join(f"run={one}" for one in ids)).text
    assert "3 runs side by side. Their commands differ" in page
    assert page.count("</th></tr></thead>") >= 2
    for name in ("made-0118", "made-0116", "one-idle-gpu"):
        assert page.count(name) >= 3  # as a card and as a column of both tables
    same = titles(running.ask("/runs?text=train+0.2").text)[:4]
    page = running.ask("/compare?" + "&".join(f"run={one}" for one in same)).text
    assert "took the least time of 4 runs: 41.0 s." in page
    many = "&".join(f"run={one}" for one in titles(running.ask("/runs").text)[:11])
    assert running.ask(f"/compare?{many}").status == 400


def test_verdicts_come_in_the_background(running: PortalProcess) -> None:
    def judged() -> bool:
        return "GPU never used" in running.ask("/runs?since=2026-11-23").text

    wait_for(judged, 60)
    home = running.ask("/").text
    assert "GPU 3 on g1 was never used." in home
    # A page that shows the run still without its verdict loads itself again.
    waiting = Events(running.connection(), f"/events?shown=&unjudged={REAL}")
    waiting.until("changed")
    waiting.close()
    assert BY_FINDING in home
    found = running.ask("/runs?kind=gpu_never_used").text
    assert titles(found) == [REAL]
    usage = running.ask("/usage?by=kind").text
    assert "GPU never used" in usage
    for page in (home, usage):
        savings = page.partition(BY_FINDING)[2].partition("</section>")[0]
        assert "in 1 run. The largest part is in" in savings
        assert links(savings)["one-idle-gpu"] == f"run?id={REAL}"
        assert '<p class="action">' in savings, "what to do, from the report"
        listed = running.ask("/" + links(savings)["GPU never used"])
        assert titles(listed.text) == [REAL]
    assert BY_FINDING not in running.ask("/usage?since=2030-01-01").text


def test_sums(running: PortalProcess) -> None:
    page = running.ask("/usage?by=cluster").text
    assert [label for label in ("lumi", "roihu") if label in links(page)] == ["lumi", "roihu"]
    assert follow(running, page, "lumi").count('class="pick"') == 10
    projects = running.ask("/usage?by=account").text
    assert follow(running, projects, "project_1").count('class="pick"') == 5
    assert "no project" in projects
    assert running.ask("/usage?by=nothing").status == 400


def test_clusters_and_one_cluster(running: PortalProcess) -> None:
    page = running.ask("/clusters").text
    assert "LUMI" in follow(running, page, "lumi", "/clusters")
    assert running.ask("/cluster?name=nowhere").status == 404


def test_the_form_of_the_plan(running: PortalProcess) -> None:
    assert "What to request" in running.ask("/plan").text
    page = running.ask("/plan?gpus=1&gpu-memory=30GiB&time=12h&cluster=lumi&mem=").text
    assert "teho plan --gpus 1 --gpu-memory 30GiB --time 12h --cluster lumi" in page
    assert "gpu-memory" in page
    assert 'value="30GiB"' in page
    for wrong in (
        "gpus=x",
        "gpus=-1",
        "mem=64",
        "time=12",
        "time=soon",
        "mem=much",
        "cluster=nowhere",
    ):
        answer = running.ask(f"/plan?gpus=1&{wrong}")
        assert answer.status == 400, wrong
        assert "Expected:" in answer.text


def test_the_form_of_the_plan_has_all_options_and_gives_the_script(
    running: PortalProcess, teho
) -> None:
    form = running.ask("/plan").text
    fields = set(re.findall(r'<(?:input|select) id="([\w-]+)"[^>]* name="\1"', form))
    asked = teho("plan", "--help").stdout
    options = set(re.findall(r"--([\w-]+)", asked.partition("--name NAME")[0]))
    of_output = {"help", "format", "script", "why"}
    assert {*options, "name", "even-if-retired"} - fields <= of_output
    assert {"gpus", "licenses"} <= options
    given = "gpus=2&launcher=torchrun&time=2h&account=project_9&exclusive=yes&record=yes"
    page = running.ask(f"/plan?{given}&cluster=lumi&command=train.py+'a+b'")
    assert page.status == 200
    script = unescape(page.text.partition('<code tabindex="0">')[2].partition("</code>")[0])
    words = ["--gpus", "2", "--launcher", "torchrun", "--time", "2h", "--account", "project_9"]
    printed = teho("plan", *words, "--exclusive", "--cluster", "lumi", "--script", "--record",
                   "--", "train.py", "a b")  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    assert script == printed.stdout
    assert "#SBATCH --account=project_9" in script
    # The printed command writes the same script.
    assert "--exclusive" in page.text
    assert "Batch script for LUMI" in page.text
    several = running.ask("/plan?gpus=1&command=python+train.py").text
    assert "To see the batch script, choose one cluster." in several
    assert "Batch script for" not in several
    assert "Batch script for" not in running.ask("/plan?gpus=1&cluster=lumi").text
    for wrong in (
        "command='x",
        "nodes=0",
        "launcher=nothing",
        "cpus=4&cpus-per-gpu=4",
        "gpus=0&gpu-memory=30GiB",
        "mem=64GiB&mem-per-gpu=10GiB",
    ):
        answer = running.ask(f"/plan?gpus=1&{wrong}" if "gpus" not in wrong else f"/plan?{wrong}")
        assert answer.status == 400, wrong


def test_every_link_is_relative_and_leads_somewhere(running: PortalProcess) -> None:
    seen, waiting, kinds = set(), ["/"], Counter[str]()
    while waiting:
        address = waiting.pop()
        kind = address.partition("?")[0]
        # Two pages of a kind that is computed in a process of its own, and some of the others.
        if address in seen or kinds[kind] == (2 if kind in {"/run", "/compare", "/file"} else 12):
            continue
        seen.add(address)
        kinds[kind] += 1
        answer = running.ask(address)
        assert answer.status == 200, address
        if kind == "/file":
            continue
        found = re.findall(r'(?:href|src|data-events)="([^"]*)"', answer.text)
        for one in map(unescape, found):
            assert not one.startswith(("/", "http:", "https:", "//")), one
            if not one.startswith("#") and not one.startswith("events"):
                waiting.append(urljoin("/", one))
    assert {"/", "/runs", "/run", "/compare", "/usage", "/clusters", "/cluster", "/file"} <= set(
        kinds
    )


def test_the_pages_are_small(running: PortalProcess) -> None:
    parts = ["/", "/style.css", "/portal.js"]
    assert sum(len(running.ask(part).body) for part in parts) < 150_000


def test_another_portal_on_the_same_socket_says_so(
    running: PortalProcess, teho, tmp_path: Path
) -> None:
    other = teho("portal", "--socket", running.path, env=environment(tmp_path))
    assert other.returncode == 2
    assert "another process uses" in other.stderr
    assert running.ask("/").status == 200


def test_a_socket_of_a_killed_portal_is_replaced(tmp_path: Path) -> None:
    with portal(tmp_path) as one:
        assert "ssh -N -L 8750:" in one.said
        one.process.kill()
        one.process.wait()
        assert one.path is not None
        assert one.path.is_socket()
        with portal(tmp_path) as again:
            assert again.ask("/").status == 200
            assert "No runs yet" in again.ask("/").text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_portal_and_removes_the_socket(
    tmp_path: Path, number: signal.Signals
) -> None:
    with portal(tmp_path) as one:
        connection = one.connection()
        connection.request("GET", "/events?shown=")
        assert connection.getresponse().status == 200
        one.process.send_signal(number)
        one.process.wait(30)
        connection.close()
        assert one.path is not None
        assert not one.path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="to make a file of another user needs root")
def test_a_folder_in_tmp_that_somebody_else_made_is_not_used(teho, tmp_path: Path) -> None:
    trap = tmp_path / "teho-0"
    trap.mkdir(mode=0o777)
    os.chown(trap, 65534, 65534)
    answer = teho(
        "portal", env={**environment(tmp_path), "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    )
    assert answer.returncode == 2
    assert "belongs to another user" in answer.stderr


def test_wrong_options_say_what_is_allowed(teho) -> None:
    assert "one of them" in teho("portal", "--port", "0", "--socket", "x").stderr
    assert "add `--port 0`" in teho("portal", "--address", "127.0.0.1").stderr
    assert "a free port" in teho("portal", "--port", "1", "--address", "198.51.100.1").stderr


def test_the_pages_as_files(tmp_path: Path, teho) -> None:
    home = tmp_path / "home"
    shutil.copytree(EXAMPLE, home / "runs" / REAL)
    make_run(home, 1, command=("python", "<script>alert(1)</script>"))
    folder = tmp_path / "public" / "runs"
    done = teho("portal", "--read-only-export", folder, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Everybody who can open these files sees your runs" in done.stderr
    page = (folder / "index.html").read_text()
    assert "<script>" not in page
    assert f'href="{REAL}.html"' in page
    report = (folder / f"{REAL}.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "GPU 3 on g1 was never used." in report
    assert (folder / "style.css").stat().st_mode & 0o777 == 0o644
    again = teho("portal", "--read-only-export", folder, env=environment(tmp_path))
    assert again.returncode == 0, again.stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").touch()
    refused = teho("portal", "--read-only-export", other, env=environment(tmp_path))
    assert refused.returncode == 2
    assert "has files that Teho did not write" in refused.stderr


def test_the_runs_of_the_group(tmp_path: Path, teho) -> None:
    import grp

    env = {**environment(tmp_path), "TEHO_SHARED": str(tmp_path / "project")}
    (tmp_path / "project").mkdir()
    shutil.copytree(EXAMPLE, tmp_path / "home/runs" / REAL)
    make_run(tmp_path / "home", 1)
    group = grp.getgrgid(os.getegid()).gr_name
    done = subprocess.run([*TEHO, "share", REAL, "--with", group], env={**os.environ, **env},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with portal(tmp_path, env=env) as one:
        page = one.ask("/runs?of=group").text
        assert titles(page) == [REAL]
        assert "Runs of the group" in page
        (address,) = re.findall(r'<th scope="row"><a href="([^"]*)"', page)
        shown = one.ask("/" + unescape(address))
        assert "GPU 3 on g1 was never used." in shown.text
        assert links(shown.text)["All runs of this command"].startswith("runs?command=")
        assert "of=group" in links(shown.text)["All runs of this command"]
        # A shared run can be compared with an own run, here with the run itself.
        key = f"{unescape(address).partition('by=')[2]}:{REAL}"
        assert f'name="run" value="{key}"' in page
        own = one.ask("/" + links(shown.text)["Compare with my newest run"])
        assert own.status == 200
        assert own.text.count("GPU 3 on g1 was never used.") >= 1
        made = titles(one.ask("/runs?text=made").text)[0]
        assert one.ask(f"/compare?run={made}&run={key}").status == 200
        for wrong in (f"nobody:{REAL}", f"{key}x", f"../{REAL}", f"{key}:{REAL}"):
            assert one.ask(f"/compare?run={made}&run={wrong}").status == 404, wrong
        wait_for(lambda: BY_FINDING in one.ask("/usage?of=group&by=user").text, 60)
        saved = links(one.ask("/usage?of=group&by=user").text)
        assert saved["GPU never used"].startswith("runs?kind=gpu_never_used&")
        assert "of=group" in saved["GPU never used"]
        assert "by=" in saved["one-idle-gpu"]
        assert one.ask("/" + saved["one-idle-gpu"]).status == 200
        # Once it is not shared any more, the page is gone.
        subprocess.run([*TEHO, "unshare", "--all"], env={**os.environ, **env}, check=True,
                       capture_output=True)  # fmt: skip
        assert one.ask("/" + unescape(address)).status == 404


def test_the_line_of_a_program_names_the_commit(tmp_path: Path) -> None:
    for number in range(6):
        is_new = number >= 3
        make_run(
            tmp_path / "home",
            number,
            elapsed_s=60.0 if is_new else 120.0,
            versions={
                "commit": "6f5e4d3c2b1a" if is_new else "1a2b3c4d5e6f",
                "program file": f"train.py {'1111bbbb' if is_new else '0000aaaa'}",
            },
        )
    with portal(tmp_path) as one:
        page = unescape(one.ask("/runs?by=program").text)
    assert "50 % less time since" in page
    assert "commit: 1a2b3c4d5e6f → 6f5e4d3c2b1a" in page
    assert "train.py was changed" in page


def test_an_export_has_every_run_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, teho
) -> None:
    from teho.config.settings import load_settings
    from teho.show.portal import export

    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    # More runs than are read at once.
    monkeypatch.setattr(export, "_BATCH", 2)
    home = tmp_path / "home"
    made = [make_run(home, number, exit_code=number % 2) for number in range(4)]
    at = datetime(2026, 11, 2, tzinfo=timezone.utc)
    made.append(make_run(home, 4, imported=Import(tools=("wandb",), files=("x.json",), at=at)))
    make_run(home, 5, elapsed_s=None)  # it is still running
    damaged = make_run(home, 6)
    (damaged / "run.json").write_text("{")
    written = export.export(load_settings(), tmp_path / "public")
    pages = {path.stem for path in (tmp_path / "public").glob("2026*.html")}
    assert pages == {path.name for path in made}
    assert written.left_out == (damaged.name,)
    listed = (tmp_path / "public" / "index.html").read_text()
    assert all(f'href="{path.name}.html"' in listed for path in made)
    # The next export deletes the pages of deleted runs, but no file of the user.
    shutil.rmtree(made[0])
    (tmp_path / "public" / "about.html").touch()
    (tmp_path / "public" / "runs-2.html").touch()
    done = teho("portal", "--read-only-export", tmp_path / "public")
    assert done.returncode == 0, done.stderr
    assert "left out 1 run without a report." in done.stderr
    assert f"`teho report {damaged.name}` says why" in done.stderr
    assert {path.name for path in (tmp_path / "public").glob("*.html")} == {
        "index.html", "about.html", *(f"{path.name}.html" for path in made[1:])
    }  # fmt: skip
