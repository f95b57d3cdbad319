/** What became of one fact. */
export interface ConformanceResult {
  /** Of the case, 1 to 60. */
  readonly number: number;
  /** Number and letter of the fact, and the fact: '14b: a key of 256 characters is refused'. */
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was found instead, or why it was not tried. */
  readonly reason?: string;
}
