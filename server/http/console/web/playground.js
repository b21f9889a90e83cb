// SPDX-License-Identifier: Apache-2.0
// The playground: what a model makes of texts. Each task builds one Encode request, or several, and draws the answers.

import {h, barList, duration, field, notice, number, percent, replace, segmented, select, sizeCanvas} from './dom.js';
import {call, curlOf, floats, servingModels} from './connection.js';
import {ramp} from './colors.js';
import {heatGrid, legend} from './heat_grid.js';
import {TOKEN_TASKS} from './token_tasks.js';

const TASKS = {
  similarity: {
    title: 'Similarity', fields: [['texts', 'Texts, one a line', 6]], fits: (model) => model.labels.length === 0,
    missing: 'No model here makes embeddings.',
    example: {
      texts: ['A man is eating pasta.', 'Someone has lunch.', 'A woman plays the violin.',
              'An orchestra rehearses in the hall.', 'Prices fell for the third month in a row.'].join('\n'),
    },
    request: (model, {texts}) => ({
      model: model.name, sequences: {sequences: texts.map((text) => ({text}))}, outputs: {pooled: {normalize: true}, token_strings: true},
    }),
    draw: drawSimilarity,
  },
  rank: {
    title: 'Rank', fields: [['query', 'Query', 1], ['texts', 'Passages, one a line', 6]], fits: () => true, missing: '',
    example: {
      query: 'How do plants get their energy?',
      texts: ['Photosynthesis turns light into chemical energy.', 'The stock market closed higher on Friday.',
              'Leaves take up carbon dioxide and give off oxygen.', 'My car needs more fuel than it used to.'].join('\n'),
    },
    request: (model, {query, texts}) => isReranker(model)
      ? {model: model.name, sequences: {sequences: texts.map((second) => ({pair: {first: query[0], second}}))}, outputs: {scores: {}}}
      : [query.slice(0, 1), texts].map((side) =>
          ({model: model.name, sequences: {sequences: side.map((text) => ({text}))}, outputs: {pooled: {normalize: true}}})),
    prompts: (model) => isReranker(model) ? []
      : [['Prompt of the query', ['query']], ['Prompt of the passages', ['document', 'passage', 'corpus']]],
    draw: drawRanking,
  },
  classify: {
    title: 'Classify', fields: [['texts', 'Texts, one a line', 4]], fits: (model) => model.labels.length > 1,
    missing: 'No model here is a classifier. A folder saved from transformers\' ForSequenceClassification is one.',
    example: {texts: 'I would buy it again at once.\nIt broke on the second day.'},
    request: (model, {texts}) => ({model: model.name, sequences: {sequences: texts.map((text) => ({text}))}, outputs: {scores: {}}}),
    draw: drawLabels,
  },
  ...TOKEN_TASKS,
};

// [title, names of which the first that the model has is chosen; none: the model's default] for each request of a task.
const ONE_PROMPT = () => [['Prompt', []]];
const NO_PROMPT = 'none';
const NAMED = 'name:';

function promptSelect(model, usual) {
  const chosen = usual.find((name) => model.prompt_names.includes(name));
  return select([['', `the model's default${model.default_prompt_name && `: ${model.default_prompt_name}`}`], [NO_PROMPT, 'none'],
                 ...model.prompt_names.map((name) => [NAMED + name, name])],
                chosen ? NAMED + chosen : usual.length > 0 ? NO_PROMPT : '', () => {});
}

// The model as the server has it now: another one may have taken its name. Of one that is gone the server tells.
async function nowServing(model, task) {
  const now = (await servingModels()).find(({name}) => name === model.name) ?? model;
  if (!task.fits(now)) throw new Error(`${now.name} is another model now, which is not for this.`);
  return now;
}

// As EncodeRequest has it.
function promptName(element) {
  if (!element || element.value === '') return undefined;
  return element.value === NO_PROMPT ? '' : element.value.slice(NAMED.length);
}

// With one label, or without: by the vectors of tokens.
const isReranker = (model) => model.tasks.includes('scores') && model.labels.length < 2;

function drawSimilarity(model, {texts}, answer) {
  const vectors = floats(answer.pooled);
  const dims = answer.pooled.shape[1];
  const vector = (i) => vectors.subarray(i * dims, (i + 1) * dims);
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const values = Float32Array.from({length: texts.length ** 2}, (_, at) =>
    dot(vector(Math.floor(at / texts.length)), vector(at % texts.length)));
  const names = texts.map((_, i) => String(i + 1));
  // Not spread: there may be more values than a function takes arguments.
  const least = values.reduce((smallest, value) => Math.min(smallest, value), 0);
  return [
    h('h2', {}, 'Cosine similarity'),
    heatGrid({label: 'Cosine similarities of the texts', rows: names, columns: names, values, low: least, high: 1, maxCell: 64,
              format: (value) => value.toFixed(2),
              describe: (i, j, value) => `“${texts[i]}” and “${texts[j]}”: ${value.toFixed(3)}`}),
    legend('amount', least, 1, (value) => number(value, 2)),
    h('h2', {}, `The vectors, ${dims} numbers each`),
    h('ol', {class: 'vectors'}, texts.map((text, i) => h('li', {}, h('span', {}, text),
      h('span', {class: 'quiet'}, `${answer.sequences[i].tokens} tokens${answer.sequences[i].truncated ? ', cut' : ''}`),
      stripes(vector(i))))),
  ];
}

// A vector as stripes, a colour for each number.
function stripes(vector) {
  const canvas = h('canvas', {class: 'stripes', 'aria-hidden': 'true'});
  const reach = Math.max(...vector.map(Math.abs));
  const draw = () => {
    const color = ramp('signed');
    const context = sizeCanvas(canvas, vector.length, 18);
    vector.forEach((value, x) => {
      context.fillStyle = `rgb(${color(0.5 + value / reach / 2)})`;
      context.fillRect(x, 0, 1, 18);
    });
    canvas.style.width = '100%';
  };
  draw();
  addEventListener('recolor', function again() {
    if (canvas.isConnected) draw();
    else removeEventListener('recolor', again);
  });
  return canvas;
}

function drawRanking(model, {texts}, answer, passages) {
  let scores;
  let note = 'Scores of the reranker.';
  if (isReranker(model)) {
    scores = floats(answer.scores);
  } else {
    const query = floats(answer.pooled);
    const vectors = floats(passages.pooled);
    scores = Float32Array.from(texts, (_, i) => query.reduce((sum, value, k) => sum + value * vectors[i * query.length + k], 0));
    note = 'This model is no reranker: the order is that of cosine similarities to the query.';
  }
  const order = [...texts.keys()].sort((a, b) => scores[b] - scores[a]);
  return [h('p', {class: 'quiet'}, note),
          barList(order.map((i) => [texts[i], scores[i], number(scores[i])]), Math.min(0, ...scores), Math.max(1, ...scores))];
}

function drawLabels(model, {texts}, answer) {
  const scores = floats(answer.scores);
  const size = model.labels.length;
  return texts.map((text, i) => {
    const entries = model.labels.map((label, k) => [label, scores[i * size + k]]).sort((a, b) => b[1] - a[1]).slice(0, 10);
    return h('section', {}, h('h2', {}, text), barList(entries.map(([label, score]) => [label, score, percent(score)]), 0, 1));
  });
}

class Playground {
  constructor(root, parameters, remember) {
    this.remember = remember;
    this.task = Object.hasOwn(TASKS, parameters.task ?? '') ? parameters.task : 'similarity';
    this.wanted = parameters.model ?? '';
    this.given = parameters;
    this.turn = 0;  // of the form: an answer to an earlier one comes too late
    this.form = h('form', {class: 'card', onsubmit: (event) => { event.preventDefault(); this.run(); }});
    this.result = h('section', {class: 'card result', 'aria-live': 'polite', hidden: true});
    root.append(h('div', {class: 'head'}, h('h1', {}, 'Playground'),
                  segmented('Task', Object.entries(TASKS).map(([name, {title}]) => [name, title]), this.task, (task) => {
                    this.task = task;
                    this.given = {};
                    if (this.models) this.build();
                  })),
                h('div', {class: 'play'}, this.form, this.result));
    this.start();
  }

  async start() {
    try {
      this.models = await servingModels();
      this.build();
    } catch (error) {
      replace(this.form, notice('error', error.message));
    }
  }

  build() {
    ++this.turn;
    const task = TASKS[this.task];
    const models = this.models.filter(task.fits);
    this.result.hidden = true;
    this.save();
    if (models.length === 0) {
      replace(this.form, notice('info', this.models.length ? task.missing : 'No model serves now.'));
      return;
    }
    // A reranker goes first where passages are to be ranked.
    const preferred = this.task === 'rank' ? models.find(isReranker) : undefined;
    this.model = models.find(({name}) => name === this.wanted) ?? preferred ?? models[0];
    const picker = select(models.map(({name}) => [name, name]), this.model.name, (name) => {
      this.model = models.find((model) => model.name === name);
      this.wanted = name;
      this.save();
      this.buildPrompts();
    });
    this.promptFields = h('div', {class: 'prompts'});
    this.buildPrompts();
    this.inputs = Object.fromEntries(task.fields.map(([name, , rows]) =>
      [name, h('textarea', {rows, spellcheck: 'false'}, this.given[name] ?? task.example[name])]));
    this.button = h('button', {class: 'primary', type: 'submit'}, task.title);
    replace(this.form, models.length > 1 ? field('Model', picker) : null,
            task.fields.map(([name, title]) => field(title, this.inputs[name])), this.promptFields,
            h('div', {class: 'actions'}, this.button));
  }

  // A choice for each request of the task, where the model has prompts.
  buildPrompts() {
    const {prompts = ONE_PROMPT} = TASKS[this.task];
    const wanted = this.model.prompt_names.length > 0 ? prompts(this.model) : [];
    this.prompts = wanted.map(([, usual]) => promptSelect(this.model, usual));
    replace(this.promptFields, wanted.map(([title], i) => field(title, this.prompts[i])));
  }

  save() {
    this.remember({task: this.task === 'similarity' ? '' : this.task, model: this.wanted});
  }

  async run() {
    const {model: chosen, turn} = this;  // while the answer is awaited, another may be chosen
    const task = TASKS[this.task];
    const texts = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) =>
      [name, input.value.split('\n').map((line) => line.trim()).filter(Boolean)]));
    this.result.hidden = false;
    const empty = task.fields.find(([name]) => texts[name].length === 0);
    if (empty) {
      replace(this.result, notice('error', `“${empty[1]}” is empty.`));
      return;
    }
    const prompts = this.prompts.map(promptName);
    this.button.disabled = true;
    try {
      const model = await nowServing(chosen, task);
      const requests = [task.request(model, texts)].flat().map((request, i) => ({...request, prompt_name: prompts[i]}));
      const answers = await Promise.all(requests.map((request) => call('Encoder/Encode', request)));
      if (turn !== this.turn) return;
      const time = (name) => duration(answers.reduce((sum, {timings}) => sum + timings[name], 0));
      replace(this.result, task.draw(model, texts, ...answers),
              h('p', {class: 'quiet'}, `${model.name}: ${time('total_us')} in the server, of which ${
                time('tokenize_us')} tokenizing, ${time('queue_us')} waiting and ${time('compute_us')} computing.`),
              this.terminal(requests));
    } catch (error) {
      if (turn !== this.turn) return;
      replace(this.result, notice('error', error.message));
    }
    this.button.disabled = false;
  }

  terminal(requests) {
    const command = requests.map((request) => curlOf('Encoder/Encode', request)).join('\n');
    const copy = h('button', {type: 'button', onclick: async () => {
      await navigator.clipboard.writeText(command);
      copy.textContent = 'Copied';
    }}, 'Copy');
    return h('details', {}, h('summary', {}, 'The same in a terminal'), h('pre', {tabindex: '0'}, command),
             navigator.clipboard ? copy : null);
  }
}

export function mount(root, parameters, remember) {
  new Playground(root, parameters, remember);
}
