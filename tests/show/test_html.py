from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
import views
from golden import ROOT
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from browsers import ARGUMENTS, BROWSER, OVERFLOW
from teho.model.document import PlotSeries
from teho.model.finding import Moments
from teho.show.cells import when_text
from teho.show.html.page import render_html
from teho.show.text.document import render_text
from teho.units import format_quantity

HELD = "\N{NO-BREAK SPACE}"
VOID = {"meta", "link", "br", "img", "input", "hr"}
TEMPLATES = ROOT / "src" / "teho" / "show" / "templates"


class Outline(HTMLParser):
    """Every element with its attributes, checked to be closed where it was opened."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data.replace(HELD, " "))

    def tags(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


def data_of(page):
    return json.loads(page.split('id="data">')[1].split("</script>")[0], parse_constant=pytest.fail)


@pytest.mark.parametrize("name", views.SOUND)
def test_page_names_no_outside_address(name):
    page = render_html(views.SOUND[name]())
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page)
    for _, attributes in Outline(page).elements:
        assert not {"src", "srcset", "action"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")


@pytest.mark.parametrize("name", [*views.SOUND, "hostile"])
def test_page_is_well_formed_and_accessible(name):
    outline = Outline(render_html(getattr(views, name)()))
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(label["aria-labelledby"] in ids for label in outline.tags("section"))
    assert all("scope" in heading for heading in outline.tags("th"))
    for landmark in ("header", "main", "footer", "h1"):
        assert len(outline.tags(landmark)) == 1


def test_hostile_text_stays_text():
    page = render_html(views.hostile())
    outline = Outline(page)
    assert len(outline.tags("script")) == 3
    assert outline.tags("img") == []
    assert not [a for _, a in outline.elements if any(key.startswith("on") for key in a)]
    assert "document.title='owned'" in "".join(outline.words)
    assert re.search(r"[\x00-\x08\x0e-\x1f\u202e\udcff]", page) is None
    page.encode()
    (line,) = data_of(page)["plots"][0]["series"]
    assert line["label"].startswith("</script><script>")


def test_policy_lets_only_the_page_s_own_scripts_run():
    page = render_html(views.one_gpu())
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none';")
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_licence_of_the_plots_is_in_a_comment():
    licence = (ROOT / "src/teho/show/vendor/LICENSE.uPlot").read_text()
    assert licence in render_html(views.one_gpu()).split("<!-- ")[1].split("-->")[0]


def test_every_part_of_the_view_is_there():
    view = views.eight_gpus()
    words = "".join(Outline(render_html(view)).words)
    for sentence in (
        view.verdict,
        view.command,
        *view.notes,
        *(finding.sentence for finding in view.findings),
        *(limit.source for finding in view.findings for limit in finding.thresholds),
        *(item.label for finding in view.findings for item in finding.evidence),
        *(table.title for table in view.tables),
        *(item.lacked for item in view.abstentions),
        *(line.label for plot in view.plots for line in plot.series),
        "not offered (energy): Tesla V100 of this driver has no energy counter",
    ):
        assert sentence in words


def test_the_headline_is_no_card_too_and_thresholds_are_folded_after_the_advice():
    view = views.eight_gpus()
    view = msgspec.structs.replace(view, verdict=view.findings[0].sentence)
    outline = Outline(render_html(view))
    cards = [one for one in outline.tags("li") if "card" in one.get("class", "").split()]
    assert len(cards) == len(view.findings) - 1
    page = render_html(view)
    for part in page.split('<li class="card')[1:]:
        card = part.split("</li>\n")[0]
        if "Thresholds" in card:
            assert card.index('class="action"') < card.index("<details")


def test_no_line_is_broken_between_a_number_and_its_unit():
    said = "GPU 3 of an A100 40 GB was idle (1.5 GiB) for 72 % of 4 min 10 s"
    held = f"A100 40{HELD}GB was idle (1.5{HELD}GiB) for 72{HELD}% of 4{HELD}min 10{HELD}s"
    (odd,) = views.eight_gpus().findings[:1]
    odd = msgspec.structs.replace(odd, sentence=said, action=f"{said}: `head -n 5 a`, {said}.")
    other = msgspec.structs.replace(odd, sentence=f"And {said}")
    notes = (f"{said}: `head -n 5 a`",)
    page = render_html(views.base(verdict=said, findings=(odd, other), notes=notes))
    for start, end in (
        ("<h1>", "</h1>"),
        ("<h3>", "</h3>"),
        ('<p class="action">', ": </p>"),
        ('<p class="action more">', ".</p>"),
        ('<ul class="listed"><li>', ": <code>head <span>-n</span> 5 a</code></li>"),
    ):
        assert page.split(start)[1].split(end)[0].endswith(held)
    assert ">head -n 5 a<" in page
    assert HELD not in render_text(views.base(verdict=said), width=80, color=False, detail="why")


def test_each_command_can_be_copied():
    page = render_html(views.eight_gpus())
    commands = re.findall(r'<div class="copyable"><code[^>]*>(.*?)</code>', page)
    assert commands[0] == "#SBATCH --gres=gpu:a100:7"
    assert commands[1].startswith("teho tune -- python3 train.py")
    assert len(commands) == page.count('class="copy"') == 3
    assert "<code>DataLoader(..., num_workers=10)</code>" in page  # it is a part of a program


def test_gap_is_a_gap_and_no_zero():
    page = render_html(views.one_gpu())
    values = data_of(page)["plots"][0]["series"][0]["values"]
    assert values[119] > 0
    assert values[120:160] == [None] * 40
    assert "not recorded" in page.split('label="GPU busy over time"')[1].split("</figure>")[0]


def test_line_that_was_never_recorded_says_so():
    words = "".join(Outline(render_html(views.laptop())).words)
    assert "not recorded" in words.split("Memory used")[1]


def test_numbers_below_a_plot_are_its_mean_least_and_most():
    line = PlotSeries("a", [10.0, None, 30.0, 20.0])
    page = render_html(views.base(plots=(views.plot("p", "p", "%", "GPU", [line]),)))
    cells = "".join(f'<td class="n">{figure} %</td>' for figure in (20, 10, 30))
    assert f'<th scope="row">a</th>{cells}' in page


def test_numbers_of_all_samples_come_before_those_of_the_points():
    line = PlotSeries("a", [10.0, 30.0], mean=22.0, least=4.0, most=97.0)
    page = render_html(views.base(plots=(views.plot("p", "p", "%", "GPU", [line]),)))
    cells = "".join(f'<td class="n">{figure} %</td>' for figure in (22, "4.0", 97))
    assert f'<th scope="row">a</th>{cells}' in page


def with_moments(*spans_s, metric="gpu_busy_percent", lines=("GPU 6",)):
    """Return the view of eight GPUs; its second finding has times."""
    view = views.eight_gpus()
    shown = msgspec.structs.replace(view.findings[1], moments=Moments(metric, lines, spans_s))
    findings = (view.findings[0], shown, *view.findings[2:])
    return msgspec.structs.replace(view, findings=findings, heat_map=view.plots[0])


def test_times_of_a_finding_are_a_link_to_the_plot_without_javascript():
    view = with_moments((60.0, 300.0))
    page = render_html(view)
    ((place, times),) = re.findall(r'<p class="when"><a href="#(plot\d+)"[^>]*>(.*?)</a></p>', page)
    assert times == f"When: from 1{HELD}min to 5{HELD}min"
    figure = page.split(f'<figure id="{place}">')[1].split("</figure>")[0]
    assert "<h4>GPU busy</h4>" in figure
    assert data_of(page)["moments"][1] == {
        "plot": place, "lines": ["GPU 6"], "spans": [[60.0, 300.0]]
    }  # fmt: skip
    text = render_text(view, width=80, color=False, detail="why")
    assert "seen in the run from 1 min to 5 min" in text


def test_a_figure_of_a_finding_is_a_link_to_its_plot():
    page = render_html(views.eight_gpus())
    links = re.findall(r'<dt><a href="#(plot\d+)">([^<]*)</a></dt>', page)
    titles = dict(re.findall(r'<figure id="(plot\d+)">.*?<h4>(.*?)</h4>', page, re.DOTALL))
    assert "GPU busy, mean" in [label for _, label in links]
    assert all(label.startswith(titles[place]) for place, label in links)


def test_times_without_a_plot_are_only_text():
    page = render_html(with_moments((60.0, 300.0), metric="oom_kills"))
    assert '<p class="when">When: from 1' in page
    assert data_of(page)["moments"][1] is None


def test_many_times_are_counted():
    moments = Moments("m", (), tuple((60.0 * i, 60.0 * i + 30) for i in range(10)))
    assert when_text(moments) == "10 times between 0 and 9 min 30 s, 5 min in all"


def test_what_was_always_0_is_a_sentence_and_not_a_plot():
    zero = views.plot("z", "Xid errors", "", "GPU", [PlotSeries("a", [0.0, None, 0.0])])
    power = views.plot("p", "power", "W", "GPU", [PlotSeries("a", [0.0, 1.0, 0.0])])
    page = render_html(views.base(plots=(zero, power)))
    assert [plot["id"] for plot in data_of(page)["plots"]] == ["plot1"]
    assert 'Always 0: <span id="plot0">Xid errors</span>.' in page
    assert page.count('class="canvas"') == 1


def test_a_command_is_copied_whole_and_not_broken_at_a_hyphen():
    (one,) = views.eight_gpus().findings[:1]
    action = "Use `a --b-c` and `DataLoader(x)`, `batch_size`; run `teho run -- NAME`: `teho list`."
    page = render_html(views.base(findings=(msgspec.structs.replace(one, action=action),)))
    assert re.findall(r'<div class="copyable"><code[^>]*>([^<]*)', page) == ["teho list"]
    assert "<code>a <span>--b-c</span></code>" in page


@given(st.lists(st.none() | st.floats(-1e15, 1e15), min_size=1))
@settings(max_examples=50, deadline=None)
def test_points_are_those_of_the_view(values):
    assume(any(values) or not any(value == 0 for value in values))
    plot = views.plot("p", "p", "W", "GPU", [PlotSeries("a", values)])
    (data,) = data_of(render_html(views.base(plots=(plot,))))["plots"]
    assert data["series"][0]["values"] == values


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_contrast_is_enough_to_read(scheme):
    """WCAG 2.1, 1.4.3 (text, 4.5) and 1.4.11 (graphics, 3)."""
    blocks = re.findall(r":root \{(.*?)\}", (TEMPLATES / "report.css").read_text(), re.DOTALL)
    colors = dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", blocks[scheme]))
    grounds = [colors[name] for name in ("paper", "card", "sunken")]
    texts = ("ink", "soft", "accent", "critical", "warning", "remark", "good", "unknown")
    for names, least, behind in (
        (texts, 4.5, grounds),
        ([f"s{i}" for i in range(8)], 3, [colors["paper"], colors["band"]]),
    ):
        for name in names:
            for ground in behind:
                dark, light = sorted((luminance(colors[name]), luminance(ground)))
                assert (light + 0.05) / (dark + 0.05) >= least, (name, ground)


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no Chromium is installed here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a view or a page; anything that it complains of or asks for fails the test."""
    pages, troubles = [], []

    def open_page(view, *, width=1200, scheme="light", script=True, height=900):
        path = tmp_path / f"{len(pages)}.html"
        text = view if isinstance(view, str) else render_html(view)
        path.write_text(text, encoding="utf-8")
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        requests = []
        page.goto(path.as_uri())
        if script:
            page.wait_for_selector("html.drawn", state="attached")
        pages.append((page, path, requests))
        return page

    yield open_page
    for page, path, requests in pages:
        assert requests == [path.as_uri()]
        page.close()
    assert troubles == []


# How many pixels of each canvas are not transparent; of a copy, as a canvas that is read
# again and again draws a warning.
PAINTED = """() => [...document.querySelectorAll('canvas')].map(canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < pixels.length; i += 4) painted += pixels[i] > 0;
  return painted;
})"""


@pytest.mark.drawn(1, always=("hostile",))
@pytest.mark.parametrize("name", ["eight_gpus", "laptop", "hostile"])
def test_plots_are_drawn_and_the_page_fits(visit, name):
    view = getattr(views, name)()
    page = visit(view, width=390, scheme="dark")
    for width, scheme in ((390, "dark"), (390, "light"), (1200, "light"), (1200, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        painted = page.evaluate(PAINTED)
        assert len(painted) == len(view.plots)
        assert all(count > 500 for count in painted)
        assert page.evaluate(OVERFLOW) == 0
    assert page.title().endswith(" · Teho")


def test_page_without_plots_has_no_complaint(visit):
    assert visit(views.bare()).evaluate("document.querySelectorAll('canvas').length") == 0


def test_without_javascript_the_numbers_are_there(visit):
    page = visit(views.one_gpu(), script=False, width=390)
    page.locator("figure summary").first.click()
    assert page.locator("figure details[open] table").first.inner_text().split()[:3] == [
        "mean",
        "least",
        "most",
    ]
    assert page.get_by_text("Without JavaScript").is_visible()
    assert not visit(views.one_gpu()).get_by_text("Without JavaScript").is_visible()


def test_without_javascript_no_button_promises_to_copy(visit):
    assert not visit(views.eight_gpus(), script=False).locator(".copy").first.is_visible()


def test_figures_are_written_as_in_the_text(visit):
    page = visit(views.bare())
    cases = [
        (sign * size * 10.0**power, unit)
        for unit in ("s", "bytes", "bytes/s", "J", "%", "W", "")
        for power in range(-3, 13)
        for size in (1.0, 1.23456, 5.9871, 9.9501)
        for sign in (1, -1)
    ]
    # Halves, and lengths of time just below the next unit.
    edges = (0.125, 2.5, 3.5, 12.5, 13.5, 59.97, 1234.5, 3599.7, 5430.0, 5490.0, 86380.0, 1e6 + 0.5)
    cases += [(value, unit) for value in edges for unit in ("s", "bytes", "J", "%", "W")]
    shown = page.evaluate("cases => cases.map(([v, u]) => tehoReport.quantity(v, u))", cases)
    assert shown == [format_quantity(value, unit) for value, unit in cases]


def test_gap_has_no_line_in_it(visit):
    page = visit(views.one_gpu())
    columns = page.evaluate("""() => {
      const chart = tehoReport.charts[0], color = [10, 127, 136];
      const { width, height } = chart.ctx.canvas;
      const data = chart.ctx.getImageData(0, 0, width, height).data;
      const column = bin => {
        const x = Math.round(chart.valToPos(chart.data[0][bin], 'x', true));
        let found = 0;
        for (let i = 4 * x; i < data.length; i += 4 * width)
          found += color.every((c, k) => Math.abs(data[i + k] - c) < 40) && data[i + 3] > 99;
        return found;
      };
      return [100, 140, 200].map(column);
    }""")
    assert columns[0] > 0
    assert columns[1] == 0
    assert columns[2] > 0


def test_value_between_two_gaps_is_a_point(visit):
    line = PlotSeries("a", [None] * 100 + [50.0] + [None] * 100)
    plot = views.plot("p", "p", "%", "GPU", [line])
    empty = views.plot("p", "p", "%", "GPU", [PlotSeries("a", [None] * 201)])
    with_point, without = visit(views.base(plots=(plot, empty))).evaluate(PAINTED)
    assert 10 < with_point - without < 60


def middle_of_first_plot(page):
    area = page.locator(".u-over").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def spans(page):
    """Return the part of the time that each plot shows; those that are not near follow later."""
    return page.evaluate("tehoReport.charts.map(c => [c.scales.x.min, c.scales.x.max])")


def test_cursor_and_zoom_go_through_all_plots(visit):
    page = visit(views.one_gpu(), height=6000)
    whole = spans(page)
    assert whole == [[0, 900]] * len(whole)
    x, y = middle_of_first_plot(page)
    page.mouse.move(x, y)
    indices = page.evaluate("tehoReport.charts.map(c => c.cursor.idx)")
    assert len(indices) == len(whole)
    assert set(indices) <= {149, 150}
    assert page.locator(".readout").last.inner_text().startswith("at 7 min")
    assert page.locator(".legend output").last.inner_text().endswith("iB/s")
    page.mouse.down()
    page.mouse.move(x + 90, y)
    page.mouse.up()
    zoomed = spans(page)
    assert all(445 < low < 455 < high < 700 for low, high in zoomed)
    page.mouse.dblclick(x, y)
    assert spans(page) == whole


def test_line_is_hidden_by_its_name(visit):
    page = visit(views.eight_gpus())
    name = page.get_by_role("button", name="GPU 3").first
    name.click()
    assert name.get_attribute("aria-pressed") == "false"
    assert page.evaluate("tehoReport.charts[0].series[4].show") is False
    name.click()
    assert page.evaluate("tehoReport.charts[0].series[4].show") is True


def test_times_of_a_finding_are_marked_in_the_plots(visit):
    page = visit(with_moments((60.0, 300.0)))
    band = """() => {
      const chart = tehoReport.charts[0], { top } = chart.bbox;
      const { width, height: whole } = chart.ctx.canvas;
      const copy = new OffscreenCanvas(width, whole).getContext('2d');
      copy.drawImage(chart.ctx.canvas, 0, 0);
      const row = copy.getImageData(0, top + 1, width, 1).data;
      const at = seconds => {
        const first = 4 * Math.round(chart.valToPos(seconds, 'x', true));
        return [...row.slice(first, first + 4)].join();
      };
      return [30, 90, 270, 330].map(at);
    }"""
    empty = page.evaluate(band)
    assert len(set(empty)) == 1
    shown = "tehoReport.charts[0].series.slice(1).filter(s => s.show).map(s => s.label)"
    everything = page.evaluate(shown)
    link = page.locator("a[data-moments]")
    link.click()
    before, begin, end, after = page.evaluate(band)
    assert begin == end != empty[0]
    assert before == after == empty[0]
    assert page.evaluate(shown) == ["GPU 6"]
    assert page.locator("figure.shown h4").inner_text() == "GPU busy"
    assert page.locator("#heat .marked").count() == 1
    pressed = page.locator("figure.shown .legend button[aria-pressed=true]").all_inner_texts()
    assert [words.split("\n")[0] for words in pressed] == ["GPU 6"]
    link.click()
    assert page.evaluate(band) == empty
    assert page.evaluate(shown) == everything
    assert page.locator("#heat .marked").count() == 0


def test_a_plot_that_comes_near_takes_the_zoom(visit):
    page = visit(views.one_gpu())
    page.evaluate("scrollTo(0, 0)")
    x, y = middle_of_first_plot(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y)
    page.mouse.up()
    page.locator("figure").last.scroll_into_view_if_needed()
    page.wait_for_function("() => tehoReport.charts.at(-1).scales.x.min > 0")
    assert spans(page)[-1] == pytest.approx(spans(page)[0])


def test_many_lines_have_a_folded_legend(visit):
    page = visit(views.fleet(8, 4, 40), width=390)
    assert page.locator(".legend button").count() < 64
    page.get_by_text("32 lines").first.click()
    page.get_by_role("button", name="hide all").first.click()
    shown = "tehoReport.charts[0].series.slice(1).filter(s => s.show).length"
    assert page.evaluate(shown) == 0
    page.get_by_role("button", name="nid000003 GPU 2").first.click()
    assert page.evaluate(shown) == 1
    assert page.evaluate(OVERFLOW) == 0
    page.mouse.move(*middle_of_first_plot(page))
    assert " to " in page.locator(".readout").first.inner_text()


def test_plots_follow_the_colours_of_the_page(visit):
    page = visit(views.laptop())
    picture = "document.querySelector('canvas').toDataURL()"
    light = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"old => {picture} !== old", arg=light)
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"old => {picture} === old", arg=light)


def test_dark_page_prints_light(visit):
    page = visit(views.eight_gpus(), scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert page.evaluate(OVERFLOW) == 0
    assert not page.locator(".copy").first.is_visible()


def test_command_is_copied_or_at_least_selected(visit):
    page = visit(views.eight_gpus())
    button = page.locator("button.copy").first
    button.click()
    page.locator("button.copy", has_text=re.compile("copied|selected")).wait_for()


def test_tables_scroll_inside_their_own_box(visit):
    page = visit(views.eight_gpus(), width=390)
    assert page.evaluate("""() => {
      const box = document.querySelector('.scroll');
      return box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto';
    }""")


def test_a_table_that_is_wider_than_a_narrow_page_has_a_hint(visit):
    hint = """() => [...document.querySelectorAll('.scroll')].filter(
      box => box.checkVisibility({contentVisibilityAuto: true})).map(box => [
      box.scrollWidth > box.clientWidth + 1, getComputedStyle(box, '::before').content])"""
    page = visit(views.eight_gpus(), width=390)
    page.wait_for_selector(".scroll.wide")
    boxes = [box for box in page.evaluate(hint) if box[0]]
    assert boxes
    assert [box for box in boxes if "scroll for more columns" not in box[1]] == []
    narrow = [box for box in page.evaluate(hint) if not box[0]]
    assert [box for box in narrow if "scroll" in box[1]] == []
    page.set_viewport_size({"width": 1200, "height": 900})
    assert [box for box in page.evaluate(hint) if "scroll" in box[1]] == []
