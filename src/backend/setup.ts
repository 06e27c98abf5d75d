import { hash } from 'node:crypto';
import { lstatSync, statSync } from 'node:fs';
import { codeIdentity } from '../crypto/code-identity.ts';
import { type EffectMatchError, errorsOf } from '../errors.ts';
import type { Outlet } from '../protocol/boundary.ts';
import { suggest } from '../protocol/nearest.ts';
import type { Registration, Target } from '../protocol/registration.ts';

/** Makes the error for an adapter that cannot be opened. The message says what to change. */
export type AdapterRefusal = (
  what: string,
  cause?: unknown,
) => EffectMatchError<'ERR_EM_ADAPTER_REFUSED'>;

/** Makes the refusals of one kind of adapter. */
export function refusalsOf(kind: string): AdapterRefusal {
  return errorsOf('ERR_EM_ADAPTER_REFUSED', `${kind}: `);
}

/** Makes the error for a backend that cannot be used now. */
export const unavailable = errorsOf('ERR_EM_ADAPTER_UNAVAILABLE');

/** Reads the option for how the journal and receipts keep values. */
export function readValuesOption(values: unknown, refused: AdapterRefusal): Registration['values'] {
  if (values === undefined) return 'plain';
  if (values === 'plain' || values === 'digest') return values;
  throw refused(`values "${String(values)}" is neither plain nor digest`);
}

/** Reads a time limit in milliseconds. */
export function readTimeoutOption(timeoutMs: unknown, name: string, refused: AdapterRefusal) {
  if (typeof timeoutMs === 'number' && Number.isFinite(timeoutMs) && timeoutMs >= 0)
    return timeoutMs;
  throw refused(`${name} must be a number from 0 on`);
}

/** Rejects options that register nothing. */
export function demandRelations(relations: readonly unknown[], refused: AdapterRefusal): void {
  if (relations.length === 0)
    throw refused('no relations are registered; name the tables that operations may write');
}

/** The refusal of a relation that cannot be protected. */
export function unregistrable(
  { name, why }: { readonly name: string; readonly why: string },
  refused: AdapterRefusal,
): EffectMatchError {
  return refused(`relation "${name}" cannot be registered: ${why}`);
}

/** Rejects volatile columns that are part of the key, or that the relation does not have. */
export function checkVolatile(
  { name, columns, key, volatile }: Target,
  refused: AdapterRefusal,
): void {
  for (const column of volatile) {
    if (key.includes(column))
      throw refused(
        `relation "${name}": the key column "${column}" cannot be volatile, because it identifies the row`,
      );
    if (!columns.includes(column))
      throw refused(
        `relation "${name}" has no column "${column}"${suggest(column, columns)} to be volatile`,
      );
  }
}

/**
 * Identifies the code of an adapter: its own folder, the folders it depends on, and the kernel.
 * `own` is the adapter's `import.meta.url`.
 */
export function adapterCode(own: string, ...folders: readonly string[]): string {
  const urls = [new URL('.', own), ...folders.map((folder) => new URL(folder, own)), KERNEL];
  return urls.map(codeIdentity).join('+');
}

const KERNEL = new URL('.', import.meta.url);

/**
 * Device, inode, owner, group and mode: they distinguish one file from another at the same path.
 */
export function identifyFile(path: string, link: 'follow' | 'itself' = 'follow'): string {
  const look = link === 'follow' ? statSync : lstatSync;
  const stats = look(path, { throwIfNoEntry: false });
  if (stats === undefined) return 'missing';
  return [stats.dev, stats.ino, stats.uid, stats.gid, stats.mode].join(':');
}

/** Why a stage or a promotion stops if another file is at the path of the backend. */
export const FILE_REPLACED = {
  reason: 'backend-replaced',
  detail: 'the file at this path is not the one that was opened; open it again',
} as const;

/** Closed outlets, each with what closes it. */
export function deniedOutlets(outlets: Readonly<Record<string, string>>): readonly Outlet[] {
  return Object.entries(outlets).map(([outlet, by]) => ({ outlet, disposition: 'denied', by }));
}

/** An outlet that keeps the boundary open; `by` says what to do about it. */
export function openOutlet(outlet: string, by: string): Outlet {
  return { outlet, disposition: 'unclassified', by };
}

/** A short text for facts: different facts have different fingerprints. */
export function fingerprint(facts: unknown): string {
  return hash('sha256', JSON.stringify(facts), 'hex');
}
