// SPDX-License-Identifier: Apache-2.0
// The server as the page sees it: JSON over the HTTP port, with the API key where the user gave one.

const KEY_NAME = 'attendant-key';
let key = sessionStorage.getItem(KEY_NAME) ?? '';
let askForKey = () => {};

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// `ask(message)` is called when the server wants a key, or another one.
export function onKeyWanted(ask) { askForKey = ask; }
export const hasKey = () => key !== '';
// The key is in memory only, or in the tab's session: never in the address, never on disk.
export function setKey(value, keep) {
  key = value;
  if (keep && value) sessionStorage.setItem(KEY_NAME, value);
  else sessionStorage.removeItem(KEY_NAME);
}

async function request(path, options = {}) {
  const headers = {...options.headers};
  if (key) headers.Authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(path, {cache: 'no-store', credentials: 'omit', ...options, headers});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError(0, 'The server does not answer.');
  }
  if (answer.ok) return answer.json();
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) askForKey(hasKey() ? 'The server does not know this key.' : '');
  throw new ServerError(answer.status, body.message ?? body.error ?? `HTTP ${answer.status}`);
}

// call('Encoder/Encode', {model: 'minilm', ...}): a method of attendant.v1, as JSON.
export function call(method, message = {}, signal = undefined) {
  return request(`/attendant.v1.${method}`, {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify(message),
    signal,
  });
}
export const live = () => request('/console/live');
export async function ready() {
  const answer = await fetch('/readyz', {cache: 'no-store'});
  await answer.text();  // a request whose answer is not read does not end
  return answer.ok;
}
export const apiDocument = () => request('/openapi.json');

// The same request for a terminal.
export function curlOf(method, message) {
  const body = JSON.stringify(message).replaceAll("'", "'\\''");
  const auth = hasKey() ? ' -H "Authorization: Bearer $KEY"' : '';
  return `curl ${location.origin}/attendant.v1.${method} -H 'Content-Type: application/json'${auth} -d '${body}'`;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// f16 to f32, by IEEE 754: sign, 5 bits of exponent, 10 of fraction.
function halfToFloat(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = bits >> 10 & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// The values of an attendant.v1.Tensor, row-major.
export function floats(tensor) {
  const bytes = bytesOf(tensor.data);
  if (tensor.dtype === 'DTYPE_F32') return new Float32Array(bytes.buffer);
  return Float32Array.from(new Uint16Array(bytes.buffer), halfToFloat);
}

// An attendant.v1.Tensor of f32 values; of booleans where `values` is a Uint8Array.
export function tensor(values, shape) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return {dtype: values instanceof Uint8Array ? 'DTYPE_BOOL' : 'DTYPE_F32', shape, data: btoa(text)};
}

// Names of models that serve, from ListModels.
export async function servingModels() {
  const {models} = await call('Encoder/ListModels');
  const serves = models.filter((model) => ['MODEL_STATE_READY', 'MODEL_STATE_IDLE'].includes(model.state));
  return [...new Map(serves.map((model) => [model.name, model])).values()];
}
