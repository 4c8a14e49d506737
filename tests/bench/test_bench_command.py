"""`teho bench` as a user calls it, and what it shows."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import msgspec
import pytest
from standins import GPU

from support import TEHO
from teho.bench.examples import EXAMPLES, LIBRARIES
from teho.bench.worker import PROGRAMS
from teho.cli.bench import _default_places, _refuse_several
from teho.errors import InputError
from teho.experiment.placement import Machine, read_placements
from teho.model.bench import Bench
from teho.show.build.bench import bench_document
from teho.show.html.page import render_html
from teho.show.json.noun import render_noun, schema_of
from teho.show.plot.bench import draw
from teho.show.plot.drawn import inlined
from teho.show.text.document import render_text

ROOT = Path(__file__).parents[2]
SVG = "http://www.w3.org/2000/svg"
QUICK = [
    "--quick",
    "--library",
    "numpy",
    "--on",
    "cpu:1",
    "--python",
    sys.executable,
    "--for",
    "20s",
]


def text_of(bench: Bench, width: int) -> str:
    return render_text(bench_document(bench), width=width, color=False, detail="why")


def page_of(bench: Bench) -> str:
    pictures = [inlined(draw(one, "svg")) for one in bench.results if one.timings]
    return render_html(bench_document(bench), pictures)


def teho(*arguments: str, cwd: Path | None = None, **environment: str):
    return subprocess.run(
        [*TEHO, "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
        cwd=cwd,
        check=False,
    )


@pytest.fixture(scope="module")
def answer() -> str:
    """What `--format json` printed of a real, small measurement."""
    done = teho("bandwidth", *QUICK, "--format", "json")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_name_it_lists_the_examples() -> None:
    done = teho()
    assert done.returncode == 0
    for name, example in EXAMPLES.items():
        first = re.escape(example.shows.split()[0])
        assert re.search(rf"^  {name}: {first}", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["slove"], "'slove' is not one of the examples, did you mean 'solve'?"),
        (
            ["solve", "--library", "pytorch"],
            "'pytorch' is not one of the libraries, did you mean 'torch'?",
        ),
        (["solve", "--on", "tpu:1"], "--on tpu:1; expected cpu:N"),
        (["solve", "--on", "cpu:99999"], "--on cpu:99999: this job has"),
        (["solve", "--for", "1s"], "--for 1s; expected 5.0 s or more"),
        (["solve", "--plot", "x.pdf"], "--plot x.pdf; expected a name that ends in .svg or .png"),
        (["solve", "--plot", "nowhere/x.svg"], "the folder nowhere does not exist"),
        (["solve", "--python", "/nowhere/python"], "/nowhere/python: no such program"),
        (
            ["solve", "--python", "/bin/false"],
            "--python /bin/false cannot import NumPy; expected a Python with NumPy",
        ),
    ],
)
def test_a_mistake_is_named(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = teho(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_json_is_as_the_schema_says(answer: str) -> None:
    jsonschema.Draft202012Validator(schema_of(Bench)).validate(json.loads(answer))
    bench = msgspec.json.decode(answer, type=Bench)
    (measured,) = bench.results
    assert measured.timings
    assert {one.library for one in measured.timings} == {"numpy"}
    assert render_noun(bench) == answer
    assert f"ran in {sys.executable}: as you asked" in bench.notes[0]


def test_text_has_the_figures_of_the_json(answer: str) -> None:
    bench = msgspec.json.decode(answer, type=Bench)
    text = text_of(bench, width=100)
    best = max(
        one.bytes_per_s for one in bench.results[0].timings if one.phase == "memory to memory"
    )
    assert f"memory to memory {best / 1e9:.3g}"[:20] in text
    assert "results agree" not in text  # of one library: there was nothing to agree with
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", ["cnn", "regression", "solve"])
def test_without_why_it_fits_a_screen(name: str) -> None:
    bench = msgspec.json.decode((ROOT / f"docs/learn/data/{name}.json").read_bytes(), type=Bench)
    text = render_text(bench_document(bench), width=80, color=False)
    assert len(text.splitlines()) <= 41
    assert max(map(len, text.splitlines())) <= 80
    assert "Add --why to see" in text


class Page(HTMLParser):
    """Collects what a page would fetch, and whether its elements close."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.svgs = 0

    def handle_starttag(self, tag, attributes):
        self.svgs += tag == "svg"
        for name, value in attributes:
            if name in {"src", "href", "xlink:href", "data"} and not value.startswith("#"):
                self.fetched.append(value)


def test_the_page_loads_no_other_files(answer: str) -> None:
    pytest.importorskip("matplotlib")
    page = Page()
    html = page_of(msgspec.json.decode(answer, type=Bench))
    page.feed(html)
    assert page.fetched == []
    assert page.svgs == 1
    assert "Leon Sorokin" not in html  # the licence of what draws plots over time
    assert "://" not in html


def test_only_the_panel_of_the_loader_names_workers() -> None:
    """Host memory and the device feed the same images without a loader."""
    pytest.importorskip("matplotlib")
    bench = msgspec.json.decode((ROOT / "docs/learn/data/cnn.json").read_bytes(), type=Bench)
    (measured,) = bench.results
    titles = [one.text for one in ET.fromstring(draw(measured, "svg")).iter(f"{{{SVG}}}text")]
    assert "host memory" in titles
    assert [title for title in titles if title and "workers" in title] == [
        "loader · 4 workers with prefetch 2"
    ]


def test_a_page_shows_a_name_as_text(answer: str) -> None:
    bench = msgspec.json.decode(answer, type=Bench)
    spiteful = msgspec.structs.replace(bench, cpu="<b>&", notes=("<script>",))
    html = page_of(spiteful)
    assert "&lt;b&gt;&amp;" in html
    assert "&lt;script&gt;" in html


def test_an_svg_follows_the_readers_colours(answer: str) -> None:
    pytest.importorskip("matplotlib")
    (measured,) = msgspec.json.decode(answer, type=Bench).results
    svg = draw(measured, "svg").decode()
    ET.fromstring(svg)
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "prefers-color-scheme" in svg
    assert draw(measured, "png").startswith(b"\x89PNG")
    assert draw(measured, "svg").decode() == svg


def test_without_matplotlib_the_error_names_the_extra(tmp_path: Path, answer: str) -> None:
    """A finder that knows no matplotlib stands in for a Python without it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name == 'matplotlib' else real(name, *a)\n"
    )
    done = teho("solve", *QUICK, "--plot", str(tmp_path / "x.svg"), PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "--plot: matplotlib is not installed. Next: `pip install 'teho[plots]'`" in done.stderr


def test_it_runs_in_the_first_python_that_has_numpy(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    arguments = [word for word in QUICK if word not in {"--python", sys.executable}]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = teho("bandwidth", *arguments, PATH=path)
    assert done.returncode == 0, done.stderr
    assert "Teho's own Python, because `python` has no NumPy" in " ".join(done.stdout.split())


def program_of(bench: subprocess.Popen) -> Path:
    """Wait until a program runs, and return its folder in /proc."""
    children = Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
    while bench.poll() is None:
        for pid in children.read_text().split():
            with contextlib.suppress(OSError):  # it may have ended meanwhile
                if "solve.py" in Path(f"/proc/{pid}/cmdline").read_text():
                    return Path(f"/proc/{pid}")
    raise AssertionError("it ended before any program had started")


def test_ctrl_c_ends_all_and_shows_what_there_is() -> None:
    arguments = ["solve", "--library", "numpy", "--on", "cpu:1", "--python", sys.executable]
    with subprocess.Popen(
        [*TEHO, "bench", *arguments, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as bench:
        try:
            program = program_of(bench)
            bench.send_signal(signal.SIGINT)
            (measured,) = json.loads(bench.communicate(timeout=60)[0])["results"]
        finally:
            bench.kill()
    assert bench.returncode == 130
    assert "The measurement was ended early" in " ".join(measured["notes"])
    while program.exists():  # one that had only just started ends when its input does
        pass


def test_cores_are_swept_from_one_to_all() -> None:
    machine = Machine(tuple((core,) for core in range(12)), ())
    assert EXAMPLES["solve"].sweeps_cores
    places = "cpu:1,cpu:2,cpu:4,cpu:8,cpu:all,gpu:1"
    assert _default_places(machine, all_cores=True) == places
    assert _default_places(machine, all_cores=False) == "cpu:1,cpu:all,gpu:1"


def test_work_of_one_gpu_is_not_shown_for_several() -> None:
    machine = Machine(((0,),), (GPU, msgspec.structs.replace(GPU, id="GPU-1", index=1)))
    _refuse_several(read_placements("cpu:all,gpu:1", machine, "--on")[0], "")
    for on in ("cpu:1,gpu:2", "gpu:all"):
        with pytest.raises(InputError, match="every example uses only one GPU"):
            _refuse_several(read_placements(on, machine, "--on")[0], on)


def test_every_example_has_a_program_in_the_libraries_that_it_names() -> None:
    for name, example in EXAMPLES.items():
        source = (PROGRAMS / f"{name}.py").read_text()
        declared = re.search(r"serve\(\w+, libraries=\((.*)\)\)", source)
        assert declared is not None, name
        assert {*example.cpu, *example.gpu} <= set(re.findall(r"\w+", declared[1])), name
        assert {*example.cpu, *example.gpu} <= set(LIBRARIES)
        for point in (*example.quick, *example.full):
            assert example.axis in point
            example.group.format(**point)
