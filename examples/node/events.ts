/** What the payment API tells while it works. */
export type ApiEvent =
  /** A request has come. `request` is its id. */
  | { readonly kind: 'arrived'; readonly request: number; readonly order: string; readonly key: string }
  /** Money has moved. */
  | { readonly kind: 'charged'; readonly order: string; readonly charge: string }
  /** The request is over. */
  | { readonly kind: 'answered'; readonly request: number; readonly order: string; readonly outcome: Outcome };

/** A point in the life of a request. */
export type Moment = ApiEvent['kind'];

/** What one request came to, as the API and its network see it. */
export interface Outcome {
  /** `charged` now; `replayed`: the answer of the first time; `running`: the first one is still at work; `nothing`. */
  readonly did: 'charged' | 'replayed' | 'running' | 'nothing';
  /** Whether the whole answer went out to a shop that was alive. */
  readonly delivered: boolean;
}

/** Everything that is told, as the demo keeps it. `at`: ms since the demo began. */
export type DemoEvent = { readonly at: number } & (ApiEvent | { readonly kind: 'started' | 'killed' | 'finished' });
