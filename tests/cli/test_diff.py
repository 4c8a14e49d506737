"""`teho diff`: two runs side by side; `teho tag`; who may read a recording."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from made_runs import make_run
from teho.errors import UnreadableError
from teho.show.build.diff import several_document
from teho.show.loaded import LoadedRun
from teho.store.index import find_run
from teho.store.read import read_run

RUNS = Path(__file__).parents[2] / "examples" / "runs"
LEARN = RUNS.parent / "learn" / "runs"


@pytest.fixture
def two(teho, home: Path) -> Path:
    """Record a run of 1 s and one of 2 s."""
    for name, time_s in (("short", "1"), ("long", "2")):
        words = ["run", "-q", "--probe", "off", "--name", name, "--tag", f"length={time_s}"]
        assert teho(*words, "--", "sleep", time_s).returncode == 0
    return home


def test_two_runs_are_compared_in_every_format(teho, two: Path, tmp_path: Path) -> None:
    text = teho("diff", "short", "long")
    assert text.returncode == 0, text.stderr
    verdict = " ".join(text.stdout.split())
    assert "times as fast" not in verdict
    assert "The commands differ, so the work may differ too." in verdict
    assert "sleep 1" in text.stdout
    document = json.loads(teho("diff", "short", "long", "--format", "json").stdout)
    figures, differences = document["tables"]
    (time,) = (row for row in figures["rows"] if row["what"] == "Time")
    assert time["difference_percent"] == pytest.approx(100, abs=60)
    found = {row["what"]: (row["first"], row["second"]) for row in differences["rows"]}
    assert found == {"command": ("sleep 1", "sleep 2"), "tag length": ("1", "2")}
    page = tmp_path / "diff.html"
    assert teho("diff", "short", "long", "-o", page).returncode == 0
    assert "What differed" in page.read_text()


def test_only_runs_of_the_same_command_are_called_faster(teho, home: Path, tmp_path: Path) -> None:
    once = tmp_path / "once"
    # The first run creates the file and sleeps; the second finds the file and ends.
    command = ["sh", "-c", f"[ -e {once} ] || {{ touch {once}; sleep 2; }}; sleep 0.5"]
    for name in ("first", "second"):
        assert teho("run", "-q", "--probe", "off", "--name", name, "--", *command).returncode == 0
    verdict = " ".join(teho("diff", "first", "second").stdout.split())
    assert verdict.startswith("i second was ")
    assert " times as fast as first: " in verdict


def test_findings_of_only_one_run_are_named(teho, two: Path) -> None:
    result = teho("diff", RUNS / "one-idle-gpu", "long", "--format", "json")
    assert result.returncode == 0, result.stderr
    (findings,) = json.loads(result.stdout)["lists"]
    assert findings["items"]
    assert all(item["lead"].startswith(("only ", "both")) for item in findings["items"])


def test_a_report_of_two_runs_names_diff(teho, two: Path) -> None:
    result = teho("report", "short", "long")
    assert result.returncode == 2
    assert "Next: `teho diff short long` compares two runs" in result.stderr
    assert teho("diff", "long", "last").returncode == 2, "the same run twice"


def test_recordings_of_two_commands_are_not_one_variant(teho, two: Path) -> None:
    for name in ("short", "long"):
        teho("tag", name, "--remove", "length")
    result = teho("compare", "--recorded", "short,long")
    assert result.returncode == 2
    assert "2 different commands ran on " in result.stderr
    assert "`teho diff " in result.stderr


def test_tags_are_added_and_removed_afterwards(teho, two: Path) -> None:
    assert teho("tag", "short", "set=a", "token=hunter2").returncode == 0
    run = json.loads(teho("show", "short").stdout)
    assert run["tags"] == {"length": "1", "set": "a", "token": "•••"}
    (row,) = json.loads(teho("list", "--tag", "set=a", "--format", "json").stdout)
    assert row["name"] == "short"
    assert teho("tag", "short", "set=b", "--remove", "token").returncode == 0
    assert json.loads(teho("show", "short").stdout)["tags"] == {"length": "1", "set": "b"}
    for words, expected in ((["tag", "short"], "--remove KEY"), (["tag", "short", "x"], "KEY=VA")):
        result = teho(*words)
        assert result.returncode == 2
        assert expected in result.stderr


def test_a_report_says_when_where_and_by_whom(teho, two: Path) -> None:
    facts = json.loads(teho("report", "short", "--format", "json").stdout)["facts"]
    found = {fact["key"]: fact["value"] for fact in facts}
    assert found["host"] == os.uname().nodename
    assert found["user"]
    assert found["began"].startswith(json.loads(teho("show", "short").stdout)["id"][:4])
    text = " ".join(teho("report", "short").stdout.split())
    assert f"Began {found['began']} · Host {found['host']}" in text
    assert "· User" not in text, "it is this user's own"
    page = teho("report", "short", "--format", "html").stdout
    assert found["user"] in page[page.index("User") :][:200]


def test_list_has_verdicts_and_separates_newer_from_damaged(teho, two: Path) -> None:
    shown = teho("list").stdout
    assert "Verdict" in shown.splitlines()[0]
    assert shown.count("not judged") == 2
    (path,) = (two / "runs").glob("*-short-*")
    content = json.loads((path / "run.json").read_bytes()) | {"format": 99, "news": 1}
    (path / "run.json").write_text(json.dumps(content))
    assert f"{path.name}" in teho("list").stdout
    rows = json.loads(teho("list", "--format", "json").stdout)
    assert [row["state"] for row in rows] == ["newer", "finished"]


def test_a_run_of_a_colleague_names_what_to_ask_for(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These tests may run as root, who can read everything: the refusal is made up.
    run = tmp_path / "anna" / "runs" / "20261120-101944-train-k3f9"
    shutil.copytree(next((two / "runs").glob("*-short-*")), run)
    ask = f"ask its owner to run `chmod go+x {run.parents[1]} {run.parent} && chmod -R go+rX {run}`"

    def refuse(*_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(UnreadableError) as refused:
            read_run(run)
    assert ask in str(refused.value)
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        patch.setattr(Path, "is_dir", refuse)
        with pytest.raises(UnreadableError) as refused:
            find_run(str(run), two)
    assert ask in str(refused.value)


@pytest.mark.parametrize("first", ["20261122-102145-serial.py-rc3q", "20261123-123015-fed-v7gj"])
def test_findings_of_both_runs_have_the_sentence_of_each_run(teho, first: str) -> None:
    """If two runs have the same kind of finding with other figures, each has its own sentence."""
    paths = [LEARN / name for name in (first, "20261122-102154-serial.py-wd43")]
    reports = [json.loads(teho("report", path, "--format", "json").stdout) for path in paths]
    kinds = [{one["kind"]: one["sentence"] for one in report["findings"]} for report in reports]
    assert kinds[0]["job_too_short"] != kinds[1]["job_too_short"]
    runs = [json.loads((path / "run.json").read_bytes()) for path in paths]
    names = [run.get("name") or run["id"] for run in runs]
    (findings,) = json.loads(teho("diff", *paths, "--format", "json").stdout)["lists"]
    found = {(item["lead"], item["text"]) for item in findings["items"]}
    for name, own, other in ((names[0], *kinds), (names[1], *kinds[::-1])):
        for kind, sentence in own.items():
            if kind not in other:
                assert (f"only {name}", sentence) in found
            elif other[kind] == sentence:
                assert ("both", sentence) in found
            else:
                assert (f"both, {name}", sentence) in found
    assert len(found) == len(findings["items"])


def test_findings_of_three_runs_have_the_sentence_of_each_run() -> None:
    names = [f"20261122-{name}" for name in ("102145-serial.py-rc3q", "102154-serial.py-wd43")]
    names.append("20261122-102200-serial.py-9sxq")
    (findings,) = several_document([LoadedRun.open(str(LEARN / name)) for name in names]).lists
    found = {(item.lead, item.text.partition(". ")[0]) for item in findings.items}
    assert ("all", "Python code took 100 % of the time, on one core.") in found
    ran = {lead: text for lead, text in found if text.startswith("The program ran for")}
    assert sorted(ran) == names
    assert len(set(ran.values())) > 1


def test_several_runs_of_two_variants_have_the_verdict_of_compare(teho, home: Path) -> None:
    runs = [LoadedRun.open(str(path)) for path in sorted(LEARN.glob("*-parallel.py-*"))]
    named = ",".join(str(run.directory) for run in runs)
    compared = json.loads(teho("compare", "--recorded", named, "--format", "json").stdout)
    assert compared["outcome"] != "not_enough_evidence"
    document = several_document(runs)
    assert document.verdict == compared["verdict"]
    assert document.notes == ("This is the verdict of `teho compare --recorded`.",)
    assert {plot.key for plot in document.plots} >= {"job_cpu_s", "job_memory_bytes"}
    assert all(len(plot.series) == len(runs) for plot in document.plots)


def test_runs_of_one_variant_have_no_verdict_of_compare() -> None:
    runs = [LoadedRun.open(str(path)) for path in sorted(LEARN.glob("*-parallel.py-*"))]
    alike = [run for run in runs if run.run.tags["variant"] == "cpu:1"]
    assert len(alike) == 3
    assert " took the least time of 3 runs: " in several_document(alike).verdict
    assert "A difference can be chance." in several_document(alike).notes[0]


def _in_job(directory: Path, gpu: dict[str, object] | None = None, **allocation: object) -> None:
    """Change the description of a recording, as if it was made in a job, perhaps on other GPUs."""
    path = directory / "nodes" / "g1.json"
    node = json.loads(path.read_bytes())
    node["allocation"] = {**node.get("allocation", {}), **allocation}
    for device in node.get("devices", ()):
        device.update(gpu or {})
    path.write_text(json.dumps(node))


def test_what_differed_has_the_job_the_code_the_versions_and_the_environment(
    teho, home: Path
) -> None:
    made = [
        make_run(
            home,
            number,
            cluster="lumi",
            partition=("small-g", "standard-g")[number],
            account=f"project_{number}",
            versions={"commit": f"1a2b3c4d5e{number}f", "torch": f"2.{number}.0", "python": "3.12"},
            environment={"OMP_NUM_THREADS": str(4 + number), "SLURM_JOB_ID": str(number)},
        )
        for number in range(2)
    ]
    for hours, directory in enumerate(made, 1):
        _in_job(directory, time_limit_s=3600.0 * hours, memory_limit_bytes=hours << 35)
    done = teho("diff", *made, "--format", "json")
    assert done.returncode == 0, done.stderr
    _, differences = json.loads(done.stdout)["tables"]
    found = {row["what"]: (row["first"], row["second"]) for row in differences["rows"]}
    assert found == {
        "partition": ("small-g", "standard-g"),
        "account": ("project_0", "project_1"),
        "time limit": ("1 h", "2 h"),
        "memory limit": ("32.0 GiB", "64.0 GiB"),
        "commit": ("1a2b3c4d5e0f", "1a2b3c4d5e1f"),
        "torch": ("2.0.0", "2.1.0"),
        "OMP_NUM_THREADS": ("4", "5"),
    }
    third = make_run(home, 2, cluster="lumi", partition="small-g", account="project_0")
    _, several = several_document([LoadedRun.open(str(path)) for path in (*made, third)]).tables
    assert {row["what"] for row in several.rows} >= {*found}


def test_a_comparison_has_the_energy_and_the_cost_of_both_runs(teho, home: Path) -> None:
    paths = []
    for number in range(2):
        paths.append(home / "runs" / f"20261123-09450{number}-one-aaaa")
        shutil.copytree(RUNS / "one-idle-gpu", paths[-1])
        _in_job(paths[-1], {"name": "NVIDIA A100-SXM4-40GB", "memory_bytes": 40 << 30},
                scheduler="slurm", job_id=str(number), cluster="mahti", partition="gpumedium",
                gpus_held=2 + 2 * number)  # fmt: skip
    done = teho("diff", *paths, "--format", "json")
    assert done.returncode == 0, done.stderr
    figures, _ = json.loads(done.stdout)["tables"]
    found = {row["what"]: row for row in figures["rows"]}
    for what, first, second, percent in (
        ("GPU energy", "43.1 Wh", "43.1 Wh", 0),
        ("Cost", "4.80 GPU BU", "9.60 GPU BU", 100),
    ):
        row = found[what]
        assert (row["first"], row["second"]) == (first, second)
        assert row["difference_percent"] == pytest.approx(percent)
