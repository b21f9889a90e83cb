// SPDX-License-Identifier: Apache-2.0
// Attention as lines between two columns of the same tokens: the left ones look, the right ones are looked at.

import {h, onResize, sizeCanvas} from './dom.js';
import {cssColor} from './colors.js';

const ROW = 26;             // pixels
const LEAST_WEIGHT = 0.02;  // of a line that is drawn while no token is chosen

// options:
//   tokens            their texts
//   maps              [{head, color, map: [tokens, tokens]}]: the chosen heads
//   token             the chosen token, or null
//   onpoint(token)    the pointer is at a token, or null
//   onpick(token)     a token was chosen, or none any more: null
export function linesView({tokens, maps, token, onpoint, onpick}) {
  const n = tokens.length;
  const canvas = h('canvas', {'aria-hidden': 'true'});
  const left = tokens.map((text, i) => h('li', {role: 'option', id: `look-${i}`, 'aria-selected': String(i === token)}, text));
  const right = tokens.map((text) => h('li', {}, h('span', {class: 'strips', 'aria-hidden': 'true'}), text));
  const looking = h('ul', {
    class: 'tokens looking', role: 'listbox', tabindex: '0', 'aria-label': 'Tokens that look. Arrow keys choose one.',
  }, left);
  const seen = h('ul', {class: 'tokens seen', 'aria-label': 'Tokens that are looked at'}, right);
  const middle = h('div', {class: 'lines'}, canvas);
  const element = h('div', {class: 'lines-view'},
                    h('div', {class: 'columns'}, looking, middle, seen));
  let chosen = token;
  let pointed = null;  // {side: 'left' or 'right', index}
  let width = 0;

  const focus = () => pointed ?? (chosen === null ? null : {side: 'left', index: chosen});
  const involves = (at, i, j) => at === null || (at.side === 'left' ? at.index === i : at.index === j);

  function draw() {
    if (!width) return;
    const at = focus();
    const context = sizeCanvas(canvas, width, n * ROW);
    const spread = Math.min(maps.length - 1, 10);
    maps.forEach(({color, map}, k) => {
      context.strokeStyle = cssColor(color);
      const shift = maps.length > 1 ? (k / (maps.length - 1) - 0.5) * spread : 0;
      for (let i = 0; i < n; ++i) {
        for (let j = 0; j < n; ++j) {
          const weight = map[i * n + j];
          if (!involves(at, i, j) || weight < (at === null ? LEAST_WEIGHT : 0.004)) continue;
          line(context, (i + 0.5) * ROW + shift, (j + 0.5) * ROW + shift, weight, at === null ? 0.75 : 1);
        }
      }
    });
    shade(at);
  }

  function line(context, from, to, weight, strength) {
    context.globalAlpha = Math.min(1, Math.sqrt(weight)) * strength;
    context.lineWidth = 0.6 + 3.4 * weight;
    context.beginPath();
    context.moveTo(0, from);
    context.bezierCurveTo(width * 0.45, from, width * 0.55, to, width, to);
    context.stroke();
  }

  // A strip for each head on the other side's tokens, as strong as the weight.
  function shade(at) {
    left.forEach((item, i) => item.classList.toggle('at', at?.side === 'left' && at.index === i));
    right.forEach((item, j) => {
      item.classList.toggle('at', at?.side === 'right' && at.index === j);
      item.firstChild.replaceChildren(...maps.map(({color, map}) => {
        const weight = at?.side === 'left' ? map[at.index * n + j] : 0;
        return h('i', {style: {background: `var(${color})`, opacity: String(Math.min(1, weight ** 0.6))}});
      }));
    });
    left.forEach((item, i) => {
      const most = at?.side === 'right' ? Math.max(...maps.map(({map}) => map[i * n + at.index])) : 0;
      item.style.setProperty('--strength', `${Math.round(Math.min(1, most ** 0.6) * 70)}%`);
    });
  }

  function pick(index) {
    chosen = index;
    left.forEach((item, i) => item.setAttribute('aria-selected', String(i === index)));
    if (index === null) looking.removeAttribute('aria-activedescendant');
    else looking.setAttribute('aria-activedescendant', `look-${index}`);
    draw();
    onpick(index);
  }

  function point(side, index) {
    pointed = index === null ? null : {side, index};
    onpoint(index);
    draw();
  }

  for (const [side, list, items] of [['left', looking, left], ['right', seen, right]]) {
    items.forEach((item, i) => item.addEventListener('pointerenter', (event) => event.pointerType === 'mouse' && point(side, i)));
    list.addEventListener('pointerleave', () => point(side, null));
  }
  left.forEach((item, i) => item.addEventListener('click', () => pick(chosen === i ? null : i)));
  right.forEach((item, i) => item.addEventListener('click', () => {
    const again = pointed?.side === 'right' && pointed.index === i;
    point('right', again ? null : i);
  }));
  looking.addEventListener('keydown', (event) => {
    const last = n - 1;
    const moves = {
      ArrowDown: chosen === null ? 0 : Math.min(chosen + 1, last),
      ArrowUp: chosen === null ? last : Math.max(chosen - 1, 0),
      Home: 0,
      End: last,
      Escape: null,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pick(moves[event.key]);
    left[chosen ?? 0].scrollIntoView({block: 'nearest'});
  });
  onResize(middle, (now) => {
    width = now;
    draw();
  });
  return element;
}
