"""The HTML pages of the commands beside `report`: they fit the window, and wide tables scroll."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from browsers import OVERFLOW
from doctor.test_doctor_text import BAD, TEST, examined
from show.test_devices_text import H100, NO_AMD, SLICES, survey
from show.test_html import Outline, browser, visit  # noqa: F401 - fixtures
from show.test_scale_text import SCALED
from show.test_tune_text import TUNED
from software.test_env_check import DATA
from teho.model.document import Document
from teho.show.build.devices import devices_document
from teho.show.build.doctor import doctor_document
from teho.show.build.scale import scale_document
from teho.show.build.tune import tune_document
from teho.show.html.page import render_html

PLAN = ("plan", "--gpus", "4", "--time", "12h")
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    # name -> words, and a word that the page has
    "plan": ((*PLAN, "--", "train.py"), "lumi"),
    "plan on one cluster": ((*PLAN, "--cluster", "mahti", "--", "a" * 150), "mahti"),
    "clusters": (("clusters",), "Roihu"),
    "one cluster": (("clusters", "show", "lumi"), "standard-g"),
    "env plan": (("env", "plan", "pytorch", "--cluster", "lumi"), "torch"),
    "env check": (("env", "check", str(DATA / "conda-list-cpu.txt"), "--cluster", "arc4"), "CPU"),
    "list": (("list",), "train"),
}
DOCUMENTS: dict[str, tuple[Callable[[], Document], str]] = {
    "doctor": (lambda: doctor_document(examined(BAD, test=TEST)), "torch 2.4.1"),
    "devices": (lambda: devices_document(survey(H100, NO_AMD)), "H100"),
    "devices with MIG": (lambda: devices_document(survey(SLICES, NO_AMD)), "MIG 3g.20gb"),
    "scale": (lambda: scale_document(SCALED), "1.80"),
    "tune": (lambda: tune_document(TUNED), "num_workers=2"),
}
CUT = """() => [...document.querySelectorAll('main p, main li, main dd, main h2, pre, code')]
  .filter(one => one.checkVisibility() && !one.closest('.scroll, pre, svg'))
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
  .map(one => one.textContent.slice(0, 80))"""
WITHOUT_HINT = """() => [...document.querySelectorAll('.scroll')]
  .filter(box => box.checkVisibility({contentVisibilityAuto: true}))
  .filter(box => box.scrollWidth > box.clientWidth + 1 && !box.classList.contains('wide'))
  .map(box => box.textContent.slice(0, 80))"""


def check_page(visit, text: str, word: str) -> None:  # noqa: F811 - a fixture
    outline = Outline(text)
    words = " ".join(" ".join(outline.words).split())
    assert word in words
    titles = [tag for tag, _ in outline.elements if tag == "h1"]
    assert len(titles) == 1
    page = visit(text, width=390)
    for width, scheme in ((390, "light"), (390, "dark"), (1200, "light"), (1200, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(OVERFLOW) == 0, (width, scheme)
        assert page.evaluate(CUT) == [], (width, scheme)
    page.set_viewport_size({"width": 390, "height": 900})
    if page.locator(".scroll").count():
        page.wait_for_function(f"({WITHOUT_HINT})().length === 0", timeout=5000)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_page_of_a_document_fits(visit, name: str) -> None:  # noqa: F811 - a fixture
    build, word = DOCUMENTS[name]
    check_page(visit, render_html(build()), word)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_fits(visit, teho, name: str) -> None:  # noqa: F811 - a fixture
    words, word = COMMANDS[name]
    if name == "list":
        teho("run", "-q", "--name", "train", "--", "sh", "-c", f": {'x' * 200}")
    split = words.index("--") if "--" in words else len(words)
    done = teho(*words[:split], "--format", "html", *words[split:])
    assert done.stdout.startswith("<!DOCTYPE html>"), done.stderr
    check_page(visit, done.stdout, word)


def test_what_is_too_wide_is_found(visit) -> None:  # noqa: F811 - a fixture
    text = render_html(tune_document(TUNED))
    wide = re.sub(r"<main>", "<main><p style='width: 600px'>wide</p>", text, count=1)
    assert wide != text
    page = visit(wide, width=390)
    assert page.evaluate(OVERFLOW) > 0 or page.evaluate(CUT) == ["wide"]
