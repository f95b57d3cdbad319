/** Registers the application's own service worker; resolves when it controls this page, if the page is in its scope. */
export const startAppWorker = async (scope: string): Promise<void> => {
  const controlled = new Promise<unknown>(resolve => navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }));
  const registration = await navigator.serviceWorker.register('/app-worker.js', { scope });
  const isMine = location.pathname.startsWith(scope) && !navigator.serviceWorker.controller?.scriptURL.endsWith('/app-worker.js');
  if (isMine) await controlled;
  await new Promise<void>(resolve => {
    const worker = registration.active ?? registration.waiting ?? registration.installing;
    const look = (): void => (worker?.state === 'activated' ? resolve() : undefined);
    worker?.addEventListener('statechange', look);
    look();
  });
};

/** Scope and script of every service worker of this origin, as paths. */
export const registeredWorkers = async (): Promise<string[]> => {
  const registrations = await navigator.serviceWorker.getRegistrations();
  const pathOf = (url: string | undefined): string => new URL(url ?? '', location.origin).pathname;
  return registrations.map(({ scope, active }) => `${pathOf(scope)} ${pathOf(active?.scriptURL)}`).sort();
};
