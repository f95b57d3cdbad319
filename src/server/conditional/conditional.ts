import { etagOf, matchesStrongly, matchesWeakly, readTags, type TagList, type Version } from './etag.js';
import { problemOf } from './problems.js';

export interface ConditionalOptions {
  /** The version of the resource as it is now; undefined when it does not exist. */
  readonly current: Version | undefined;
  /** Refuses a write that says nothing about the version it is meant for, with 428. @default false */
  readonly required?: boolean | undefined;
}

interface Preconditions {
  readonly match: TagList | undefined;
  readonly noneMatch: TagList | undefined;
}

/** Methods that only read; a precondition decides what they send, not what they do. */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Undefined: a header is there and cannot be read. */
const preconditionsOf = ({ headers }: Request): Preconditions | undefined => {
  const [ifMatch, ifNoneMatch] = [headers.get('if-match'), headers.get('if-none-match')];
  const match = ifMatch === null ? undefined : readTags(ifMatch);
  const noneMatch = ifNoneMatch === null ? undefined : readTags(ifNoneMatch);
  const isReadable = (match !== undefined || ifMatch === null) && (noneMatch !== undefined || ifNoneMatch === null);
  return isReadable ? { match, noneMatch } : undefined;
};

/**
 * Decides by `If-Match` and `If-None-Match` (RFC 9110) whether a request may go on. Undefined: it may. Otherwise the
 * answer to give: 304 for a read of what the client has, 412 when the resource is not as the client says, 428 when it
 * says nothing and has to, 400 when what it says cannot be read, because a write without its precondition is another write.
 *
 * Hold a lock on the resource between finding out `current` and writing, or let the write itself name the version
 * (`WHERE version = …`): between the two somebody else may write.
 *
 * @example
 * const refusal = conditional(request, { current: order?.version, required: true });
 * if (refusal) return refusal;
 */
export const conditional = (request: Request, { current, required = false }: ConditionalOptions): Response | undefined => {
  const isRead = READS.has(request.method);
  const preconditions = preconditionsOf(request);
  if (!preconditions) return isRead ? undefined : problemOf('precondition_invalid', current);
  const { match, noneMatch } = preconditions;
  if (!isRead && required && !match && !noneMatch) return problemOf('precondition_required', current);
  if (match && !matchesStrongly(match, current)) return problemOf('precondition_failed', current);
  if (!noneMatch || current === undefined || !matchesWeakly(noneMatch, current)) return undefined;
  return isRead ? new Response(null, { status: 304, headers: { ETag: etagOf(current) } }) : problemOf('precondition_failed', current);
};
