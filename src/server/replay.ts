import { replayOf } from './answer.js';
import type { DedupSettings, KeyOwner } from './options.js';
import type { StoredAnswer } from './record.js';
import { conflictOf } from './refusal.js';
import { reportFailure } from './reports.js';

type Settings = Pick<DedupSettings, 'profile' | 'latest' | 'on'>;

/** What the application says of the resource now; a failure to say it is reported, and the stored answer is good enough. */
const latestOf = async ({ latest, on }: Settings, owner: KeyOwner, stored: Response | undefined): Promise<Response | undefined> => {
  try {
    return await latest?.({ ...owner, stored: stored?.clone() });
  } catch (error) {
    reportFailure(on, error, owner);
    return undefined;
  }
};

/** What a repeat gets in its dialect; undefined where nothing is left to give. */
export const replayFor = async (settings: Settings, owner: KeyOwner, answer: StoredAnswer): Promise<Response | undefined> => {
  const { profile } = settings;
  const stored = answer.omitted === undefined ? replayOf(answer) : undefined;
  if (profile.replays === 'latest') return (await latestOf(settings, owner, stored)) ?? stored;
  return profile.replays === 'conflict' && answer.status < 400 ? conflictOf(profile, answer) : stored;
};
