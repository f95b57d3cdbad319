/** Where a process can be made to stand still. */
export type Step =
  | 'start' // its store is open, nothing is done
  | 'before-commit' // the call is made, nothing is written
  | 'before-send' // the operation is durable, nothing has left
  | 'before-resend' // the first attempt failed, the second is due
  | 'mid-body' // half of the answer is here
  | 'before-settle'; // the answer is here, the record does not say so

/** What a shop process is told to do. */
export interface Errand {
  /** Of the key store. */
  readonly directory: string;
  /** Of the payment server. */
  readonly origin: string;
  readonly orders: readonly string[];
  readonly stopAt?: Step;
  /** Begins with a resume pass, and asks for results instead of calling again. */
  readonly resume?: boolean;
  /** ms. */
  readonly lease?: number;
}
