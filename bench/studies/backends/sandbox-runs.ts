import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { snapshot } from '../../../src/adapters/snapshot/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { insert, remove, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import type { SandboxRow, SandboxState } from '../../data/toolsandbox.ts';
import { keepVerdict } from '../../facts.ts';
import { temporaryFolder } from '../../temporary.ts';
import sandboxTools from './sandbox-tools.ts';

export interface SandboxCall {
  readonly tool: string;
  readonly args: SandboxRow;
}

/** The durable state, and whether the run was committed. */
export interface SandboxEnd {
  readonly committed: boolean;
  readonly durable: SandboxState;
}

const KEYED = { SETTING: 'device_id', CONTACT: 'person_id', REMINDER: 'reminder_id' } as const;
const KEYS = generateApprover('study');

/** The tools work on the durable state, and their answers are trusted. */
export function runDirect(
  initial: SandboxState,
  calls: readonly SandboxCall[],
  now: number,
): SandboxEnd {
  using folder = temporaryFolder();
  using db = new DatabaseSync(join(folder.path, 'plain.db'));
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table state (text text not null)',
  );
  db.prepare('insert into state values (?)').run(JSON.stringify(initial));
  const tools = sandboxTools(now);
  const read = () =>
    JSON.parse(String(db.prepare('select text from state').get()?.text)) as SandboxState;
  for (const { tool, args } of calls) {
    const state = read();
    tools[tool]?.(state, args);
    db.prepare('update state set text = ?').run(JSON.stringify(state));
  }
  return { committed: true, durable: read() };
}

/** Runs the same calls under a license for the approved state. */
export async function runHeld(
  initial: SandboxState,
  calls: readonly SandboxCall[],
  now: number,
  approved: SandboxState,
): Promise<SandboxEnd> {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const file = join(folder, 'state.db');
  const collections = Object.entries(KEYED).map(([table, key]) => [
    table,
    { path: `/${table}`, key, order: 'ignored' as const },
  ]);
  await using runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: KEYS.publicKey, may: ['phone'] } },
    adapters: {
      phone: snapshot({
        file,
        initial,
        collections: Object.fromEntries(collections),
        // Two messages share an id, so messages are compared as whole rows.
        unordered: ['/MESSAGING'],
        tools: new URL('./sandbox-tools.ts', import.meta.url),
        toolData: now,
      }),
    },
  });
  const effects = sandboxEffects(initial, approved);
  const proposal = await runtime.prepare({
    adapter: 'phone',
    task: 'task',
    planRevision: 1,
    effects,
  });
  const license = approver(KEYS).sign(proposal, { expiresIn: '10m' });
  const terminal = keepVerdict(await runtime.execute(license, { calls }));
  using db = new DatabaseSync(file, { readOnly: true });
  const row = db.prepare('select text from effectmatch_state').get();
  return { committed: terminal.kind === 'committed', durable: JSON.parse(String(row?.text)) };
}

/**
 * The effects that turn the initial rows into the approved ones. Messages never change in these
 * scenarios.
 */
export function sandboxEffects(
  initial: SandboxState,
  approved: SandboxState,
): readonly ApprovedEffect[] {
  return Object.entries(KEYED).flatMap(([name, key]) => {
    const table = name as keyof typeof KEYED;
    const old = new Map(initial[table].map((row) => [row[key], row]));
    const kept = new Set(approved[table].map((row) => row[key]));
    const gone = [...old]
      .filter(([id]) => !kept.has(id))
      .map(([id, row]) => remove(table, { [key]: id ?? null }, rest(row, key)));
    const others = approved[table].flatMap((row) => {
      const before = old.get(row[key]);
      if (before === undefined) return [insert(table, row)];
      const changed = Object.keys(row).filter((column) => row[column] !== before[column]);
      const sides = changed.map((column) => [
        column,
        [before[column] ?? null, row[column] ?? null] as const,
      ]);
      return changed.length === 0
        ? []
        : [update(table, { [key]: row[key] ?? null }, Object.fromEntries(sides))];
    });
    return [...gone, ...others];
  });
}

function rest(row: SandboxRow, key: string): SandboxRow {
  return Object.fromEntries(Object.entries(row).filter(([column]) => column !== key));
}
