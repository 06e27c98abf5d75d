import { MARKER_HELD, metMarker, readStoredMarker } from '../../backend/marker-table.ts';
import type { AdapterContext, Markers, VoidResult } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { asFault, type Connection, sqlState } from '../../postgres/connection.ts';

const FIND =
  'select occurrence, disposition, text, seal_key, seal_mac from effectmatch.marker where occurrence = $1';
const INSERT =
  'insert into effectmatch.marker (occurrence, disposition, text, seal_key, seal_mac) values ($1, $2, $3, $4, $5)';

interface PostgresMarkerTools {
  readonly control: () => Promise<Connection>;
  /** Opens a separate session, for work that must not share a transaction with anything else. */
  readonly open: () => Promise<Connection>;
  readonly reached: AdapterContext['reached'];
  /** How long writing a void marker waits for a live transaction that blocks it. */
  readonly lockTimeoutMs: number;
  /** How long a recovery that stops between writing and committing may block others. */
  readonly idleTimeoutMs: number;
  /** Ends sessions of the execution login that hold a transaction beyond its deadline. */
  readonly endOverdue: (control: Connection) => Promise<number>;
}

/** Reads and writes markers through the control login. */
export function markersOf(tools: PostgresMarkerTools): Markers {
  return {
    find: async (occurrence) => {
      const control = await tools.control();
      return readStoredMarker((await control.query(FIND, [occurrence]).catch(fault)).rows[0]);
    },
    void: async (marker) => {
      const first = await insertVoid(tools, marker);
      if (first.kind !== 'busy') return first;
      const ended = await tools.endOverdue(await tools.control()).catch(() => 0);
      return ended === 0 ? first : await insertVoid(tools, marker);
    },
    forget: async (occurrence) => {
      const control = await tools.control();
      await control
        .query('delete from effectmatch.marker where occurrence = $1', [occurrence])
        .catch(fault);
    },
  };
}

/**
 * Inserts a void marker in its own READ COMMITTED transaction, on a separate connection. The insert
 * and the lookup are two statements, because a single one would look with the snapshot from before
 * it waited.
 */
async function insertVoid(tools: PostgresMarkerTools, marker: MarkerText): Promise<VoidResult> {
  const { occurrence, disposition, text, sealKey, sealMac } = marker;
  try {
    await using connection = await tools.open();
    await connection.script(
      `begin isolation level read committed; set local lock_timeout = ${tools.lockTimeoutMs};` +
        ` set local idle_in_transaction_session_timeout = ${tools.idleTimeoutMs}; set local synchronous_commit = on`,
    );
    try {
      await connection.query(INSERT, [occurrence, disposition, text, sealKey, sealMac]);
    } catch (error) {
      await connection.script('rollback');
      if (sqlState(error) === '55P03') return MARKER_HELD;
      if (sqlState(error) !== '23505') throw error;
      const found = readStoredMarker((await connection.query(FIND, [occurrence])).rows[0]);
      return metMarker(found);
    }
    tools.reached('adapter:void-written');
    const [reply] = await connection.script('commit');
    if (reply?.command !== 'COMMIT')
      throw new Error(`COMMIT of the void marker answered ${reply?.command}`);
    tools.reached('adapter:void-committed');
    return { kind: 'inserted' };
  } catch (error) {
    return fault(error);
  }
}

function fault(error: unknown): never {
  throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the markers could not be used');
}
