import { fileKeyStore } from '../../../src/keystore/file.js';
import { begin, bytes, headOf, refOf, replace } from '../../../src/testing/keystore/subject.js';
import type { TestHead } from '../../../src/testing/keystore/subject.js';

/** A process of its own that uses a directory as the test tells it: node file-process.ts <task> <directory> <name> [count] */
const [task = '', directory = '', name = '', count = '0'] = process.argv.slice(2);
const store = fileKeyStore(directory);

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const forever = (): void => void setInterval(() => {}, 60_000);

/** Resolves when the test writes a line, so that several processes start at one moment. */
const started = (): Promise<void> => new Promise(resolve => process.stdin.once('data', () => resolve()));

const tasks: Record<string, () => Promise<void>> = {
  /** Begins `count` heads of its own, some at a time, and says how many were ok. */
  async begin() {
    const pending = Array.from({ length: Number(count) }, (_, at) => store.commit([begin(headOf(refOf(`name:${name}:${at}`), { note: name, request: bytes(200) }))]));
    const results = (await Promise.all(pending)).flat();
    say(`ok ${results.filter(({ kind }) => kind === 'ok').length}`);
    await store.close();
  },

  /** Claims every open head it can, and says which it won. */
  async claim() {
    await store.latest();
    say('ready');
    await started();
    const heads = (await store.scan({ client: 'default', shelf: 'open', limit: 10_000 })).filter(head => (head as TestHead).note === 'free');
    const results = await Promise.all(heads.map(head => store.commit([replace(head, { note: name })])));
    heads.forEach((head, at) => results[at]?.[0]?.kind === 'ok' && say(`won ${head.id}`));
    await store.close();
    say('done');
    process.stdin.destroy();
  },

  /** Begins heads for ever, saying each one that was acknowledged, until it is killed. */
  async endless() {
    const write = async (lane: number): Promise<void> => {
      for (let at = 0; ; at++) {
        const head = headOf(refOf(`name:${name}:${lane}:${at}`), { request: bytes(100 + at) });
        await store.commit([begin(head)], at % 3 === 2 ? 'relaxed' : 'strict');
        say(`acknowledged ${head.id}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, lane) => write(lane)));
  },

  /** Says its owner and stays. */
  async own() {
    say(`owner ${await store.owner()}`);
    forever();
  },
};

await tasks[task]?.();
