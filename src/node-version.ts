/**
 * Refuses an older Node when the package is imported, in a sentence. Every entry point imports this
 * first, so nothing else runs before it. The build writes a syntax that such a Node can read, and no
 * module imports a part of Node statically that version 20 does not have: a module that cannot be
 * linked would fail before this is evaluated.
 *
 * @module
 */
import { EffectMatchError } from './errors.ts';

const version = globalThis.process?.versions?.node;
const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
const isOld = major < 24 || (major === 24 && minor < 12);
if (version !== undefined && isOld) {
  throw new EffectMatchError(
    'ERR_EM_NODE_VERSION',
    `EffectMatch needs Node 24.12 or newer, and this is Node ${version}`,
  );
}
