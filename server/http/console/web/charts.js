// SPDX-License-Identifier: Apache-2.0
// Charts over time and of shares, as SVG. Each has a sentence for screen readers and a readout under the pointer.

import {h, s, onResize, replace} from './dom.js';
import {seriesName} from './colors.js';

const HEIGHT = 150;
const LEFT = 48;
const BOTTOM = 20;
const TOP = 8;

// A round number at or above `value`: 1, 2, 2.5 or 5 times a power of ten.
export function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find((step) => step * power >= value * 0.999);
}

const spanName = (seconds) => seconds < 90 ? `−${Math.round(seconds)} s` : `−${+(seconds / 60).toFixed(1)} min`;

function axis(svg, width, top, format) {
  for (const share of [0, 0.5, 1]) {
    const y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
    svg.append(s('line', {class: share ? 'grid-line' : 'base-line', x1: LEFT, x2: width, y1: y, y2: y}));
    svg.append(s('text', {class: 'tick', x: LEFT - 6, y: y + 4, 'text-anchor': 'end'}, format(top * share)));
  }
}

// A chart of the last seconds, at most `span`. series: [{name, color?}]; format(value) makes texts.
// update(times, values): times [points] in seconds before now, ascending and at most 0; values [series][points], null
// where there is none.
const LEAST_SPAN = 60;

export function timeChart({title, series, format, span: most}) {
  const svg = s('svg', {class: 'chart', height: HEIGHT, role: 'img', 'aria-label': title});
  const tip = h('div', {class: 'tip', hidden: true});
  const legend = h('ul', {class: 'legend'});
  const element = h('figure', {class: 'card chart-card'},
                    h('figcaption', {}, h('h2', {}, title), legend), h('div', {class: 'plot'}, svg, tip));
  const colorOf = (i) => `var(${series[i].color ?? seriesName(i)})`;
  const lastOf = (values) => values.findLast((value) => value !== null) ?? null;
  let data = {times: [], values: series.map(() => [])};
  let width = 0;
  let span = LEAST_SPAN;

  const x = (time) => LEFT + (width - LEFT - 4) * (1 + time / span);
  function draw() {
    if (!width) return;
    replace(svg);
    svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute('width', width);
    const known = data.values.flat().filter((value) => value !== null);
    const top = niceCeiling(Math.max(0, ...known));
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
    axis(svg, width, top, format);
    for (const share of [0, 0.5, 1]) {
      svg.append(s('text', {
        class: 'tick', x: x(-span * (1 - share)), y: HEIGHT - 4,
        'text-anchor': ['start', 'middle', 'end'][share * 2],
      }, share === 1 ? 'now' : spanName(span * (1 - share))));
    }
    data.values.forEach((values, i) => drawLine(values, i, y));
    svg.append(s('line', {class: 'cross', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'}));
  }

  function drawLine(values, i, y) {
    let path = '';
    let area = '';
    let start = null;
    values.forEach((value, k) => {
      if (value === null) return void (start = null);
      const at = `${x(data.times[k]).toFixed(1)} ${y(value).toFixed(1)}`;
      if (start === null) {
        start = x(data.times[k]).toFixed(1);
        area += `M${start} ${HEIGHT - BOTTOM}`;
        path += `M${at}`;
      } else {
        path += `L${at}`;
      }
      area += `L${at}`;
      if (values[k + 1] === undefined || values[k + 1] === null) area += `L${x(data.times[k]).toFixed(1)} ${HEIGHT - BOTTOM}Z`;
    });
    if (i === 0) svg.append(s('path', {class: 'area', d: area, style: {fill: colorOf(i)}}));
    svg.append(s('path', {class: 'line', d: path, style: {stroke: colorOf(i)}}));
  }

  svg.addEventListener('pointermove', (event) => {
    const bounds = svg.getBoundingClientRect();
    const time = ((event.clientX - bounds.left - LEFT) / (width - LEFT - 4) - 1) * span;
    const k = data.times.reduce((best, t, i) => Math.abs(t - time) < Math.abs(data.times[best] - time) ? i : best, 0);
    if (data.times.length === 0) return;
    const cross = svg.querySelector('.cross');
    const place = x(data.times[k]);
    cross.setAttribute('visibility', 'visible');
    cross.setAttribute('x1', place);
    cross.setAttribute('x2', place);
    tip.hidden = false;
    tip.style.left = `${Math.min(place + 8, width - 130)}px`;
    replace(tip, h('strong', {}, `${Math.round(-data.times[k])} s ago`), series.map(({name}, i) =>
      h('span', {}, `${name} ${data.values[i][k] === null ? '–' : format(data.values[i][k])}`)));
  });
  svg.addEventListener('pointerleave', () => {
    tip.hidden = true;
    svg.querySelector('.cross')?.setAttribute('visibility', 'hidden');
  });
  onResize(element.querySelector('.plot'), (now) => {
    width = now;
    draw();
  });

  return {
    element,
    update(times, values) {
      data = {times, values};
      span = Math.min(most, Math.max(LEAST_SPAN, Math.ceil(-times[0] / 30) * 30));
      const latest = values.map(lastOf);
      replace(legend, series.map(({name}, i) => h('li', {},
        h('i', {style: {background: colorOf(i)}}), name, h('b', {}, latest[i] === null ? '–' : format(latest[i])))));
      svg.setAttribute('aria-label', `${title}: ${series.map(({name}, i) =>
        `${name} ${latest[i] === null ? 'none' : format(latest[i])}`).join(', ')}`);
      draw();
    },
  };
}

// Bars of shares that add up to 1. update(names, shares, note)
export function shareChart({title}) {
  const svg = s('svg', {class: 'chart', height: HEIGHT, role: 'img', 'aria-label': title});
  const note = h('span', {class: 'quiet'});
  const element = h('figure', {class: 'card chart-card'}, h('figcaption', {}, h('h2', {}, title), note),
                    h('div', {class: 'plot'}, svg));
  let data = {names: [], shares: []};
  let width = 0;
  function draw() {
    if (!width) return;
    replace(svg);
    svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute('width', width);
    const top = niceCeiling(Math.max(0, ...data.shares));
    axis(svg, width, top, (share) => `${Math.round(share * 100)} %`);
    const step = (width - LEFT) / Math.max(1, data.shares.length);
    const every = Math.ceil(data.names.length / Math.max(1, Math.floor((width - LEFT) / 44)));
    data.shares.forEach((share, i) => {
      const height = (HEIGHT - TOP - BOTTOM) * share / top;
      svg.append(s('rect', {
        class: 'bar', x: LEFT + i * step + 1, width: Math.max(1, step - 2), y: HEIGHT - BOTTOM - height, height, rx: 2,
      }, s('title', {}, `${data.names[i]}: ${(share * 100).toFixed(1)} %`)));
      if (i % every === 0) {
        svg.append(s('text', {class: 'tick', x: LEFT + (i + 0.5) * step, y: HEIGHT - 4, 'text-anchor': 'middle'}, data.names[i]));
      }
    });
  }
  onResize(element.querySelector('.plot'), (now) => {
    width = now;
    draw();
  });
  return {
    element,
    update(names, shares, text) {
      data = {names, shares};
      note.textContent = text;
      svg.setAttribute('aria-label', `${title}: ${text}`);
      draw();
    },
  };
}

// Lines over two logarithmic axes. series: [{name, points: [[x, y], ...]}]
export function logChart({title, xName, yName, series, xFormat, yFormat}) {
  const svg = s('svg', {class: 'chart', height: 240, role: 'img'});
  const plot = h('div', {class: 'plot'}, svg);
  const legend = h('ul', {class: 'legend'}, series.map(({name}, i) =>
    h('li', {}, h('i', {style: {background: `var(${seriesName(i)})`}}), name)));
  const all = series.flatMap(({points}) => points);
  const range = (k) => [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))];
  const [[x0, x1], [y0, y1]] = [range(0), range(1)];
  svg.setAttribute('aria-label', `${title}. ${series.map(({name, points}) =>
    `${name}: ${points.map(([a, b]) => `${xFormat(a)} ${xName} ${yFormat(b)}`).join(', ')}`).join('. ')}`);
  const place = (value, low, high) => high > low ? Math.log(value / low) / Math.log(high / low) : 0.5;
  onResize(plot, (width) => {
    replace(svg);
    svg.setAttribute('viewBox', `0 0 ${width} 240`);
    svg.setAttribute('width', width);
    const x = (value) => 64 + (width - 84) * place(value, x0, x1);
    const y = (value) => 12 + 190 * (1 - place(value, y0, y1));
    for (const [value] of series[0].points) {
      svg.append(s('line', {class: 'grid-line', x1: x(value), x2: x(value), y1: 12, y2: 202}));
      svg.append(s('text', {class: 'tick', x: x(value), y: 218, 'text-anchor': 'middle'}, xFormat(value)));
    }
    for (let value = 10 ** Math.ceil(Math.log10(y0)); value <= y1; value *= 10) {
      svg.append(s('line', {class: 'grid-line', x1: 64, x2: width - 20, y1: y(value), y2: y(value)}));
      svg.append(s('text', {class: 'tick', x: 58, y: y(value) + 4, 'text-anchor': 'end'}, yFormat(value)));
    }
    svg.append(s('text', {class: 'tick', x: width - 20, y: 236, 'text-anchor': 'end'}, `${xName}, and ${yName}`));
    series.forEach(({points}, i) => {
      const stroke = `var(${seriesName(i)})`;
      svg.append(s('path', {class: 'line', d: `M${points.map(([a, b]) => `${x(a)} ${y(b)}`).join('L')}`, style: {stroke}}));
      points.forEach(([a, b]) => svg.append(
          s('circle', {cx: x(a), cy: y(b), r: 3.5, style: {fill: stroke}}, s('title', {}, `${xFormat(a)}: ${yFormat(b)}`))));
    });
  });
  return h('figure', {class: 'chart-card'}, h('figcaption', {}, h('h3', {}, title), legend), plot);
}
