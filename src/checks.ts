/** What a value has to be. */
export interface Kind {
  /** Says what was expected, and where to get it where that is not plain: a clause with its verb. */
  readonly expected: string;
  fits(value: unknown): boolean;
  /** What to do with a value that is not of the kind, as a sentence. */
  advice?(value: unknown): string | undefined;
}

/** One kind per option. */
export type Kinds<Options extends object> = { readonly [Name in keyof Options]-?: Kind };

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isNumber = (value: unknown, least: number): boolean => typeof value === 'number' && value >= least;

/** Whether a value has these methods. */
export const hasMethods = (value: unknown, names: readonly string[]): boolean =>
  (isObject(value) || typeof value === 'function') && names.every(name => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function');

const SHOWN = 40;

/** Never the whole of a text: it may be a URL with a password in it. */
const textShown = (text: string): string => (text.includes('://') ? `the text "${text.slice(0, text.indexOf('://'))}://…"` : JSON.stringify(text.slice(0, SHOWN)));

/** Says what came, in a sentence. */
export const shown = (value: unknown): string => {
  if (typeof value === 'string') return textShown(value);
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  if (!isObject(value)) return String(value);
  const { name } = (value.constructor ?? Object) as { readonly name?: string };
  return name && name !== 'Object' ? `an object of the class ${name}` : 'an object';
};

export const aFunction: Kind = { expected: 'a function was expected', fits: value => typeof value === 'function' };
export const aFlag: Kind = { expected: 'true or false was expected', fits: value => typeof value === 'boolean' };
export const anObject: Kind = { expected: 'an object was expected', fits: isObject };
export const aText: Kind = { expected: 'a text was expected', fits: value => typeof value === 'string' };
export const aName: Kind = { expected: 'a text that is not empty was expected', fits: value => typeof value === 'string' && value !== '' };

/** A number with its unit. NaN is none; Infinity is. */
export const atLeast = (least: number, unit: string): Kind => ({ expected: `${unit} were expected, ${least} or more`, fits: value => isNumber(value, least) });

export const oneOf = (...words: readonly string[]): Kind => ({
  expected: `it can be ${words.map(word => `'${word}'`).join(', ')}`,
  fits: value => typeof value === 'string' && words.includes(value),
});

/** What has these methods. */
export const withMethods = (expected: string, ...names: readonly string[]): Kind => ({ expected, fits: value => hasMethods(value, names) });

/** @throws TypeError for a value that is not of the kind */
export const checkKind = (name: string, value: unknown, kind: Kind): void => {
  if (kind.fits(value)) return;
  const advice = kind.advice?.(value);
  throw new TypeError(`${name} is ${shown(value)}; ${kind.expected}.${advice === undefined ? '' : ` ${advice}`}`);
};

export interface Caller {
  /** What the options are for, as its user wrote it: `createDedup`. */
  readonly of: string;
  /** Options that cannot be left out. @default none */
  readonly required?: readonly string[];
}

/**
 * Checks options before they do harm: a misspelt one would be left out in silence, and its default taken.
 *
 * @throws TypeError for an option that does not exist, is missing, or is not of its kind
 */
export const checkOptions = <Options extends object>(given: unknown, kinds: Kinds<Options>, { of, required = [] }: Caller): void => {
  if (!isObject(given)) throw new TypeError(`The options of ${of} are ${shown(given)}; an object was expected${required.length > 0 ? `, with ${required.join(' and ')} in it` : ''}.`);
  const known = Object.keys(kinds);
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TypeError(`${of} has no option "${name}". Look for a misspelt word: it has ${known.join(', ')}.`);
  }
  for (const [name, kind] of Object.entries(kinds) as [string, Kind][]) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined || required.includes(name)) checkKind(`${of}: ${name}`, value, kind);
  }
};
