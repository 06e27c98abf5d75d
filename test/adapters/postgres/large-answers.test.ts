// Goal: no statement of an agent takes the process down with the size of its answer.
// Method: one value, many rows, and row images, each larger than a session accepts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { demandHeld, openPort, type Port } from './drive.ts';

let port: Port;
before(async () => {
  port = await openPort('create table note (id int primary key, body text)', {
    relations: ['note'],
  });
});
after(async () => {
  await port[Symbol.asyncDispose]();
});

for (const [what, sql] of [
  ['one large value', "select repeat('x', 540000000)"],
  ['many rows', "select repeat('x', 10000000) from generate_series(1, 60)"],
  [
    'large rows that are written',
    "insert into note select g, repeat('x', 5000000) from generate_series(1, 56) as g",
  ],
] as const) {
  test(`${what}: the operation fails, nothing remains, and the next one works`, async () => {
    const attempt = await port.hold({ sql });
    assert.equal(attempt.kind, 'failed');
    assert.match(attempt.kind === 'failed' ? attempt.detail : '', /more than 256 MiB/);
    const next = demandHeld(await port.hold({ sql: "insert into note values (2, 'b')" }));
    assert.equal(next.observation.kind, 'complete');
    await next.stage.discard();
    assert.deepEqual(await port.db.run('select id from note'), []);
  });
}
