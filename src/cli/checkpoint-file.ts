import type { Sealed, Sealer } from '../contract/seal.ts';
import type { Keyring } from '../crypto/keyring.ts';
import { createSigner, verifyReceipt } from '../crypto/receipt.ts';
import { receiptKeys } from '../crypto/receipt-key.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import { GuidedError } from './guided-error.ts';
import { readTextFile } from './text-file.ts';

const WANTED = 'name a file that `effectmatch journal --checkpoint --export FILE` wrote';

/**
 * An exported checkpoint as a file: the sealed text and its seal, everything a later check needs.
 */
export function formatCheckpoint({ text, seal }: Sealed<Checkpoint>): string {
  return `${JSON.stringify({ text, seal }, null, 2)}\n`;
}

/** A checkpoint in the form that anybody with the public key can verify. */
export function formatSignedCheckpoint(keyring: Keyring, { record }: Sealed<Checkpoint>): string {
  return `${JSON.stringify(createSigner(keyring).checkpoint(record))}\n`;
}

/**
 * Reads an exported checkpoint and checks its seal or its signature: a file that this deployment
 * did not write proves nothing.
 */
export function readCheckpoint({ sealer, keyring }: Keys, file: string): Sealed<Checkpoint> {
  const text = readTextFile(file, WANTED);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw unusable(`${file} cannot be read as an exported checkpoint: ${words}`, cause);
  }
  if (isEnvelope(content)) return readSigned({ sealer, keyring }, content, file);
  if (!isExported(content)) throw unusable(`${file} is not an exported checkpoint`);
  return sealer.open(checkpointRecord, content.text, content.seal);
}

interface Keys {
  readonly sealer: Sealer;
  readonly keyring: Keyring;
}

function isEnvelope(content: unknown): boolean {
  return typeof content === 'object' && content !== null && 'payloadType' in content;
}

function readSigned(
  { sealer, keyring }: Keys,
  envelope: unknown,
  file: string,
): Sealed<Checkpoint> {
  const verified = verifyReceipt(receiptKeys(keyring), envelope);
  if (verified.kind !== 'checkpoint') throw unusable(`${file} is a receipt and not a checkpoint`);
  return sealer.seal(checkpointRecord, verified.checkpoint);
}

interface Exported {
  readonly text: string;
  readonly seal: { readonly key: string; readonly mac: string };
}

function isExported(content: unknown): content is Exported {
  const { text, seal } = (content ?? {}) as Partial<Exported>;
  return typeof text === 'string' && typeof seal?.key === 'string' && typeof seal.mac === 'string';
}

function unusable(message: string, cause?: unknown): GuidedError<'ERR_EM_USAGE'> {
  return new GuidedError('ERR_EM_USAGE', message, WANTED, { cause });
}
