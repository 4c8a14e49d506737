"use strict";
/* Draws the plots of a report, and copies commands. Reads the page, changes no figure. */
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  /* ---- figures as text, as teho.units writes them ---- */
  const toEven = (value) => {
    const down = Math.floor(value);
    return value - down === 0.5 ? down + Math.abs(down % 2) : Math.round(value);
  };
  const fixed = (value, digits) => {
    /* toFixed rounds a half up, Python rounds it to even; only exact binary halves count. */
    const isHalf = digits < 8 && Number.isInteger(value * 2 ** (digits + 1));
    return (isHalf ? toEven(value * 10 ** digits) / 10 ** digits : value).toFixed(digits);
  };
  const grouped = (value, digits) => {
    const [whole, ...part] = fixed(value, digits).split(".");
    return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...part].join(".");
  };
  const threeDigits = (value) => {
    const size = Math.abs(value);
    if (size > 0 && size < 0.005) {
      /* As Python's format "1g": a small value is not written as zero. */
      const [digit, power] = value.toExponential(0).split("e-");
      return power > 4 ? `${digit}e-${power.padStart(2, "0")}` : value.toFixed(power);
    }
    return grouped(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  };
  const count = (value) => (Number.isInteger(value) ? grouped(value, 0) : threeDigits(value));
  const bytes = (amount) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let value = amount, index = 0;
    while (Math.abs(value) >= 1023.95 && index < units.length - 1) { value /= 1024; index += 1; }
    return index ? `${threeDigits(value)} ${units[index]}` : `${fixed(value, 0)} B`;
  };
  const energy = (joules) => {
    const wattHours = joules / 3600;
    if (Math.abs(wattHours) < 0.1) return `${threeDigits(joules)} J`;
    return Math.abs(wattHours) < 1000
      ? `${threeDigits(wattHours)} Wh` : `${threeDigits(wattHours / 1000)} kWh`;
  };
  const duration = (seconds) => {
    if (seconds < 0) return `-${duration(-seconds)}`;
    if (seconds < 0.00995) return `${fixed(seconds * 1000, 1).replace(/\.0$/, "")} ms`;
    if (seconds < 0.9995) return `${fixed(seconds * 1000, 0)} ms`;
    if (seconds < 59.95) return `${fixed(seconds, 1)} s`;
    for (const [size, unit, step, smaller] of
      [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
      const rounded = toEven(seconds / step) * step;
      if (rounded >= size) {
        const rest = (rounded % size) / step;
        return `${Math.floor(rounded / size)} ${unit}${rest ? ` ${rest} ${smaller}` : ""}`;
      }
    }
    return `${fixed(seconds, 0)} s`;
  };
  const quantity = (value, unit) => {
    if (unit === "s") return duration(value);
    if (unit === "bytes") return bytes(value);
    if (unit === "bytes/s") return `${bytes(value)}/s`;
    if (unit === "J") return energy(value);
    if (unit === "%") return `${fixed(value, Math.abs(value) < 9.95 ? 1 : 0)} %`;
    return `${count(value)} ${unit}`.trimEnd();
  };
  /* On an axis, zeros after the decimal point are left out. */
  const tick = (value, unit) =>
    value === 0 ? "0" : quantity(value, unit).replace(/\.0+(?=\D|$)/, "");

  /* ---- colours follow the page ---- */
  const COLORS = 8;
  let palette = {};
  const readPalette = () => {
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(name).trim();
    palette = { ink: read("--soft"), line: read("--line"), band: read("--band"), edge: read("--warning"), series: [] };
    for (let i = 0; i < COLORS; i += 1) palette.series.push(read(`--s${i}`));
  };
  readPalette();

  /* ---- axes ---- */
  const POWERS_OF_TWO = Array.from({ length: 60 }, (_, power) => 2 ** power);
  const SPANS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120,
    300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
  const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
  const widest = (self, values, axisIndex, cycle) => {
    if (cycle > 1) return self.axes[axisIndex]._size;
    self.ctx.save();
    self.ctx.font = FONT;
    const widths = (values || [""]).map((text) => self.ctx.measureText(text || "").width);
    self.ctx.restore();
    return Math.min(Math.ceil(Math.max(...widths)) + 14, 120);
  };
  const axes = (unit) => {
    const look = {
      stroke: () => palette.ink,
      font: FONT,
      ticks: { show: false },
      border: { show: false },
    };
    const upright = {
      ...look,
      size: widest,
      gap: 6,
      space: 36,
      grid: { stroke: () => palette.line, width: 1 },
      values: (_, splits) => splits.map((value) => tick(value, unit)),
    };
    if (unit.startsWith("bytes")) upright.incrs = POWERS_OF_TWO;
    const along = {
      ...look,
      size: 24,
      gap: 4,
      space: 76,
      grid: { show: false },
      incrs: SPANS_S,
      values: (_, splits) => splits.map((value) => tick(value, "s")),
    };
    return [along, upright];
  };
  const range = (unit) => (_, low, high) => {
    if (low === null || high === null) return [0, 1];
    if (unit === "%" && low >= 0 && high <= 100) return [0, 100];
    const top = high > 0 ? high * 1.08 : 1;
    return [Math.min(low * 1.08, 0), top];
  };

  /* A point is in the middle of its bin: without zoom, the first and last bins are shown whole. */
  const wholeBins = (elapsed) => (_, low, high) => {
    const half = elapsed[0], end = elapsed[elapsed.length - 1] + half;
    return [low <= half ? 0 : low, high >= end - half ? end : high];
  };

  /* A value between two gaps has no line: it is drawn as a point. */
  const lonely = (values) => {
    const found = [];
    values.forEach((value, i) => {
      if (value !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null) found.push(i);
    });
    return found;
  };

  /* ---- the times of a finding: a band in every plot ---- */
  const BAND_EDGE_PX = 3;
  let marked = null;
  const paintBands = ({ ctx, bbox, valToPos }) => {
    if (!marked) return;
    ctx.save();
    for (const [begin, end] of marked.spans) {
      const left = Math.max(bbox.left, valToPos(begin, "x", true));
      const width = Math.min(bbox.left + bbox.width, valToPos(end, "x", true)) - left;
      if (width <= 0) continue;
      /* A band over all that is shown separates nothing: its edge is enough. */
      ctx.fillStyle = palette.band;
      if (width < bbox.width - 1) ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.fillStyle = palette.edge;
      ctx.fillRect(left, bbox.top, width, BAND_EDGE_PX);
    }
    ctx.restore();
  };

  /* ---- one plot ---- */
  const FEW = 8;
  const KEY = "teho";
  const element = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const options = (plot, width) => {
    const total = plot.series.length;
    const thin = total > FEW;
    return {
      width,
      height: 200,
      padding: [8, null, 0, 0],
      legend: { show: false },
      focus: { alpha: thin && total <= 64 ? 0.25 : 1 },
      cursor: {
        y: false,
        sync: { key: KEY, setSeries: false },
        focus: { prox: thin ? 24 : -1 },
        points: { show: !thin, size: 6 },
      },
      scales: { x: { time: false, range: wholeBins(plot.elapsed_s) }, y: { range: range(plot.unit) } },
      axes: axes(plot.unit),
      hooks: { drawClear: [paintBands] },
      series: [{}, ...plot.series.map((line, i) => {
        const alone = lonely(line.values);
        return {
          label: line.label,
          stroke: () => palette.series[i % COLORS],
          width: thin ? 1 : 1.5,
          alpha: total > 64 ? 0.4 : 1,
          points: {
            size: 5,
            fill: () => palette.series[i % COLORS],
            show: () => alone.length > 0,
            filter: () => alone,
          },
        };
      })],
    };
  };

  const legendButton = (plot, chart, i) => {
    const output = element("output", {});
    const button = element("button", { type: "button", class: `c${i % COLORS}` }, plot.series[i].label, output);
    button.addEventListener("click", () => {
      chart.setSeries(i + 1, { show: !chart.series[i + 1].show });
      press(chart);
    });
    return { button, output };
  };
  /* A button of the legend is pressed if its line is shown. */
  const buttons = new Map();
  const press = (chart) => (buttons.get(chart) || []).forEach((button, i) =>
    button.setAttribute("aria-pressed", String(chart.series[i + 1].show)));
  const wholeLegend = (plot, chart) => {
    const entries = plot.series.map((_, i) => legendButton(plot, chart, i));
    buttons.set(chart, entries.map(({ button }) => button));
    press(chart);
    return entries;
  };
  const showLines = (chart, isWanted) => {
    chart.batch(() => chart.series.forEach(({ label, show }, i) => {
      if (i && show !== isWanted(label)) chart.setSeries(i, { show: !show });
    }));
    press(chart);
  };

  /* The legend of many lines is folded, and is built when it is first opened. */
  const foldedLegend = (plot, chart) => {
    const list = element("div", { class: "legend many" });
    const fold = element("details", {}, element("summary", {}, `${plot.series.length} lines`), list);
    fold.addEventListener("toggle", () => {
      if (list.childElementCount) return;
      const entries = wholeLegend(plot, chart);
      const [all, none] = ["show all", "hide all"].map((text) => element("button", { type: "button" }, text));
      all.addEventListener("click", () => showLines(chart, () => true));
      none.addEventListener("click", () => showLines(chart, () => false));
      list.append(all, none, ...entries.map(({ button }) => button));
    });
    return fold;
  };

  const spread = (chart, index) => {
    let low = Infinity, high = -Infinity;
    for (let i = 1; i < chart.data.length; i += 1) {
      const value = chart.data[i][index];
      if (chart.series[i].show && value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    }
    return low <= high ? [low, high] : null;
  };
  const say = (plot, chart, outputs, focused) => {
    const index = chart.cursor.idx;
    const known = index !== null && index !== undefined;
    outputs.forEach((output, i) => {
      const value = known ? chart.data[i + 1][index] : undefined;
      output.textContent = value === undefined ? "" : value === null ? "not recorded" : quantity(value, plot.unit);
    });
    if (!known) return "";
    const at = `at ${duration(chart.data[0][index])}`;
    if (outputs.length) return at;
    const ends = spread(chart, index);
    const value = focused ? chart.data[focused][index] : null;
    return [at, ends ? `${quantity(ends[0], plot.unit)} to ${quantity(ends[1], plot.unit)}` : "not recorded",
      focused && value !== null ? `${plot.series[focused - 1].label}: ${quantity(value, plot.unit)}` : "",
    ].filter(Boolean).join(" · ");
  };

  /* Only the plots near the window follow the cursor and the zoom; others follow when they come near. */
  const charts = [];
  let zoom = null;
  const follow = (chart) => {
    const { min, max } = chart.scales.x;
    if (zoom && (min !== zoom.min || max !== zoom.max)) chart.setScale("x", zoom);
  };
  const turn = (chart, isNear) => {
    const group = uPlot.sync(KEY);
    group.unsub(chart);
    if (!isNear) return;
    follow(chart);
    group.sub(chart);
  };

  const draw = (plot) => {
    const figure = document.getElementById(plot.id);
    const place = figure.querySelector(".canvas");
    const data = [plot.elapsed_s, ...plot.series.map((line) => line.values)];
    const chart = new uPlot(options(plot, place.clientWidth), data, place);
    const readout = element("div", { class: "readout" });
    let outputs = [];
    figure.querySelector(".title").append(readout);
    if (plot.series.length > FEW) {
      place.after(foldedLegend(plot, chart));
    } else {
      const entries = wholeLegend(plot, chart);
      outputs = entries.map(({ output }) => output);
      place.after(element("div", { class: "legend" }, ...entries.map(({ button }) => button)));
    }
    let focused = null;
    const update = () => { readout.textContent = say(plot, chart, outputs, focused); };
    chart.hooks.setCursor = [update];
    chart.hooks.setScale = [(_, scale) => {
      if (scale === "x") zoom = { min: chart.scales.x.min, max: chart.scales.x.max };
    }];
    chart.hooks.setSeries = [(_, index, change) => {
      if (change && "focus" in change) { focused = change.focus ? index : null; update(); }
    }];
    new ResizeObserver(() => {
      const width = place.clientWidth;
      if (width > 0 && width !== chart.width) chart.setSize({ width, height: 200 });
    }).observe(place);
    charts.push(chart);
    turn(chart, false);
    return chart;
  };

  /* ---- the heat map shows the value under the pointer ---- */
  const readHeat = ({ id, elapsed_s: middles, unit, series }) => {
    const map = document.getElementById(id);
    const readout = element("div", { class: "readout" });
    map.closest("figure").querySelector(".title").append(readout);
    const step = 2 * middles[0] || 1, last = middles.length - 1;
    const end = 2 * middles[last] - step * last;
    const cell = (at, size, whole, count) => Math.max(0, Math.min(count - 1, Math.floor((at / size) * whole)));
    map.addEventListener("pointermove", (event) => {
      const box = map.getBoundingClientRect();
      const line = series[cell(event.clientY - box.top, box.height, series.length, series.length)];
      const column = cell(event.clientX - box.left, box.width, end / step, middles.length);
      const value = line.values[column];
      readout.textContent = [line.label, `at ${duration(middles[column])}`,
        value === null ? "not recorded" : quantity(value, unit)].join(" · ");
    });
    map.addEventListener("pointerleave", () => { readout.textContent = ""; });
  };

  /* The plots near the window come first, then one at a time: with thousands of lines, the page still
     answers. */
  const { plots, heat, moments } = JSON.parse(document.getElementById("data").textContent);
  const waiting = new Map(plots.map((plot) => [plot.id, plot]));
  const drawn = new Map();
  const drawOne = (id) => {
    if (waiting.has(id)) drawn.set(id, draw(waiting.get(id)));
    waiting.delete(id);
    if (!waiting.size) root.classList.add("drawn");
    return drawn.get(id);
  };
  const drawRest = () => {
    const [next] = waiting.keys();
    if (next === undefined) return;
    drawOne(next);
    setTimeout(drawRest);
  };
  const near = new IntersectionObserver((seen) => seen.forEach(({ target, isIntersecting }) => {
    if (isIntersecting || drawn.has(target.id)) turn(drawOne(target.id), isIntersecting);
  }), { rootMargin: "200px" });
  plots.forEach(({ id }) => near.observe(document.getElementById(id)));
  addEventListener("beforeprint", () => { [...waiting.keys()].forEach(drawOne); charts.forEach(follow); });
  if (heat) readHeat(heat);
  if (plots.length) setTimeout(drawRest); else root.classList.add("drawn");

  /* ---- a finding shows its times ---- */
  const markHeat = () => {
    const map = heat && document.getElementById(heat.id);
    if (!map) return;
    map.querySelector(".marked")?.remove();
    if (!marked) return;
    const { width, height } = map.viewBox.baseVal;
    const half = heat.elapsed_s[0], last = heat.elapsed_s.length - 1;
    const whole = last ? 2 * heat.elapsed_s[last] - 2 * half * last : 2 * half;
    const named = heat.series.map(({ label }) => marked.lines.includes(label));
    const box = (row, rows) => marked.spans.map(([begin, end]) =>
      `M${begin / whole * width} ${row}H${Math.min(end, whole) / whole * width}v${rows}H${begin / whole * width}z`).join("");
    const path = document.createElementNS(map.namespaceURI, "path");
    path.setAttribute("class", "marked");
    path.setAttribute("d", named.some(Boolean)
      ? named.map((is, row) => (is ? box(row, 1) : "")).join("") : box(0, height));
    map.append(path);
  };
  const mark = (one, link) => {
    const old = marked;
    marked = old && old.link === link ? null : { ...one, link };
    document.querySelectorAll(".shown").forEach((place) => place.classList.remove("shown"));
    if (old) {
      old.link.removeAttribute("aria-current");
      if (drawn.has(old.plot)) showLines(drawn.get(old.plot), () => true);
    }
    if (marked) {
      link.setAttribute("aria-current", "true");
      const chart = drawOne(one.plot), place = document.getElementById(one.plot);
      const isNamed = (label) => one.lines.includes(label);
      if (chart && chart.series.length > 2 && chart.series.some(({ label }) => isNamed(label))) showLines(chart, isNamed);
      place.classList.add("shown");
      place.scrollIntoView({ block: "center" });
    }
    charts.forEach((chart) => chart.redraw(false));
    markHeat();
  };
  for (const link of document.querySelectorAll("a[data-moments]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      mark(moments[link.dataset.moments], link);
    });
  }

  const repaint = () => { readPalette(); charts.forEach((chart) => chart.redraw(false, true)); };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", repaint);
  }

  /* ---- tables that are wider than the page get a hint ---- */
  const widths = new ResizeObserver((boxes) => boxes.forEach(({ target }) =>
    target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1)));
  document.querySelectorAll(".scroll").forEach((box) => widths.observe(box));

  /* ---- commands ---- */
  const copied = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return "copied";
    } catch {
      getSelection().selectAllChildren(code);
      return "selected";
    }
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      button.textContent = await copied(button.previousElementSibling);
      setTimeout(() => { button.textContent = "copy"; }, 1600);
    });
  }

  globalThis.tehoReport = { charts, quantity, tick };
})();
