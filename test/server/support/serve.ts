import type { Serve } from './targets.js';

/** No socket: the handler is called as a function. */
export const inProcess: Serve = ({ handle }) => ({
  fetch: handle,
  async sendLines(request, lines) {
    const headers = new Headers(request.headers);
    // As servers do that know their trade: what comes twice is two values of one list.
    for (const [name, value] of lines) headers.append(name, value);
    return (await handle(new Request(request, { headers }))).status;
  },
});
