import { msw } from 'msw/vite';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [msw({ mode: 'worker-only' })],
  // Named here because a dependency that is found late reloads the page, in the middle of a payment.
  optimizeDeps: { include: ['ky', 'uuid', 'idb-keyval', 'msw', 'msw/browser'] },
});
