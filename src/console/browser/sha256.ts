/**
 * Replaces the part of `node:crypto` that the protocol uses. The protocol hashes synchronously, but
 * WebCrypto's digest is asynchronous.
 *
 * @module
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

export function hash(_algorithm: 'sha256', text: string, _encoding: 'hex'): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

export function createHash(_algorithm: 'sha256') {
  const state = sha256.create();
  const hasher = {
    update(text: string) {
      state.update(utf8ToBytes(text));
      return hasher;
    },
    digest: (_encoding: 'hex') => bytesToHex(state.digest()),
  };
  return hasher;
}
