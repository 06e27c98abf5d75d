import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { openAdapter } from '../../../src/adapters/snapshot/adapter.ts';
import type {
  CheckedSnapshotAction,
  SnapshotOptions,
} from '../../../src/adapters/snapshot/index.ts';
import type { Evidence, PromotableAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { approvedOutcome } from '../../../src/protocol/approve.ts';
import { draftManifest } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { prepareApproved } from '../../../src/protocol/match.ts';
import { establish } from '../../../src/protocol/observation.ts';
import { classify, type Outcome } from '../../../src/protocol/outcome.ts';
import { mintProofs } from '../../../src/testing/index.ts';

/** What `open` gives. */
export type SnapshotAdapter = PromotableAdapter<CheckedSnapshotAction>;

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-snapshot-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let names = 0;

/** A path in a folder that is removed after the test file. */
export function freshPath(): string {
  names += 1;
  return join(folder, `${names}.db`);
}

/** Opens the adapter as a runtime would; it is closed when the test file ends. */
export async function open(options: SnapshotOptions): Promise<SnapshotAdapter> {
  const adapter = await openAdapter(options, {
    name: 'shop',
    clock: systemClock,
    reached: unobserved,
  });
  after(() => adapter.close());
  return adapter;
}

/** Stages an action and fails where no candidate is held. */
export async function hold(adapter: SnapshotAdapter, name: string, action: unknown) {
  const proofs = mintProofs(adapter, name);
  const staged = await adapter.stage(proofs.claim, proofs.certificate, adapter.parseAction(action));
  assert.ok(staged.kind === 'held', JSON.stringify(staged));
  return { stage: staged.stage, proofs };
}

/** Stages an action that must fail, and says why it did. */
export async function failure(adapter: SnapshotAdapter, action: unknown) {
  const { claim, certificate } = mintProofs(adapter, 'failing');
  const staged = await adapter.stage(claim, certificate, adapter.parseAction(action));
  assert.ok(staged.kind === 'failed', 'the action was meant to fail');
  return staged;
}

/** The core's judgement about evidence against an approval of these effects. */
export async function judge(
  adapter: SnapshotAdapter,
  evidence: Evidence,
  effects: readonly ApprovedEffect[],
): Promise<Outcome> {
  const draft = draftManifest({ adapter: 'shop', task: 'task', planRevision: 1, effects });
  const approved = approvedOutcome(
    await adapter.normalise(draft),
    adapter.registration,
    '0'.repeat(32),
  );
  return classify(
    prepareApproved(approved),
    establish(evidence, adapter.registration, adapter.channels),
    evidence,
  );
}

/** Runs statements on the file as someone else would. */
export function change(file: string, sql: string): void {
  using db = new DatabaseSync(file);
  db.exec(sql);
}

/** What an independent connection finds in the file. */
export function look(file: string, sql: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true });
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
}

/** The durable state and how many texts of states the file holds. */
export function durable(file: string): {
  readonly version: number;
  readonly state: unknown;
  readonly texts: number;
} {
  const rows = look(file, 'select version, text from effectmatch_state') as {
    version: number;
    text: string;
  }[];
  const [row] = rows;
  assert.ok(row);
  return { version: row.version, state: JSON.parse(row.text), texts: rows.length };
}
