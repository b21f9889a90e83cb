// SPDX-License-Identifier: Apache-2.0
// The models and attention modules of the server, and their states.

import {h, notice, replace} from './dom.js';
import {call} from './connection.js';

const INTERVAL_MS = 5000;

const stateName = (state) => state.replace('MODEL_STATE_', '').toLowerCase();
const poolingName = (pooling) => pooling.replace('POOLING_', '').toLowerCase();

function facts(pairs) {
  return h('dl', {class: 'facts'}, pairs.filter(([, value]) => value !== '' && value !== 0).map(([name, value]) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, String(value)))));
}

function card(name, version, state, problem, pairs, labels, links) {
  return h('article', {class: 'card model'},
           h('header', {}, h('h2', {}, name), version > 0 && h('span', {class: 'quiet'}, `version ${version}`),
             h('span', {class: `pill ${state}`}, state)),
           problem !== '' && notice(state === 'ready' ? 'warning' : 'error', problem),
           facts(pairs),
           labels.length > 0 && h('p', {class: 'labels'}, 'Labels ', labels.map((label) => h('code', {}, label))),
           links.length > 0 && h('p', {class: 'links'}, links.map(([text, address]) => h('a', {href: address}, text))));
}

// What the playground does with a model first.
function taskOf({labels, tasks}) {
  if (labels.length > 0) return labels.length > 1 ? '&task=classify' : '&task=rank';
  if (tasks.includes('token_scores')) return '&task=tokens';
  return tasks.includes('fill_mask') ? '&task=mask' : '';
}

function modelCard(model) {
  const state = stateName(model.state);
  const name = encodeURIComponent(model.name);
  const links = state !== 'ready' && state !== 'idle' ? [] : [
    ['Look at its attention', `#attention?model=${name}`],
    ['Try it', `#playground?model=${name}${taskOf(model)}`],
  ];
  return card(model.name, model.version, state, model.error, [
    ['numbers', model.dtype], ['back end', model.backend], ['instructions', model.isa], ['layers', model.layers],
    ['heads', model.heads], ['hidden', model.hidden], ['vocabulary', model.vocab && model.vocab.toLocaleString('en')],
    ['longest sequence', model.max_sequence_tokens], ['texts are cut at', model.max_text_tokens],
    ['pooling', model.layers ? poolingName(model.pooling) + (model.normalize ? ', normalized' : '') : ''],
    ['further outputs', model.tasks.join(', ').replaceAll('_', ' ')],
  ], [...model.labels, ...model.token_labels], links);
}

const moduleCard = (module) => card(module.name, 0, stateName(module.state), '', [
  ['type', module.type], ['numbers', module.dtype], ['layers', module.layers], ['heads', module.heads],
  ['hidden', module.hidden], ['key width', module.key_dim], ['value width', module.value_dim],
  ['feed-forward', module.ffn], ['activation', module.activation],
], [], []);

export function mount(root) {
  const list = h('div', {class: 'cards'}, h('p', {class: 'quiet'}, 'Asking the server…'));
  root.append(h('div', {class: 'head'}, h('h1', {}, 'Models')), list);
  let timer = null;
  let shown = '';
  async function refresh() {
    try {
      const {models} = await call('Encoder/ListModels');
      const {modules} = await call('Attention/ListAttention').catch((error) => {
        if (error.status === 404) return {modules: []};  // --attention=off
        throw error;
      });
      const now = JSON.stringify([models, modules]);
      if (now !== shown) {
        const cards = [...models.map(modelCard), ...modules.map(moduleCard)];
        replace(list, cards.length ? cards : notice('info', 'This server has no models. It computes attention on tensors.'));
        shown = now;
      }
    } catch (error) {
      replace(list, notice('error', error.message));
      shown = '';
      if (error.status === 401 || error.status === 403) return;  // a key starts the view again
    }
    if (timer !== null) timer = setTimeout(refresh, INTERVAL_MS);
  }
  timer = 0;
  refresh();
  return () => {
    clearTimeout(timer);
    timer = null;
  };
}
