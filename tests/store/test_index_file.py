"""The index of all runs: read once, renewed when something has changed, and searched."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from made_runs import BEGAN, make_run
from other_users import ALICE, BOB, EVE, root
from teho.model.listed_run import Judged
from teho.store import index_file
from teho.store.index import change_tags
from teho.store.index_file import HomeIndex, IndexFile
from teho.store.search import CHOICES, SORTS, RunFilter, Search


@pytest.fixture
def index(home: Path):
    file = IndexFile.open()
    yield file.home(home / "runs")
    file.close()


def search(index: HomeIndex) -> Search:
    return Search(index._file, [index], "judge 1")


def ids(index: HomeIndex, **wanted: object) -> list[str]:
    index.refresh()
    return [run.id[-4:] for run in search(index).find(RunFilter(**wanted), limit=1000)]


def age(runs: Path) -> None:
    """Make the folder look as if it was changed an hour ago."""
    past_s = time.time() - 3600
    os.utime(runs, (past_s, past_s))


def test_new_and_deleted_runs_are_seen(home: Path, index: HomeIndex) -> None:
    for number in range(3):
        make_run(home, number)
    assert ids(index) == ["0002", "0001", "0000"]
    make_run(home, 3)
    shutil.rmtree(next((home / "runs").glob("*-0001")))
    assert ids(index) == ["0003", "0002", "0000"]


def test_a_folder_that_has_not_changed_is_not_listed(
    home: Path, index: HomeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(home, 1)
    age(home / "runs")
    assert ids(index) == ["0001"]
    listed = []
    real = index_file._ids
    monkeypatch.setattr(index_file, "_ids", lambda runs: listed.append(runs) or real(runs))
    assert ids(index) == ["0001"]
    assert listed == []
    make_run(home, 2)
    assert ids(index) == ["0002", "0001"]
    assert len(listed) == 1


def test_a_run_that_appears_in_the_tick_of_the_listing_is_not_lost(
    home: Path, index: HomeIndex
) -> None:
    make_run(home, 1)
    stamp = (home / "runs").stat()
    assert ids(index) == ["0001"]
    make_run(home, 2)
    os.utime(home / "runs", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert ids(index) == ["0002", "0001"]


def test_a_run_without_an_end_is_read_again(home: Path, index: HomeIndex) -> None:
    directory = make_run(home, 1, elapsed_s=None)
    os.utime(directory / "nodes" / "g1.json")
    (run,) = search(refreshed(index)).find()
    assert (run.outcome, run.elapsed_s, run.gpu_hours) == ("running", None, None)
    shutil.rmtree(directory)
    make_run(home, 1, elapsed_s=90.0, exit_code=1)
    (run,) = search(refreshed(index)).find()
    assert (run.outcome, run.elapsed_s) == ("failed", 90.0)


def refreshed(index: HomeIndex) -> HomeIndex:
    index.refresh()
    return index


def test_a_damaged_description_is_listed_as_damaged(home: Path, index: HomeIndex) -> None:
    (make_run(home, 1) / "run.json").write_text("{")
    make_run(home, 2)
    index.refresh()
    assert [(run.id[-4:], run.outcome) for run in search(index).find()] == [
        ("0002", "ok"),
        ("0001", "damaged"),
    ]


def test_changed_tags_are_found(home: Path, index: HomeIndex) -> None:
    directory = make_run(home, 1)
    age(home / "runs")
    assert ids(index, text="cifar10") == []
    change_tags(directory, {"dataset": "cifar10"})
    assert ids(index, text="cifar10") == ["0001"]


def test_filters_and_words(home: Path, index: HomeIndex) -> None:
    make_run(home, 1, command=("python", "train.py", "--lr", "100%"), name="first", gpus=1)
    make_run(home, 2, command=("python", "eval_all.py"), exit_code=3, cluster="lumi", gpus=2)
    make_run(home, 3, command=("python", "evalXall.py"), cluster="roihu", tags={"set": "B"})
    assert ids(index, text="PYTHON") == ["0003", "0002", "0001"]
    assert ids(index, text="python first") == ["0001"]
    # The signs of LIKE mean themselves.
    assert ids(index, text="eval_all") == ["0002"]
    assert ids(index, text="100%") == ["0001"]
    assert ids(index, text="!") == []
    assert ids(index, text="4002") == ["0002"], "the id of the job"
    assert ids(index, outcome="failed") == ["0002"]
    assert ids(index, cluster="roihu", text="set") == ["0003"]
    assert ids(index, since_s=BEGAN.timestamp() + 7200) == ["0003", "0002"]
    assert ids(index, until_s=BEGAN.timestamp() + 7200) == ["0001"]
    assert ids(index, gpu="NVIDIA A100-SXM4-80GB") == ["0002", "0001"]
    assert search(index).choices("cluster") == [("lumi", 1), ("roihu", 1)]
    assert search(index).count(RunFilter(text="python")) == 3
    with pytest.raises(KeyError):
        search(index).choices("command")


def test_tags_are_found_by_key_and_value(home: Path, index: HomeIndex) -> None:
    make_run(home, 1, tags={"seed": "7", "set": "B"})
    make_run(home, 2, tags={"seed": "71"})
    make_run(home, 3, tags={"my seed": "7"})
    make_run(home, 4, tags={"note": 'the tag "seed": "7"', "x": "seed=7"})
    make_run(home, 5, tags={"a=b": "Ö"}, name="seed")
    make_run(home, 6)
    assert ids(index, tag="seed=7") == ["0001"]
    assert ids(index, tag="seed") == ["0002", "0001"]
    assert ids(index, tag="my seed=7") == ["0003"]
    assert ids(index, tag='note=the tag "seed": "7"') == ["0004"]
    assert ids(index, tag="see") == ids(index, tag="seed=") == ids(index, tag="SEED=7") == []
    # A search for words reads tags as they are written on the command line.
    assert ids(index, text="seed=71") == ["0002"]
    assert ids(index, text="set=b") == ["0001"]
    assert ids(index, text="a=b=ö") == ["0005"]
    assert ids(index, text="{") == []
    order = [run.id[-4:] for run in search(index).find(sort="tags", descending=False)]
    assert order[-1] == "0006", "a run without tags is last"


def test_runs_are_filtered_by_time_and_cost(home: Path, index: HomeIndex) -> None:
    for number, elapsed_s in ((1, 50.0), (2, None), (3, 20.0)):
        make_run(home, number, elapsed_s=elapsed_s)
    assert ids(index, least_s=20.0) == ["0003", "0001"]
    assert ids(index, least_s=20.5) == ["0001"]
    judge(index, r1=Judged(severity="good", cost=5.0), r3=Judged(severity="good", cost=0.0))
    # What is not known is not 0.
    assert ids(index, least_cost=0.0) == ["0003", "0001"]
    assert ids(index, least_cost=5.0) == ["0001"]
    assert search(index).count(RunFilter(least_cost=1.0)) == 1
    assert search(index).find_counted(
        RunFilter(least_cost=1.0), sort="time", descending=True, limit=9, offset=9
    ) == ([], 1)


def judge(index: HomeIndex, **judged: Judged) -> None:
    found = {run.id[-4:]: run.id for run in search(index).find()}
    index.save_verdicts("judge 1", {found[f"000{key[1]}"]: (1, one) for key, one in judged.items()})


def test_missing_values_are_last_in_both_orders(home: Path, index: HomeIndex) -> None:
    for number, elapsed_s in ((1, 50.0), (2, None), (3, 20.0)):
        make_run(home, number, elapsed_s=elapsed_s, gpus=1)
    index.refresh()
    judge(index, r1=Judged(severity="good", energy_j=5.0), r3=Judged(severity="good", energy_j=9.0))
    for sort in ("time", "gpu_hours", "energy"):
        for descending in (True, False):
            order = [run.id[-4:] for run in search(index).find(sort=sort, descending=descending)]
            assert order[-1] == "0002"
            largest = "0003" if sort == "energy" else "0001"
            assert (order[0] == largest) is descending


ORDERED = {
    "began": "1234",
    "time": "2314",
    "gpus": "4312",
    "gpu_hours": "3214",
    "name": "3124",
    "tags": "2134",
    "command": "3124",
    "user": "1324",
    "cluster": "3124",
    "partition": "3214",
    "account": "2314",
    "gpu": "2134",
    "outcome": "2134",
    "finding": "2314",
    "busy": "2134",
    "energy": "3124",
    "cost": "3124",
    "unused": "3124",
}
"""Name of an order -> the runs of `different`, smallest value first."""
NEVER_MISSING = {"began", "gpus", "command", "user", "outcome"}


@pytest.fixture
def different(home: Path, index: HomeIndex) -> HomeIndex:
    """Index four runs that differ in all columns; the last one has no value in most of them."""
    owners = (ALICE, BOB, EVE) if os.geteuid() == 0 else (os.geteuid(),) * 3
    columns = (
        ("b", 30.0, 2, "B200", "mahti", "small", "p3", "2", 0),
        ("c", 10.0, 4, "A100", "puhti", "gpu", "p1", "1", 1),
        ("a", 20.0, 1, "V100", "lumi", "debug", "p2", "3", 0),
    )
    for number, (owner, column) in enumerate(zip(owners, columns, strict=True), 1):
        name, elapsed_s, gpus, gpu, cluster, partition, account, seed, exit_code = column
        run = make_run(home, number, command=("python", f"{name}.py"), name=name, gpus=gpus,
                       elapsed_s=elapsed_s, gpu=gpu, cluster=cluster, partition=partition,
                       account=account, tags={"seed": seed}, exit_code=exit_code)  # fmt: skip
        os.chown(run / "run.json", owner, owner)
    make_run(home, 4, command=("python", "z.py"), elapsed_s=None)
    index.refresh()
    judge(
        index,
        r1=Judged(severity="warning", kind="input_slow", words="input slow",
                  gpu_busy_percent=50.0, energy_j=5.0, cost=2.0),
        r2=Judged(severity="good", words="good", gpu_busy_percent=10.0, energy_j=9.0, cost=3.0),
        r3=Judged(severity="critical", kind="gpu_low_use", words="gpu low use",
                  gpu_busy_percent=90.0, energy_j=1.0, cost=1.0),
    )  # fmt: skip
    return index


def listed(index: HomeIndex, wanted: RunFilter, **order: object) -> str:
    return "".join(run.id[-1] for run in search(index).find(wanted, **order))


@pytest.mark.parametrize("sort", SORTS)
def test_each_order_in_both_directions(different: HomeIndex, sort: str) -> None:
    if sort == "user" and os.geteuid() != 0:
        pytest.skip("to make files of other users needs root")
    smallest_first = ORDERED[sort]
    largest_first = smallest_first[::-1]
    if sort not in NEVER_MISSING:
        # The last run has no value, and is the last one in both orders.
        largest_first = largest_first[1:] + "4"
    # Without a filter, an order may be read from an index of the database; a filter forbids this.
    for wanted in (RunFilter(), RunFilter(text="python")):
        assert listed(different, wanted, sort=sort, descending=False) == smallest_first
        assert listed(different, wanted, sort=sort, descending=True) == largest_first


@pytest.mark.parametrize(
    ("wanted", "runs"),
    [
        (RunFilter(outcome="failed"), "2"),
        (RunFilter(outcome="running"), "4"),
        (RunFilter(kind="gpu_low_use"), "3"),
        (RunFilter(cluster="puhti"), "2"),
        (RunFilter(partition="small"), "1"),
        (RunFilter(account="p2"), "3"),
        (RunFilter(gpu="B200"), "1"),
        (RunFilter(least_cost=2.0), "21"),
        (RunFilter(least_cost=2.0, kind="input_slow"), "1"),
        (RunFilter(least_cost=2.0, partition="debug"), ""),
    ],
)
def test_each_column_can_be_filtered(different: HomeIndex, wanted: RunFilter, runs: str) -> None:
    assert listed(different, wanted) == runs
    assert search(different).count(wanted) == len(runs)


@root
def test_runs_are_filtered_by_user(different: HomeIndex) -> None:
    assert listed(different, RunFilter(user=pwd.getpwuid(BOB).pw_name)) == "2"
    assert listed(different, RunFilter(user="root")) == "4"
    assert search(different).choices("user") == [
        ("games", 1),
        ("mail", 1),
        ("news", 1),
        ("root", 1),
    ]


@given(
    sort=st.sampled_from([*SORTS, "began_s; drop table run", ""]),
    descending=st.booleans(),
    text=st.text(max_size=8),
    column=st.sampled_from(CHOICES),
    value=st.text(max_size=6),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_value(home: Path, sort, descending, text, column, value) -> None:
    if not (home / "runs").exists():
        make_run(home, 1, name="a'b\"c%_!")
    file = IndexFile.open()
    index = file.home(home / "runs")
    index.refresh()
    found = search(index).find(RunFilter(text=text), sort=sort, descending=descending)
    words = text.split()
    haystack = "a'b\"c%_! python train.py {} " + found[0].id if found else ""
    assert all(word.lower() in haystack.lower() for word in words if word.isascii() and found)
    assert search(index).find(RunFilter(**{column: value or "none"})) == []
    file.close()


def test_sums_are_of_known_figures_only(home: Path, index: HomeIndex) -> None:
    for number in (1, 2, 3):
        make_run(home, number, elapsed_s=3600.0, gpus=2)
    index.refresh()
    (total,) = search(index).totals("all")
    assert (total.runs, total.gpu_hours, total.judged) == (3, 6.0, 0)
    assert total.energy_j is None
    assert total.cost is None
    assert total.unused_percent is None
    assert total.unused_cost_percent is None
    judge(
        index,
        r1=Judged(severity="good", gpu_busy_percent=75.0, energy_j=10.0, cost=1.5, cost_unit="BU",
                  unused_cost=0.3),
        r2=Judged(severity="unknown", cost=8.5, cost_unit="BU"),
    )  # fmt: skip
    (total,) = search(index).totals("all")
    assert (total.judged, total.energy_j, total.cost, total.cost_unit) == (2, 10.0, 10.0, "BU")
    # The part that was not used is not known of the second run.
    assert (total.unused_cost, total.measured_cost) == (0.3, 1.5)
    assert total.unused_cost_percent == pytest.approx(20.0)
    assert (total.measured_gpu_hours, total.busy_gpu_hours) == (2.0, 1.5)
    assert total.unused_percent == 25.0
    # Different units cannot be added.
    judge(index, r3=Judged(severity="good", cost=7.0, cost_unit="GPU-hour", unused_cost=1.0))
    (total,) = search(index).totals("all")
    assert (total.cost, total.cost_unit, total.unused_cost) == (None, "", None)
    by_command = search(index).totals("command")
    assert [one.key for one in by_command] == ["python train.py"]
    (month,) = search(index).totals("month")
    assert month.key == "2026-11"


def test_judges_do_not_disturb_each_other(home: Path, index: HomeIndex) -> None:
    make_run(home, 1, gpus=1)
    index.refresh()
    judge(index, r1=Judged(severity="good", words="good"))
    (run,) = search(index).find()
    index.save_verdicts("means 1", {run.id: (1, Judged(severity="", words="[1.0]"))})
    index.save_verdicts("judge 0", {run.id: (1, Judged(severity="critical", words="old"))})
    assert search(index).find()[0].judged == Judged(severity="good", words="good")
    index.forget_verdicts("judge 1")
    assert index.verdicts("judge 0") == {}
    assert set(index.verdicts("judge 1")) == set(index.verdicts("means 1")) == {run.id}


def test_a_full_disk_is_not_an_empty_list(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from teho.config.settings import Settings
    from teho.show.portal.recordings import Recordings

    for number in range(50):
        make_run(home, number)
    recordings = Recordings(Settings(home=str(home)))
    (pages,) = recordings._file.connection.execute("pragma page_count").fetchone()
    recordings._file.connection.execute(f"pragma max_page_count = {pages}")
    recordings.refresh()
    with recordings.search() as found:
        assert found.count(RunFilter()) == 50
    recordings.close()


LIST = """
import json, sys
from teho.config.settings import load_settings
from teho.show.portal.recordings import Recordings
recordings = Recordings(load_settings())
recordings.refresh()
((_, _, path),) = recordings._file.connection.execute("pragma database_list").fetchall()
with recordings.search() as search:
    print(json.dumps([path, [run.id[-4:] for run in search.find()]]))
"""


def test_on_a_file_system_without_locks_the_index_is_on_this_node(
    home: Path, tmp_path: Path
) -> None:
    """As on Lustre without `flock`: SQLite cannot lock a file there, and gets an error."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a file system without locks with")
    library = tmp_path / "no_locks.so"
    source = Path(__file__).parents[1] / "stubs/no_locks.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    make_run(home, 1)
    cache, node = tmp_path / "lustre", tmp_path / "tmp"
    node.mkdir()
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(node)}
    without = {**env, "LD_PRELOAD": str(library), "NO_LOCKS": str(cache)}

    def listed(environment: dict[str, str]) -> list[object]:
        done = subprocess.run([sys.executable, "-c", LIST], env=environment, check=True,
                              capture_output=True, text=True)  # fmt: skip
        return json.loads(done.stdout)

    assert listed(env) == [str(cache / "teho/index.sqlite"), ["0001"]]
    on_node = node / f"teho-{os.geteuid()}/index.sqlite"
    assert listed(without) == [str(on_node), ["0001"]]
    assert on_node.stat().st_mode & 0o777 == 0o600
    assert on_node.parent.stat().st_mode & 0o777 == 0o700
    # The file is used again, and is not another user's.
    make_run(home, 2)
    assert listed(without) == [str(on_node), ["0002", "0001"]]
    on_node.parent.chmod(0o777)
    assert listed(without) == ["", ["0002", "0001"]], "in memory"


def test_a_file_that_another_process_has_locked_is_not_deleted(
    home: Path, index: HomeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (file,) = (tmp_path / "cache").rglob("index.sqlite")
    inode = file.stat().st_ino
    index._file.connection.execute("begin exclusive")
    other = IndexFile.open()
    assert file.stat().st_ino == inode
    other.close()
    index._file.connection.rollback()


def test_a_run_is_not_lost_if_the_index_was_locked(home: Path, index: HomeIndex) -> None:
    make_run(home, 1)
    age(home / "runs")
    other = IndexFile.open()
    other.connection.execute("begin immediate")
    index._file.connection.execute("pragma busy_timeout = 10")
    assert ids(index) == []
    other.connection.rollback()
    other.close()
    assert index._file.problem == ""
    assert ids(index) == ["0001"]


def test_the_file_is_private(home: Path, index: HomeIndex, tmp_path: Path) -> None:
    (file,) = (tmp_path / "cache").rglob("*.sqlite")
    assert file.stat().st_mode & 0o777 == 0o600
