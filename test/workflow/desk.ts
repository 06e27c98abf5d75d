// A deployment on one SQLite file, for tests of workflows in one process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { type ApproverKey, approver, generateApprover } from '../../src/crypto/approver.ts';
import { insert, row, update } from '../../src/protocol/draft.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import { defineOperation } from '../../src/runtime/operation.ts';
import { createRuntime, type Runtime, type RuntimeConfig } from '../../src/runtime/runtime.ts';
import {
  inProcess,
  openWorkflows,
  type Workflow,
  type Workflows,
  type WorkflowsOptions,
} from '../../src/workflow/index.ts';

const OPERATIONS = {
  /** A new row; with amount 666 a trigger writes another one. */
  post: defineOperation({
    name: 'post',
    adapter: 'books',
    input: z.object({ tag: z.string(), amount: z.number().default(1) }),
    approve: ({ tag, amount }) => ({ effects: [insert('entry', { tag, amount })] }),
    action: ({ tag, amount }) => ({
      sql: 'insert into entry values (?, ?)',
      values: [tag, amount],
    }),
  }),
  /** Changes a row that must be there. */
  double: defineOperation({
    name: 'double',
    adapter: 'books',
    input: z.object({ tag: z.string(), from: z.number() }),
    approve: ({ tag, from }) => ({
      requires: [row('entry', { tag }, { amount: from })],
      effects: [update('entry', { tag }, { amount: [from, 2 * from] })],
    }),
    action: ({ tag, from }) => ({
      sql: 'update entry set amount = ? where tag = ?',
      values: [2 * from, tag],
    }),
  }),
};

export const clerk: ApproverKey = generateApprover('clerk');

/** The configuration of every process. */
export function deskConfig(folder: string, key: string) {
  const relations = ['entry', 'notice'];
  return {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { clerk: { key, may: ['books'], limits: { maxEffects: 10 } } },
    operations: OPERATIONS,
    adapters: { books: sqlite({ file: join(folder, 'books.db'), relations }) },
  } satisfies RuntimeConfig;
}

/** A folder with the business file. */
export class Desk implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-flow-'));
  readonly #books: DatabaseSync;

  constructor() {
    this.#books = new DatabaseSync(join(this.folder, 'books.db'));
    this.#books.exec(`create table entry (tag text primary key not null, amount integer not null);
      create table notice (tag text primary key not null);
      create trigger surplus after insert on entry when new.amount = 666
        begin insert into notice values (new.tag); end;`);
  }

  get config() {
    return deskConfig(this.folder, clerk.publicKey);
  }

  /** The durable rows, as `tag=amount`. */
  rows(): readonly string[] {
    const rows = this.#books.prepare('select tag, amount from entry order by tag').all();
    return rows.map(({ tag, amount }) => `${tag}=${amount}`);
  }

  change(sql: string): void {
    this.#books.exec(sql);
  }

  [Symbol.dispose](): void {
    this.#books.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One process of the deployment. */
export interface Opened extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly workflows: Workflows;
  /** Signs everything that waits in a run. */
  sign(run: string): Promise<readonly SignedLicense[]>;
  /** Signs it, and waits until the run goes no further. */
  finish(run: string): ReturnType<Workflows['wait']>;
}

/** Opens one process with these plans. */
export async function openFlow(
  desk: Desk,
  plans: readonly Workflow[],
  options: Partial<WorkflowsOptions> & {
    readonly config?: Partial<RuntimeConfig>;
    readonly seams?: Parameters<typeof createRuntime>[1];
  } = {},
): Promise<Opened> {
  const { config = {}, seams, ...rest } = options;
  const runtime = await createRuntime({ ...desk.config, ...config }, seams);
  const workflows = await openWorkflows({
    runtime,
    operations: OPERATIONS,
    plans: Object.fromEntries(plans.map((plan) => [plan.name, plan])),
    engine: inProcess({ pollMs: 20 }),
    ...rest,
  });
  const sign = async (run: string) => {
    const waiting = await workflows.unapproved(run);
    const signer = approver(clerk);
    return waiting.map(({ proposal }) => signer.sign(proposal, { expiresIn: '10m' }));
  };
  return {
    ...{ runtime, workflows, sign },
    async finish(run) {
      for (;;) {
        const report = await workflows.wait(run);
        if (!report.waiting.some(({ state }) => state === 'unapproved')) return report;
        await workflows.approve(run, await sign(run));
      }
    },
    async [Symbol.asyncDispose]() {
      await workflows.close();
      await runtime.close();
    },
  };
}
