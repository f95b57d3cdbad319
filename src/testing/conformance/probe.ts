import type { Fact } from './fact.js';
import { TENANT_HEADER } from './scenario.js';
import type { Answer, Scenario } from './stage.js';

/** So much of an answer tells what it is about. */
const MAX_SHOWN = 200;

const excerptOf = ({ bytes }: Answer): string => {
  const text = new TextDecoder().decode(bytes).trim();
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
};

/** Why the handler cannot be counted on; undefined where it has run. */
const troubleOf = async (charge: Scenario): Promise<string | undefined> => {
  try {
    return (await charge.runs()) > 0 ? undefined : 'the scenario handler never ran';
  } catch (error) {
    return `the scenario handler cannot be asked whether it ran: ${(error as Error).message}`;
  }
};

/**
 * What every fact takes for granted: a request with a key of its own reaches the handler. Where it does not, each fact
 * would fail for the same reason, most of them after a long wait.
 */
export const probe: Fact = {
  id: '0',
  name: 'a plain POST reaches the scenario handler',
  async run({ scenario, words }) {
    const charge = scenario();
    const answer = await charge.send();
    const trouble = await troubleOf(charge);
    if (trouble === undefined) return;
    throw new Error(
      `It answered ${[answer.status, excerptOf(answer)].join(' ').trim()} to a plain POST of /charges, and ${trouble}. ` +
        `Does the layer find its tenant (scope, principal, account) in the header ${TENANT_HEADER} (TENANT_HEADER), the one thing that says whose request it is? ` +
        `Does it take the key from ${words.header} (words.header)? ` +
        'Is the scenario handler behind it for GET and POST on every path, in the process that answers?',
    );
  },
};
