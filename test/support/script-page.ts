import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** A page on loopback that runs one script of the sources, bundled, and nothing else. */
export const serveScript = async (entry: URL): Promise<{ readonly url: string; readonly close: () => void }> => {
  const bundle = await build({ entryPoints: [fileURLToPath(entry)], bundle: true, format: 'esm', target: 'es2023', write: false });
  const html = `<!doctype html><title>samekey</title><script type="module">${bundle.outputFiles[0]?.text ?? ''}</script>`;
  const server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
};
