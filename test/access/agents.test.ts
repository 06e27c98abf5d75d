// Goal: a mistake in the description of an agent is refused, and its pace is kept. Method: the
// functions themselves, with a clock that the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAgents } from '../../src/access/agents.ts';
import type { AgentConfig } from '../../src/access/configuration.ts';
import { Pace } from '../../src/access/pace.ts';
import { digestOfHeader, newToken } from '../../src/access/token.ts';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { checkConfiguration } from '../../src/runtime/configuration.ts';

const adapters = { books: sqlite({ file: 'books.db', relations: ['payment'] }) };
const { digest } = newToken();

test('an agent that is misspelt, or names what does not exist, is refused', () => {
  const mistakes: [unknown, RegExp][] = [
    [{ token: 'emt_secret' }, /agent "a": `token` must be a digest/],
    [{ token: [digest, 7] }, /`token` must be a digest/],
    [{ tokens: digest }, /agent "a": .*tokens/],
    [{ operations: ['pay'] }, /`operations` names "pay", which does not exist/],
    [{ operations: ['toString'] }, /`operations` names "toString"/],
    [{ sql: 'books' }, /`sql` must be a list of names/],
    [{ read: ['ledger'] }, /`read` names "ledger", which does not exist/],
    [{ callsPerMinute: 0 }, /`callsPerMinute` must be a whole number from 1 to/],
    [null, /it is not an object/],
  ];
  for (const [mistake, message] of mistakes) {
    const agents = { a: mistake as AgentConfig };
    const refused = { code: 'ERR_EM_CONFIG_INVALID', message };
    assert.throws(() => readAgents({ agents, adapters }), refused, String(message));
  }
  const twins = { a: { token: digest }, b: { token: [digest] } };
  assert.throws(() => readAgents({ agents: twins, adapters }), /two agents have the same token/);
  assert.throws(() => readAgents({ agents: { 'a b': {} }, adapters }), /its name must be/);
  const config = { store: 's', keyring: 'k', issuers: {}, adapters, agents: 'a' };
  assert.throws(() => checkConfiguration(config), /`agents` must name/);
});

test('only a whole token in the right form has a digest', () => {
  const { token, digest: expected } = newToken();
  assert.equal(digestOfHeader(`Bearer ${token}`), expected);
  for (const header of [undefined, '', token, `bearer ${token}`, `Bearer ${token} `, 'Bearer emt_'])
    assert.equal(digestOfHeader(header), undefined, String(header));
});

test('a pace allows so many calls at once, and as many in every minute', () => {
  let now = 0;
  const pace = new Pace(3, () => now);
  const take = (times: number) => Array.from({ length: times }, () => pace.take());
  assert.deepEqual(take(4), [true, true, true, false]);
  now += 20_000;
  assert.deepEqual(take(2), [true, false]);
  now += 3_600_000;
  assert.deepEqual(take(4), [true, true, true, false]);
});
