import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { postgres } from '../../src/adapters/postgres/index.ts';
import type { AdapterFactory, PromotableAdapter } from '../../src/contract/adapter.ts';
import { approver, createRuntime, EffectMatchError, generateApprover, type Terminal } from '../../src/index.ts';
import { memoryLedgers } from '../../src/ledger/memory.ts';
import { quoteName } from '../../src/postgres/identifier.ts';
import type { ManifestDraft } from '../../src/protocol/draft.ts';
import { testKeyring } from '../keyring.ts';
import { protectedDatabase } from '../postgres/protected.ts';
import { startServer, type TestDatabase, type Version } from '../postgres/server.ts';
import type { EscapeCase, EscapeFile, EscapeResult } from './case.ts';

const KEY = generateApprover('approver');

/** Runs every case on a database of its own, cloned from one that is provisioned once. */
export async function runEscapes(
  file: EscapeFile,
  { version = 17, report = () => {} }: { version?: Version; report?: (result: EscapeResult) => void } = {},
): Promise<readonly EscapeResult[]> {
  await using server = await startServer({
    version,
    settings: { max_prepared_transactions: '5', wal_level: 'logical' },
  });
  await using base = await server.createDatabase();
  const names = {
    app: base.role('app'),
    exec: base.role('em_exec'),
    control: base.role('em_control'),
    owner: base.role('em_owner'),
  };
  const schema = fill(file.schema, { ...names, db: base.name });
  const { relations, entryPoints } = file;
  await protectedDatabase(schema, { relations, entryPoints }, { db: base });
  const results: EscapeResult[] = [];
  let place: Place | undefined;
  for (const attempt of file.cases.filter(({ from = 15 }) => from <= version)) {
    const isPlain = !(attempt.setup || attempt.approvedThen || attempt.whileHeld);
    if (place === undefined || !isPlain) {
      await place?.db.drop();
      const db = await server.createDatabase(undefined, { template: base.name });
      await db.run(`revoke create, temporary on database ${quoteName(db.name)} from public`);
      place = { db, names: { ...names, db: db.name }, file };
    }
    const result = await runCase(place, attempt);
    results.push(result);
    report(result);
    // A database that was neither set up nor changed is as good as fresh.
    if (isPlain && result.found !== 'committed' && result.violation === undefined) continue;
    await restoreRoles(place, attempt);
    await place.db.drop();
    place = undefined;
  }
  await place?.db.drop();
  return results;
}

interface Place {
  readonly db: TestDatabase;
  readonly names: Readonly<Record<string, string>>;
  readonly file: EscapeFile;
}

function fill(sql: string, names: Readonly<Record<string, string>>): string {
  return sql.replace(/\{(exec|app|control|owner|db)\}/g, (_, key: string) => quoteName(names[key] ?? ''));
}

async function runCase(site: Place, attempt: EscapeCase): Promise<EscapeResult> {
  const { db, names } = site;
  const run = async (sql: string | undefined) => void (sql && (await db.run(fill(sql, names))));
  await run(attempt.setup);
  const listener = new pg.Client({ connectionString: db.url() });
  const heard: string[] = [];
  listener.on('notification', ({ channel }) => heard.push(channel));
  await listener.connect();
  await listener.query('listen leak');
  try {
    const before = await readDurable(db);
    const ended = await execute(site, attempt, run);
    await sleep(30);
    await listener.query('select 1');
    const after = await readDurable(db);
    const { expectation } = attempt;
    const expected = expectation.kind === 'committed' ? 'committed' : `${expectation.kind} ${expectation.code}`;
    const because = 'because' in expectation ? (expectation.because ?? '') : '';
    const isCommitted = ended.found === 'committed';
    const violation =
      heard.length > 0
        ? `a notification arrived on ${heard.join(', ')}`
        : isCommitted && expectation.kind !== 'committed'
          ? 'it committed'
          : !isCommitted && before !== after
            ? `it did not commit, and the data is different: ${after}`
            : undefined;
    const ok = violation === undefined && ended.found === expected && ended.detail.includes(because);
    return { name: attempt.name, expected, ...ended, ok, ...(violation === undefined ? {} : { violation }) };
  } finally {
    await listener.end();
  }
}

async function execute(
  { db, names, file }: Place,
  { action, approved, approvedThen, whileHeld }: EscapeCase,
  run: (sql: string | undefined) => Promise<void>,
): Promise<{ readonly found: string; readonly detail: string }> {
  const factory = postgres({
    owner: names.owner ?? '',
    control: db.url(names.control),
    execution: db.url(names.exec),
    relations: file.relations,
    entryPoints: file.entryPoints,
    lockTimeoutMs: 1000,
    declared: ['none'],
  });
  try {
    await using runtime = await createRuntime({
      store: memoryLedgers({ now: () => Date.now() }),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: { db: interrupted(factory, () => run(whileHeld)) },
    });
    const effects = approved as ManifestDraft['effects'];
    const proposal = await runtime.prepare({ adapter: 'db', task: 'escape', planRevision: 1, effects });
    const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
    await run(approvedThen);
    return describe(await runtime.execute(license, action));
  } catch (error) {
    if (!(error instanceof EffectMatchError)) throw error;
    const kind = error.code === 'ERR_EM_ACTION_INVALID' ? 'denied' : 'refused';
    return { found: `${kind} ${error.code}`, detail: error.message };
  }
}

function describe(terminal: Terminal): { readonly found: string; readonly detail: string } {
  if (terminal.kind !== 'rejected') return { found: terminal.kind, detail: '' };
  const { at, detail, outcome } = terminal;
  if (at === 'comparison') return { found: `observed ${outcome?.kind}`, detail };
  const state = /\[([0-9A-Z]{5})\]/.exec(detail)?.[1];
  return {
    found: at === 'stage' || at === 'promotion' ? `denied ${state ?? terminal.reason}` : `refused ${at}`,
    detail,
  };
}

/** Runs something between the end of the action and its observation. */
function interrupted<Action>(factory: AdapterFactory<Action>, held: () => Promise<void>): AdapterFactory<Action> {
  return {
    ...factory,
    async open(context) {
      const adapter = (await factory.open(context)) as PromotableAdapter<Action>;
      const stage = adapter.stage.bind(adapter);
      let isAdmitted = false;
      adapter.markers; // admission stages a probe first: only what follows an action of the agent counts
      const parse = adapter.parseAction.bind(adapter);
      adapter.parseAction = (input) => {
        isAdmitted = true;
        return parse(input);
      };
      adapter.stage = async (...given) => {
        const staged = await stage(...given);
        if (isAdmitted) await held();
        return staged;
      };
      return adapter;
    },
  };
}

/** What would be left behind: rows of every table outside our schema, large objects, slots, definitions. */
async function readDurable(db: TestDatabase): Promise<string> {
  const tables = await db.run(`select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema', 'effectmatch') order by 1`);
  const rows: unknown[] = [];
  for (const { name } of tables) {
    rows.push([name, await db.run(`select t::text as row from only ${String(name)} t order by 1`)]);
  }
  const others = await db.run(`select (select count(*) from pg_largeobject_metadata) as objects,
    (select count(*) from pg_replication_slots where database = current_database() or database is null) as slots,
    (select count(*) from pg_prepared_xacts where database = current_database()) as prepared`);
  return JSON.stringify([rows, others]);
}

/** Roles belong to the server: what a case did to them must not reach the next. */
async function restoreRoles({ db, names }: Place, { cleanup }: EscapeCase): Promise<void> {
  const sql = `alter role {exec} nosuperuser nocreatedb nocreaterole noreplication nobypassrls noinherit;
    alter role {exec} reset all; alter role {app} reset all; alter role {app} nosuperuser noreplication nologin;
    do $$ declare r name; begin
      for r in select r.rolname from pg_auth_members m join pg_roles r on r.oid = m.roleid
        where m.member in (select oid from pg_roles where rolname in ('${names.exec}', '${names.app}')) loop
        execute format('revoke %I from %I, %I', r, '${names.exec}', '${names.app}');
      end loop;
    end $$; ${cleanup ?? ''}`;
  await db.run(fill(sql, names));
}
