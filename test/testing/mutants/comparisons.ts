import { fingerprint, type FingerprintInput } from '../../../src/server/index.js';
import type { Mutant } from './mutant.js';

/** What is compared is something else than the request. */
const comparing = (change: (input: FingerprintInput) => Partial<FingerprintInput>): Pick<Mutant, 'configure'> => ({
  configure: options => ({ ...options, fingerprint: input => fingerprint({ ...input, ...change(input) }) }),
});

const asText = ({ body }: FingerprintInput, read: (text: string) => string): Partial<FingerprintInput> => {
  try {
    return { body: new TextEncoder().encode(read(new TextDecoder().decode(body))) };
  } catch {
    return {};
  }
};

/** Faults in telling one request from another. */
export const comparisonMutants: readonly Mutant[] = [
  { name: 'compares no bodies', fails: ['18a', '18b', '18c', '18d', '18e', '18g', '18h', '18i', '18j', '24a', '24b', '25a', '27b', '35g', '45b', '45c', '46b', '57a', '57b'], ...comparing(() => ({ body: new Uint8Array() })) },
  { name: 'compares the bytes of bodies', fails: ['18g', '18h', '18i', '22a', '22b', '22c', '23a'], ...comparing(({ contentType }) => ({ contentType: `x-raw-${contentType?.split(';')[0]}` })) },
  { name: 'compares bodies after it has read them as text', fails: ['24a', '24b'], ...comparing(input => asText(input, text => text)) },
  { name: 'compares JSON after JSON.parse', fails: ['18c', '18d'], ...comparing(input => asText(input, text => JSON.stringify(JSON.parse(text)))) },
  {
    name: 'compares JSON without members that are null',
    fails: ['18c', '18d', '27b'],
    ...comparing(input => asText(input, text => JSON.stringify(JSON.parse(text, (_name, value: unknown) => value ?? undefined)))),
  },
  { name: 'compares JSON without the order of arrays', fails: ['18b', '24a', '24b'], ...comparing(input => asText(input, text => text.replace(/^\[(.*)\]$/, (_all, items: string) => `[${items.split(',').sort().join(',')}]`))) },
  { name: 'compares composed and decomposed characters as one', fails: ['18e', '24a', '24b'], ...comparing(input => asText(input, text => text.normalize())) },
  { name: 'compares no media types', fails: ['18f'], ...comparing(({ contentType }) => ({ contentType: contentType?.startsWith('text/plain') ? 'application/json' : contentType })) },
  { name: 'compares charsets', fails: ['22d'], ...comparing(({ contentType = '', query }) => ({ query: `${query}&charset=${/charset=.*/.exec(contentType)?.[0] ?? ''}` })) },
  { name: 'compares no queries', fails: ['20a', '20b', '20d'], ...comparing(() => ({ query: '' })) },
  { name: 'compares queries as they are written', fails: ['22e'], ...comparing(({ query }) => ({ query: encodeURIComponent(query) })) },
  { name: 'compares queries after it has sorted all of their values', fails: ['20d'], ...comparing(({ query }) => ({ query: query.split('&').sort().join('&') })) },
  { name: 'compares path and query joined', fails: ['20c', '22e'], ...comparing(({ target, query }) => ({ target: `${target}:${query}`, query: '' })) },
  { name: 'compares no paths', fails: ['19a', '50d'], ...comparing(() => ({ target: '/' })) },
  { name: 'compares no methods', fails: ['21a'], ...comparing(() => ({ method: 'POST' })) },
];
