import { generateKeyPairSync, hash, randomBytes, sign, verify } from 'node:crypto';
import { textsOf } from '../../../src/adapters/mysql/connection.ts';
import { type MysqlDeployment, readDeployment } from '../../../src/adapters/mysql/deployment.ts';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { ServerWatch } from '../../../src/adapters/mysql/server-state.ts';
import {
  ControlAccount,
  type ExecutionSession,
  ExecutionSessions,
  parseVariables,
  READ_VARIABLES,
} from '../../../src/adapters/mysql/sessions.ts';
import { quoteText } from '../../../src/adapters/mysql/sql.ts';
import { INNODB_STATUS, readStatus } from '../../../src/adapters/mysql/witness.ts';
import { openSqliteClaims } from '../pg-cost/floor.ts';
import type { Path } from '../pg-cost/paths.ts';
import { type MariadbSite, STATEMENTS } from './site.ts';

/** What the floor needs of an open deployment. */
interface Floor {
  readonly control: ControlAccount;
  readonly sessions: ExecutionSessions;
  readonly deployment: MysqlDeployment;
  /** The state of the server, as one text. */
  survey(): Promise<string>;
  /** The control database. */
  readonly records: string;
  readonly business: string;
}

/** The statements return no rows. */
const NO_ROWS = { begin: () => {}, add: () => {} };

/**
 * The least that a protected operation can take with this driver and the procedures that are in the
 * database: a license is verified, a claim is kept, the server is surveyed twice, the statements
 * run in a branch of a session that logs in again afterwards, the written rows and the undo entries
 * are read and compared as texts, and the marker is committed with them. There are no records,
 * leases, certificates, typed values, refusals or recovery.
 */
export async function openFloor(site: MariadbSite): Promise<Path> {
  const { options } = site.held;
  const settings = readOptions(options);
  const control = new ControlAccount(options.control);
  const sessions = new ExecutionSessions(options.execution, settings);
  const connection = await control.connection();
  const server = new ServerWatch(settings);
  const floor: Floor = {
    ...{ control, sessions, records: settings.controlDatabase, business: settings.business },
    deployment: await readDeployment(connection, settings.controlDatabase),
    survey: async () => (await server.read(await control.connection())).text,
  };
  const claims = openSqliteClaims(site);
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const licenses = new Map<number, { readonly text: Buffer; readonly signature: Buffer }>();
  return {
    name: 'floor',
    writesOnce: true,
    async approve(ids) {
      for (const id of ids) {
        const text = Buffer.from(`${id} ${crypto.randomUUID()} ${'x'.repeat(1500)}`);
        licenses.set(id, { text, signature: sign(null, text, privateKey) });
      }
    },
    async run(id) {
      const license = licenses.get(id);
      if (license === undefined || !verify(null, license.text, publicKey, license.signature))
        throw new Error('not signed');
      const occurrence = `occ_${hash('sha256', license.text).slice(0, 40)}`;
      const surveying = floor.survey();
      await claims.claim(occurrence, license.text.toString());
      const session = await sessions.take();
      await runHeld(floor, session, { occurrence, id, surveyed: await surveying });
      sessions.giveBack(session);
      claims.end(occurrence);
    },
    async [Symbol.asyncDispose]() {
      await claims[Symbol.asyncDispose]();
      await sessions.close();
      await control.close();
    },
  };
}

interface HeldOperation {
  readonly occurrence: string;
  readonly id: number;
  readonly surveyed: string;
}

/** From XA START to XA COMMIT, in the messages that the adapter sends. */
async function runHeld(
  { control, deployment, survey, records, business }: Floor,
  { connection: session, variables }: ExecutionSession,
  { occurrence, id, surveyed }: HeldOperation,
): Promise<void> {
  const branch = `'${randomBytes(16).toString('hex')}'`;
  const counters = `select table_name, auto_increment from information_schema.tables
    where table_schema = '${business}' and table_name in ('payment', 'entry', 'notification')`;
  await Promise.all([
    control.ask(counters),
    session.queryAll([
      `xa start ${branch}`,
      `call ${records}.open(${randomBytes(6).readUIntBE(0, 6)}, '${occurrence}')`,
    ]),
  ]);
  for (const sql of STATEMENTS) await session.execute(sql, [id], NO_ROWS);
  const [[written = [], now], [status = [], stages = []]] = await Promise.all([
    session.queryAll([`call ${records}.observe()`, READ_VARIABLES]),
    control.ask(INNODB_STATUS, `select connection from ${records}.stage`, counters),
  ]);
  const undo = readStatus(String(textsOf(status)[0]?.[2]), session.thread);
  if (undo.kind !== 'counted' || undo.entries !== 5 + written.length + 1 || stages.length > 0)
    throw new Error('something else was written');
  if (parseVariables(now).variables !== variables) throw new Error('a variable was changed');
  const images = written.map(([relation, , , after]) => `${relation} ${after}`);
  const rows = rowsOf(business, images);
  const outside = await control.connection();
  const [before, after] = await Promise.all([outside.query(rows), session.query(rows)]);
  if (before.length !== 2 || after.length !== 5) throw new Error('the rows are not as recorded');
  if ((await survey()) !== surveyed) throw new Error('the server was changed');
  await Promise.all([control.ask(INNODB_STATUS), session.query(READ_VARIABLES)]);
  const text = JSON.stringify({ occurrence, observed: hash('sha256', images.join('\n')) });
  const marker = { occurrence, text, sealKey: 'floor', sealMac: hash('sha256', text) } as const;
  const proof = deployment.prove(session.thread, { ...marker, disposition: 'committed' });
  const values = [occurrence, text, marker.sealKey, marker.sealMac, proof].map(quoteText);
  await session.queryAll([`call ${records}.promote(${values.join(', ')})`, `xa end ${branch}`]);
  await session.query(`xa commit ${branch} one phase`);
}

/** One SELECT of the rows whose images these are. The first column of each is its key. */
function rowsOf(business: string, images: readonly string[]): string {
  const selects = images.map((image) => {
    const [head = '', relation, length] = /^(\w+) (\d+):/.exec(image) ?? [];
    const key = image.slice(head.length, head.length + Number(length));
    return `(select '${relation}', concat_ws(':', r.id) from ${business}.${relation} r where r.id = ${key})`;
  });
  return selects.join(' union all ');
}
