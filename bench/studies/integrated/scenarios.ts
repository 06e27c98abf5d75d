import { isDeepStrictEqual } from 'node:util';
import type { ConsumedPermit } from '../../../src/contract/proof.ts';
import { unclassified } from '../../../src/protocol/boundary.ts';
import { compareStates } from '../../facts.ts';
import { type Books, payment, readBack, withPaid } from '../boundary/shop.ts';
import { EXEC, type Office, type Site } from '../boundary/site.ts';
import { describe, type Ended, isRejectedAt } from '../boundary/trial.ts';
import type { Watch } from '../boundary/watch.ts';

/** One way a five-effect operation goes. */
export interface Scenario {
  readonly name: string;
  /**
   * Whether the certificate of the beginning is presented again at the final gate: the ablation.
   */
  readonly reuses?: boolean;
  /** SQL as superuser that takes back what the scenario changed. */
  readonly restore?: string;
  /** Plays it and returns what was not as expected; rows are compared by `run`. */
  play(trial: Trial): Promise<Played>;
}

export interface Trial {
  readonly site: Site;
  readonly office: Office;
  readonly watch: Watch;
  /** The invoice that is approved to be paid. */
  readonly id: number;
}

export interface Played {
  readonly wrong?: string | undefined;
  /** Invoices that must be paid when all is over; every other row must be as it was. */
  readonly paid: readonly number[];
}

const EXPOSE = `grant pg_write_server_files to ${EXEC}`;
const HIDE = `revoke pg_write_server_files from ${EXEC}`;
const GRANT_TEMP = `grant temporary on database shop to ${EXEC}`;
const REVOKE_TEMP = `revoke temporary on database shop from ${EXEC}`;

export const CLEAN: Scenario = { name: 'clean five-effect operation: committed', play: payCleanly };
export const EXTRA: Scenario = {
  name: 'extra write to the sibling outbox: rejected',
  async play({ office, id }) {
    const write = { sql: 'insert into app.outbox values ($1, $2)', values: [id, 'sent'] };
    const ended = await office.execute(await office.approve(id), {
      statements: [payment(id), write],
    });
    const isDiverged =
      !(ended instanceof Error) &&
      ended.kind === 'rejected' &&
      ended.at === 'comparison' &&
      ended.outcome?.kind === 'DIVERGED' &&
      isDeepStrictEqual(
        ended.outcome.diff.extra.map(({ target }) => target),
        ['app.outbox'],
      ) &&
      ended.outcome.diff.missing.length + ended.outcome.diff.altered.length === 0;
    return { wrong: isDiverged ? undefined : describe(ended), paid: [] };
  },
};
export const EXPOSED: Scenario = {
  name: 'host capability exposed before preparation: refused',
  restore: HIDE,
  async play({ site, office, watch, id }) {
    const license = await office.approve(id);
    await site.db.run(EXPOSE);
    const ended = await office.execute(license, payment(id));
    return { wrong: expectOpen(ended, 'boundary', watch, /pg_write_server_files/), paid: [] };
  },
};
export const GRANTED: Scenario = {
  name: 'host capability granted after preparation: refused at the final gate',
  restore: HIDE,
  async play({ site, office, watch, id }) {
    watch.held = async () => void (await site.db.run(EXPOSE));
    const ended = await office.execute(await office.approve(id), payment(id));
    return { wrong: expectOpen(ended, 'final-gate', watch, /pg_write_server_files/), paid: [] };
  },
};
export const REPLAYED: Scenario = {
  name: 'license of a consumed permit executed again: no second commit',
  async play({ office, id }) {
    const license = await office.approve(id);
    const first = await office.execute(license, payment(id));
    const again = await office.execute(license, payment(id));
    const isSpent =
      !(again instanceof Error) && again.kind === 'rejected' && again.reason === 'spent';
    const wrong = expectCommitted(first) ?? (isSpent ? undefined : describe(again));
    return { wrong, paid: [id] };
  },
};
export const PRESENTED: Scenario = {
  name: 'consumed permit presented for another held candidate: no second commit',
  async play({ site, office, watch, id }) {
    let consumed: ConsumedPermit | undefined;
    // The first candidate is promoted with its own permit, the next one with the same again.
    watch.present = (own) => (consumed ??= own);
    const first = await office.execute(await office.approve(id), payment(id));
    const other = site.nextInvoice();
    const again = await office.execute(await office.approve(other), payment(other));
    const isRefused =
      !(again instanceof Error) &&
      again.kind === 'rejected' &&
      again.at === 'promotion' &&
      again.reason === 'permit-mismatch';
    const wrong = expectCommitted(first) ?? (isRefused ? undefined : describe(again));
    return { wrong, paid: [id] };
  },
};
export const TEMP: Scenario = {
  name: 'TEMP granted after staging, fresh certificate: refused at the final gate',
  restore: REVOKE_TEMP,
  async play({ site, office, watch, id }) {
    watch.held = async () => void (await site.db.run(GRANT_TEMP));
    const ended = await office.execute(await office.approve(id), payment(id));
    return { wrong: expectOpen(ended, 'final-gate', watch, /^TEMPORARY ON DATABASE/), paid: [] };
  },
};
export const TEMP_REUSED: Scenario = {
  name: 'TEMP granted after staging, certificate reused (ablation): committed',
  reuses: true,
  restore: REVOKE_TEMP,
  async play(trial) {
    const { site, watch } = trial;
    watch.held = async () => void (await site.db.run(GRANT_TEMP));
    return await payCleanly(trial);
  },
};
export const TEMP_REPLAYED: Scenario = {
  name: 'the same, and its license and permit presented again: no second commit',
  reuses: true,
  restore: REVOKE_TEMP,
  async play(trial) {
    const { site, office, watch, id } = trial;
    watch.held = async () => void (await site.db.run(GRANT_TEMP));
    const other = site.nextInvoice();
    // Both approvals before the grant: nothing is approved on an open boundary.
    const license = await office.approve(id);
    const second = await office.approve(other);
    let consumed: ConsumedPermit | undefined;
    watch.present = (own) => (consumed ??= own);
    const first = await office.execute(license, payment(id));
    const again = await office.execute(license, payment(id));
    const presented = await office.execute(second, payment(other));
    const isSecond = [again, presented].find(({ kind }) => kind === 'committed');
    const wrong = expectCommitted(first) ?? (isSecond && describe(isSecond));
    return { wrong, paid: [id] };
  },
};
export const CLEAN_REUSED: Scenario = {
  name: 'clean five-effect operation, certificate reused (control): committed',
  reuses: true,
  play: payCleanly,
};

async function payCleanly({ office, id }: Trial): Promise<Played> {
  return {
    wrong: expectCommitted(await office.execute(await office.approve(id), payment(id))),
    paid: [id],
  };
}

function expectCommitted(ended: Ended): string | undefined {
  return !(ended instanceof Error) && ended.kind === 'committed' ? undefined : describe(ended);
}

/** Refused there, and what the last survey found open is this and nothing else. */
function expectOpen(
  ended: Ended,
  at: 'boundary' | 'final-gate',
  watch: Watch,
  open: RegExp,
): string | undefined {
  if (!isRejectedAt(ended, at)) return describe(ended);
  const last = watch.surveys.at(-1);
  const found = last === undefined ? [] : unclassified(last);
  const isThat = found.length > 0 && found.every(({ outlet }) => open.test(outlet));
  return isThat
    ? undefined
    : `open was ${found.map(({ outlet }) => outlet).join(', ') || 'nothing'}`;
}

/** One trial with a separate runtime; its rows are read before and after by other code. */
export async function runScenario(
  site: Site,
  { play, reuses, restore }: Scenario,
): Promise<string | undefined> {
  const id = site.nextInvoice();
  const before: Books = await readBack(site.db);
  const watch: Watch = { surveys: [], reuses: reuses ? 'certificate' : undefined };
  let played: Played;
  {
    await using office = await site.open({ watch });
    played = await play({ site, office, watch, id });
  }
  const after = await readBack(site.db);
  if (restore !== undefined) await site.db.run(restore);
  const approved = withPaid(before, played.paid);
  const { isApproved } = compareStates({ initial: before, approved, durable: after });
  return played.wrong ?? (isApproved ? undefined : 'the rows read back are others');
}
