import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PostgresOptions, postgres } from '../../../src/adapters/postgres/index.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { RuntimeConfig } from '../../../src/runtime/runtime.ts';
import { type Execution, heldConfig } from '../public-outcomes/state-conditions.ts';

/** The work that depends on the operation. */
export const CONTINUATION = 'next';
/** Where every release of the dependent work leaves a line. */
export const RELEASES = 'releases.log';

/**
 * What the processes of one case share beside the durable state: the deployment, and what an agent
 * was given.
 */
export interface CaseFile {
  readonly work: StateWork | DatabaseWork;
  readonly license: SignedLicense;
  readonly publicKey: string;
}

/** Calls of a STATE task. */
export interface StateWork {
  readonly kind: 'state';
  readonly execution: Execution;
}

/** Statements on a provisioned PostgreSQL database. */
export interface DatabaseWork {
  readonly kind: 'database';
  readonly options: PostgresOptions;
  readonly statements: readonly string[];
}

export function writeCase(folder: string, { work, license, publicKey }: CaseFile): void {
  const plain =
    work.kind === 'state'
      ? { ...work, execution: { ...work.execution, schema: [...work.execution.schema] } }
      : work;
  writeFileSync(join(folder, 'case.json'), JSON.stringify({ work: plain, license, publicKey }));
}

/** The same deployment in every process, with the license and the action that belongs to it. */
export interface OpenedCase {
  readonly config: RuntimeConfig;
  readonly license: SignedLicense;
  readonly action: unknown;
}

export function readCase(folder: string): OpenedCase {
  const { work, license, publicKey } = JSON.parse(readFileSync(join(folder, 'case.json'), 'utf8'));
  if (work.kind === 'database') {
    const { options, statements } = work as DatabaseWork;
    const action = { statements: statements.map((sql) => ({ sql })) };
    return { config: databaseConfig(options, folder, publicKey), license, action };
  }
  const execution: Execution = { ...work.execution, schema: new Map(work.execution.schema) };
  const action = { calls: execution.calls.map(({ tool, args }) => ({ tool, args })) };
  return { config: heldConfig(execution, folder, publicKey), license, action };
}

/** A provisioned database, with ledger and keys in this folder. */
export function databaseConfig(
  options: PostgresOptions,
  folder: string,
  publicKey: string,
): RuntimeConfig {
  return {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: publicKey, may: ['chinook'] } },
    adapters: { chinook: postgres(options) },
  };
}
