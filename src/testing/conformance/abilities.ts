import type { Fact } from './fact.js';
import type { Stage } from './stage.js';
import type { Ability, ConformanceTarget, Server, Subject } from './target.js';

/** What the kit does to the records of a case. */
const ON_SUBJECT: { readonly [Name in Ability]?: keyof Subject } = { time: 'advance', purge: 'purge', bulk: 'fill', resolve: 'resolve' };

/** What the kit does to one server process. */
const ON_SERVER: { readonly [Name in Ability]?: keyof Server } = {
  'crash': 'crash', 'cut off': 'cutOff', 'shutdown': 'shutdown', 'header lines': 'sendLines', 'lose answer': 'loseAnswer', 'mock': 'executions',
  'store down': 'fail', 'store claim-lost': 'fail', 'store settle-refused': 'fail', 'store settle-lost': 'fail', 'store settle-down': 'fail',
};

const takesMore = (ability: Ability): boolean => ability in ON_SUBJECT || ability in ON_SERVER || ability === 'second server' || ability.startsWith('config ');

const missing = (ability: string, method: string): Error =>
  new Error(`The target names the ability '${ability}', but what it starts has no ${method}(). Add that, or do not name the ability.`);

/** A method that a target has, because it names the ability. @throws Error that says what to add */
export const promised = <T>(method: T | undefined, ability: Ability, name: string): T => {
  if (method === undefined) throw missing(ability, name);
  return method;
};

/** @throws Error when a fact could pass only because nothing was done to the server */
export const assertPromises = ({ needs = [] }: Fact, { subject, server }: Stage): void => {
  for (const ability of needs) {
    const [onSubject, onServer] = [ON_SUBJECT[ability], ON_SERVER[ability]];
    if (onSubject) promised(subject[onSubject], ability, onSubject);
    if (onServer) promised(server[onServer], ability, onServer);
  }
};

/** A running server is known by its answers; nothing can be done to it. @throws Error that says what takes `start` */
export const assertReach = (target: ConformanceTarget): void => {
  if ('start' in target) return;
  const ability = target.abilities?.find(takesMore);
  if (ability === undefined) return;
  const [given, method] = ['url' in target ? 'url' : 'fetch', ON_SUBJECT[ability] ?? ON_SERVER[ability] ?? 'open'];
  throw new Error(`${target.name} names the ability '${ability}', which takes more than requests and answers: the kit would call ${method}(). Give \`start\` instead of \`${given}\`, with ${method}() in what it returns, or do not name the ability.`);
};
