import type { BodyField } from './profile.js';

type JsonObject = Readonly<Record<string, unknown>>;

const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** Where a string of JSON that begins at `from` ends. A loop, because an expression would exhaust the stack of the matcher on long ones. */
const endOfString = (text: string, from: number): number => {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
};

/** The strings, and what divides them, of text that is known to be JSON. */
function* tokensOf(text: string): Generator<readonly [token: string, index: number]> {
  const divider = /["{}[\],:]/g;
  for (let found = divider.exec(text); found; found = divider.exec(text)) {
    const { 0: token, index } = found;
    if (token === '"') divider.lastIndex = endOfString(text, index);
    yield [text.slice(index, divider.lastIndex), index];
  }
}

const parse = (body: ArrayBuffer | Uint8Array | null): { readonly text: string; readonly json: JsonObject } | undefined => {
  try {
    const text = decoder.decode(body ?? new Uint8Array());
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? { text, json: json as JsonObject } : undefined;
  } catch {
    return undefined;
  }
};

/** From where to where the values of the outermost members of a name reach. */
const spansOf = (text: string, name: string): [from: number, to: number][] => {
  const spans: [number, number][] = [];
  let depth = 0;
  let last = '';
  let from: number | undefined;
  for (const [token, index] of tokensOf(text)) {
    if (depth === 1 && token === ':' && JSON.parse(last) === name) from = index + 1;
    if (depth === 1 && from !== undefined && (token === ',' || token === '}')) {
      spans.push([from, index]);
      from = undefined;
    }
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    last = token;
  }
  return spans;
};

const insert = (text: string, name: string, key: string): string => {
  const at = text.indexOf('{') + 1;
  const rest = text.slice(at);
  return `${text.slice(0, at)}${JSON.stringify(name)}:${JSON.stringify(key)}${/^\s*\}/.test(rest) ? '' : ','}${rest}`;
};

/** Every one of them, so that two members of a name cannot say two things. */
const replace = (text: string, spans: readonly [number, number][], key: string): string =>
  spans.reduceRight((done, [from, to]) => `${done.slice(0, from)}${JSON.stringify(key)}${done.slice(to)}`, text);

/**
 * Carries the key as a member of the JSON body, as Square and Google's APIs do.
 *
 * @example const aip: Profile = { ...generic, header: undefined, bodyField: bodyField('request_id') }
 */
export const bodyField = (name: string): BodyField => ({
  name,
  read(body) {
    const value = parse(body)?.json[name] ?? undefined;
    if (value === undefined || typeof value === 'string') return value;
    throw new TypeError(`The member "${name}" carries the key, and holds ${JSON.stringify(value).slice(0, 40)}. Give it a string, or leave it out.`);
  },
  write(body, key) {
    const parsed = parse(body);
    if (!parsed) {
      throw new TypeError(`The key travels as the member "${name}" of a JSON object, and this body (${body?.byteLength ?? 0} bytes) is not one. Nothing was sent. Pass \`json: { … }\`, or \`operation: false\` for a call without a key.`);
    }
    const spans = spansOf(parsed.text, name);
    return encoder.encode(spans.length === 0 ? insert(parsed.text, name, key) : replace(parsed.text, spans, key)).buffer;
  },
});
