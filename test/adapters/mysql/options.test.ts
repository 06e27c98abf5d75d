// Goal: options are read completely, with what may be left out filled in, and every mistake is
// refused by name. Method: options by hand, without a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  connectionParts,
  type MysqlOptions,
  readOptions,
} from '../../../src/adapters/mysql/options.ts';

const RIGHT = {
  control: 'mysql://c:pw@host/shop',
  execution: { user: 'e', database: 'shop', socketPath: '/run/s' },
  relations: ['t', { name: 'u', volatile: ['seen'] }],
} satisfies MysqlOptions;
const read = (changes: object) => readOptions({ ...RIGHT, ...changes } as MysqlOptions);

test('what is left out is filled in, and what is stated is kept', () => {
  assert.deepEqual(read({}), {
    relations: [
      { name: 't', volatile: [] },
      { name: 'u', volatile: ['seen'] },
    ],
    ...{ reads: [], reviews: [], business: 'shop', control: 'c', execution: 'e' },
    ...{ owner: 'effectmatch_owner', controlDatabase: 'effectmatch' },
    ...{ profile: 'net-state', values: 'plain', isolation: 'repeatable read' },
    ...{ stageTimeoutMs: 30_000, lockTimeoutMs: 2000 },
  });
  const stated = {
    ...{ owner: 'o', controlDatabase: 'k', profile: 'row-event', values: 'digest' },
    ...{ isolation: 'serializable', stageTimeoutMs: 5, lockTimeoutMs: 6 },
    ...{ reads: ['r'], reviews: ['x'] },
  };
  const settings: Readonly<Record<string, unknown>> = { ...read(stated) };
  for (const [name, value] of Object.entries(stated)) assert.deepEqual(settings[name], value);
});

test('an address is taken apart as a URL says', () => {
  assert.deepEqual(connectionParts('mariadb://a%40b:p%2Fw@host:33/my%20shop', 'x'), {
    ...{ host: 'host', port: 33, user: 'a@b', password: 'p/w', database: 'my shop' },
  });
  assert.equal(connectionParts('mysql://u@host/d', 'x').port, 3306);
});

const MISTAKES: readonly (readonly [changes: object, why: RegExp])[] = [
  [{ relation: ['t'] }, /unknown option "relation"/],
  [{ relations: [] }, /no relations/],
  [{ relations: ['t', 't'] }, /"t" is registered twice/],
  [{ relations: ['t'], reads: ['t'] }, /"t" is registered twice/],
  [{ relations: ['db.t'] }, /without it/],
  [{ relations: [''] }, /must be the name of a table/],
  [{ relations: ['t'], reads: [5] }, /relation 5 must be the name of a table/],
  [{ relations: [{ name: 't', volatiles: [] }] }, /unknown option "volatiles"/],
  [{ profile: 'registered-fields' }, /profile/],
  [{ isolation: 'read committed' }, /isolation/],
  [{ control: 'postgres://x/y' }, /control must be a URL such as mysql:/],
  [{ control: 'no address' }, /control must be a URL such as mysql:/],
  [{ execution: 'mysql://u@host/' }, /execution must be a URL such as mysql:/],
  [{ owner: 'a@b' }, /account "a@b": use letters/],
  [{ owner: 'x'.repeat(81) }, /use letters/],
  [{ owner: 'c' }, /three different accounts/],
  [{ execution: 'mysql://c@host/shop' }, /three different accounts/],
  [{ execution: 'mysql://e@host/other' }, /same database/],
  [{ controlDatabase: 'shop' }, /is the database of records/],
  [{ stageTimeoutMs: -1 }, /stageTimeoutMs/],
  [{ lockTimeoutMs: -1 }, /lockTimeoutMs/],
  [{ values: 'secret' }, /neither plain nor digest/],
];

test('every mistake is refused by name', () => {
  for (const [changes, why] of MISTAKES)
    assert.throws(() => read(changes), { code: 'ERR_EM_ADAPTER_REFUSED', message: why });
});
