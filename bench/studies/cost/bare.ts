import { generateKeyPairSync, hash, sign, verify } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Snapshot } from '../../data/state-bench.ts';
import { runnerFor } from '../public-outcomes/replay.ts';
import type { Execution } from '../public-outcomes/state-conditions.ts';

const KEYS = generateKeyPairSync('ed25519');
const DURABLE = 'pragma journal_mode = wal; pragma synchronous = full;';

/**
 * The minimum for any path that holds an approved change until it is decided: one signature, a
 * flushed claim, the calls on a copy, state and marker in one flushed commit, and a verdict without
 * a flush. It checks nothing else and is not safe. It shows how much of a ratio is due to flushes,
 * and how much to our own work.
 */
export function openBare(folder: string, initial: Snapshot) {
  const state = new DatabaseSync(join(folder, 'bare-state.db'));
  const ledger = new DatabaseSync(join(folder, 'bare-ledger.db'));
  state.exec(
    `${DURABLE} create table state (text text not null); create table marker (occurrence text primary key)`,
  );
  ledger.exec(
    `${DURABLE} create table journal (occurrence text, slot text, text text, primary key (occurrence, slot))`,
  );
  state.prepare('insert into state values (?)').run(JSON.stringify(initial));
  const select = state.prepare('select text from state');
  const update = state.prepare('update state set text = ?');
  const mark = state.prepare('insert into marker values (?)');
  const append = ledger.prepare('insert into journal values (?, ?, ?)');
  return {
    /** The approver's signed text. */
    approve: (text: string) => ({
      text,
      signature: sign(null, Buffer.from(text), KEYS.privateKey),
    }),
    run(
      { text, signature }: { readonly text: string; readonly signature: Buffer },
      { calls, kit }: Execution,
    ): void {
      if (!verify(null, Buffer.from(text), KEYS.publicKey, signature))
        throw new Error('the signature does not fit');
      const occurrence = hash('sha256', text);
      append.run(occurrence, 'claim', text);
      const runner = runnerFor({ calls, kit });
      const copy = JSON.parse(String(select.get()?.text)) as { [namespace: string]: unknown };
      for (const { tool, args } of calls) runner.run(copy, tool, args);
      state.exec('begin immediate');
      update.run(JSON.stringify(copy));
      mark.run(occurrence);
      state.exec('commit');
      ledger.exec('pragma synchronous = normal');
      append.run(occurrence, 'terminal', 'committed');
      ledger.exec('pragma synchronous = full');
    },
    read: (): unknown => JSON.parse(String(select.get()?.text)),
    reset: () => void update.run(JSON.stringify(initial)),
    [Symbol.dispose]() {
      state.close();
      ledger.close();
    },
  };
}
