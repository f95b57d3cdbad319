import type { Answer, Scenario, Sent } from '../stage.js';
import type { Server } from '../target.js';

/** A scenario and the server that has to go on with it: its requests go there, and its runs do not wait. */
export interface Heir {
  readonly charge: Scenario;
  repeat(sent?: Sent): Promise<Answer>;
}

export const heirOf = (charge: Scenario, to: Server): Heir => ({ charge, repeat: sent => charge.send({ ...sent, to, steps: [{}] }) });
