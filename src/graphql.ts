import type { Acceptance } from './retry.js';

/**
 * An `accept` for GraphQL over POST, whose refusals come with status 200: `errors` without `data` is a refusal, an error
 * coded UNAUTHENTICATED asks for credentials, everything else is left to the status.
 */
export const graphqlAccept = async (response: Response): Promise<Acceptance | undefined> => {
  if (!response.ok) return undefined;
  const body = (await response.json().catch(() => undefined)) as { data?: unknown; errors?: readonly { extensions?: { code?: unknown } }[] } | undefined;
  if (!body?.errors?.length || (body.data !== undefined && body.data !== null)) return undefined;
  return body.errors.some(({ extensions }) => extensions?.code === 'UNAUTHENTICATED') ? 'auth' : 'rejected';
};
