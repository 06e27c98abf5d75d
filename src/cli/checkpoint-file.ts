import { readFileSync } from 'node:fs';
import type { Sealed, Sealer } from '../contract/seal.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import { GuidedError } from './guided-error.ts';

/** An exported checkpoint as a file: the sealed text and its seal, everything a later check needs. */
export function formatCheckpoint({ text, seal }: Sealed<Checkpoint>): string {
  return `${JSON.stringify({ text, seal }, null, 2)}\n`;
}

/** Reads an exported checkpoint and checks its seal: a file that this deployment did not write proves nothing. */
export function readCheckpoint(sealer: Sealer, file: string): Sealed<Checkpoint> {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw unusable(`${file} cannot be read as an exported checkpoint: ${words}`, cause);
  }
  if (!isExported(content)) throw unusable(`${file} is not an exported checkpoint`);
  return sealer.open(checkpointRecord, content.text, content.seal);
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
  const next = 'name a file that `effectmatch journal --checkpoint --export FILE` wrote';
  return new GuidedError('ERR_EM_USAGE', message, next, { cause });
}
