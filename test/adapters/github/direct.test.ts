// Goal: the adapter itself refuses what the core would never hand it, and a read-back says why it
// found nothing. Method: the adapter's own methods against a server on loopback that gives fixed
// answers and counts writes.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { github } from '../../../src/adapters/github/index.ts';
import type { Approval, RemoteAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { requestDigest } from '../../../src/crypto/digest.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';

const OCCURRENCE = `occ_${'1'.repeat(40)}` as OccurrenceId;
const ISSUE = { number: 7, title: 'a', body: 'b', state: 'open', labels: [], assignees: [] };
const cells = { title: 'a', body: 'b', state: 'open', labels: [], assignees: [] };
const created = {
  op: 'insert',
  target: 'issue',
  after: Object.fromEntries(Object.entries(cells).map(([field, value]) => [field, { is: value }])),
  count: 1,
};
const changed = { ...created, op: 'update', key: { number: { is: 7 } } };
const approvalOf = (...effects: readonly object[]) =>
  ({ effects, requires: [] }) as unknown as Approval;

let adapter: RemoteAdapter;
let status = 200;
let writes = 0;
const server = createServer((request, response) => {
  if (request.method !== 'GET') writes += 1;
  const isIssue = request.url?.includes('/issues') ?? false;
  response.writeHead(isIssue ? status : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(isIssue ? ISSUE : { id: 1 }));
});

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const factory = github({ owner: 'octocat', repo: 'hello', token: 'gh-token', url });
  const opened = await factory.open({ name: 'tracker', clock: systemClock, reached: unobserved });
  adapter = opened as RemoteAdapter;
});
after(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('a request is derived from one change of one issue, and from nothing else', () => {
  const { content } = adapter.buildRequest(approvalOf(created), {});
  assert.equal((content as { readonly method: string }).method, 'POST');
  for (const effects of [[], [created, created], [{ ...created, count: 2 }]]) {
    assert.throws(
      () => adapter.buildRequest(approvalOf(...effects), {}),
      /one change is one request/,
    );
  }
});

test('only the request that its permit is bound to is sent, and no candidate is', async () => {
  const request = adapter.buildRequest(approvalOf(created), {});
  const { credentials } = await adapter.survey();
  const send = (bound: object) =>
    adapter.dispatch({ record: { occurrence: OCCURRENCE, bound }, credentials } as never, request);
  const other = adapter.buildRequest(
    approvalOf({ ...created, after: { ...created.after, title: { is: 'c' } } }),
    {},
  );
  const stage = { candidate: requestDigest(request), evidence: 'e', observed: 'o' };
  for (const bound of [{ request: requestDigest(other) }, stage, { ...stage, request: 'r' }]) {
    const { mayHaveSent } = await send(bound);
    assert.equal(mayHaveSent, false, JSON.stringify(bound));
  }
  assert.equal(writes, 0);
  assert.deepEqual(await send({ request: requestDigest(request) }), { mayHaveSent: true });
  assert.equal(writes, 1);
});

test('a read-back that finds no issue says whether there is none or GitHub did not answer', async () => {
  for (const [answered, why] of [
    [404, 'there is no such issue'],
    [410, 'there is no such issue'],
    [503, 'the service answered 503'],
  ] as const) {
    status = answered;
    const { channels } = await adapter.readBack(OCCURRENCE, undefined, approvalOf(changed));
    assert.deepEqual(channels, [{ channel: 'fields', kind: 'silent', why }]);
  }
  status = 200;
  const found = await adapter.readBack(OCCURRENCE, undefined, approvalOf(changed));
  assert.deepEqual(found.channels, [{ channel: 'fields', kind: 'records', count: 1 }]);
});
