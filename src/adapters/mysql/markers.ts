import { MARKER_HELD, metMarker, readStoredMarker } from '../../backend/marker-table.ts';
import type { AdapterContext, Markers, VoidResult } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { errorNumber, type MysqlConnection } from './connection.ts';
import type { ControlAccount } from './sessions.ts';
import { quoteName, quoteText } from './sql.ts';

interface MarkerTools {
  readonly control: ControlAccount;
  readonly controlDatabase: string;
  readonly reached: AdapterContext['reached'];
}

/** Reads and writes the marker table through the control account. */
export function markersOf(tools: MarkerTools): Markers {
  const { control, controlDatabase } = tools;
  const table = `${quoteName(controlDatabase)}.marker`;
  return {
    find: async (occurrence) => await findMarker(await control.connection(), table, occurrence),
    void: async (marker) => await insertVoid(tools, table, marker),
    forget: async (occurrence) => {
      const connection = await control.connection();
      await connection.query(`delete from ${table} where occurrence = ${quoteText(occurrence)}`);
    },
  };
}

async function findMarker(
  connection: MysqlConnection,
  table: string,
  occurrence: string,
): Promise<MarkerText | undefined> {
  const [row] = await connection.texts(
    `select occurrence, disposition, text, seal_key, seal_mac from ${table} where occurrence = ${quoteText(occurrence)}`,
  );
  return readStoredMarker(row);
}

/** Inserts the marker in a separate transaction on a separate session. */
async function insertVoid(
  { control, controlDatabase, reached }: MarkerTools,
  table: string,
  marker: MarkerText,
): Promise<VoidResult> {
  await using connection = await control.open();
  const { occurrence, disposition, text, sealKey, sealMac } = marker;
  const values = [occurrence, disposition, text, sealKey, sealMac].map(quoteText).join(', ');
  await connection.query('start transaction');
  try {
    await connection.query(
      `insert into ${table} (occurrence, disposition, text, seal_key, seal_mac) values (${values})`,
    );
  } catch (error) {
    await connection.query('rollback');
    const number = errorNumber(error);
    if (number === LOCK_TIMEOUT || number === DEADLOCK) return MARKER_HELD;
    if (number !== DUPLICATE) throw error;
    return metMarker(await findMarker(connection, table, occurrence));
  }
  await refuseUnmarked(connection, controlDatabase, occurrence);
  reached('adapter:void-written');
  await connection.query('commit');
  reached('adapter:void-committed');
  return { kind: 'inserted' };
}

const LOCK_TIMEOUT = 1205;
const DEADLOCK = 1213;
const DUPLICATE = 1062;

/** A change that was committed without a marker must not be reported as rejected. */
async function refuseUnmarked(
  connection: MysqlConnection,
  database: string,
  occurrence: string,
): Promise<void> {
  const rows = await connection.query(
    `select 1 from ${quoteName(database)}.stage where occurrence = ${quoteText(occurrence)}`,
  );
  if (rows.length === 0) return;
  await connection.query('rollback');
  throw new EffectMatchError(
    'ERR_EM_MARKER_CONFLICT',
    `the change of ${occurrence} was committed without a marker; see its records in "${database}"`,
  );
}
