import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { quoteName } from '../../src/postgres/identifier.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import type { Internals } from '../../src/runtime/runtime.ts';
import { protectedDatabase } from '../postgres/protected.ts';
import { startServer, type TestServer, type Version } from '../postgres/server.ts';
import {
  type EscapeCase,
  type EscapeFile,
  type EscapeResult,
  expectedEnding,
  NOT_APPLICABLE,
} from './case.ts';
import { unapprovedChanges } from './durable.ts';
import { type Ending, execute, type Place } from './execution.ts';
import { type Durable, readDurable, type Scene } from './readback.ts';
import { listenFor, openMessageWatch } from './signals.ts';

/** Where the cases run, and who is told of each result. */
export interface RunOptions {
  readonly version?: Version;
  /** The programs of another installation. */
  readonly bin?: string;
  readonly report?: (result: EscapeResult) => void;
  /**
   * Any ending will do that is not a commit, except for controls: the endings of the catalogue are
   * those of the server boundary, and another one closes the same outlets elsewhere.
   */
  readonly anyEnding?: boolean;
  /** Checks that are switched off, to see that the catalogue notices. */
  readonly internals?: Internals;
  /**
   * Each statement is a call of a held task. A call that is denied does not end the task, so it may
   * commit: then what is durable has to be exactly what was approved.
   */
  readonly inTask?: boolean;
}

/** What a run found, and on which server. */
export interface EscapeRun {
  /** As PostgreSQL names itself, for example `17.6`. */
  readonly version: string;
  readonly results: readonly EscapeResult[];
}

/** Runs every case on a database of its own, cloned from one that is provisioned once. */
export async function runEscapes(file: EscapeFile, options: RunOptions = {}): Promise<EscapeRun> {
  const { version = 17, bin, report = () => {}, internals = {}, inTask = false } = options;
  await using server = await startServer({
    version,
    ...(bin && { bin }),
    // Whatever changes in a catalogue was changed by somebody.
    settings: { max_prepared_transactions: '5', wal_level: 'logical', autovacuum: 'off' },
  });
  const scratch = join(server.folder, 'scratch');
  mkdirSync(scratch);
  chmodSync(scratch, 0o777);
  await using base = await server.createDatabase();
  const names = {
    app: base.role('app'),
    exec: base.role('em_exec'),
    control: base.role('em_control'),
    owner: base.role('em_owner'),
  };
  const texts = { scratch, port: String(server.port) };
  const { relations, entryPoints, boundary = 'server' } = file;
  await protectedDatabase(
    fill(file.schema, { names: { ...names, db: base.name }, texts }),
    { relations, entryPoints, boundary },
    { db: base },
  );
  // Cases make the application lend its rights afterwards, which provisioning again would notice.
  if (boundary === 'server')
    await base.run(`revoke ${quoteName(base.role('em_others'))} from ${quoteName(names.app)}`);
  const [found] = await base.run(
    `select split_part(current_setting('server_version'), ' ', 1) as version`,
  );
  const serverVersion = String(found?.version);
  const major = Number.parseInt(serverVersion, 10);
  const results: EscapeResult[] = [];
  const tell = (result: EscapeResult) => {
    results.push(result);
    report(result);
  };
  let place: Place | undefined;
  for (const attempt of file.cases) {
    if (expectedEnding(attempt, major) === NOT_APPLICABLE) {
      const detail = `from ${attempt.since ?? 'any'} to ${attempt.until ?? 'any'}`;
      tell({
        name: attempt.name,
        expected: NOT_APPLICABLE,
        found: NOT_APPLICABLE,
        detail,
        ok: true,
      });
      continue;
    }
    const isPlain = !(attempt.setup || attempt.approvedThen || attempt.whileHeld);
    if (place === undefined || !isPlain) {
      await place?.db.drop();
      const db = await server.createDatabase(undefined, { template: base.name });
      if (boundary === 'server')
        await db.run(`revoke create, temporary on database ${quoteName(db.name)} from public`);
      place = { db, names: { ...names, db: db.name }, texts, file, internals, inTask };
    }
    const expected = endingFor(attempt, options) ?? expectedEnding(attempt, major);
    const result = await runCase(server, place, attempt, expected).catch((error: unknown) =>
      failed(attempt, error),
    );
    tell(result);
    // A database that was neither set up nor changed is as good as fresh.
    if (
      isPlain &&
      !['committed', 'failed'].includes(result.found) &&
      result.violation === undefined
    )
      continue;
    await restoreRoles(place, attempt);
    await place.db.drop();
    place = undefined;
  }
  await place?.db.drop();
  return { version: serverVersion, results };
}

/** What a case must come to if only the commit counts. */
const ANY_REFUSAL = 'refused, denied or observed';
/** What it must come to if only what became durable counts. */
const ANY_ENDING = 'nothing unapproved';

/** The ending of a case where it is not the one of the catalogue. */
function endingFor(
  { expectation: { kind }, managedCommits = false }: EscapeCase,
  { anyEnding = false, inTask = false }: RunOptions,
): string | undefined {
  if (!anyEnding && !inTask) return undefined;
  if (kind === 'committed' || (anyEnding && managedCommits)) return 'committed';
  return inTask && kind === 'denied' ? ANY_ENDING : ANY_REFUSAL;
}

/** Puts quoted names and plain texts into SQL. */
function fill(sql: string, { names, texts }: Pick<Place, 'names' | 'texts'>): string {
  return sql
    .replace(/\{(exec|app|control|owner|db)\}/g, (_, key: string) => quoteName(names[key] ?? ''))
    .replace(/\{(scratch|port|dbname)\}/g, (_, key: string) => texts[key] ?? names.db ?? '');
}

/**
 * Readings before and after what the runtime did; what the case's administrator did lies between
 * them.
 */
class Stretches {
  readonly changes: string[] = [];
  readonly #scene: Scene;
  #begun: Durable | undefined;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  async begin(): Promise<void> {
    this.#begun = await readDurable(this.#scene);
  }

  async end(approved?: readonly ApprovedEffect[]): Promise<void> {
    if (this.#begun === undefined) throw new Error('nothing was read before');
    this.changes.push(...unapprovedChanges(this.#begun, await readDurable(this.#scene), approved));
    this.#begun = undefined;
  }
}

async function runCase(
  server: TestServer,
  place: Place,
  attempt: EscapeCase,
  expected: string,
): Promise<EscapeResult> {
  const { db, file } = place;
  const run = async (sql: string | undefined) => void (sql && (await db.run(fill(sql, place))));
  await run(attempt.setup);
  const here = new pg.Client({ connectionString: db.url() });
  const elsewhere = new pg.Client({ connectionString: server.adminUrl });
  for (const client of [here, elsewhere]) {
    client.on('error', () => {});
    await client.connect();
  }
  try {
    const heard = await listenFor(here, attempt);
    const messages = await openMessageWatch(elsewhere);
    const registered = file.relations.map((relation) =>
      typeof relation === 'string' ? relation : relation.name,
    );
    const scene = {
      here,
      elsewhere,
      data: join(server.folder, 'data'),
      scratch: place.texts.scratch ?? '',
      registered,
      residue: attempt.residue ?? [],
    };
    const stretches = new Stretches(scene);
    /** What an administrator does is not the operation's. */
    const aside = async (sql: string | undefined) => {
      if (!sql) return;
      await stretches.end();
      await run(sql);
      await stretches.begin();
    };
    await stretches.begin();
    const ended = await execute(place, attempt, aside);
    await sleep(30);
    const isCommitted = ended.found === 'committed';
    await stretches.end(isCommitted ? (attempt.approved as readonly ApprovedEffect[]) : undefined);
    const sent = [
      ...heard.map((channel) => `a notification arrived on ${channel}`),
      ...(await messages.sent()),
    ];
    return judge(attempt, expected, ended, [...sent, ...stretches.changes]);
  } finally {
    await here.end();
    await elsewhere.end();
  }
}

function judge(
  { name, expectation }: EscapeCase,
  expected: string,
  ended: Ending,
  unapproved: readonly string[],
): EscapeResult {
  const because = 'because' in expectation ? (expectation.because ?? '') : '';
  const mayCommit = expected === 'committed' || expected === ANY_ENDING;
  const wrongly = ended.found === 'committed' && !mayCommit ? ['it committed'] : [];
  const violation = [...wrongly, ...unapproved].join('; ');
  const isExplained = expectation.kind !== 'refused' || because !== '';
  const isSame = ended.found === expected && isExplained && ended.detail.includes(because);
  const isExpected = isSame || (expected === 'committed' && ended.found === expected);
  const isAny = expected === ANY_REFUSAL || expected === ANY_ENDING;
  const ok = violation === '' && (isAny || isExpected);
  const wanted = because === '' || isAny ? expected : `${expected} because "${because}"`;
  return { name, expected: wanted, ...ended, ok, ...(violation === '' ? {} : { violation }) };
}

/** A case that cannot be carried out as it is written shows nothing. */
function failed({ name }: EscapeCase, error: unknown): EscapeResult {
  return { name, expected: 'an ending', found: 'failed', detail: String(error), ok: false };
}

/** Roles belong to the server: what a case did to them must not reach the next. */
async function restoreRoles(place: Place, { cleanup }: EscapeCase): Promise<void> {
  const { db, names } = place;
  const sql = `alter role {exec} nosuperuser nocreatedb nocreaterole noreplication nobypassrls noinherit;
    alter role {exec} reset all; alter role {app} reset all; alter role {app} nosuperuser noreplication nologin;
    do $$ declare r name; begin
      for r in select r.rolname from pg_auth_members m join pg_roles r on r.oid = m.roleid
        where m.member in (select oid from pg_roles where rolname in ('${names.exec}', '${names.app}')) loop
        execute format('revoke %I from %I, %I', r, '${names.exec}', '${names.app}');
      end loop;
    end $$; ${cleanup ?? ''}`;
  await db.run(fill(sql, place));
}
