import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PostgresOptions } from '../../../src/adapters/postgres/index.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  type Task,
  type TaskOptions,
  type Terminal,
} from '../../../src/index.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { Proposal } from '../../../src/protocol/license.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { freshDatabase, type Version } from '../../postgres/server.ts';

type Runtime = Awaited<ReturnType<typeof createRuntime>>;

/** A runtime on a database of its own, with an approver who signs whatever is put before them. */
export interface Office extends AsyncDisposable, Pick<ProtectedDatabase, 'db'> {
  readonly runtime: Runtime;
  /** Approves these effects and executes the action. */
  run(effects: readonly ApprovedEffect[], action: unknown): Promise<Terminal>;
  /** Approves these effects and opens a task for them. */
  open(effects: readonly ApprovedEffect[], options?: TaskOptions): Promise<Task>;
  /** Rehearses the action, approves what was seen and executes it. */
  planned(action: unknown): Promise<{ readonly proposal: Proposal; readonly terminal: Terminal }>;
}

/** In the schema, `{app}` is the quoted name of a role that may own functions. */
export async function openOffice(
  schema: string,
  settings: Omit<PostgresOptions, 'control' | 'execution'>,
  server: { readonly version?: Version } = {},
): Promise<Office> {
  const db = await freshDatabase(server);
  const app = `"${db.role('app')}"`;
  const place = await protectedDatabase(
    `create role ${app}; ${schema.replaceAll('{app}', app)}`,
    settings,
    { db },
  );
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-office-'));
  const { issuer, publicKey, privateKey } = generateApprover('ap-team');
  const runtime = await createRuntime({
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { [issuer]: { key: publicKey, may: ['books'], sources: ['manifest', 'rehearsed'] } },
    adapters: { books: place.factory() },
  });
  const terms = { adapter: 'books', task: 'office', planRevision: 1 };
  const sign = (proposal: Proposal) =>
    approver({ issuer, privateKey }).sign(proposal, { expiresIn: '10m' });
  return {
    ...{ runtime, db: place.db },
    run: async (effects, action) =>
      await runtime.execute(await sign(await runtime.prepare({ ...terms, effects })), action),
    async open(effects, options) {
      const license = sign(await runtime.prepare({ ...terms, effects }));
      const task = await runtime.open(license, options);
      assert.equal(task.kind, 'open', JSON.stringify(task));
      return task as Task;
    },
    async planned(action) {
      const proposal = await runtime.plan({ ...terms, action });
      return { proposal, terminal: await runtime.execute(await sign(proposal), action) };
    },
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await place.db.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** How an attempt ended, with why where it was refused. */
export function endingOf(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return terminal.kind;
  return `${terminal.kind} ${terminal.reason}: ${terminal.outcome?.kind ?? ''}`;
}

export function assertCommitted(terminal: Terminal): void {
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal, null, 1));
}
