import { join } from 'node:path';
import pg from 'pg';
import { type PostgresOptions, postgres } from '../../../src/adapters/postgres/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import type { Reached } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { OPERATION, operationEffects } from './books.ts';
import type { Site } from './site.ts';

/** One way to run the operation. */
export interface Path extends AsyncDisposable {
  readonly name: string;
  /** It needs rows that no operation has changed before. */
  readonly writesOnce: boolean;
  /** What must exist before the operation may run; never measured. */
  approve(ids: readonly number[]): Promise<void>;
  /** Runs the operation on the rows of this number, on behalf of one of the clients. */
  run(id: number, client: number): Promise<void>;
}

export interface Connections extends AsyncDisposable {
  client(index: number): pg.Client;
}

/** Plain sessions of the `pg` package. */
export async function connect(url: string, count: number): Promise<Connections> {
  const clients = Array.from({ length: count }, () => new pg.Client({ connectionString: url }));
  await Promise.all(clients.map((client) => client.connect()));
  return {
    client(index) {
      const client = clients[index % count];
      if (client === undefined) throw new Error('there is no client');
      return client;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}

/** The operation as an application runs it: BEGIN, one statement, COMMIT, each awaited. */
export async function openDirect(site: Site, clients: number): Promise<Path> {
  const connections = await connect(site.plainUrl, clients);
  return {
    name: 'direct',
    writesOnce: false,
    approve: async () => {},
    async run(id, index) {
      const client = connections.client(index);
      await client.query('begin');
      await client.query(OPERATION, [id]);
      await client.query('commit');
    },
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

/** A runtime of the study: its approver signs whatever is prepared. */
export interface BenchRuntime extends AsyncDisposable {
  readonly runtime: Runtime;
  approve(request: Omit<PrepareRequest, 'adapter' | 'planRevision'>): Promise<unknown>;
}

/** Where the ledger is: a SQLite file, or a schema in the database of the books. */
export type LedgerKind = 'SQLite' | 'PostgreSQL';

export const LEDGERS: readonly LedgerKind[] = ['SQLite', 'PostgreSQL'];

/**
 * Opens a runtime with its own ledger. Without certification the survey of the first admission is
 * presented for ever: a seam of this study, which the adapter has no option for.
 */
export async function openRuntime(
  site: Site,
  {
    certified,
    ledger = 'SQLite',
    stranger,
    reached,
    adapt = (given) => given,
    ...changes
  }: HeldOptions & Partial<PostgresOptions>,
): Promise<BenchRuntime> {
  const factory = adapt(postgres({ ...site.options, ...changes }));
  const surveyed = certified ? factory : surveyedOnce(factory);
  const books = stranger === undefined ? surveyed : disturbed(surveyed, stranger);
  const key = generateApprover('bench');
  const file = join(site.folder, `ledger-${key.publicKey.slice(-12).replace(/\W/g, '_')}`);
  const runtime = await createRuntime(
    {
      store: ledger === 'SQLite' ? `${file}.db` : await site.createLedger(),
      keyring: `${file}.json`,
      issuers: { bench: { key: key.publicKey, may: ['books'] } },
      adapters: { books },
    },
    reached === undefined ? {} : { reached },
  );
  const bench = approver(key);
  return {
    runtime,
    async approve(request) {
      const proposal = await runtime.prepare({ ...request, adapter: 'books', planRevision: 1 });
      return bench.sign(proposal, { expiresIn: '1h' });
    },
    [Symbol.asyncDispose]: () => runtime.close(),
  };
}

function surveyedOnce<A>(factory: AdapterFactory<A>): AdapterFactory<A> {
  return {
    async open(context) {
      const adapter = await factory.open(context);
      const survey = await adapter.survey();
      adapter.survey = async () => survey;
      return adapter;
    },
  };
}

/** Somebody else commits before every survey, so that none of them may stand on the last one. */
function disturbed<A>(factory: AdapterFactory<A>, stranger: pg.Client): AdapterFactory<A> {
  return {
    async open(context) {
      const adapter = await factory.open(context);
      const survey = adapter.survey.bind(adapter);
      adapter.survey = async () => {
        await stranger.query('select pg_current_xact_id()');
        return await survey();
      };
      return adapter;
    },
  };
}

/** How the operation is protected. */
export interface HeldOptions {
  readonly certified: boolean;
  readonly ledger?: LedgerKind;
  /** Commits before every survey. */
  readonly stranger?: pg.Client;
  readonly reached?: Reached;
  /** Puts something between the runtime and its adapter. */
  readonly adapt?: <A>(factory: AdapterFactory<A>) => AdapterFactory<A>;
}

/** The operation under a license. */
export async function openHeld(site: Site, options: HeldOptions): Promise<Path> {
  const bench = await openRuntime(site, options);
  const licenses = new Map<number, unknown>();
  return {
    name: nameOf(options),
    writesOnce: true,
    async approve(ids) {
      for (const id of ids) {
        licenses.set(
          id,
          await bench.approve({ task: `invoice-${id}`, effects: operationEffects(id) }),
        );
      }
    },
    async run(id) {
      const terminal = await bench.runtime.execute(licenses.get(id), {
        sql: OPERATION,
        values: [id],
      });
      if (terminal.kind !== 'committed')
        throw new Error(`not committed: ${JSON.stringify(terminal)}`);
    },
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  };
}

function nameOf({ certified, ledger = 'SQLite', stranger }: HeldOptions): string {
  const among = stranger === undefined ? '' : ' among strangers';
  return `${certified ? 'certified' : 'protected'}${among}, ${ledger} ledger`;
}
