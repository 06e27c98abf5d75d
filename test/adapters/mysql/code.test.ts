// Goal: code that a write may run is refused if it could act outside the transaction, touch the
// records or change the session, and other code is not. Method: texts are judged directly, against
// the tables, routines and variables of a real server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type CodeFinding,
  digestOf,
  judgeCode,
  objectName,
} from '../../../src/adapters/mysql/code.ts';
import { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { freshDatabase, type MariadbDatabase, startServer } from '../../mysql/server.ts';

const SCHEMA = `
  create table plain (id int primary key);
  create table watched (id int primary key);
  create table loose (id int) engine = myisam;
  create table \`odd name\` (id int) engine = aria;
  create sequence numbers;
  create table drawing (id int primary key, n int default nextval(numbers));
  create table setting (id int primary key, n int default (setval(numbers, 9) + 1));
  create view seen as select id from loose;
  create function safe() returns int return 1;
  create function outer_() returns int return inner_();
  create function inner_() returns int modifies sql data begin insert into loose values (1); return 1; end;
  create function loop_() returns int return loop_();
  create function \`d\u00e9j\u00e0\`() returns int return 1;
  create trigger effectmatch_real after insert on watched for each row set @x = 1;
  create trigger own after insert on plain for each row insert into loose values (new.id);
`;

/** Texts, and what is wrong with them; undefined where nothing is. */
const JUDGED: readonly (readonly [text: string, problem: RegExp | undefined])[] = [
  ['set @x = 1', undefined],
  ['begin declare a int; set a = 2; end', undefined],
  ['set new.names = 1', undefined],
  ['set new.timestamp = 1', undefined],
  ['insert into watched values (1)', undefined],
  ['insert into names values (1)', undefined],
  ['insert into transaction values (1); set @x = 1', undefined],
  ['set @x = safe()', undefined],
  ['set @x = loop_()', undefined],
  ['select sql_mode', undefined],
  ['', /cannot be read/],
  ['/*!50000 set @x = 1 */', /executable comment/],
  ['/*M!50000 set @x = 1 */', /executable comment/],
  ['set @@sql_mode = 1', /system variable/],
  ["select 1 into outfile 'x'", /"outfile"/],
  ["select 1 into dumpfile 'x'", /"dumpfile"/],
  ["set @x = load_file('x')", /"load_file"/],
  ['set global max_connections = 1', /"global"/],
  ['update mysql.proc set body = 1', /"mysql"/],
  ['update `mysql`.`proc` set body = 1', /"mysql"/],
  ['update performance_schema.threads set x = 1', /"performance_schema"/],
  ["xa end 'x'", /"xa"/],
  ['SET STATEMENT sql_mode = 1 FOR SELECT 1', /"statement"/],
  ['kill 5', /"kill"/],
  ['shutdown', /"shutdown"/],
  ['create temporary table plain (id int)', /"temporary"/],
  ['insert into loose values (1)', /loose .*MyISAM/],
  ['insert into LOOSE values (1)', /loose .*MyISAM/],
  ['insert into {db}.loose values (1)', /loose .*MyISAM/],
  ['insert into `odd name` values (1)', /odd name .*Aria/],
  ['set @x = nextval(numbers)', /numbers .*SEQUENCE/],
  ['set sql_mode = 1', /session variable "sql_mode"/],
  ['set @x = 1, timestamp = 1', /session variable "timestamp"/],
  ['insert_id := 7', /session variable "insert_id"/],
  ['set names latin1', /session variable "names"/],
  ['set @x = 1, charset latin1', /session variable "charset"/],
  ['set char set latin1', /session variable "char set"/],
  ['set character set latin1', /session variable "character set"/],
  ['set transaction isolation level serializable', /session variable "transaction isolation"/],
  ['set session transaction read only', /session variable "transaction read"/],
  ['insert into -- of x.\n loose values (1)', /loose .*MyISAM/],
  ['insert into #x.\n loose values (1)', /loose .*MyISAM/],
  ['insert into {db}/**/.loose values (1)', /loose .*MyISAM/],
  ['insert into {db}./* x */loose values (1)', /loose .*MyISAM/],
  ['insert into {db} . `loose` values (1)', /loose .*MyISAM/],
  ['set @x = nextval(-- x.\n numbers)', /numbers .*SEQUENCE/],
  ['set -- x.\n timestamp = 1', /session variable "timestamp"/],
  ['set #x.\n names latin1', /session variable "names"/],
  ['set char /* x */ set latin1', /session variable "char set"/],
  ['set transaction -- x\n isolation level serializable', /session variable "transaction iso/],
  ['set new.`timestamp` = 1', undefined],
  ['set `new`.timestamp = 1', undefined],
  ["change /* x */ master to master_host = 'x'", /"change master"/],
  ['start slave', /"start slave"/],
  ['start all slaves', /"start all"/],
  ['stop replica', /"stop replica"/],
  ["purge binary logs to 'x'", /"purge binary"/],
  ["create server s foreign data wrapper x options (host 'x')", /"create server"/],
  ["create or replace server s foreign data wrapper x options (host 'x')", /"replace server"/],
  ['drop server if exists s', /"drop server"/],
  ["binlog 'x'", /"binlog"/],
  ['insert into watched (id) select master from start', undefined],
  ['delete from records_of_test.record', /database of records/],
  ['delete from `Records_Of_Test`.record', /database of records/],
];

test('no two objects of the server have the same name', () => {
  assert.equal(objectName('function', 'db', 'f'), 'function db.f');
  const same = [
    ['a.b', 'c'],
    ['a', 'b.c'],
    ['a', 'b`.`c'],
    ['a', '`b.c`'],
    ['a', '`b', 'c`'],
    ['a', 'b', 'c'],
    ['`a.b`', 'c'],
  ];
  assert.equal(new Set(same.map((parts) => objectName('view', ...parts))).size, same.length);
});

describe('MariaDB: code', { skip: skipWithoutMariadb() }, () => {
  let db: MariadbDatabase;
  let connection: MysqlConnection;
  const recorders = new Set<string>();
  const judge = async (text: string, schema = db.name): Promise<readonly CodeFinding[]> => {
    const first = [{ name: 'trigger', schema, text: text.replace('{db}', db.name) }];
    return await judgeCode(connection, first, { controlDatabase: 'records_of_test', recorders });
  };
  const own = (findings: readonly CodeFinding[]) =>
    findings.find(({ object }) => object === 'trigger')?.problem;

  before(async () => {
    db = await freshDatabase();
    await db.run(SCHEMA);
    connection = await MysqlConnection.open(db.url(), 30_000);
  });
  after(async () => {
    connection.close();
    await db.drop();
  });

  test('is judged by the words it has', async () => {
    for (const [text, problem] of JUDGED) {
      const found = own(await judge(text));
      if (problem === undefined) assert.equal(found, undefined, text);
      else assert.match(found ?? '', problem, text);
    }
  });

  test('of the database of records is refused whatever it says', async () => {
    assert.match(own(await judge('set @x = 1', 'Records_of_test')) ?? '', /database of records/);
  });

  test('that it reaches is judged too: routines, views, defaults, and triggers by any name but a recorder', async () => {
    const reached = async (text: string) => {
      const findings = await judge(text);
      return findings
        .filter(({ object }) => object !== 'trigger')
        .map(({ object, problem }) => [object.replaceAll(db.name, 'db'), problem !== undefined]);
    };
    const foreign = ['function db.d\u00e9j\u00e0', false] as const;
    assert.deepEqual(await reached('set @x = outer_()'), [
      foreign,
      ['function db.inner_', true],
      ['function db.outer_', false],
    ]);
    assert.deepEqual(await reached('select id from seen'), [foreign, ['view db.seen', true]]);
    assert.deepEqual(await reached('insert into plain values (1)'), [
      foreign,
      ['trigger db.own', true],
    ]);
    assert.deepEqual(await reached('insert ignore into drawing (id) values (1)'), [
      ['default of db.drawing.n', true],
      foreign,
    ]);
    assert.deepEqual(await reached('insert ignore into setting (id) values (1)'), [
      ['default of db.setting.n', true],
      foreign,
    ]);
    const watched = 'insert into watched values (1)';
    assert.deepEqual(await reached(watched), [foreign, ['trigger db.effectmatch_real', false]]);
    recorders.add(`trigger ${db.name}.effectmatch_real`);
    assert.deepEqual(await reached(watched), [foreign]);
    assert.deepEqual(await reached('set @x = s\u00e1fe()'), [foreign, ['function db.safe', false]]);
  });

  test('has a digest of its name and text, and none is read if there is nothing to judge', async () => {
    const [finding] = await judge('set @x = 1');
    assert.ok(finding);
    const digest = (await judge('set @x = 1')).find(({ object }) => object === 'trigger')?.digest;
    assert.equal(digest, digestOf('trigger', 'set @x = 1'));
    assert.notEqual(digest, digestOf('trigger', 'set @x = 2'));
    assert.notEqual(digest, digestOf('other', 'set @x = 1'));
    const ours = { controlDatabase: 'records_of_test', recorders };
    assert.deepEqual(await judgeCode(undefined as never, [], ours), []);
  });

  test('finds a table by every spelling that the server takes for its name', async () => {
    await using server = await startServer({ 'lower-case-table-names': '1' });
    const own = await server.createDatabase();
    await own.run(`set names utf8mb4; create table \`\u039b\u039f\u039f\u03a3\u0395\u03a3\` (id int) engine = myisam;
      create table item (id int) engine = myisam`);
    await using connection = await MysqlConnection.open(own.url(), 30_000);
    for (const name of ['\u039b\u039f\u039f\u03a3\u0395\u03a3', '\u0130tem', 'ITEM']) {
      await own.run(`set names utf8mb4; insert into ${name} values (1)`);
      const text = `insert into ${name} values (1)`;
      const first = [{ name: 'trigger', schema: own.name, text }];
      const ours = { controlDatabase: 'records_of_test', recorders };
      const [finding] = await judgeCode(connection, first, ours);
      assert.match(finding?.problem ?? '', /MyISAM/, name);
    }
  });

  test('that runs counts where it differs from what is shown, in any character set', async () => {
    await db.run(`create function two() returns int return 1;
      update mysql.proc set body = 'return loose' where db = '${db.name}' and name = 'two'`);
    const problemOf = async () =>
      (await judge('set @x = two()')).find(({ object }) => object.endsWith('.two'))?.problem;
    assert.match((await problemOf()) ?? '', /loose/);
    await db.run(`update mysql.proc set body = concat('return ', x'ff', 's', x'e1', 'fe()')
      where db = '${db.name}' and name = 'two'`);
    const reached = await judge('set @x = two()');
    assert.ok(reached.some(({ object }) => object.endsWith('.two')));
    assert.equal(await problemOf(), undefined);
    await db.run(`update mysql.proc set body = '', body_utf8 = null
      where db = '${db.name}' and name = 'two'`);
    assert.equal(await problemOf(), 'its text cannot be read');
  });
});
