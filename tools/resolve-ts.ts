import { registerHooks } from 'node:module';

/**
 * Lets Node run this project's TypeScript as it is: sources name their neighbours by the `.js` name that the build gives
 * them, and Node strips types but does not map names.
 *
 * Usage: node --import ./tools/resolve-ts.ts some-script.ts
 */
registerHooks({
  resolve(specifier, context, nextResolve) {
    try {
      return nextResolve(specifier, context);
    } catch (error) {
      const isRelativeJs = specifier.startsWith('.') && specifier.endsWith('.js');
      if (!isRelativeJs || (error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
      return nextResolve(`${specifier.slice(0, -'.js'.length)}.ts`, context);
    }
  },
});
