// SPDX-License-Identifier: Apache-2.0
// Makes elements. Text always goes in as text: nothing that a server or a user says becomes markup.

const SVG = 'http://www.w3.org/2000/svg';

// h('button', {class: 'primary', onclick: f, disabled: true}, 'Go', otherElement)
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// The same for SVG.
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.entries(value).forEach(([k, v]) => element.style.setProperty(k, v));
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...present(children));
  return element;
}

const present = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false);

export function replace(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

let nextId = 0;
export const uniqueId = (prefix) => `${prefix}-${++nextId}`;

// A labelled control: <label> above `control`.
export function field(label, control, hint = null) {
  control.id ||= uniqueId('field');
  return h('div', {class: 'field'}, h('label', {for: control.id}, label), control,
           hint && h('span', {class: 'hint'}, hint));
}

export function select(options, value, onchange) {
  const element = h('select', {onchange: () => onchange(element.value)},
                    options.map(([key, text]) => h('option', {value: key}, text)));
  element.value = value;
  return element;
}

// One of few choices, as a row of buttons.
export function segmented(label, options, value, onchange) {
  const buttons = options.map(([key, text]) => h('button', {
    type: 'button',
    'aria-pressed': String(key === value),
    onclick: () => {
      buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(options[i][0] === key)));
      onchange(key);
    },
  }, text));
  return h('div', {class: 'segmented', role: 'group', 'aria-label': label}, buttons);
}

export function notice(kind, ...children) {
  return h('div', {class: `notice ${kind}`, role: kind === 'error' ? 'alert' : null}, children);
}

// A bar that fills a share of its track.
export const bar = (share) =>
  h('span', {class: 'bar-track'}, h('i', {style: {width: `${Math.min(Math.max(share, 0), 1) * 100}%`}}));

// A row for each [name, value, text of the value]; a bar's length is the value between `low` and `high`.
export const barList = (entries, low, high) => h('ol', {class: 'bars wide'}, entries.map(([name, value, text]) => h('li', {},
  h('span', {}, name), bar((value - low) / (high - low || 1)), h('b', {}, text))));

// A canvas for `width` x `height` CSS pixels, sharp on every screen; returns its context.
export function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  return context;
}

// Calls `draw(width)` now and whenever the element gets another width or the colours change.
export function onResize(element, draw) {
  let width = 0;
  const observer = new ResizeObserver((entries) => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now > 0 && now !== width) draw(width = now);
  });
  observer.observe(element);
  const recolor = () => element.isConnected ? width > 0 && draw(width) : removeEventListener('recolor', recolor);
  addEventListener('recolor', recolor);
}

// A whole number from 0 on, as an address has it; `otherwise` for other text, and for none.
export const whole = (text, otherwise) => /^[0-9]+$/.test(text ?? '') ? Number(text) : otherwise;

export const number = (value, digits = 3) =>
    value === 0 ? '0' : Math.abs(value) >= 1e-3 ? String(+value.toPrecision(digits)) : value.toExponential(1);
export const percent = (share) => `${share >= 0.1 ? Math.round(share * 100) : +(share * 100).toPrecision(2)} %`;
export function duration(us) {
  if (us < 1000) return `${number(us)} µs`;
  return us < 1e6 ? `${number(us / 1000)} ms` : `${number(us / 1e6)} s`;
}
export function count(value) {
  for (const [size, unit] of [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e4, ' k']]) {
    if (value >= size) return `${number(value / (unit === ' k' ? 1e3 : size))}${unit}`;
  }
  return number(value);
}
