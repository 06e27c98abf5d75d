import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { files } from '../../../src/adapters/files/index.ts';
import { mediatedHttp } from '../../../src/adapters/http/index.ts';
import { type PostgresOptions, postgres } from '../../../src/adapters/postgres/index.ts';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
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
  readonly work: StateWork | DatabaseWork | BackendWork;
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

/** One change on a backend that the harness has laid down. */
export type BackendWork =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'files'; readonly root: string }
  | { readonly kind: 'payment'; readonly place: Parameters<typeof paymentOptions>[0] };

export const INVOICE_FILE = 'invoice-4711';

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
  if (work.kind !== 'state') {
    const action = ACTIONS[(work as BackendWork).kind];
    return { config: backendConfig(work as BackendWork, folder, publicKey), license, action };
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

const ACTIONS: { readonly [kind in BackendWork['kind']]: unknown } = {
  sqlite: { sql: "update invoice set status = 'paid' where id = 4711" },
  files: { operations: [{ write: { path: INVOICE_FILE, text: 'paid\n' } }] },
  payment: {},
};

function factoryOf(work: BackendWork): AdapterFactory {
  if (work.kind === 'sqlite')
    return sqlite({ file: work.file, relations: ['invoice'] }) as AdapterFactory;
  if (work.kind === 'files') return files({ root: work.root, adopt: true }) as AdapterFactory;
  return mediatedHttp(paymentOptions(work.place)) as AdapterFactory;
}

/** One of these backends, with ledger and keys in this folder. */
export function backendConfig(work: BackendWork, folder: string, publicKey: string): RuntimeConfig {
  return {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: publicKey, may: ['backend'] } },
    adapters: { backend: factoryOf(work) },
  };
}
