// SPDX-License-Identifier: Apache-2.0
// A grid of values as colours, with names of rows and columns: hover or arrow keys read a value.

import {h, s, onResize, replace, sizeCanvas} from './dom.js';
import {cssColor, inkOn, ramp} from './colors.js';

const FONT = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
const MAX_CELL = 44;
const LEAST_LABELLED_CELL = 11;
const LONGEST_LABEL = 14;  // characters

const short = (text) => text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text;

// options:
//   label           what the grid shows, for screen readers
//   rows, columns   names
//   values          [rows.length * columns.length], row by row; NaN is a cell without a value
//   low, high       the values of the first and last colour
//   colors          'amount' or 'signed'
//   format(value)   the text of a value
//   describe(row, column, value)  a sentence on a cell
//   hideZeros       no text in cells near 0; optional
//   onpick(row, column)           a click, Enter or Space; optional
//   onpoint(row, column)          the pointer or the keys came to a cell, or (-1, -1); optional
//   maxCell         pixels; optional
export function heatGrid(options) {
  const canvas = h('canvas', {'aria-hidden': 'true'});
  const frame = s('svg', {'aria-hidden': 'true'});
  const readout = h('p', {class: 'readout', 'aria-live': 'polite'}, ' ');
  const stage = h('div', {class: 'heat-stage'}, canvas, frame);
  const box = h('div', {
    class: 'heat', tabindex: '0', role: 'group', 'aria-roledescription': 'heat map',
    'aria-label': `${options.label}. Arrow keys read the values.`,
  }, stage);
  const element = h('div', {class: 'heat-box'}, box, readout);
  const {rows, columns, values} = options;
  let layout = null;
  let cursor = [-1, -1];

  function measure(width) {
    const context = canvas.getContext('2d');
    context.font = FONT;
    const widest = (names) => Math.max(0, ...names.map((name) => context.measureText(short(name)).width));
    const left = Math.ceil(widest(rows)) + 10;
    const room = (width - left - 2) / columns.length;
    const cell = Math.max(3, Math.min(options.maxCell ?? MAX_CELL, room));
    const labelled = cell >= LEAST_LABELLED_CELL;
    const upright = widest(columns) > cell - 4;
    const top = !labelled ? 4 : upright ? Math.ceil(widest(columns)) + 10 : 22;
    return {left: labelled ? left : 4, top, cell: labelled ? cell : Math.max(2, (width - 8) / columns.length), labelled, upright};
  }

  function draw(width) {
    layout = measure(width);
    const {left, top, cell} = layout;
    const fullWidth = left + cell * columns.length + 2;
    const fullHeight = top + cell * rows.length + 2;
    const context = sizeCanvas(canvas, fullWidth, fullHeight);
    const color = ramp(options.colors ?? 'amount');
    const span = options.high - options.low || 1;
    const showText = cell >= 32;
    context.font = '11px ui-monospace, Menlo, Consolas, monospace';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const gap = cell > 8 ? 1 : 0;
    values.forEach((value, index) => {
      const x = left + index % columns.length * cell;
      const y = top + Math.floor(index / columns.length) * cell;
      if (Number.isNaN(value)) return hatch(context, x, y, cell - gap);
      const rgb = color((value - options.low) / span);
      context.fillStyle = `rgb(${rgb})`;
      context.fillRect(x, y, cell - gap, cell - gap);
      if (!showText || (options.hideZeros && Math.abs(value) < 0.005)) return;
      context.fillStyle = inkOn(rgb);
      context.fillText(options.format(value), x + (cell - gap) / 2, y + (cell - gap) / 2);
    });
    drawLabels(fullWidth, fullHeight);
  }

  function hatch(context, x, y, size) {
    context.strokeStyle = cssColor('--line');
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + size);
    context.lineTo(x + size, y);
    context.stroke();
  }

  function drawLabels(width, height) {
    const {left, top, cell, labelled, upright} = layout;
    replace(frame);
    frame.setAttribute('width', width);
    frame.setAttribute('height', height);
    frame.setAttribute('viewBox', `0 0 ${width} ${height}`);
    if (labelled) {
      rows.forEach((name, row) => frame.append(s('text', {
        x: left - 6, y: top + (row + 0.5) * cell, class: 'row-label', 'data-row': row,
      }, short(name))));
      columns.forEach((name, column) => {
        const x = left + (column + 0.5) * cell;
        const place = upright ? {transform: `translate(${x} ${top - 6}) rotate(-90)`, class: 'column-label upright'}
                              : {x, y: top - 8, class: 'column-label'};
        frame.append(s('text', {...place, 'data-column': column}, short(name)));
      });
    }
    frame.append(s('rect', {class: 'cursor', width: cell, height: cell, visibility: 'hidden'}));
    mark(cursor);
  }

  function mark([row, column]) {
    const {left, top, cell} = layout;
    const rect = frame.querySelector('.cursor');
    rect.setAttribute('visibility', row < 0 ? 'hidden' : 'visible');
    rect.setAttribute('x', left + column * cell - 1);
    rect.setAttribute('y', top + row * cell - 1);
    frame.querySelectorAll('text').forEach((text) => text.classList.toggle(
        'pointed', text.dataset.row === String(row) || text.dataset.column === String(column)));
  }

  function point(row, column) {
    if (row === cursor[0] && column === cursor[1]) return;
    cursor = [row, column];
    if (layout) mark(cursor);
    readout.textContent = row < 0 ? ' ' : options.describe(row, column, values[row * columns.length + column]);
    options.onpoint?.(row, column);
  }

  function cellAt(event) {
    const bounds = stage.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left - layout.left) / layout.cell);
    const row = Math.floor((event.clientY - bounds.top - layout.top) / layout.cell);
    const inside = row >= 0 && column >= 0 && row < rows.length && column < columns.length;
    return inside ? [row, column] : [-1, -1];
  }

  const MOVES = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  box.addEventListener('keydown', (event) => {
    const move = MOVES[event.key];
    if (move) {
      event.preventDefault();
      const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
      point(clamp(cursor[0] + move[0], rows.length), clamp(cursor[1] + move[1], columns.length));
    } else if (options.onpick && (event.key === 'Enter' || event.key === ' ') && cursor[0] >= 0) {
      event.preventDefault();
      options.onpick(...cursor);
    } else if (event.key === 'Escape') {
      point(-1, -1);
    }
  });
  stage.addEventListener('pointermove', (event) => point(...cellAt(event)));
  stage.addEventListener('pointerleave', () => point(-1, -1));
  if (options.onpick) {
    stage.addEventListener('click', (event) => {
      const [row, column] = cellAt(event);
      if (row >= 0) options.onpick(row, column);
    });
  }
  onResize(box, draw);
  return element;
}

// The colours of a heat grid from `low` to `high`.
export function legend(colors, low, high, format) {
  const canvas = h('canvas', {class: 'ramp', 'aria-hidden': 'true'});
  const draw = () => {
    const context = sizeCanvas(canvas, 120, 8);
    const color = ramp(colors);
    for (let x = 0; x < 120; ++x) {
      context.fillStyle = `rgb(${color(x / 119)})`;
      context.fillRect(x, 0, 1, 8);
    }
  };
  draw();
  addEventListener('recolor', function again() {
    if (canvas.isConnected) draw();
    else removeEventListener('recolor', again);
  });
  return h('span', {class: 'legend-ramp'}, format(low), canvas, format(high));
}
