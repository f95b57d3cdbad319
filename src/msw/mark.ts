import { isPassthroughResponse } from 'msw';
import { withHeaders } from '../server/answer.js';

/** Says whose answer it is, so that a test can refuse answers of a real server. Its value is the endpoint's name. */
export const MOCK_HEADER = 'Samekey-Mock';

/** Stamps an answer of the mock, also one that a fault made up. What goes on to the network is nobody's answer yet. */
export const mark = (response: Response, name: string): Response =>
  isPassthroughResponse(response) ? response : withHeaders(response, [[MOCK_HEADER, name]]);

export const isMarked = (response: Response): boolean => response.headers.has(MOCK_HEADER);
