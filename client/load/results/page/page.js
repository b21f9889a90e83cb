// SPDX-License-Identifier: Apache-2.0
"use strict";

const {summary, runs} = JSON.parse(document.getElementById("data").textContent);
const report = document.getElementById("report");
const WIDTH = 560, HEIGHT = 250, LEFT = 62, RIGHT = 14, TOP = 10, BOTTOM = 40;

// ---- words and numbers

function duration(seconds) {
  if (!(seconds > 0)) return "0";
  const [scale, unit] = seconds < 1e-3 ? [1e6, "µs"] : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
}
const count = (value) => value.toLocaleString("en-US", {maximumFractionDigits: value < 100 ? 1 : 0});
const share = (value) => `${Number((100 * value).toPrecision(2))} %`;

function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "g", "circle", "rect"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

// ---- scales: value -> position, and the ticks that fit

function linear(low, high, begin, end, format) {
  const span = high - low || 1;
  const rough = span / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(Number((i * step).toPrecision(12)));
  const at = (value) => begin + (value - low) / span * (end - begin);
  return {at, ticks, format};
}
function logarithmic(low, high, begin, end, format) {
  const from = Math.log10(low), to = Math.max(Math.log10(high), from + 0.3);
  const steps = to - from < 1.6 ? [1, 2, 5] : to - from < 3.2 ? [1, 3] : [1];
  const ticks = [];
  for (let p = Math.floor(from); p <= to; ++p) {
    for (const step of steps) {
      const tick = Number((step * 10 ** p).toPrecision(3));
      if (Math.log10(tick) >= from - 1e-9 && Math.log10(tick) <= to + 1e-9) ticks.push(tick);
    }
  }
  const at = (value) => begin + (Math.log10(Math.max(value, low)) - from) / (to - from) * (end - begin);
  return {at, ticks, format};
}
const xRange = [LEFT, WIDTH - RIGHT], yRange = [HEIGHT - BOTTOM, TOP];

// Latencies of several series on one axis; from zero would hide all but the tail.
function latencyScale(values, range) {
  const seen = values.filter((value) => value > 0);
  if (!seen.length) return linear(0, 1, ...range, duration);
  return logarithmic(Math.min(...seen) * 0.9, Math.max(...seen) * 1.1, ...range, duration);
}
function countScale(values, range) {
  return linear(0, Math.max(1e-9, ...values) * 1.05, ...range, count);
}

// ---- charts

// series: [{name, color, points: [[x, y]], dashed, dots}]; bars: [[x0, x1, y]]
function chart({title, note, x, y, xName, series = [], bars = [], tipOf, wide}) {
  const svg = element("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title});
  for (const tick of y.ticks) {
    const at = y.at(tick);
    svg.append(element("line", {x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at, stroke: "var(--grid)"}),
               element("text", {x: LEFT - 8, y: at + 4, "text-anchor": "end"}, y.format(tick)));
  }
  for (const tick of x.ticks) {
    svg.append(element("line", {x1: x.at(tick), x2: x.at(tick), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4, stroke: "var(--axis)"}),
               element("text", {x: x.at(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle"}, x.format(tick)));
  }
  svg.append(element("line", {x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, stroke: "var(--axis)"}),
             element("text", {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle"}, xName));
  for (const [x0, x1, value, color] of bars) {
    const top = y.at(value);
    svg.append(element("rect", {x: x.at(x0) + 0.5, width: Math.max(1, x.at(x1) - x.at(x0) - 1), y: top,
                                height: Math.max(0, HEIGHT - BOTTOM - top), fill: color, rx: 1.5}));
  }
  for (const one of series) {
    const path = one.points.map(([px, py], i) => `${i ? "L" : "M"}${x.at(px).toFixed(1)} ${y.at(py).toFixed(1)}`).join("");
    svg.append(element("path", {d: path, fill: "none", stroke: one.color, "stroke-width": 2, "stroke-linejoin": "round",
                                "stroke-dasharray": one.dashed ? "5 4" : "none"}));
    if (one.dots || one.points.length === 1) {
      for (const [px, py] of one.points) svg.append(element("circle", {cx: x.at(px), cy: y.at(py), r: 3.5, fill: one.color}));
    }
  }
  const tip = element("div", {class: "tip"});
  const body = element("div", {class: "chart"}, svg, tip);
  if (tipOf) follow(svg, tip, x, tipOf);
  const legend = element("div", {class: "legend"}, ...series.map((one) =>
    element("span", {}, element("i", {style: `background:${one.color}`}), one.name)));
  return element("section", {class: wide ? "card wide" : "card"}, element("h2", {}, title),
                 element("p", {class: "soft"}, note), legend, body);
}

// A line under the pointer, with the values at the nearest x: tipOf gives [[x, [text, ...]], ...].
function follow(svg, tip, x, tipOf) {
  const line = element("line", {y1: TOP, y2: HEIGHT - BOTTOM, stroke: "var(--axis)", opacity: 0});
  svg.append(line);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * WIDTH;
    let nearest = null;
    for (const entry of tipOf) {
      if (!nearest || Math.abs(x.at(entry[0]) - at) < Math.abs(x.at(nearest[0]) - at)) nearest = entry;
    }
    if (!nearest) return;
    const px = x.at(nearest[0]);
    for (const name of ["x1", "x2"]) line.setAttribute(name, px);
    line.setAttribute("opacity", 1);
    tip.replaceChildren(...nearest[1].map((text) => element("div", {}, text)));
    tip.style.opacity = 1;
    const left = px / WIDTH * box.width;
    tip.style.left = `${px > WIDTH / 2 ? left - tip.offsetWidth - 10 : left + 10}px`;
  });
  svg.addEventListener("pointerleave", () => { line.setAttribute("opacity", 0); tip.style.opacity = 0; });
}

// Percentiles on an axis of nines: 90, 99 and 99.9 % are equally far apart.
function percentileChart(run) {
  const {response, service} = run.distribution;
  const requests = run.requests.ok;
  const nines = (percent) => 100 / Math.max(100 - percent, 100 / Math.max(requests, 10));
  const last = nines(100);
  const named = [[0, "0 %"], [50, "50 %"], [90, "90 %"], [99, "99 %"], [99.9, "99.9 %"], [99.99, "99.99 %"], [99.999, "99.999 %"]];
  const x = logarithmic(1, last, ...xRange);
  const told = named.filter(([percent]) => 100 / (100 - percent) <= last);
  x.ticks = told.map(([percent]) => nines(percent));
  x.format = (tick) => told[x.ticks.indexOf(tick)][1];
  const points = (list) => list.map(([percent, seconds]) => [nines(percent), seconds]);
  return chart({
    title: "Latency by percentile", note: "The share of requests that were answered within the time",
    x, y: latencyScale([...response, ...service].map(([, seconds]) => seconds), yRange), xName: "share of requests",
    series: [{name: "response time", color: "var(--first)", points: points(response)},
             {name: "service time", color: "var(--second)", points: points(service), dashed: true}],
    tipOf: response.map(([percent, seconds], i) => [nines(percent),
      [`${percent.toFixed(3).replace(/\.?0+$/, "")} %`, `response ${duration(seconds)}`, `service ${duration(service[i][1])}`]]),
  });
}

function distributionChart(run) {
  const bins = run.bins.response, all = run.requests.ok || 1;
  const x = bins.length ? logarithmic(bins[0][0] || 1e-9, bins[bins.length - 1][1], ...xRange, duration) : linear(0, 1, ...xRange, duration);
  return chart({
    title: "Distribution of response times", note: "Share of the requests in each stretch of time; four to a doubling",
    x, y: linear(0, Math.max(0.01, ...bins.map((bin) => bin[2] / all)) * 1.05, ...yRange, share), xName: "response time",
    bars: bins.map(([low, high, requests]) => [low, high, requests / all, "var(--first)"]),
    tipOf: bins.map(([low, high, requests]) => [Math.sqrt((low || 1e-9) * high),
      [`${duration(low)} to ${duration(high)}`, `${count(requests)} requests, ${share(requests / all)}`]]),
  });
}

function timeScale(run) {
  const last = run.intervals[run.intervals.length - 1];
  return linear(0, last ? last.start + last.length : 1, ...xRange, (tick) => `${tick} s`);
}

function latencyOverTime(run) {
  const intervals = run.intervals.filter((interval) => interval.max > 0);
  const named = [["p50", "var(--third)"], ["p90", "var(--first)"], ["p99", "var(--second)"]];
  const middle = (interval) => interval.start + interval.length / 2;
  return chart({
    title: "Response time over time", note: "Of the requests that were due in each interval",
    x: timeScale(run), y: latencyScale(intervals.flatMap((i) => named.map(([name]) => i[name])), yRange), xName: "time since the warm-up",
    series: named.map(([name, color]) => ({name, color, points: intervals.map((i) => [middle(i), i[name]])})),
    tipOf: intervals.map((i) => [middle(i), [`${i.start} s`, ...named.map(([name]) => `${name} ${duration(i[name])}`), `max ${duration(i.max)}`]]),
  });
}

function throughputOverTime(run) {
  const rate = (interval, name) => interval[name] / interval.length;
  const named = [["offered", "var(--first)", true], ["finished", "var(--third)", false]];
  if (run.intervals.some((interval) => interval.failed)) named.push(["failed", "var(--bad)", false]);
  const middle = (interval) => interval.start + interval.length / 2;
  return chart({
    title: "Throughput over time", note: "Requests per second that were due, answered, and failed or not sent",
    x: timeScale(run), y: countScale(run.intervals.flatMap((i) => named.map(([name]) => rate(i, name))), yRange), xName: "time since the warm-up",
    series: named.map(([name, color, dashed]) => ({name, color, dashed, points: run.intervals.map((i) => [middle(i), rate(i, name)])})),
    tipOf: run.intervals.map((i) => [middle(i), [`${i.start} s`, ...named.map(([name]) => `${name} ${count(rate(i, name))}/s`)]]),
  });
}

// ---- several loads

function byRate() { return runs.filter((run) => run.rate).sort((a, b) => a.rate - b.rate); }

function latencyAgainstLoad() {
  const sorted = byRate();
  const named = [["p50", "var(--third)"], ["p90", "var(--first)"], ["p99", "var(--second)"]];
  return chart({
    title: "Latency against offered load", note: "Response times of each load",
    x: countScale(sorted.map((run) => run.rate), xRange), xName: "offered requests/s",
    y: latencyScale(sorted.flatMap((run) => named.map(([name]) => run.latency_s[name])), yRange),
    series: named.map(([name, color]) => ({name, color, dots: true, points: sorted.map((run) => [run.rate, run.latency_s[name]])})),
    tipOf: sorted.map((run) => [run.rate, [`${count(run.rate)} requests/s`, ...named.map(([name]) => `${name} ${duration(run.latency_s[name])}`)]]),
  });
}

function answeredAgainstLoad() {
  const sorted = byRate(), rates = sorted.map((run) => run.rate);
  return chart({
    title: "Answered against offered load", note: "Where the lines part, the server has reached its limit",
    x: countScale(rates, xRange), y: countScale([...rates, ...sorted.map((run) => run.requests_per_s)], yRange), xName: "offered requests/s",
    series: [{name: "offered", color: "var(--axis)", dashed: true, points: [[0, 0], ...rates.map((rate) => [rate, rate])]},
             {name: "answered", color: "var(--first)", dots: true, points: sorted.map((run) => [run.rate, run.requests_per_s])}],
    tipOf: sorted.map((run) => [run.rate, [`offered ${count(run.rate)}/s`, `answered ${count(run.requests_per_s)}/s`]]),
  });
}

function runTable(chosen) {
  const body = element("tbody");
  for (const run of byRate()) {
    const row = element("tr", {"data-run": runs.indexOf(run), class: run === chosen ? "chosen" : ""},
      ...[`${count(run.rate)}`, count(run.requests_per_s), duration(run.latency_s.p50), duration(run.latency_s.p99), duration(run.latency_s.max),
          count(run.requests.failed + run.requests.not_sent)].map((text) => element("td", {}, text)));
    row.addEventListener("click", () => show(run));
    body.append(row);
  }
  const head = ["offered/s", "answered/s", "p50", "p99", "max", "failed or not sent"];
  return element("section", {class: "card wide scroll"}, element("h2", {}, "Loads"), element("p", {class: "soft"}, "Choose one to see it below"),
    element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {}, text)))), body));
}

// ---- one load

function latencyTable(run) {
  const columns = ["mean", "p50", "p90", "p99", "p99.9", "max"];
  const rows = [["response time", run.latency_s], ["service time", run.service_s]];
  if (run.loop === "open") rows.push(["send lag", run.send_lag_s]);
  if (run.server_mean_s) rows.push(["in the server, mean", {mean: run.server_mean_s.total}]);
  return element("section", {class: "card wide scroll"}, element("h2", {}, "Latency"),
    element("p", {class: "soft"}, "Response time runs from when a request was due, service time from when it was sent"),
    element("table", {}, element("thead", {}, element("tr", {}, element("th"), ...columns.map((name) => element("th", {}, name)))),
      element("tbody", {}, ...rows.map(([name, times]) => element("tr", {}, element("td", {}, name),
        ...columns.map((column) => element("td", {}, column in times ? duration(times[column]) : "")))))));
}

function errorTable(run) {
  const entries = Object.entries(run.errors);
  if (!entries.length) return [];
  return [element("section", {class: "card wide scroll"}, element("h2", {}, "Errors"), element("table", {},
    element("thead", {}, element("tr", {}, ...["code", "requests", "p50", "the first"].map((text) => element("th", {}, text)))),
    element("tbody", {}, ...entries.map(([code, error]) => element("tr", {}, ...[code, count(error.count), duration(error.latency_s.p50),
      error.first_message].map((text) => element("td", {}, text)))))))];
}

function tiles(run) {
  const figures = [["requests/s", count(run.requests_per_s)], ["tokens/s", run.tokens_per_s === null ? "–" : count(run.tokens_per_s)],
                   ["p50 response", duration(run.latency_s.p50)], ["p99 response", duration(run.latency_s.p99)],
                   ["answered", count(run.requests.ok)], ["failed or not sent", count(run.requests.failed + run.requests.not_sent)]];
  return element("div", {class: "tiles"}, ...figures.map(([name, text]) =>
    element("div", {class: "card tile"}, element("span", {class: "soft"}, name), element("b", {}, text))));
}

// "minilm", "minilm, version 2"
function modelOf(run) {
  return run.model_version ? `${run.model}, version ${run.model_version}` : run.model;
}

function show(run) {
  const several = byRate().length > 1;
  const plan = run.loop === "open" ? `open loop, ${count(run.rate)} requests/s` : `closed loop, ${run.max_outstanding} outstanding`;
  const top = [element("header", {}, element("h1", {}, modelOf(run)),
                       element("span", {class: "soft"}, `${run.protocol} at ${run.server}, ${run.start}`)),
               element("p", {class: "soft"}, `${plan}; ${run.payload}; ${duration(run.window_s)} after ${duration(run.warmup_s)} of warm-up`)];
  if (summary) top.push(element("p", {class: "summary"}, summary));
  if (run.client.bottleneck) top.push(element("p", {class: "warning"}, `The client was the bottleneck: ${run.client.bottleneck}.`));
  const charts = [];
  if (several) charts.push(latencyAgainstLoad(), answeredAgainstLoad(), runTable(run));
  charts.push(latencyTable(run));
  if (run.requests.ok) charts.push(percentileChart(run), distributionChart(run));
  if (run.intervals.length) charts.push(latencyOverTime(run), throughputOverTime(run));
  report.replaceChildren(...top, tiles(run), element("div", {class: "charts"}, ...charts, ...errorTable(run)));
}

document.title = runs.length ? `attendant load: ${modelOf(runs[0])}` : "attendant load";
if (runs.length) show(runs[runs.length - 1]);
