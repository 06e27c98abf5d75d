import { randomBytes } from 'node:crypto';
import { Keyring } from '../src/crypto/keyring.ts';

/** A fresh keyring with one key, in memory. */
export function testKeyring(): Keyring {
  return new Keyring([{ id: 'test', secret: randomBytes(32) }]);
}
