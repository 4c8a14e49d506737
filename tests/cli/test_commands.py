"""The commands as a user meets them: help, errors in one style, lists, deletion, formats."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from importlib import resources
from pathlib import Path

import jsonschema
import msgspec
import pytest

import teho as library
from support import TEHO
from teho.cli import COMMANDS
from teho.cli.complete import complete_run
from teho.clusters.catalogue import load_cluster
from teho.errors import InputError
from teho.model.run import FORMAT_VERSION, Run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two recorded runs; tests that change it work on a copy."""
    home = tmp_path_factory.mktemp("recorded")
    for name, code in (("first", 0), ("second", 3)):
        program = f"import time; sum(range(10**6)); time.sleep(2.5); raise SystemExit({code})"
        result = subprocess.run(
            [*TEHO, "run", "-q", "--every", "200ms", "--name", name, "--tag", f"code={code}", "--",
             sys.executable, "-c", program, "--token", "s3cr3t-value"],
            env={**os.environ, "TEHO_HOME": str(home)}, check=False, timeout=60,
        )  # fmt: skip
        assert result.returncode == code
    return home


@pytest.fixture
def own(recorded: Path, home: Path) -> Path:
    """A copy of the recorded home as this test's own."""
    import shutil

    shutil.copytree(recorded, home)
    return home


def ids(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "runs").iterdir())


def one_line(text: str) -> str:
    """Assert the one style of errors, and return the line."""
    assert "Traceback" not in text
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("teho: ")
    return lines[0]


def test_help_names_every_command_in_its_group(teho) -> None:
    text = teho("--help").stdout
    places = [text.index(f"  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    for group, line in COMMANDS.values():
        assert f"{group}:" in text
        assert line in text


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_examples(teho, name: str) -> None:
    text = teho(name, "--help").stdout
    assert "Examples:" in text
    # Examples name only commands and options that there are.
    for words in re.findall(r"^\s+(?:srun )?teho (.*)$", text.split("Examples:")[1], re.MULTILINE):
        assert words.split()[0] in COMMANDS
        before, _, _ = words.partition(" -- ")
        for option in re.findall(r"(?<= )--[a-z-]+", before):
            assert option in text.split("Examples:")[0], option
        for cluster in re.findall(r"--(?:cluster|site)[ =](\S+)", before):
            names = cluster.split(",")
            assert [load_cluster(one).status for one in names] == ["active"] * len(names), before


def test_version(teho) -> None:
    assert teho("--version").stdout == f"teho {library.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["rnu"], 2, ["'rnu'", "did you mean 'run'?", "teho --help"]),
        (["report", "nosuch"], 2, ["'nosuch'", "teho list"]),
        (["report", "/no/such/dir"], 2, ["/no/such/dir", "teho list"]),
        (["report", "--format", "pdf"], 2, ["pdf", "html", "teho report --help"]),
        (["run", "--every", "1x", "--", "true"], 2, ["--every", "'1x'", "500ms"]),
        (["run", "--every", "1ms", "--", "true"], 2, ["--every", "0.1s"]),
        (["run", "--tag", "novalue", "--", "true"], 2, ["--tag", "KEY=VALUE"]),
        (["run"], 2, ["teho run --help"]),
        (["run", "--nosuch", "--", "true"], 2, ["--nosuch", "teho run --help"]),
        (["launch"], 2, ["-- COMMAND", "teho launch --help"]),
        (["launch", "--nosuch", "--", "true"], 2, ["--nosuch", "teho launch --help"]),
        (["launch", "--env", "A", "--", "true"], 2, ["--env", "'A'", "NAME=VALUE"]),
        (["launch", "--gpus", "some", "--", "true"], 2, ["--gpus", "'some'", "own"]),
        (["launch", "--json", "--", "true"], 2, ["--json", "--check"]),
        (["launch", "--check", "--timeout", "soon"], 2, ["--timeout", "'soon'", "such as"]),
        (["launch", "--check", "--for", "0s"], 2, ["--for", "'0s'"]),
        (["rm"], 2, ["--older-than", "teho list"]),
        (["rm", "--older-than", "soon"], 2, ["--older-than", "soon"]),
        (["show", "nosuch"], 2, ["'nosuch'", "teho list"]),
        (["digest", "--accept"], 2, ["requires an argument. Next: `teho digest --help`"]),
        (["show", "first", "more"], 2, ["argument (more). Next: `teho show --help`"]),
        (["always"], 2, ["Missing command. Next: `teho always --help`"]),
        (["log"], 2, ["'--to'", "tensorboard, wandb, mlflow, trackio. Next: `teho log --help`"]),
        (["export"], 2, ["'--to'", "parquet, openmetrics, js1, ", "`teho export --help`"]),
        (["serve-metrics", "--port", "70000"], 2, ["70000", "65535", "teho serve-metrics --help"]),
        (["serve-metrics", "--port", "-1"], 2, ["-1", "65535", "teho serve-metrics --help"]),
        (["serve-metrics", "--socket", "/"], 2, ["/ is a folder, not a socket", "--socket"]),
        (["serve-metrics", "--socket", "/etc/passwd"], 2, ["is a file, not a socket", "--socket"]),
        (["jobs", "--state", "sleeping"], 2, ["known are cancelled, ", "leave out --state"]),
        (["jobs", "--since", "0d"], 2, ["--since 0d is not a time between 1970 and now"]),
        (["digest", "--since", "1000-01-01"], 2, ["--since 1000-01-01 is not a time between"]),
        (["digest", "--account", ""], 2, ["--account is empty", "leave out --account"]),
        (["jobs", "--user", " "], 2, ["--user is empty", "leave out --user"]),
        (["digest", "--mail-to", "anna"], 2, ["an address with {user}", "teho digest --help"]),
        (["tune", "--allow", "all", "--", "true"], 2, ["--allow all", "teho tune --help"]),
    ],
)
def test_a_mistake_is_one_line_with_the_next_step(
    teho, own: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    before = ids(own)
    result = teho(*arguments)
    assert result.returncode == code
    line = one_line(result.stderr)
    for word in words:
        assert word in line
    assert line.count("cancelled") <= 1, "the list of states is printed once"
    assert ids(own) == before


def test_without_any_run_the_first_step_is_named(teho) -> None:
    result = teho("report")
    assert result.returncode == 2
    assert "teho run -- COMMAND" in one_line(result.stderr)
    assert teho("list").returncode == 0


def test_runs_are_found_by_id_beginning_name_and_path(teho, own: Path) -> None:
    first, second = ids(own)
    for reference in (first, "first", str(own / "runs" / first)):
        assert teho("show", reference, "--path").stdout.strip() == str(own / "runs" / first)
    assert teho("show", "last", "--path").stdout.strip().endswith(second)
    assert teho("show", second[:-1], "--path").stdout.strip().endswith(second)
    result = teho("show", first[:4])
    assert result.returncode == 2
    assert "2 runs begin with" in one_line(result.stderr)


def test_a_name_that_many_ids_begin_with_is_found(teho, own: Path) -> None:
    year = ids(own)[0][:4]
    teho("run", "-q", "--probe", "off", "--name", year, "--", "true")
    result = teho("show", year)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["name"] == year


def test_a_directory_that_is_not_a_run(teho, tmp_path: Path) -> None:
    result = teho("report", tmp_path)
    assert result.returncode == 2
    assert "run.json" in one_line(result.stderr)


def test_a_damaged_description_is_named_and_listed(teho, own: Path) -> None:
    first, _ = ids(own)
    (own / "runs" / first / "run.json").write_text("{ not json")
    result = teho("report", first)
    assert result.returncode == 2
    assert str(own / "runs" / first / "run.json") in one_line(result.stderr)
    assert re.search(rf"{first}\s+damaged", teho("list").stdout)


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        (rb'"name":"first"', b'"name":"fir\xff"'),
        (rb'("started_at":"[^"]*)Z"', rb'\1"'),
        (rb'"period_s":0.2', rb'"period_s":0'),
        (rb'"tags":{[^}]*}', rb'"tags":' + b"[" * 20_000),
    ],
    ids=["no-text", "no-time-zone", "no-period", "brackets"],
)
def test_whatever_is_wrong_with_one_run_the_others_are_there(
    teho, own: Path, what: bytes, instead: bytes
) -> None:
    first, second = ids(own)
    path = own / "runs" / first / "run.json"
    content = path.read_bytes()
    path.write_bytes(re.sub(what, instead, content))
    assert path.read_bytes() != content
    result = teho("report", first)
    assert result.returncode == 2
    assert str(path) in one_line(result.stderr)
    shown = teho("list")
    assert re.search(rf"{first}\s+damaged", shown.stdout), shown.stderr
    assert teho("show", "second", "--path").stdout.strip().endswith(second)
    assert teho("rm", "--older-than", "0s", "--yes").returncode == 0
    assert ids(own) == [first]


def test_no_node_is_called_after_a_place_elsewhere(teho, own: Path) -> None:
    first, _ = ids(own)
    (path,) = (own / "runs" / first / "nodes").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"name": "../../../x"}))
    result = teho("report", first)
    assert result.returncode == 2
    assert str(path) in one_line(result.stderr)


def test_a_newer_recording_asks_for_a_newer_teho(teho, own: Path) -> None:
    first, _ = ids(own)
    path = own / "runs" / first / "run.json"
    content = json.loads(path.read_bytes()) | {"format": FORMAT_VERSION + 1, "news": 1}
    path.write_text(json.dumps(content))
    result = teho("report", first)
    assert result.returncode == 2
    assert "pip install --upgrade teho" in one_line(result.stderr)


def test_damaged_samples_are_named_and_the_rest_is_reported(teho, own: Path) -> None:
    first, _ = ids(own)
    (sealed,) = (own / "runs" / first / "samples").iterdir()
    sealed.write_bytes(sealed.read_bytes()[:-100])
    result = teho("report", first)
    assert result.returncode == 2
    line = one_line(result.stderr)
    assert str(sealed) in line
    assert "Next: " in line
    assert "Ended exit code 0" in result.stdout
    assert "Trouble with the recording" in result.stdout
    assert teho("report", first, "--format", "json").returncode == 2


def test_a_truncated_stream_is_named_and_what_is_whole_is_reported(teho, own: Path) -> None:
    from teho.store.journal import Journal
    from teho.store.read import read_part

    first, _ = ids(own)
    run = own / "runs" / first
    (sealed,) = (run / "samples").iterdir()
    rows = read_part(sealed)[0].to_pylist()
    sealed.unlink()
    journal = Journal(run, sealed.stem)
    for row in rows:
        journal.append([row])
        journal.flush()
    journal.close()
    assert teho("report", first).returncode == 0
    (stream,) = (run / "live").iterdir()
    stream.write_bytes(stream.read_bytes()[:-200])
    result = teho("report", first)
    assert result.returncode == 2
    assert str(stream) in one_line(result.stderr)
    assert f"{len(rows) - 1} complete batches" in result.stderr
    assert "Ended exit code 0" in result.stdout


def test_a_clock_that_jumped_back_does_not_matter(teho, own: Path) -> None:
    # Everything is computed from the monotonic column; stamps are for people.
    first, _ = ids(own)
    path = own / "runs" / first / "run.json"
    run = msgspec.json.decode(path.read_bytes(), type=Run)
    before = json.loads(teho("report", first, "--format", "json").stdout)
    assert run.end is not None
    earlier = msgspec.structs.replace(run.end, at=run.started_at.replace(year=2001))
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(run, end=earlier)))
    assert json.loads(teho("report", first, "--format", "json").stdout) == before


def test_list_and_its_cache(teho, own: Path) -> None:
    first, second = ids(own)
    shown = teho("list").stdout
    assert shown.index(first) < shown.index(second)
    assert "exit 3" in shown
    assert "s3cr3t" not in shown
    cache = next((Path(os.environ["XDG_CACHE_HOME"]) / "teho").iterdir())
    assert teho("list").stdout == shown
    for rubbish in (b"", b"not sqlite at all" * 100):
        cache.write_bytes(rubbish)
        assert teho("list").stdout == shown
    cache.unlink()
    assert teho("list").stdout == shown
    rows = json.loads(teho("list", "--tag", "code=3", "--format", "json").stdout)
    assert [row["id"] for row in rows] == [second]
    assert [row["exit_code"] for row in rows] == [3]
    assert len(teho("list", "--last", "1").stdout.splitlines()) == 2
    assert "~/.cache/teho/index.sqlite" in teho("list", "--help").stdout
    assert cache.name == "index.sqlite"


def add_runs(home: Path, like: str, count: int, **changes: object) -> list[str]:
    """Copy a recording's description, one minute after the other; return the ids."""
    run = msgspec.json.decode((home / "runs" / like / "run.json").read_bytes(), type=Run)
    made = []
    for number in range(count):
        began = run.started_at + timedelta(minutes=number + 1)
        run_id = f"{began:%Y%m%d-%H%M%S}-{number:04}"
        folder = home / "runs" / run_id
        folder.mkdir()
        one = msgspec.structs.replace(run, id=run_id, started_at=began, **changes)
        (folder / "run.json").write_bytes(msgspec.json.encode(one))
        made.append(run_id)
    return made


def test_list_shows_the_newest_30_and_says_what_it_leaves_out(teho, own: Path) -> None:
    _, second = ids(own)
    made = add_runs(own, second, 40)
    shown = teho("list")
    _, *rows = shown.stdout.splitlines()
    assert [row.split()[0] for row in rows] == made[-30:]
    assert shown.stderr == "teho: not shown: older runs; `teho list --all` shows all runs\n"
    assert len(teho("list", "--last", "35").stdout.splitlines()) == 36
    everything = teho("list", "--all")
    assert (len(everything.stdout.splitlines()), everything.stderr) == (43, "")
    assert len(json.loads(teho("list", "--format", "json").stdout)) == 42


def test_list_hides_the_runs_that_compare_made(teho, own: Path) -> None:
    _, second = ids(own)
    (made,) = add_runs(own, second, 1, tags={"compare": "abc"})
    shown = teho("list")
    assert made not in shown.stdout
    assert "1 run of `teho compare` or `teho scale`" in shown.stderr
    assert made in teho("list", "--all").stdout
    assert made in teho("list", "--tag", "compare=abc").stdout


def test_list_since(teho, own: Path) -> None:
    _, second = ids(own)
    run = msgspec.json.decode((own / "runs" / second / "run.json").read_bytes(), type=Run)
    (old,) = add_runs(own, second, 1)
    path = own / "runs" / old
    earlier = msgspec.structs.replace(
        run, id="20200101-120000-old", started_at=datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
    )
    (path / "run.json").write_bytes(msgspec.json.encode(earlier))
    path.rename(path.with_name(earlier.id))
    assert earlier.id in teho("list").stdout
    assert earlier.id not in teho("list", "--since", "1d").stdout
    assert earlier.id in teho("list", "--since", "2020-01-01").stdout
    assert earlier.id not in teho("list", "--since", "2020-01-03").stdout
    nothing = teho("list", "--since", "2100-01-01")
    assert "matches --since 2100-01-01" in nothing.stderr
    for wrong in ("yesterday", "7", "2026-13-01"):
        result = teho("list", "--since", wrong)
        assert result.returncode == 2
        assert f"--since {wrong}; expected a date such as" in one_line(result.stderr)


def test_list_shows_local_time_and_host_and_user_if_they_differ(teho, own: Path) -> None:
    _, second = ids(own)
    run = msgspec.json.decode((own / "runs" / second / "run.json").read_bytes(), type=Run)
    plain = teho("list", env={"TZ": "Asia/Kolkata"}).stdout
    assert "Began (IST)" in plain.splitlines()[0]
    local = run.started_at.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert f"{local:%Y-%m-%d %H:%M}" in plain
    assert "Host" not in plain
    add_runs(own, second, 1, host="another-node")
    heads = teho("list").stdout.splitlines()[0]
    assert "Host" in heads
    assert "User" not in heads
    rows = json.loads(teho("list", "--format", "json").stdout)
    assert {row["user"] for row in rows} == {pwd.getpwuid(os.getuid()).pw_name}
    assert rows[-1]["host"] == "another-node"


def test_a_tag_that_no_run_has(teho, own: Path) -> None:
    nobody = teho("list", "--tag", "code=9")
    assert "the tag code=9" in nobody.stderr
    assert "Record one" not in nobody.stderr
    for words in (["list", "--tag", "code"], ["list", "--tag", "code", "--format", "json"]):
        result = teho(*words)
        assert result.returncode == 2
        assert "KEY=VALUE" in one_line(result.stderr)


def test_list_works_if_no_cache_can_be_kept(teho, own: Path) -> None:
    Path(os.environ["XDG_CACHE_HOME"]).write_text("a file where a folder should be")
    assert all(run_id in teho("list").stdout for run_id in ids(own))


def test_rm_asks_and_deletes_only_what_is_named(teho, own: Path) -> None:
    first, second = ids(own)
    assert teho("rm", "first", stdin="n\n").returncode == 130
    assert ids(own) == [first, second]
    assert teho("rm", "first", stdin="y\n").returncode == 0
    assert ids(own) == [second]
    assert teho("rm", "--older-than", "30d", "--yes").returncode == 0
    assert ids(own) == [second]
    assert teho("rm", "--older-than", "0s", "--yes").returncode == 0
    assert ids(own) == []


def test_rm_keeps_what_teho_did_not_write(teho, own: Path) -> None:
    first, _ = ids(own)
    notes = own / "runs" / first / "my notes.txt"
    notes.write_text("mine")
    result = teho("rm", first, "--yes")
    assert result.returncode == 2
    assert "my notes.txt" in one_line(result.stderr)
    assert notes.exists()


def test_rm_takes_what_the_program_printed_too(teho, home: Path) -> None:
    teho("run", "-q", "--keep-output", "--probe", "off", "--", "echo", "printed")
    (run_id,) = ids(home)
    assert (home / "runs" / run_id / "stdout").read_text() == "printed\n"
    result = teho("rm", run_id, "--yes")
    assert (result.returncode, ids(home)) == (0, []), result.stderr


def test_rm_keeps_a_run_that_still_runs(teho, home: Path) -> None:
    process = subprocess.Popen([*TEHO, "run", "-q", "--", "sleep", "20"])
    try:
        while not (found := list(home.glob("runs/[!.]*"))):
            assert process.poll() is None
        run_id = found[0].name
        result = teho("rm", "last", "--yes")
        assert "still runs" in result.stderr
        assert run_id in ids(home)
    finally:
        process.terminate()
        process.wait(30)


def test_the_json_form_fits_its_schema(teho, own: Path) -> None:
    content = json.loads(teho("report", "--format", "json").stdout)
    schema = resources.files("teho.show") / "report.schema.json"
    jsonschema.validate(content, json.loads(schema.read_text()))
    assert content["schema"] == "teho.report/1"
    assert content["state"] == "finished"
    assert "s3cr3t" not in json.dumps(content)


def test_an_output_that_cannot_be_written(teho, own: Path) -> None:
    result = teho("report", "--format", "html", "-o", "/no/such/folder/report.html")
    assert result.returncode == 2
    assert "/no/such/folder/report.html" in one_line(result.stderr)


def test_html_to_a_file_and_to_a_pipe(teho, own: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert teho("report", "--format", "html", "--output", page).returncode == 0
    piped = teho("report", "--format", "html").stdout
    assert page.read_text() == piped
    assert piped.lower().startswith("<!doctype html>")


def test_a_closed_pipe_is_no_error(own: Path) -> None:
    result = subprocess.run(
        ["bash", "-c", f"{' '.join(TEHO)} report | head -1"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == 1


def test_nothing_secret_is_on_disk_anywhere(own: Path) -> None:
    for path in own.rglob("*"):
        assert path.is_dir() or b"s3cr3t" not in path.read_bytes(), path


@pytest.mark.parametrize("hours", ["9" * 400, "9" * 5000])
def test_a_number_without_end_is_none(teho, hours: str) -> None:
    for words in (["run", "--every", f"{hours}:00", "--", "true"], ["rm", "--older-than", hours]):
        result = teho(*words)
        assert result.returncode == 2
        assert "length of time" in one_line(result.stderr)


def test_a_home_whose_name_is_no_text_costs_only_the_recording(teho, own: Path) -> None:
    place = os.fsdecode(os.fsencode(own.parent) + b"/k\xe4ytt\xe4j\xe4")
    odd = {"TEHO_HOME": place}
    ran = teho("run", "--probe", "off", "--", "sh", "-c", "exit 3", env=odd)
    assert ran.returncode == 3
    assert "not UTF-8" in one_line(ran.stderr)
    own.rename(place)
    for words, env in ((["list"], odd), (["report", next(Path(place).glob("runs/*"))], {})):
        result = teho(*words, env=env)
        assert result.returncode == 2
        assert "not UTF-8" in one_line(result.stderr)


def test_a_threshold_file_of_an_unknown_user(teho, own: Path) -> None:
    result = teho("report", env={"TEHO_THRESHOLDS": "~no-such-user/thresholds.toml"})
    assert result.returncode == 2
    assert "~no-such-user" in one_line(result.stderr)


def test_what_is_being_created_is_not_offered(home: Path) -> None:
    for name in (".20261120-101944-x-k3f9", "20261120-101945-x-k3f9"):
        (home / "runs" / name).mkdir(parents=True)
    assert complete_run(None, None, "") == ["last", "20261120-101945-x-k3f9"]


def test_completion_of_commands_and_runs(own: Path) -> None:
    def complete(words: str, position: int) -> str:
        return subprocess.run(
            TEHO, capture_output=True, text=True, check=True, timeout=60,
            env={**os.environ, "_TEHO_COMPLETE": "bash_complete", "COMP_WORDS": words,
                 "COMP_CWORD": str(position)},
        ).stdout  # fmt: skip

    assert "report" in complete("teho re", 1)
    assert ids(own)[0] in complete("teho report 2", 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(teho, shell: str) -> None:
    assert "_TEHO_COMPLETE" in teho("completion", shell).stdout


def test_the_library_in_five_lines(own: Path) -> None:
    run = library.load("last")
    assert run.summary.elapsed_s > 1
    assert isinstance(run.findings, tuple)
    table = run.table("node")
    assert table.num_rows >= 3
    assert "cpu_busy_percent" in table.column_names
    assert run.table("gpu").num_rows == 0
    assert run.run.id in repr(run)
    assert run._repr_html_().startswith("<iframe srcdoc=")
    with pytest.raises(InputError, match="'gpu' or 'node'"):
        run.table("cpu")


def test_public_names_are_sorted_and_there() -> None:
    assert library.__all__ == sorted(library.__all__)
    assert all(hasattr(library, name) for name in library.__all__)


def test_without_a_home_the_program_still_runs() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOME", "XDG", "TEHO"))}
    result = subprocess.run(
        [*TEHO, "run", "-q", "--", "echo", "ran"],
        env={**environment, "HOME": "~nobody-of-this-name"}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, "ran\n")


def test_output_that_cannot_be_written_is_one_line(own: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*TEHO, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == 2
    assert "No space left" in one_line(result.stderr)


def test_a_terminal_of_ascii_gets_a_report(teho, own: Path) -> None:
    result = teho("report", env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert "Ended exit code" in result.stdout


def test_last_is_the_run_that_began_last(teho) -> None:
    # Ids tell the second; within one second it is not the name that decides.
    for name in ("zebra", "aardvark", "middle"):
        teho("run", "-q", "--name", name, "--", "true")
    shown = json.loads(teho("show", "last").stdout)
    assert shown["name"] == "middle"


def test_a_run_of_an_older_teho_lacks_columns(teho, own: Path) -> None:
    import pyarrow.parquet as pq

    first, _ = ids(own)
    (sealed,) = (own / "runs" / first / "samples").iterdir()
    table = pq.ParquetFile(sealed).read()
    pq.write_table(table.drop_columns(["job_open_files", "load_1min", "load_1min_max"]), sealed)
    result = teho("report", first, "--format", "json")
    assert result.returncode == 0
    assert all(plot["key"] != "load_1min" for plot in json.loads(result.stdout)["plots"])


def test_rm_continues_after_a_run_that_it_keeps(teho, own: Path) -> None:
    first, _ = ids(own)
    (own / "runs" / first / "my notes.txt").write_text("mine")
    result = teho("rm", "--older-than", "0s", "--yes")
    assert result.returncode == 2
    assert "my notes.txt" in result.stderr
    assert "deleted 1 recording" in result.stderr
    assert ids(own) == [first]


def test_deleting_the_same_run_twice_is_once(teho, own: Path) -> None:
    assert teho("rm", "-y", "first", "first").returncode == 0
    assert teho("rm", "--older-than", "9999999999d", "-y").returncode == 2


def test_without_words_the_help_is_printed(teho) -> None:
    alone, asked = teho(), teho("--help")
    assert alone.returncode == asked.returncode == 0
    assert alone.stdout == asked.stdout
    assert alone.stderr == ""
    assert all(f"  {name} " in alone.stdout for name in COMMANDS)
    unknown = teho("reprot")
    assert unknown.returncode == 2
