// SPDX-License-Identifier: Apache-2.0
// The page: its views, the address of each, the API key, the colours. The part of the address after # says all that a
// view shows: #attention?text=...&layer=3 restores it.

import {h, replace} from './dom.js';
import {onKeyWanted, ready, setKey} from './connection.js';
import * as attention from './attention.js';
import * as lab from './lab.js';
import * as live from './live.js';
import * as models from './models.js';
import * as playground from './playground.js';

// A view: mount(root, parameters, remember) shows it; what it returns is called when it goes. remember(parameters)
// writes the address.
const VIEWS = [
  ['overview', 'Overview', live],
  ['models', 'Models', models],
  ['playground', 'Playground', playground],
  ['attention', 'Attention', attention],
  ['lab', 'Lab', lab],
];

const main = document.getElementById('main');
const nav = document.getElementById('nav');
let leave = () => {};
let shown = '';

function parse(hash) {
  const [name, ...query] = hash.replace(/^#/, '').split('?');  // a text may have a question mark too
  const view = VIEWS.find(([key]) => key === name) ?? VIEWS[0];
  return {view, parameters: Object.fromEntries(new URLSearchParams(query.join('?')))};
}

function addressOf(name, parameters) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== '' && value !== undefined && value !== null);
  const query = new URLSearchParams(kept).toString();
  return `#${name}${query ? `?${query}` : ''}`;
}

function show() {
  if (location.hash === shown && shown) return;
  const {view: [name, title, view], parameters} = parse(location.hash);
  shown = location.hash;
  leave();
  for (const link of nav.children) {
    if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${title} · Attendant`;
  const root = h('div', {class: `view ${name}`});
  replace(main, root);
  const remember = (now) => {
    if (!root.isConnected) return;
    shown = addressOf(name, now);
    history.replaceState(null, '', shown);
  };
  leave = view.mount(root, parameters, remember) ?? (() => {});
}

function setUpKeys() {
  const dialog = document.getElementById('key-dialog');
  const input = document.getElementById('key-input');
  const why = document.getElementById('key-why');
  const asked = why.cloneNode(true).childNodes;
  const open = (message) => {
    if (dialog.open) return;
    replace(why, message ? message : [...asked].map((node) => node.cloneNode(true)));
    input.value = '';
    dialog.returnValue = '';  // Escape leaves that of the last time
    dialog.showModal();
  };
  onKeyWanted(open);
  document.getElementById('key').addEventListener('click', () => open(''));
  dialog.addEventListener('close', () => {
    if (dialog.returnValue !== 'use') return;
    setKey(input.value.trim(), document.getElementById('key-keep').checked);
    input.value = '';
    shown = '';
    show();
  });
  // Enter means the key, not the first button.
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    dialog.close('use');
  });
}

const THEMES = {auto: 'as the system', light: 'light', dark: 'dark'};
function setUpTheme() {
  const button = document.getElementById('theme');
  let theme = localStorage.getItem('attendant-theme') ?? 'auto';
  const apply = () => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.title = `Colours: ${THEMES[theme]}`;
    button.setAttribute('aria-label', button.title);
    dispatchEvent(new Event('recolor'));
  };
  button.addEventListener('click', () => {
    const names = Object.keys(THEMES);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    localStorage.setItem('attendant-theme', theme);
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  apply();
}

async function watchReadiness() {
  const pill = document.getElementById('ready');
  const state = await ready().then((yes) => yes ? 'ready' : 'not ready', () => 'offline');
  if (pill.textContent !== state) pill.textContent = state;
  pill.className = `pill ${state.replace(' ', '-')}`;
  setTimeout(watchReadiness, 10000);
}

replace(nav, VIEWS.map(([name, title]) => h('a', {href: `#${name}`, 'data-view': name}, title)));
setUpKeys();
setUpTheme();
addEventListener('hashchange', show);
// The address stays that of the view.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
watchReadiness();
show();
