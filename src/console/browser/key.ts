import { digestText } from '../../crypto/digest.ts';
import type { Digest } from '../../protocol/record.ts';

/** A key that stays in this browser: its private half cannot be exported. */
export interface BrowserKey {
  readonly pair: CryptoKeyPair;
  /** The public key in the form that configurations use. */
  readonly text: string;
  /** The key's id in licenses. */
  readonly id: Digest;
}

const NAME = 'approver';

/** Returns this browser's key, if it has one. */
export async function findKey(): Promise<BrowserKey | undefined> {
  const pair = await inStore<CryptoKeyPair | undefined>('readonly', (store) => store.get(NAME));
  return pair === undefined ? undefined : await describeKey(pair);
}

/** Creates a key and stores it in this browser. */
export async function makeKey(): Promise<BrowserKey> {
  const pair = await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']);
  await inStore('readwrite', (store) => store.add(pair, NAME));
  return await describeKey(pair as CryptoKeyPair);
}

export async function sign({ pair }: BrowserKey, text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  return base64url(await crypto.subtle.sign('Ed25519', pair.privateKey, bytes));
}

async function describeKey(pair: CryptoKeyPair): Promise<BrowserKey> {
  const text = `ed25519:${base64url(await crypto.subtle.exportKey('raw', pair.publicKey))}`;
  return { pair, text, id: digestText('effectmatch/approver-key/v1', text) };
}

/** The bytes of a text in base64url. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

export function base64url(bytes: ArrayBuffer): string {
  const binary = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

async function inStore<T>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest,
): Promise<T> {
  const opening = indexedDB.open('effectmatch', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
  const database = await settled<IDBDatabase>(opening);
  try {
    return await settled<T>(work(database.transaction('keys', mode).objectStore('keys')));
  } finally {
    database.close();
  }
}

function settled<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
