import type { Sealed, Sealer } from '../contract/seal.ts';
import type { Keyring } from '../crypto/keyring.ts';
import { createSigner, verifyReceipt } from '../crypto/receipt.ts';
import { receiptKeys } from '../crypto/receipt-key.ts';
import { messageOf } from '../errors.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import { GuidedError } from './fault.ts';
import { readTextFile } from './files.ts';

const WANTED = 'name a file that `effectmatch journal --checkpoint --export FILE` wrote';

/** Formats an exported checkpoint: the sealed text and its seal, all that a later check needs. */
export function formatCheckpoint({ text, seal }: Sealed<Checkpoint>): string {
  return `${JSON.stringify({ text, seal }, null, 2)}\n`;
}

/** Formats a checkpoint that anyone with the public key can verify. */
export function formatSignedCheckpoint(keyring: Keyring, { record }: Sealed<Checkpoint>): string {
  return `${JSON.stringify(createSigner(keyring).checkpoint(record))}\n`;
}

/** The keys that verify a deployment's own exports. */
interface Keys {
  readonly sealer: Sealer;
  readonly keyring: Keyring;
}

/**
 * Reads an exported checkpoint and checks its seal or signature. Rejects files that this deployment
 * did not write.
 */
export function readCheckpoint({ sealer, keyring }: Keys, file: string): Sealed<Checkpoint> {
  const text = readTextFile(file, WANTED);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    throw unusable(`${file} cannot be read as an exported checkpoint: ${messageOf(cause)}`, cause);
  }
  if (typeof content === 'object' && content !== null && 'payloadType' in content) {
    const verified = verifyReceipt(receiptKeys(keyring), content);
    if (verified.kind !== 'checkpoint') throw unusable(`${file} is a receipt and not a checkpoint`);
    return sealer.seal(checkpointRecord, verified.checkpoint);
  }
  if (!isExported(content)) throw unusable(`${file} is not an exported checkpoint`);
  return sealer.open(checkpointRecord, content.text, content.seal);
}

type Exported = Pick<Sealed<Checkpoint>, 'text' | 'seal'>;

function isExported(content: unknown): content is Exported {
  const { text, seal } = (content ?? {}) as Partial<Exported>;
  return typeof text === 'string' && typeof seal?.key === 'string' && typeof seal.mac === 'string';
}

function unusable(message: string, cause?: unknown): GuidedError<'ERR_EM_USAGE'> {
  return new GuidedError('ERR_EM_USAGE', message, WANTED, cause);
}
