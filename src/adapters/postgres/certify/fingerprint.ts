import { setImmediate } from 'node:timers/promises';
import { invariant } from '../../../errors.ts';
import type { Connection, TextRow, WireStatement } from '../../../postgres/connection.ts';
import type { Survey } from '../../../protocol/boundary.ts';
import { PINNED_SEARCH_PATH } from '../formats.ts';
import type { BoundaryTier } from '../options.ts';
import { SQL } from '../sql.ts';
import { readRows } from './catalog.ts';

const { fingerprint } = SQL;
const MOMENT = fingerprint.get('moment');

/** The start of a statement that reads the rows of the configuration. */
export function withWatched(tier: BoundaryTier): string {
  const versions = tier === 'managed' ? 'managed_versions' : 'server_versions';
  const watched = fingerprint.get('watched').replace(/^with\b/, ',');
  return `${fingerprint.get(versions)}${watched}`;
}

/** Detects whether anything in the configuration changed, far more cheaply than reading it all. */
export interface Fingerprints {
  /**
   * Equal texts mean that no row of the configuration was written in between, not even back to its
   * old value. The last text stays valid while no counter has moved and the only transactions that
   * ended are those in `own`, which must be known not to have written to any catalogue. Otherwise
   * the catalogues are read. Ids that can no longer matter are removed from `own`.
   */
  read(own: Set<bigint>): Promise<string>;
}

/**
 * Prepares the fingerprint on a trusted session. `roles` are those that the survey found relevant.
 * Another role can become relevant only if a watched row changes.
 */
export async function prepareFingerprint(
  control: Pick<Connection, 'query' | 'prepare' | 'run'>,
  roles: readonly string[],
  tier: BoundaryTier = 'server',
): Promise<Fingerprints> {
  await control.query(`SET search_path = ${PINNED_SEARCH_PATH}`);
  await control.query('SET plan_cache_mode = force_generic_plan');
  const closure = await readRows<{ oid: number }>(control, fingerprint.get('roles'), [roles]);
  const oids = `{${closure.map(({ oid }) => oid).join(',')}}`;
  await control.query('DEALLOCATE ALL');
  const whole = `${withWatched(tier)}, moment as (${MOMENT}) ${fingerprint.get('fingerprint')}`;
  await control.prepare({ effectmatch_fingerprint: whole, effectmatch_moment: MOMENT });
  const ask = async (statement: WireStatement): Promise<TextRow | undefined> => {
    const { replies, failure } = await control.run([statement]);
    if (failure !== undefined) throw failure.error;
    return replies[0]?.rows[0];
  };
  let last: (Moment & { readonly content: string }) | undefined;
  let busyLooks = 0;
  return {
    async read(own) {
      const before = last;
      const stands = async (now: Moment) => {
        if (now.besides !== before?.besides) return false;
        if (endedOnly(own, before.snapshot, now.snapshot)) return true;
        // Other sessions see the end of a transaction before the session that ended it gets its
        // answer.
        await setImmediate();
        return endedOnly(own, before.snapshot, now.snapshot);
      };
      const looked =
        before &&
        busyLooks < BUSY_LOOKS &&
        readMoment(await ask({ prepared: 'effectmatch_moment' }));
      if (before && looked && (await stands(looked))) {
        last = { ...before, snapshot: looked.snapshot };
        busyLooks = 0;
      } else {
        const row = await ask({ prepared: 'effectmatch_fingerprint', values: [oids] });
        last = { ...readMoment(row), content: row?.[2] ?? '' };
        busyLooks = looked || !(await stands(last)) ? busyLooks + 1 : 0;
      }
      for (const id of own) if (id < last.snapshot.start) own.delete(id);
      return `${last.content} ${last.besides}`;
    },
  };
}

/**
 * After this many looks in a row that found transactions of other sessions, the catalogues are read
 * without looking first, until a read finds none.
 */
const BUSY_LOOKS = 8;

interface Moment {
  readonly snapshot: TransactionSnapshot;
  /** State that may change without a transaction ending. */
  readonly besides: string;
}

function readMoment(row: TextRow | undefined): Moment {
  const [snapshot, besides] = row ?? [];
  invariant(
    snapshot != null && besides != null,
    'the server states its snapshot, its counters and its settings',
  );
  return { snapshot: parseSnapshot(snapshot), besides };
}

/**
 * Adds the fingerprint to the survey's configuration. Two certificates are then equal only if
 * nothing was written in between, not merely if the configuration is the same again.
 */
export function bindFingerprint<S extends Survey>(survey: S, fingerprint: string): S {
  return { ...survey, configuration: `${survey.configuration} ${fingerprint}` };
}

/** What two fingerprints show besides row versions: counters that moved, and reloads. */
export function compareFingerprints(before: string, after: string): readonly string[] {
  const [was, is] = [readBesides(before), readBesides(after)];
  const counted = [...is.counters].flatMap(([catalog, count]) => {
    const old = was.counters.get(catalog);
    if (old === count) return [];
    return [
      `rows of ${catalog} were written and taken back (its counters went from ${old} to ${count})`,
    ];
  });
  return was.server === is.server
    ? counted
    : [...counted, 'the server was restarted or promoted, or read its configuration files again'];
}

/** A fingerprint is a digest, counters as `catalogue:count`, and the state of the server. */
function readBesides(text: string) {
  const [, ...words] = text.split(' ');
  const isCounter = (word: string) => word.startsWith('pg_');
  const counters = words.filter(isCounter).map((word) => word.split(':') as [string, string]);
  return {
    counters: new Map(counters),
    server: words.filter((word) => !isCounter(word)).join(' '),
  };
}

/** Which transactions had ended at one moment: all below `end` that are not `running`. */
interface TransactionSnapshot {
  readonly start: bigint;
  readonly end: bigint;
  readonly running: ReadonlySet<bigint>;
}

/**
 * Parses the text of `pg_current_snapshot()`: the oldest running transaction, the first that has
 * not begun, and all that are running.
 */
export function parseSnapshot(text: string): TransactionSnapshot {
  const [, start, end, running] = /^(\d+):(\d+):([\d,]*)$/.exec(text) ?? [];
  invariant(
    start !== undefined && end !== undefined && running !== undefined,
    'a snapshot has its usual form',
  );
  return {
    start: BigInt(start),
    end: BigInt(end),
    running: new Set(running.split(',').filter(Boolean).map(BigInt)),
  };
}

/** With more transactions than this in between, the configuration is read again instead. */
const COUNTED_MAX = 10_000n;

/**
 * Whether every transaction that ended between two snapshots is in `own`. A catalogue row is
 * written under a transaction id, and becomes visible when that transaction ends. If none of those
 * that ended wrote to a catalogue, the catalogues are unchanged. Subtransactions are not listed as
 * running, so one of another session looks as if it had ended, which only costs a read.
 */
export function endedOnly(
  own: ReadonlySet<bigint>,
  before: TransactionSnapshot,
  after: TransactionSnapshot,
): boolean {
  const isKnown = (id: bigint) => after.running.has(id) || own.has(id);
  for (const id of before.running) if (!isKnown(id)) return false;
  if (after.end - before.end > COUNTED_MAX) return false;
  for (let id = before.end; id < after.end; id += 1n) if (!isKnown(id)) return false;
  return true;
}
