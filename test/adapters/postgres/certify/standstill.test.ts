// Goal: two snapshots count as a standstill exactly where every transaction that ended in between
// is one that was named. Method: random histories of transactions that begin and end, with the
// answer computed from the history itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { endedOnly, parseSnapshot } from '../../../../src/adapters/postgres/certify/fingerprint.ts';

/** A server that hands out transaction ids in order. */
class History {
  next = 100n;
  readonly running = new Set<bigint>();
  readonly ended = new Set<bigint>();

  step(choice: number): void {
    const running = [...this.running];
    const victim = running[choice % (running.length + 1)];
    if (victim === undefined) {
      this.running.add(this.next);
      this.next += 1n;
    } else {
      this.running.delete(victim);
      this.ended.add(victim);
    }
  }

  /** As PostgreSQL writes it. */
  snapshot(): string {
    const running = [...this.running].sort((a, b) => (a < b ? -1 : 1));
    return `${running[0] ?? this.next}:${this.next}:${running.join(',')}`;
  }
}

test('a standstill is an interval in which nobody else ended', () => {
  const steps = fc.array(fc.nat(6), { maxLength: 30 });
  fc.assert(
    fc.property(
      steps,
      steps,
      fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
      (early, late, named) => {
        const history = new History();
        for (const choice of early) history.step(choice);
        const before = { text: history.snapshot(), ended: new Set(history.ended) };
        for (const choice of late) history.step(choice);
        const own = new Set([...history.ended].filter((id) => named[Number(id - 100n)]));
        const strangers = [...history.ended].filter((id) => !before.ended.has(id) && !own.has(id));
        const found = endedOnly(own, parseSnapshot(before.text), parseSnapshot(history.snapshot()));
        assert.equal(found, strangers.length === 0);
      },
    ),
    { numRuns: 2000 },
  );
});

test('an interval too long to look through is none', () => {
  assert.equal(
    endedOnly(new Set(), parseSnapshot('5:5:'), parseSnapshot('5:90000000000:5')),
    false,
  );
});

test('what is no snapshot is an error, not a standstill', () => {
  for (const text of ['', '5', 'a:b:c', '5:x:'])
    assert.throws(() => endedOnly(new Set(), parseSnapshot(text), parseSnapshot('5:5:')), text);
});
