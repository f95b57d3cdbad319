import { ensure } from '../check.js';

/**
 * What one run of the scenario handler does. The order is fixed: it is counted, it has its effect (unless `effect` is
 * 'last'), it waits where it is told to, and then it throws or answers.
 */
export interface Step {
  /** When the effect happens: before the run waits, after it, or not at all. @default 'first' */
  readonly effect?: 'first' | 'last' | 'none' | undefined;
  /** Says to the server that an effect may happen from now on, where its handlers can say so. @default false */
  readonly announce?: boolean | undefined;
  /** Waits until the scenario is released. @default false */
  readonly hold?: boolean | undefined;
  /** Fails instead of answering: `retryable` says that nothing has happened. */
  readonly throws?: 'error' | 'retryable' | undefined;
  /** @default 201 */
  readonly status?: number | undefined;
  /** In the order of the wire. @default content-type: application/json */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  /** The bytes of the answer in base64; null for none. @default JSON that names the scenario and the run */
  readonly body?: string | null | undefined;
  /** Answers with so many bytes instead. */
  readonly size?: number | undefined;
  /** Answers with the body of the request instead. @default false */
  readonly echo?: boolean | undefined;
  /**
   * Answers piece by piece: `live` sends one server-sent event at once and ends when the scenario is released, `whole`
   * sends two pieces and ends, `broken` breaks off after its first piece.
   */
  readonly stream?: 'live' | 'whole' | 'broken' | undefined;
}

/** What the handler does with the requests of one scenario. It travels in a header, so that bodies and URLs stay free. */
export interface Script {
  /** Whose runs are counted together. */
  readonly id: string;
  /** What the first run does, the second, and so on; the last step is that of all further runs. */
  readonly steps: readonly Step[];
}

/** What happened in a scenario. */
export interface ScenarioReport {
  /** How often the handler was entered. */
  readonly runs: number;
  /** Runs that have come to where they wait, with their effect behind them where it is 'first'. */
  readonly held: number;
  /** Effects that stand: those of a transaction that was rolled back do not. */
  readonly effects: number;
  /** Runs that were told, by their signal, that they have lost their key. */
  readonly aborted: number;
  /** Runs that were not allowed to begin their effect. */
  readonly forbidden: number;
}

/** Carries the {@link Script}: base64 of its JSON. */
export const SCRIPT_HEADER: string = 'scenario-script';

/** Asks the handler itself, in a GET request: 'report' or 'release'. GET, because such requests pass through every dedup layer. */
export const CONTROL_HEADER: string = 'scenario-control';

/** Whose request it is. A server under test takes its tenant (principal, account) from it. */
export const TENANT_HEADER: string = 'scenario-tenant';

/** The status with which the guard before the dedup layer turns the request away. */
export const GUARD_HEADER: string = 'scenario-guard';

/** On answers that are sent piece by piece, so that a listener knows them from those that are there as a whole. */
export const STREAM_HEADER: string = 'scenario-stream';

const spell = (bytes: Uint8Array): string => Array.from(bytes, byte => String.fromCharCode(byte)).join('');

export const toBase64 = (content: string | Uint8Array): string => btoa(spell(typeof content === 'string' ? new TextEncoder().encode(content) : content));

export const fromBase64 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(text), character => character.charCodeAt(0));

export const writeScript = (script: Script): string => toBase64(JSON.stringify(script));

/** @throws Error for a request that did not come from the kit */
export const readScript = (header: string | null | undefined): Script => {
  ensure(header, `a request for the scenario handler carries its script in the header ${SCRIPT_HEADER}; send requests through the conformance kit`);
  return JSON.parse(new TextDecoder().decode(fromBase64(header))) as Script;
};
