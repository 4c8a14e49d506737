"use strict";
/* Live values and keys of the portal. Every page also works without this script. */
(() => {
  document.documentElement.classList.add("js");

  /* ---- keys ---- */
  const rows = [...document.querySelectorAll("table.list tbody tr")];
  const linkOf = (row) => row.querySelector("th a");
  const current = () => rows.findIndex((row) => row.contains(document.activeElement));
  const step = (by) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, current() + by))];
    if (next) { linkOf(next).focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  const follow = (rel) => { const link = document.querySelector(`a[rel="${rel}"]`); if (link) link.click(); };
  const keys = {
    "/": () => { const field = document.querySelector("#text, #find"); if (field) { field.focus(); field.select(); } },
    j: () => step(1),
    k: () => step(-1),
    x: () => { const row = rows[current()]; const box = row && row.querySelector("input"); if (box) box.click(); },
    n: () => follow("next"),
    p: () => follow("prev"),
  };
  document.addEventListener("keydown", (event) => {
    const isTyped = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (isTyped || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  /* ---- selected runs: the selection also has runs of other pages and searches ---- */
  const boxes = [...document.querySelectorAll("td.pick input")];
  const note = document.querySelector(".selected");
  if (note) {
    const place = `teho-selected ${location.pathname}`;
    const words = JSON.parse(note.dataset.words);
    let selected = new Set();
    try { selected = new Set(JSON.parse(sessionStorage.getItem(place) ?? "[]")); } catch { /* not allowed, or damaged */ }
    const others = document.createElement("span");
    note.after(others);
    const renew = () => {
      try { sessionStorage.setItem(place, JSON.stringify([...selected])); } catch { /* only this page */ }
      const here = new Set(boxes.map((box) => { box.checked = selected.has(box.value); return box.value; }));
      others.replaceChildren(...[...selected].filter((key) => !here.has(key)).map((key) =>
        Object.assign(document.createElement("input"), { type: "hidden", name: "run", value: key })));
      note.replaceChildren();
      if (!selected.size) return;
      const clear = Object.assign(document.createElement("button"), { type: "button", textContent: words.clear });
      clear.addEventListener("click", () => { selected.clear(); renew(); });
      note.append(`${(selected.size === 1 ? words.one : words.several).replace("{}", selected.size)} `, clear);
    };
    boxes.forEach((box) => box.addEventListener("change", () => {
      if (box.checked) selected.add(box.value); else selected.delete(box.value);
      renew();
    }));
    renew();
  }

  /* ---- values of the present moment ---- */
  /* The server knows how long a run goes on, also without samples, and its newest verdict. */
  const KEPT_FACTS = ["elapsed", "mark", "sentence", "pace"];
  const write = (place, facts) => {
    place.querySelectorAll("[data-fact]").forEach((node) => {
      const value = facts[node.dataset.fact];
      if (value === undefined && KEPT_FACTS.includes(node.dataset.fact)) return;
      /* A figure that was never known, such as one of a GPU in a run without GPUs, stays hidden. */
      if (value !== undefined && node.parentNode.hidden) node.parentNode.hidden = false;
      const text = value ?? "–";
      if (node.textContent !== text) node.textContent = text;
    });
    if (facts.tone) place.className = facts.tone;
  };
  const listen = (address, handlers) => {
    const source = new EventSource(address);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), source));
    }
    addEventListener("pagehide", () => source.close());
    return source;
  };

  const home = document.getElementById("home");
  if (home) {
    const places = new Map([...home.querySelectorAll("[data-run]")].map((item) => [item.dataset.run, item]));
    listen(home.dataset.events, {
      runs: (all) => {
        for (const [id, facts] of Object.entries(all)) {
          const place = places.get(id);
          if (place) write(place, facts);
        }
      },
      changed: (_, source) => { source.close(); location.reload(); },
    });
  }

  const live = document.getElementById("live");
  if (!live) return;
  const KEPT = 600;
  const POWERS = Array.from({ length: 60 }, (_, power) => 2 ** power);
  const UNITS = { gpu_busy_percent: "%", gpu_sm_active_percent: "%", gpu_memory_used_bytes: "bytes", gpu_power_w: "W", job_cpu_s: "cores", job_memory_bytes: "bytes" };
  const words = JSON.parse(live.dataset.words);
  const { quantity, tick } = globalThis.tehoReport;
  const state = document.getElementById("live-state");
  const tables = document.getElementById("live-tables");
  const curves = new Map();
  let isLive = false;
  const say = (sentence, offer) => {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = offer;
    state.replaceChildren(`${sentence} `, link);
  };

  /* A table keeps its place and its focus: only its text changes, as long as its size is the same. */
  const patch = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    const all = (root, kinds) => [...root.querySelectorAll(kinds)];
    const now = all(tables, ".table"), next = all(fresh, ".table");
    if (now.length !== next.length) { tables.replaceChildren(...fresh.childNodes); return; }
    now.forEach((table, i) => {
      const texts = all(table, "small, th, td, li"), others = all(next[i], "small, th, td, li");
      if (texts.length !== others.length) { table.replaceWith(next[i]); return; }
      texts.forEach((one, k) => { if (one.textContent !== others[k].textContent) one.textContent = others[k].textContent; });
    });
  };

  const figure = (metric, count) => {
    const title = words[metric], unit = UNITS[metric];
    const place = document.createElement("figure");
    place.innerHTML = '<figcaption><div class="title"><h3></h3><div class="readout"></div></div><p></p></figcaption><div class="canvas" role="img"></div>';
    place.querySelector("h3").textContent = `${title}, ${words.last}`;
    place.querySelector("p").textContent = words.meanings[metric];
    const canvas = place.querySelector(".canvas");
    canvas.setAttribute("aria-label", `${title}, ${metric.startsWith("gpu") ? words.each : words.each_node}`);
    document.getElementById("live-plots").append(place);
    /* Read at each drawing: the colours change with the scheme of the system. */
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const readout = place.querySelector(".readout");
    const axis = { stroke: () => color("--soft"), grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
    const chart = new uPlot({
      width: canvas.clientWidth,
      height: 180,
      padding: [8, null, 0, 0],
      legend: { show: false },
      cursor: { y: false, sync: { key: "live" } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, unit === "%" ? 100 : (high || 1) * 1.1] } },
      axes: [
        { ...axis, space: 90, incrs: [1, 2, 5, 10, 20, 30, 60, 120, 300], values: (_, splits) => splits.map((at) => tick(at, "s")) },
        { ...axis, size: 70, ...(unit === "bytes" ? { incrs: POWERS } : {}), values: (_, splits) => splits.map((value) => tick(value, unit)) },
      ],
      series: [{}, ...Array.from({ length: count }, (_, i) => ({ stroke: () => color(`--s${i % 8}`), points: { show: false }, width: 1.5, alpha: count > 8 ? 0.5 : 1 }))],
      hooks: { setCursor: [(one) => {
        const at = one.cursor.idx;
        const values = at === null || at === undefined ? [] : one.data.slice(1).map((line) => line[at]).filter((value) => value !== null);
        readout.textContent = values.length ? `${quantity(Math.min(...values), unit)} to ${quantity(Math.max(...values), unit)}` : "";
      }] },
    }, [[], ...Array.from({ length: count }, () => [])], canvas);
    new ResizeObserver(() => { if (canvas.clientWidth) chart.setSize({ width: canvas.clientWidth, height: 180 }); }).observe(canvas);
    return { chart, data: [[], ...Array.from({ length: count }, () => [])] };
  };
  let isDue = false;
  const draw = () => { isDue = false; curves.forEach(({ chart, data }) => chart.setData(data)); };

  listen(live.dataset.events, {
    now: (now) => {
      write(document.getElementById("live-facts"), now.facts);
      patch(now.tables);
      if (!isLive) say(words.come, words.renew);
      isLive = true;
    },
    sample: ({ elapsed_s: at, values }) => {
      for (const [metric, line] of Object.entries(values)) {
        if (!UNITS[metric]) continue;
        if (!curves.has(metric) || curves.get(metric).data.length !== line.length + 1) {
          if (curves.has(metric)) continue;
          curves.set(metric, figure(metric, line.length));
        }
        const { data } = curves.get(metric);
        data[0].push(at);
        line.forEach((value, i) => data[i + 1].push(value));
        if (data[0].length > KEPT) data.forEach((column) => column.shift());
      }
      if (!isDue) { isDue = true; requestAnimationFrame(draw); }
    },
    verdict: (facts) => write(document.getElementById("live-verdict"), facts),
    ended: (_, source) => {
      source.close();
      say(words.ended, words.show);
    },
  }).addEventListener("error", () => { isLive = false; state.textContent = words.interrupted; });
})();
