import type { Request, RequestHandler } from 'express';
import { getSharedIdempotencyService, idempotency, type IdempotencyService } from 'express-idempotency';
import { InMemoryDataAdapter } from 'express-idempotency/dist/defaults/inMemoryDataAdapter.js';
import { openExpress } from '../express.js';
import { peerTarget, type PeerTarget } from '../peer.js';


const NO_KEY = 'has no option to refuse a request without a key';

/** Not awaited, as the README has it; when its records are down, that is all that happens. */
const report = (service: IdempotencyService, request: Request): void => {
  service.reportError(request).catch(() => {});
};

export const expressIdempotency: PeerTarget = peerTarget<InMemoryDataAdapter>({
  configured: 'idempotency() on Express, isHit() before the route, reportError() in the error handler; its in-memory data adapter',
  traits: {
    name: 'express-idempotency',
    words: { reused: [417], unavailable: [500, 503], replayMarker: null },
    cannot: {
      time: 'its data adapter knows neither leases nor expiry',
      tenants: 'has no option for whose key it is',
      endpoints: 'has no option for where a key counts',
      announce: 'handlers cannot say when an effect begins',
      cors: 'leaves CORS to the application',
    },
    skip: ['1a', '14a', '57a'].map(fact => ({ case: fact, reason: NO_KEY })),
  },
  createRecords: () => new InMemoryDataAdapter(),
  open(records, scenarios) {
    const middleware = idempotency({ dataAdapter: records });
    const service = getSharedIdempotencyService();
    const route = (listener: RequestHandler): RequestHandler => (request, response, next) => (service.isHit(request) ? undefined : listener(request, response, next));
    return openExpress(scenarios, {
      middleware: (request, response, next) => void middleware(request, response, next).catch(next),
      route,
      onError(error, request, _response, next) {
        const isOwn = service.isHit(request) || request.get('idempotency-key') === undefined;
        if (!isOwn) report(service, request);
        next(error);
      },
    });
  },
});
