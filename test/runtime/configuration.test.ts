// Goal: a configuration that says something nobody knows, or lacks something, is refused by name
// before anything is opened. Method: one configuration whose store and adapter fail when they are
// opened, changed in one place at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateApprover } from '../../src/crypto/approver.ts';
import { createRuntime, type RuntimeConfig } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';

const { publicKey: key } = generateApprover('alice');
const open = async () => assert.fail('nothing may be opened');
const usable = {
  store: { open },
  keyring: testKeyring(),
  issuers: { alice: { key, may: ['books'] } },
  adapters: { books: { open } },
};
const issuer = (fields: object) => ({
  ...usable,
  issuers: { alice: { ...usable.issuers.alice, ...fields } },
});

const WRONG: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /it is not an object/],
  ['effectmatch.config.ts', /it is not an object/],
  [{}, /`store` is missing/],
  [{ ...usable, store: 5 }, /`store` is missing/],
  [{ ...usable, keyring: undefined }, /`keyring` is missing/],
  [{ ...usable, issuers: undefined }, /`issuers` is missing/],
  [{ ...usable, adapters: undefined }, /`adapters` is missing/],
  [{ ...usable, adapters: { books: 'books.db' } }, /adapter "books" is not an adapter/],
  [{ ...usable, operators: null }, /`operators` must name/],
  [{ ...usable, operators: 5 }, /`operators` must name/],
  [{ ...usable, operations: 5 }, /`operations` must name/],
  [{ ...usable, operations: { pay: null } }, /`operations` must name/],
  [{ ...usable, leaseMs: 0 }, /leaseMs must be/],
  [
    { ...usable, operator: {} },
    /unknown option "operator" \(did you mean "operators".*\); there are store, keyring/,
  ],
  [
    { ...usable, operators: { night: { key, may: [] } } },
    /operator "night".*unknown option "may".*; there are key$/,
  ],
  [
    issuer({ limit: { maxEffects: 1 } }),
    /issuer "alice".*unknown option "limit" \(did you mean "limits"\?\)/,
  ],
  [
    issuer({ source: ['contract'] }),
    /issuer "alice".*unknown option "source" \(did you mean "sources"\?\)/,
  ],
  [issuer({ limits: { maxEffect: 1 } }), /issuer "alice", limits: unknown option "maxEffect"/],
  [
    issuer({ limits: Object.create({ maxEffects: 1 }) }),
    /issuer "alice", limits: options must be a plain object/,
  ],
  [issuer({ limits: new Map([['maxEffects', 1]]) }), /limits: options must be a plain object$/],
  [issuer({ limits: [{ maxEffects: 1 }] }), /limits: options must be a plain/],
  [issuer({ limits: true }), /limits: options must be an object/],
  [issuer({ limits: null }), /limits: options must be an object$/],
  [
    {
      ...usable,
      issuers: { alice: Object.assign(Object.create({ limit: {} }), usable.issuers.alice) },
    },
    /issuer "alice": options must be a plain object/,
  ],
  [
    Object.assign(Object.create({ leaseMS: 1 }), usable),
    /^the configuration: options must be a plain object/,
  ],
];

for (const [config, what] of WRONG) {
  test(`refused: ${what.source}`, async () => {
    await assert.rejects(createRuntime(config as RuntimeConfig), {
      code: 'ERR_EM_CONFIG_INVALID',
      message: what,
    });
  });
}

test('what was changed above would be opened as it stands', async () => {
  await assert.rejects(createRuntime(usable), { message: 'nothing may be opened' });
});
