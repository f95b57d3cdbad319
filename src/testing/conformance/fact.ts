import type { Ability, ServerConfig, Traits } from './target.js';
import type { Stage } from './stage.js';

/** One fact of a conformance case, as seen from outside the server. */
export interface Fact {
  /** Number of the case, and which of its facts: '14b'. */
  readonly id: string;
  /** A fact in plain words; the numbers of field cases stand before it. */
  readonly name: string;
  /** What it takes beside requests and answers. @default nothing */
  readonly needs?: readonly Ability[];
  /** What a target must not be able to do, because the fact is another one there. @default nothing */
  readonly unless?: readonly Ability[];
  /** How the server is opened. @default as it is */
  readonly config?: ServerConfig;
  /** How it is opened where it can be opened so; otherwise it is taken as it is. */
  readonly prefers?: ServerConfig;
  /** About the words of samekey's own server, not about behaviour: another server may say the same thing otherwise. @default false */
  readonly wording?: boolean;
  /** What to look at where it was not settled in time. @default nothing in particular */
  readonly stuck?: string;
  run(stage: Stage): Promise<void>;
}

/** '14b' → 14. */
export const numberOf = ({ id }: Pick<Fact, 'id'>): number => Number.parseInt(id, 10);

/** How a test runner shows it. */
export const titleOf = ({ id, name }: Fact): string => (/^C\d/.test(name) ? `${id}, ${name}` : `${id}: ${name}`);

const configured = (config: ServerConfig): Ability[] => (Object.keys(config) as (keyof ServerConfig)[]).map(name => `config ${name}` as const);

/** What a target can do: what it says, and what follows from its words. */
const can = ({ abilities = [], words }: Traits, ability: Ability): boolean => {
  if (ability === 'replay marker') return words?.replayMarker !== null;
  if (ability === 'refuses duplicates') return words?.duplicates !== 'wait';
  return abilities.includes(ability);
};

/** How the server is opened for a fact. */
export const configFor = ({ config = {}, prefers = {} }: Fact, traits: Traits): ServerConfig => {
  const known = Object.entries(prefers).filter(([name]) => can(traits, `config ${name as keyof ServerConfig}`));
  return { ...config, ...(Object.fromEntries(known) as ServerConfig) };
};

/** Why a fact is not tried on a target; undefined where it is. */
export const skipReason = (fact: Fact, traits: Traits): string | undefined => {
  const { skip = [], cannot = {}, words } = traits;
  const skipped = skip.find(one => one.case === fact.id);
  if (skipped) return skipped.reason;
  if (fact.wording && words) return 'has words of its own';
  const missing = [...(fact.needs ?? []), ...configured(fact.config ?? {})].find(ability => !can(traits, ability));
  if (missing) return cannot[missing] ?? `needs '${missing}'`;
  const excluded = fact.unless?.find(ability => can(traits, ability));
  return excluded && `holds for servers without '${excluded}'`;
};
