import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { integration } from '../../../test/integration.ts';
import { digestPeerBooks, disturb, type PeerCase, RELATIONS, readPeerBooks } from './books.ts';

/** One way to let an agent run a statement that was agreed to. */
export interface PeerCondition {
  readonly name: string;
  /** Uses the agreement as often as the case says, with what happens in between. */
  run(file: string, attempt: PeerCase): Promise<void>;
}

/** The version that a folder of `integrations` pins. */
function versionOf(folder: string, dependency: string): string {
  const text = readFileSync(`integrations/${folder}/package.json`, 'utf8');
  return (
    (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies[dependency] ?? ''
  );
}

/** Runs a statement as an application does, in one transaction, if `accept` agrees to the count. */
function runStatement(file: string, sql: string, accept = (_: number) => true): void {
  using db = new DatabaseSync(file);
  db.exec('pragma foreign_keys = on; begin immediate');
  const { changes } = db.prepare(sql).run();
  db.exec(accept(Number(changes)) ? 'commit' : 'rollback');
}

async function repeat(times: number, work: () => Promise<void> | void): Promise<void> {
  for (let time = 0; time < times; time += 1) await work();
}

const dbhub: PeerCondition = {
  name: `DBHub ${versionOf('dbhub', '@bytebase/dbhub')}`,
  async run(file, attempt) {
    const program = join(integration('dbhub'), 'node_modules/@bytebase/dbhub/dist/index.js');
    const args = [program, '--transport', 'stdio', '--dsn', `sqlite://${file}`];
    const env = { PATH: process.env.PATH ?? '' };
    const options = { command: process.execPath, args, env, stderr: 'ignore' } as const;
    const client = new Client({ name: 'peers', version: '1.0.0' });
    await client.connect(new StdioClientTransport(options));
    try {
      disturb(file, attempt);
      const call = { name: 'execute_sql', arguments: { sql: attempt.sql } };
      await repeat(attempt.times, async () => {
        const { isError } = await client.callTool(call);
        if (isError) throw new Error('DBHub refused the statement');
      });
    } finally {
      await client.close();
    }
  },
};

type ApprovedCall = (
  sql: string,
  execute: (sql: string) => void,
  meanwhile: () => void,
  times: number,
) => Promise<boolean>;

const aiSdk: PeerCondition = {
  name: `AI SDK ${versionOf('ai-sdk', 'ai')} with approval`,
  async run(file, attempt) {
    const script = pathToFileURL(join(integration('ai-sdk'), 'approved-call.ts')).href;
    const { runApprovedCall } = (await import(script)) as { runApprovedCall: ApprovedCall };
    const execute = (sql: string) => runStatement(file, sql);
    const meanwhile = () => disturb(file, attempt);
    const hasPaused = await runApprovedCall(attempt.sql, execute, meanwhile, attempt.times);
    if (!hasPaused) throw new Error('the call was not paused for a person');
  },
};

const rowCount: PeerCondition = {
  name: 'transaction with row count',
  async run(file, attempt) {
    disturb(file, attempt);
    await repeat(attempt.times, () => runStatement(file, attempt.sql, (rows) => rows === 1));
  },
};

/** Plans on a copy and applies the same statement, unless the rows have changed since the plan. */
const planApply: PeerCondition = {
  name: 'plan on a copy, then apply',
  async run(file, attempt) {
    const initial = readPeerBooks(file);
    const copy = `${file}.plan`;
    copyFileSync(file, copy);
    runStatement(copy, attempt.sql);
    const isWanted = isDeepStrictEqual(readPeerBooks(copy), attempt.expected(initial));
    disturb(file, attempt);
    await repeat(attempt.times, () => {
      const isFresh = digestPeerBooks(readPeerBooks(file)) === digestPeerBooks(initial);
      if (isWanted && isFresh) runStatement(file, attempt.sql);
    });
  },
};

const KEYS = generateApprover('study');

const effectMatch: PeerCondition = {
  name: 'EffectMatch',
  async run(file, attempt) {
    await using runtime = await createRuntime({
      store: `${file}.ledger`,
      keyring: `${file}.keys.json`,
      issuers: { study: { key: KEYS.publicKey, may: ['books'] } },
      adapters: { books: sqlite({ file, relations: RELATIONS }) },
    });
    const request = { adapter: 'books', task: attempt.name, planRevision: 1, ...attempt.approved };
    const license = approver(KEYS).sign(await runtime.prepare(request), { expiresIn: '10m' });
    disturb(file, attempt);
    await repeat(attempt.times, async () => {
      await runtime.execute(license, { sql: attempt.sql });
    });
  },
};

export const PEER_CONDITIONS: readonly PeerCondition[] = [
  dbhub,
  aiSdk,
  rowCount,
  planApply,
  effectMatch,
];
