// SPDX-License-Identifier: Apache-2.0
// The overview: what the server does now, from the differences of its counters once a second.

import {h, count, duration, number, percent, replace, select} from './dom.js';
import {live} from './connection.js';
import {shareChart, timeChart} from './charts.js';

const SPAN = 300;        // seconds shown
const WINDOW = 10;       // seconds that quantiles and shares look back
const INTERVAL_MS = 1000;
const PHASES = ['total', 'tokenize', 'queue', 'compute', 'serialize'];

// The counters of the chosen models, added up.
function combine(answer, chosen) {
  const all = {time: answer.time_ms / 1000, processor: answer.processor_s, phases: {}};
  const add = (name, value) => { all[name] = (all[name] ?? 0) + value; };
  const addCounts = (target, name, {counts}) => {
    target[name] = counts.map((value, i) => value + (target[name]?.[i] ?? 0));
    if (counts.length === 0) target[name] = target[name] ?? [];
  };
  for (const model of answer.models) {
    if (chosen && model.model !== chosen) continue;
    for (const [name, value] of Object.entries(model)) if (typeof value === 'number') add(name, value);
    for (const [phase, histogram] of Object.entries(model.phases)) {
      if (histogram.counts.length) addCounts(all.phases, phase, histogram);
    }
    addCounts(all, 'batch_tokens', model.batch_tokens);
    addCounts(all, 'batch_requests', model.batch_requests);
    add('batch_requests_sum', model.batch_requests.sum);
    add('batch_tokens_sum', model.batch_tokens.sum);
  }
  return all;
}

// How far counters rose. They fall when a model is unloaded, and start at 0 when it comes back.
const rise = (now = 0, before = 0) => Math.max(0, now - before);
const minus = (now = [], before = []) => now.map((value, i) => rise(value, before[i]));
const total = (counts) => counts.reduce((sum, value) => sum + value, 0);

// The value that a share of a histogram's samples does not exceed, linear inside its bucket. null: no samples.
export function quantile(counts, bounds, share) {
  const all = total(counts);
  if (all === 0) return null;
  let rank = share * all;
  const bucket = counts.findIndex((value) => (rank -= value) <= 0);
  if (bucket >= bounds.length) return bounds.at(-1);
  const low = bucket === 0 ? 0 : bounds[bucket - 1];
  return low + (bounds[bucket] - low) * (1 + rank / counts[bucket]);
}

// What the charts show at the time of samples[at].
function pointAt(samples, at, bounds, phase) {
  const now = samples[at];
  const before = samples[at - 1];
  const past = samples[Math.max(0, at - WINDOW)];
  const seconds = now.time - before.time;
  const rate = (name) => rise(now[name], before[name]) / seconds;
  const spent = minus(now.phases[phase], past.phases[phase]);
  const batches = total(minus(now.batch_requests, past.batch_requests));
  return {
    time: now.time,
    requests: rate('requests'),
    failed: rate('failed') + rate('rejected'),
    tokens: rate('tokens'),
    processor: rate('processor'),
    p50: quantile(spent, bounds.seconds, 0.5),
    p99: quantile(spent, bounds.seconds, 0.99),
    queue: now.queue_tokens ?? 0,
    waiting: now.queue_requests ?? 0,
    inflight: now.inflight ?? 0,
    perBatch: batches ? rise(now.batch_requests_sum, past.batch_requests_sum) / batches : null,
  };
}

class Overview {
  constructor(root, parameters, remember) {
    this.remember = remember;
    this.model = parameters.model ?? '';
    this.phase = PHASES.includes(parameters.phase) ? parameters.phase : 'total';
    this.answers = [];
    this.build(root);
    this.timer = setTimeout(() => this.poll(), 0);
  }

  build(root) {
    this.picker = h('span');
    this.problem = h('div');
    this.tiles = Object.fromEntries([
      ['requests', 'Requests / s'], ['tokens', 'Tokens / s'], ['p50', 'Median time'], ['p99', '99 % within'],
      ['queue', 'Tokens waiting'], ['processor', 'Processors in use'],
    ].map(([name, title]) => [name, h('div', {class: 'tile'}, h('span', {}, title), h('strong', {}, '–'))]));
    const chart = (title, series, format) => timeChart({title, series, format, span: SPAN});
    this.charts = {
      requests: chart('Requests per second', [{name: 'answered'}, {name: 'failed', color: '--bad'}], number),
      tokens: chart('Tokens per second', [{name: 'tokens'}], count),
      time: chart('Time of a request', [{name: '50 %'}, {name: '99 %', color: '--series-3'}], (s) => duration(s * 1e6)),
      queue: chart('Queue', [{name: 'requests in work'}, {name: 'of them waiting', color: '--series-3'}], number),
      batch: chart('Requests per batch', [{name: 'mean'}], number),
    };
    this.shapes = shareChart({title: 'Tokens in a batch'});
    const phases = select(PHASES.map((phase) => [phase, phase]), this.phase, (phase) => {
      this.phase = phase;
      this.saveAndDraw();
    });
    phases.setAttribute('aria-label', 'Phase');
    this.charts.time.element.querySelector('h2').after(phases);
    root.append(
        h('div', {class: 'head'}, h('h1', {}, 'Overview'), this.picker),
        this.problem,
        h('div', {class: 'tiles'}, Object.values(this.tiles)),
        h('div', {class: 'charts'}, this.charts.requests.element, this.charts.tokens.element,
          this.charts.time.element, this.charts.queue.element, this.charts.batch.element, this.shapes.element),
        h('p', {class: 'quiet'}, `Once a second, since this view was opened. Times and shares look back ${WINDOW} s.`));
  }

  async poll() {
    if (!document.hidden) {
      try {
        this.take(await live());
        replace(this.problem);
      } catch (error) {
        replace(this.problem, h('div', {class: 'notice error', role: 'alert'}, error.message));
        if (error.status === 401 || error.status === 403) return;  // a key starts the view again
      }
    }
    if (this.timer !== null) this.timer = setTimeout(() => this.poll(), INTERVAL_MS);
  }

  take(answer) {
    document.getElementById('version').textContent = answer.version;
    this.answers = this.answers.filter(({time_ms}) => time_ms > answer.time_ms - (SPAN + WINDOW) * 1000);
    this.answers.push(answer);
    const names = answer.models.map(({model}) => model);
    if (names.join() !== this.names) {
      this.names = names.join();
      const gone = this.model === '' || names.includes(this.model) ? [] : [[this.model, `${this.model} (not here)`]];
      replace(this.picker, select([['', 'all models'], ...names.map((name) => [name, name]), ...gone], this.model, (model) => {
        this.model = model;
        this.saveAndDraw();
      }));
      this.picker.firstChild.setAttribute('aria-label', 'Model');
    }
    this.draw();
  }

  saveAndDraw() {
    this.remember({model: this.model, phase: this.phase === 'total' ? '' : this.phase});
    this.draw();
  }

  draw() {
    const samples = this.answers.map((answer) => combine(answer, this.model));
    if (samples.length < 2) return;
    const {bounds} = this.answers.at(-1);
    const points = samples.slice(1).map((_, i) => pointAt(samples, i + 1, bounds, this.phase));
    const now = points.at(-1);
    const times = points.map(({time}) => time - now.time);
    const column = (name) => points.map((point) => point[name]);
    const draw = (chart, ...names) => this.charts[chart].update(times, names.map(column));
    draw('requests', 'requests', 'failed');
    draw('tokens', 'tokens');
    draw('time', 'p50', 'p99');
    draw('queue', 'inflight', 'waiting');
    draw('batch', 'perBatch');
    this.drawShapes(samples, bounds);
    this.drawTiles(now, points);
  }

  drawShapes(samples, bounds) {
    const past = samples[Math.max(0, samples.length - 1 - 6 * WINDOW)];
    const counts = minus(samples.at(-1).batch_tokens, past.batch_tokens);
    const batches = total(counts);
    const last = counts.findLastIndex((value) => value > 0);
    const shown = counts.slice(0, Math.max(last + 1, 6));
    const names = shown.map((_, i) => i < bounds.tokens.length ? `≤${bounds.tokens[i]}` : 'more');
    const mean = batches ? rise(samples.at(-1).batch_tokens_sum, past.batch_tokens_sum) / batches : 0;
    this.shapes.update(names, shown.map((value) => batches ? value / batches : 0),
                       batches ? `${batches} batches in a minute, ${number(mean)} tokens each` : 'no batch in the last minute');
  }

  drawTiles(now, points) {
    const recent = points.slice(-3);
    const mean = (name) => total(recent.map((point) => point[name])) / recent.length;
    const set = (name, text) => { this.tiles[name].lastChild.textContent = text; };
    set('requests', number(mean('requests')));
    set('tokens', count(mean('tokens')));
    set('p50', now.p50 === null ? '–' : duration(now.p50 * 1e6));
    set('p99', now.p99 === null ? '–' : duration(now.p99 * 1e6));
    set('queue', count(now.queue));
    set('processor', now.processor < 0.1 ? percent(mean('processor')) : number(mean('processor'), 2));
  }
}

export function mount(root, parameters, remember) {
  const overview = new Overview(root, parameters, remember);
  return () => {
    clearTimeout(overview.timer);
    overview.timer = null;
  };
}
