import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import {
  type PostgresOptions,
  planProvisioning,
  postgres,
} from '../../../src/adapters/postgres/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { startServer, type TestDatabase } from '../../../test/postgres/server.ts';
import { keepVerdict } from '../../facts.ts';
import { ENTRY_POINTS, INVOICES, paymentEffects, RELATIONS, SCHEMA } from './shop.ts';
import { type Watch, watched } from './watch.ts';

/** The login that runs agent SQL. */
export const EXEC = 'em_exec';

/** A provisioned database on a separate server. Its boundary is closed. */
export interface Site extends AsyncDisposable {
  readonly db: TestDatabase;
  readonly options: PostgresOptions;
  /** Returns an unpaid invoice. */
  nextInvoice(): number;
  /** Opens a runtime with new keys, and with a new ledger unless one is named. */
  open(how?: { readonly watch?: Watch; readonly ledger?: string }): Promise<Office>;
  /**
   * Runs a statement as the execution login without protection. Returns `works` or the SQLSTATE.
   */
  tryAsAgent(sql: string): Promise<string>;
}

/** A runtime of the study. Its approver signs every proposal. */
export interface Office extends AsyncDisposable {
  readonly runtime: Runtime;
  /** The name of its ledger, so that another runtime can use it. */
  readonly ledger: string;
  approve(id: number, more?: Partial<PrepareRequest>): Promise<SignedLicense>;
  /** Returns the terminal, or the refusal of an action that was not admitted. */
  execute(license: SignedLicense, action: unknown): Promise<Terminal>;
}

/**
 * Starts a separate server for the study, because roles and the counters of catalogue changes
 * belong to the whole server.
 */
export async function openSite(): Promise<Site> {
  const server = await startServer();
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-boundary-'));
  const db = await server.createDatabase('shop');
  const options: PostgresOptions = {
    owner: 'em_owner',
    control: db.url('em_control'),
    execution: db.url(EXEC),
    relations: RELATIONS,
    entryPoints: ENTRY_POINTS,
    declared: [
      'the database host reaches no network but its clients',
      'the data folder is mounted nowhere else',
    ],
  };
  await db.run(SCHEMA);
  await (await planProvisioning(db.url(), options)).apply();
  const key = generateApprover('study');
  let invoices = 0;
  let ledgers = 0;
  return {
    db,
    options,
    nextInvoice() {
      invoices += 1;
      if (invoices > INVOICES) throw new Error('there are too few invoices for this study');
      return invoices;
    },
    async open({ watch = { surveys: [] }, ledger = `ledger-${ledgers + 1}` } = {}) {
      ledgers += 1;
      const runtime = await createRuntime({
        store: join(folder, `${ledger}.db`),
        keyring: join(folder, `${ledger}.json`),
        issuers: { study: { key: key.publicKey, may: ['shop'] } },
        adapters: { shop: watched(postgres(options), watch) },
      });
      return {
        runtime,
        ledger,
        async approve(id, more) {
          const task = `invoice-${id}`;
          const request = {
            adapter: 'shop',
            task,
            planRevision: 1,
            effects: paymentEffects(id),
            ...more,
          };
          return approver(key).sign(await runtime.prepare(request), { expiresIn: '10m' });
        },
        execute: async (license, action) => keepVerdict(await runtime.execute(license, action)),
        [Symbol.asyncDispose]: () => runtime.close(),
      };
    },
    async tryAsAgent(sql) {
      const client = new pg.Client({ connectionString: db.url(EXEC) });
      await client.connect();
      try {
        await client.query('begin read write');
        await client.query(sql);
        return 'works';
      } catch (error) {
        return String((error as pg.DatabaseError).code);
      } finally {
        await client.query('rollback');
        await client.end();
      }
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
