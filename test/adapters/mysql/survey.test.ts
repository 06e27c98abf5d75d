// Goal: each setting that a commit or the evidence depends on, each right too many or too few and
// each commit without a marker is open, with the statement that closes it. Method: a survey from
// facts by hand: settings that a test cannot give a server, such as Galera, included.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { surveyDatabase } from '../../../src/adapters/mysql/survey.ts';

const SETTINGS = readOptions({
  ...{ control: 'mysql://c@host/shop', execution: 'mysql://e@host/shop' },
  ...{ relations: ['invoice'], reads: ['vendor'] },
});
const SERVER = {
  ...{ innodb_flush_log_at_trx_commit: '1', innodb_doublewrite: 'ON', log_bin: '0' },
  ...{ innodb_flush_method: 'O_DIRECT', innodb_force_recovery: '0', wsrep_on: '0' },
  ...{ init_connect: '', sync_binlog: '0' },
};
const GRANTS = [
  'GRANT USAGE ON *.* TO `e`@`%`',
  'GRANT SELECT, INSERT ON `effectmatch`.`probe` TO `e`@`%`',
  ...['open', 'observe', 'promote'].map(
    (name) => `GRANT EXECUTE ON PROCEDURE \`effectmatch\`.\`${name}\` TO \`e\`@\`%\``,
  ),
  'GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`invoice` TO `e`@`%`',
  'GRANT SELECT ON `shop`.`vendor` TO `e`@`%`',
];

interface Facts {
  readonly server?: Readonly<Record<string, string>>;
  readonly grants?: readonly string[];
  readonly unmarked?: readonly string[];
}

/** What is open, and the statements that close it. */
function survey({ server = {}, grants = GRANTS, unmarked = [] }: Facts) {
  const settings = new Map(Object.entries({ ...SERVER, ...server }));
  const definitions = { outlets: [], fingerprint: 'f' } as never;
  const state = { counted: '', settings, unmarked, text: '' };
  const found = surveyDatabase(SETTINGS, { backend: 'b', definitions, server: state, grants });
  const open = found.outlets.filter(({ disposition }) => disposition === 'unclassified');
  return {
    open: open.map(({ outlet }) => outlet),
    why: open.map(({ by }) => by).join('\n'),
    fixes: found.remedies?.flatMap(({ fix }) => fix) ?? [],
  };
}

test('the rights of provisioning and a durable server leave nothing open', () => {
  assert.deepEqual(survey({}), { open: [], why: '', fixes: [] });
  assert.deepEqual(survey({ server: { log_bin: '1', sync_binlog: '1' } }).open, []);
  for (const innodb_doublewrite of ['1', 'ON'])
    assert.deepEqual(survey({ server: { innodb_doublewrite } }).open, []);
  for (const innodb_flush_method of ['fsync', 'O_DSYNC', 'O_DIRECT'])
    assert.deepEqual(survey({ server: { innodb_flush_method } }).open, []);
});

const UNSAFE: readonly (readonly [server: Record<string, string>, open: string, fix?: string])[] = [
  ...['0', '2', '3'].map(
    (value) =>
      [
        { innodb_flush_log_at_trx_commit: value },
        `innodb_flush_log_at_trx_commit = ${value}`,
        'set global innodb_flush_log_at_trx_commit = 1',
      ] as const,
  ),
  [{ innodb_doublewrite: 'OFF' }, 'innodb_doublewrite = OFF'],
  [{ innodb_doublewrite: '0' }, 'innodb_doublewrite = 0'],
  [{ innodb_flush_method: 'nosync' }, 'innodb_flush_method = nosync'],
  [{ innodb_flush_method: 'littlesync' }, 'innodb_flush_method = littlesync'],
  [{ innodb_flush_method: 'O_DIRECT_NO_FSYNC' }, 'innodb_flush_method = O_DIRECT_NO_FSYNC'],
  [{ innodb_force_recovery: '1' }, 'innodb_force_recovery = 1'],
  [{ wsrep_on: '1' }, 'wsrep_on = 1'],
  [{ init_connect: 'set @a = 1' }, 'init_connect = set @a = 1', "set global init_connect = ''"],
  [{ log_bin: '1' }, 'sync_binlog = 0', 'set global sync_binlog = 1'],
  [{ log_bin: '1', sync_binlog: '100' }, 'sync_binlog = 100', 'set global sync_binlog = 1'],
];

test('each setting under which a commit could be lost or SQL would run before ours is open', () => {
  for (const [server, outlet, fix] of UNSAFE) {
    const { open, fixes } = survey({ server });
    assert.deepEqual([open, fixes], [[outlet], fix === undefined ? [] : [fix]]);
  }
  assert.match(survey({ server: { wsrep_on: '1' } }).why, /Galera has no XA/);
});

test('each further right is open, with the statement that takes it away', () => {
  const further = {
    'GRANT FILE ON *.* TO `e`@`%`': "revoke FILE ON *.* from `e`@'%'",
    'GRANT INSERT ON `shop`.* TO `e`@`%`': "revoke INSERT ON `shop`.* from `e`@'%'",
    'GRANT SELECT ON `shop`.`hidden` TO `e`@`%` WITH GRANT OPTION':
      "revoke grant option ON `shop`.`hidden` from `e`@'%'",
    'GRANT SELECT ON `shop`.`hidden` TO PUBLIC': 'revoke SELECT ON `shop`.`hidden` from public',
  };
  for (const [line, fix] of Object.entries(further)) {
    const { open, fixes } = survey({ grants: [...GRANTS, line] });
    assert.deepEqual([open.length, fixes], [1, [fix]], line);
  }
  const disguised = GRANTS.map((line) => line.replace('`vendor`', '`vendor REQUIRE SSL`'));
  assert.equal(survey({ grants: disguised }).open.length, 2);
  const elsewhere = GRANTS.map((line) => line.replace('`%`', '`127.0.0.1`'));
  assert.ok(survey({ grants: elsewhere }).open.length > GRANTS.length);
});

test('a right that is missing is open, and provisioning gives it', () => {
  for (const missing of GRANTS) {
    const { open, why, fixes } = survey({ grants: GRANTS.filter((line) => line !== missing) });
    assert.deepEqual([open.length, fixes], [1, []], missing);
    assert.match(why, /provision again/);
  }
});

test('how the account logs in is no right', () => {
  const [usage = '', ...rest] = GRANTS;
  for (const terms of [
    " IDENTIFIED BY PASSWORD '*ABC'",
    " IDENTIFIED VIA ed25519 USING 'abc'",
    ' REQUIRE SSL',
    " IDENTIFIED BY PASSWORD '*ABC' REQUIRE X509 WITH MAX_USER_CONNECTIONS 40",
    ' WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 40',
  ])
    assert.deepEqual(survey({ grants: [usage + terms, ...rest] }).open, [], terms);
  const option = " IDENTIFIED BY PASSWORD '*ABC' REQUIRE SSL WITH GRANT OPTION";
  const { fixes } = survey({ grants: [usage + option, ...rest] });
  assert.deepEqual(fixes, ["revoke grant option ON *.* from `e`@'%'"]);
});

test('a commit without a marker is open', () => {
  const { open, why } = survey({ unmarked: ['occ_1', 'occ_2'] });
  assert.deepEqual(open, ['occurrence occ_1', 'occurrence occ_2']);
  assert.match(why, /committed without a marker/);
});
