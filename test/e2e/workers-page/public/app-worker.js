// The service worker that an application has for itself: everything goes through it, and says so.
addEventListener('install', () => self.skipWaiting());
addEventListener('activate', event => event.waitUntil(self.clients.claim()));
addEventListener('fetch', event => {
  const headers = new Headers(event.request.headers);
  headers.set('x-through', 'app-worker');
  if (new URL(event.request.url).pathname === '/charges') event.respondWith(fetch(new Request(event.request, { headers })));
});
