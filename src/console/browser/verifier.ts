/**
 * Verifies receipts in a saved page, without a server or network. The modules that wrote the
 * records also check them; WebCrypto verifies the signature.
 *
 * @module
 */
import { digestText } from '../../crypto/digest.ts';
import { readFields } from '../../crypto/handover.ts';
import { readStatement, type Verified } from '../../crypto/statement.ts';
import { STATEMENT_PAYLOAD_TYPE } from '../../protocol/receipt.ts';
import { renderTerminal } from '../../protocol/render-terminal.ts';
import { renderShadow } from '../../protocol/shadow.ts';
import { button, field, paragraph, preformatted } from './elements.ts';
import { bytesOf } from './key.ts';

/** A public key that verifies receipts. */
interface KnownKey {
  readonly id: string;
  readonly key: CryptoKey;
}

const results = field('results');
field('actions').append(button('Verify', verifyAll, 'primary', 'Not verified'));

async function verifyAll(): Promise<void> {
  const keys = await readKeys(field<HTMLTextAreaElement>('keys').value);
  const files = [...(field<HTMLInputElement>('files').files ?? [])];
  const pasted = field<HTMLTextAreaElement>('receipt').value.trim();
  const texts = await Promise.all(files.map(async (file) => [file.name, await file.text()]));
  const all = [...texts, ...(pasted === '' ? [] : [['pasted', pasted]])];
  if (all.length === 0) throw new Error('choose a receipt, or paste one');
  results.replaceChildren();
  for (const [name = '', text = ''] of all)
    for (const line of text.split('\n').filter((part) => part.trim() !== ''))
      results.append(await verifyOne(keys, name, line));
}

async function verifyOne(keys: readonly KnownKey[], name: string, text: string) {
  const box = document.createElement('section');
  try {
    const verified = await openSigned(keys, text);
    box.className = 'card good';
    box.append(paragraph(`${name}: verified, signed by ${verified.keyid.slice(0, 16)}`, 'state'));
    box.append(preformatted(describe(verified)));
  } catch (error) {
    box.className = 'card bad';
    const why = error instanceof Error ? error.message : String(error);
    box.append(paragraph(`${name}: not verified: ${why}`, 'state'));
  }
  return box;
}

function describe(verified: Verified): string {
  switch (verified.kind) {
    case 'receipt': {
      const { terminal } = verified.receipt;
      const about = `${terminal.occurrence}, ${terminal.adapter}, ${terminal.recordedAt}`;
      return `${about}\n${renderTerminal(terminal)}`;
    }
    case 'checkpoint':
      return `checkpoint through row ${verified.checkpoint.throughSeq}`;
    case 'completion': {
      const { continuation, occurrence } = verified.completion;
      return `${occurrence}: the work "${continuation}" was completed`;
    }
    case 'shadow':
      return `not a verdict: ${renderShadow(verified.shadow)}`;
  }
}

async function readKeys(text: string): Promise<readonly KnownKey[]> {
  const lines = text.split('\n').map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (keys.length === 0) throw new Error('enter the public keys that you trust');
  return await Promise.all(keys.map(readKey));
}

async function readKey(text: string): Promise<KnownKey> {
  const [, point] = /^ed25519:([\w-]{43})$/.exec(text) ?? [];
  if (point === undefined) throw new Error('a public key is "ed25519:" and 32 bytes in base64url');
  const key = await crypto.subtle.importKey('raw', bytesOf(point), 'Ed25519', false, ['verify']);
  return { id: digestText('effectmatch/receipt-key/v1', text), key };
}

/** Returns an envelope's content if one of the keys signed it (DSSE v1). */
async function openSigned(keys: readonly KnownKey[], text: string): Promise<Verified> {
  const fields = readFields('envelope', text, ['payloadType', 'payload', 'signatures']);
  if (fields.payloadType !== STATEMENT_PAYLOAD_TYPE) throw new Error('it is not a receipt');
  const payload = bytesOf(String(fields.payload));
  const signatures = (Array.isArray(fields.signatures) ? fields.signatures : []).slice(0, 16);
  for (const entry of signatures) {
    const { keyid, sig } = readFields('signature of an envelope', entry, ['keyid', 'sig']);
    const known = keys.find(({ id }) => id === keyid);
    if (known === undefined) continue;
    const signed = encodeSigned(payload);
    const isValid = await crypto.subtle.verify('Ed25519', known.key, bytesOf(String(sig)), signed);
    if (!isValid)
      throw new Error('a signature does not match: the receipt or the signature was altered');
    const content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload);
    return readStatement(content, known.id);
  }
  throw new Error('it is not signed with a key that you trust');
}

function encodeSigned(payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const type = STATEMENT_PAYLOAD_TYPE;
  const head = new TextEncoder().encode(`DSSEv1 ${type.length} ${type} ${payload.length} `);
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}
