/** In the config of a route that is protected, by this copy of the package or another one. */
const PROTECTED = Symbol.for('samekey.protected');

/** A route, as much of it as tells whether it is protected. */
interface GuardedRequest {
  readonly routeOptions?: {
    readonly method?: string | readonly string[] | undefined;
    readonly url?: string | undefined;
    readonly config?: { readonly idempotency?: unknown; readonly [PROTECTED]?: true };
  };
}

/** An instance of Fastify. */
interface Guarded {
  addHook(name: never, hook: never): unknown;
}

/** The config of a route, with a mark that the guard knows. */
export const markedConfig = (config: object | undefined): object => ({ ...config, [PROTECTED]: true });

const tooEarly = ({ method, url }: NonNullable<GuardedRequest['routeOptions']>): Error =>
  new Error(
    `The route ${[method].flat().join(', ')} ${url ?? ''} has config.idempotency, but was added before the plugin idempotency was loaded, so nothing protects it, and it is refused. ` +
      'Load the plugin first, and wait for it: await app.register(idempotency, { dedup }).',
  );

const guard = ({ routeOptions }: GuardedRequest, _reply: unknown, done: (error?: Error) => void): void => {
  const { config } = routeOptions ?? {};
  done(routeOptions && config?.idempotency && !config[PROTECTED] ? tooEarly(routeOptions) : undefined);
};

/** Instances that were made from this one. Fastify tells of later ones only; where its own list is called otherwise, there are none. */
const childrenOf = (app: Guarded): readonly Guarded[] => {
  const list = Object.getOwnPropertySymbols(app).find(({ description }) => description === 'fastify.children');
  return list ? (app as unknown as Readonly<Record<symbol, readonly Guarded[]>>)[list] ?? [] : [];
};

/**
 * Refuses the requests of routes that were added too early for the plugin to see them. Fastify shows such a route to
 * nobody until a request comes to it.
 */
export const guardRoutes = (app: Guarded): void => {
  app.addHook('onRequest' as never, guard as never);
  for (const child of childrenOf(app)) guardRoutes(child);
};
