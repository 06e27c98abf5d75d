// Goal: reading statements takes little memory, also in the seconds after the first ones, in which
// V8 would optimise the parser. Method: a process of its own reads statements and watches its size.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadGate } from '../../../src/adapters/postgres/statement-gate.ts';

/** Optimising the parser took more than 500 MB; it began at once and grew for seconds. */
const ALLOWED_BYTES = 80e6;
const WATCHED_MS = 1500;

test('reading statements does not make the process grow', async () => {
  const gate = await loadGate();
  const procedures = new Set<string>();
  for (let id = 0; id < 400; id += 1)
    gate.check(`insert into entry (ref, amount) values ($1, ${id})`, procedures);
  const { rss } = process.memoryUsage();
  const until = performance.now() + WATCHED_MS;
  while (performance.now() < until) {
    const grown = process.memoryUsage().rss - rss;
    assert.ok(grown < ALLOWED_BYTES, `it grew by ${Math.round(grown / 1e6)} MB`);
    await sleep(50);
  }
});
