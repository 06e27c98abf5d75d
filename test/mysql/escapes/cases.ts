import { generated, insert, remove, update } from '../../../src/protocol/draft.ts';
import type { MariadbEscape } from './case.ts';

const PAY = "update invoice set status = 'paid' where id = 1";

/** Statements that are not admitted, whatever stands around them. */
const NOT_ADMITTED = [
  ...['commit', 'commit work', 'rollback', 'begin', 'start transaction', 'commit and chain'],
  ...['savepoint a', 'rollback to savepoint a', 'release savepoint a', 'set autocommit = 1'],
  ...["xa end 'x'", "xa commit 'x' one phase", "xa prepare 'x'", "xa rollback 'x'", 'xa recover'],
  ...['/*!50000 commit */', '/*M!100000 commit */', '/* */ commit', 'commit -- x', 'commit;'],
  ...["execute immediate 'commit'", "prepare p from 'commit'", 'begin not atomic commit; end'],
  ...['set statement foreign_key_checks = 0 for delete from invoice where id = 3'],
  ...['set foreign_key_checks = 0', 'set insert_id = 77', 'set timestamp = 1', "set sql_mode = ''"],
  ...['set check_constraint_checks = 0', "set time_zone = '+05:00'", 'set @a = 1', 'set role none'],
  ...[
    'call proc()',
    'do act()',
    'handler invoice open',
    'lock tables invoice write',
    'unlock tables',
  ],
  ...[
    "load data infile '/etc/passwd' into table line",
    "load data local infile 'x' into table line",
  ],
  ...['create table t (a int)', 'create temporary table t (a int)', 'drop table invoice'],
  ...['truncate invoice', 'alter table invoice add z int', 'rename table invoice to i2'],
  ...[
    'create or replace view v as select 1',
    'create trigger t before insert on line for each row set @a = 1',
  ],
  ...[
    'create event e on schedule every 1 second do select 1',
    'create sequence s2',
    'flush tables',
  ],
  ...['analyze table invoice', 'optimize table invoice', 'grant select on *.* to public', 'kill 1'],
  ...[
    'shutdown',
    'install soname "x"',
    'purge binary logs to "x"',
    'change master to master_host = "x"',
  ],
  ...["help 'x'", 'backup stage start', 'backup lock invoice', 'start slave', 'reset query cache'],
  ...[
    "set password = password('x')",
    'set default role none',
    'do get_lock("a", 0)',
    'do sleep(1)',
  ],
  ...["install plugin x soname 'y'", 'use mysql', 'deallocate prepare p', 'execute p using 1'],
  ...["binlog 'x'", 'checksum table invoice', 'get diagnostics @a = number', 'show warnings'],
  ...['show processlist', 'explain select 1', 'analyze select 1', 'signal sqlstate "45000"'],
  ...[
    'select 1; commit',
    'select 1; select 2',
    'update invoice set amount = 1 where id = 2; commit',
  ],
];

const notAdmitted: readonly MariadbEscape[] = NOT_ADMITTED.map((text) => ({
  name: `statement: ${text}`,
  sql: [PAY, text],
  ends: { rejected: /^stage denied .*is not one SELECT, INSERT/ },
}));

/** Statements that are admitted and must be stopped by rights or types. */
const DENIED: Readonly<Record<string, RegExp>> = {
  "select 1 into outfile '{file}'": /FILE privilege/,
  "select 1 into dumpfile '{file}'": /FILE privilege/,
  'select act()': /denied/,
  'select nextval(numbers)': /denied/,
  'select setval(numbers, 500)': /denied/,
  "insert into hidden values (2, 'x')": /denied/,
  'delete from hidden': /denied/,
  "insert into loose values (2, 'x')": /denied/,
  "insert into aria values (2, 'x')": /denied/,
  'update open_invoice set amount = 1': /denied/,
  'update invoice i, hidden h set h.text = 1, i.amount = 2 where i.id = 2': /denied/,
  'delete h from invoice i join hidden h': /denied/,
  'insert into line (invoice, text) select 3, text from hidden': /denied/,
  'insert into {control}.probe (token) values (1), (1)': /Duplicate/,
  'delete from {control}.stage': /denied/,
  'delete from {control}.record': /denied/,
  "insert into {control}.marker values ('x', 'committed', '', '', '')": /denied/,
  'select inner_pad from {control}.deployment': /denied/,
  'insert into mysql.global_priv values (1, 2, 3)': /denied/,
  "update performance_schema.setup_instruments set enabled = 'NO'": /denied/,
  'delete history from invoice': /denied/,
  'delete from invoice for portion of p from 1 to 2': /Period/,
  'delete from invoice where id = 3': /foreign key/,
  'insert into line (invoice) values (77)': /foreign key/,
  "insert into invoice values (9, 'x', 99999999999, null)": /Out of range/,
  "insert into invoice values (9, repeat('x', 50), 1, null)": /too long/,
  "insert into invoice values (9, 'x', 'abc', null)": /Incorrect decimal/,
  'update invoice set amount = amount / 0 where id = 2': /Division by 0/,
  'insert delayed into line (invoice) values (1)': /DELAYED/,
};

const denied: readonly MariadbEscape[] = Object.entries(DENIED).map(([text, because]) => ({
  name: `denied: ${text}`,
  sql: [PAY, text],
  ends: { rejected: new RegExp(`^stage .*(?:${because.source})`, 's') },
}));

/** Statements that run, and whose effects were not approved. */
const OBSERVED = [
  ...[
    'update invoice set amount = 36 where id = 1',
    "update invoice set status = 'PAID' where id = 1",
  ],
  ...["update invoice set status = 'paid ' where id = 1", 'insert into line (invoice) values (1)'],
  ...[
    "insert into line (invoice, text) values (1, 'x') returning id",
    'delete from line where id = 1',
  ],
  ...[
    "replace into line (id, invoice, text) values (1, 3, 'second')",
    'delete l from line l join invoice i',
  ],
  ...["insert into line (id, invoice, text) values (1, 3, 'x') on duplicate key update text = 'y'"],
  ...['insert into line (invoice, text) select id, status from invoice', 'update line set id = 50'],
  ...['update invoice i join line l on l.invoice = i.id set i.amount = 0, l.text = 1'],
  ...[
    "insert into line (invoice, text) values (1, 'a\u200bb')",
    "insert into line (invoice, text) values (1, '\u{1f600}')",
  ],
  ...[
    'insert ignore into line (id, invoice) values (1, 3), (60, 3)',
    "update invoice set note = 'B' where id = 2",
  ],
  ...['with c as (select 1 as id) insert into line (invoice) select id from c'],
  ...[
    'insert into line (invoice, text) values (1, (select left(group_concat(info), 10) from information_schema.processlist))',
  ],
];

const observed: readonly MariadbEscape[] = OBSERVED.map((text) => ({
  name: `observed: ${text}`,
  sql: [PAY, text],
  ends: { rejected: /^(?:comparison (?:DIVERGED|INDETERMINATE)|stage .*syntax)/ },
}));

const unobservable: readonly MariadbEscape[] = [
  {
    name: 'a text that only an EXPLAIN could begin',
    sql: [PAY, 'for connection 1'],
    ends: { rejected: /^stage action-failed .*syntax/ },
  },
  {
    name: 'the approved statement is left out',
    sql: ['select 1'],
    ends: { rejected: /^comparison DIVERGED/ },
  },
  {
    name: 'a record that an agent writes into the probe table is no effect of a registered table',
    sql: [PAY, "insert into {control}.probe values ('agent')"],
    ends: { rejected: /^comparison INDETERMINATE/ },
  },
  {
    name: 'an UPDATE IGNORE that skips a row after its recorder ran is not complete',
    sql: [PAY, "update ignore invoice set note = 'b' where id = 3"],
    ends: { rejected: /^comparison (?:INDETERMINATE|DIVERGED)/ },
  },
  {
    name: 'a chosen identifier does not pass for a generated one',
    sql: ["insert into line (id, invoice, text) values (700, 1, 'x')"],
    approved: [insert('line', { id: generated('new'), invoice: 1, text: 'x' })],
    ends: { rejected: /^comparison DIVERGED/ },
  },
];

/** A trigger on the registered table, by its body, that the boundary refuses. */
const HIDDEN_CODE: Readonly<Record<string, string>> = {
  'writes a MyISAM table': "insert into loose values (5, 'x')",
  'writes an Aria table': "insert into aria values (5, 'x')",
  'writes a MyISAM table by its full name': "insert into {db}.loose values (5, 'x')",
  'writes a MyISAM table through a function': 'set @x = deep()',
  'writes a table of the server': 'update mysql.time_zone set time_zone_id = 1',
  'draws from a sequence': 'set @x = nextval(numbers)',
  'writes a file': "select 1 into outfile '{file}'",
  'reads a file': "set @x = load_file('/etc/passwd')",
  'sets a global variable': 'set global max_connections = 310',
  'sets foreign_key_checks': 'set foreign_key_checks = 0',
  'sets insert_id': 'set insert_id = 99',
  'sets the clock': 'set timestamp = 1',
  'sets a session variable by its long name': 'set @@session.sql_mode = ""',
  'sets a variable for one statement':
    'set statement sql_mode = "" for insert into line (invoice) values (1)',
  'hides in an executable comment': "set @x = 1; /*!50000 insert into loose values (7, 'x') */",
  'switches off an instrument of the server':
    "update performance_schema.setup_consumers set enabled = 'NO'",
};

const hiddenCode: readonly MariadbEscape[] = Object.entries(HIDDEN_CODE).map(([what, body]) => ({
  name: `trigger that ${what}`,
  setup: `create or replace function deep() returns int modifies sql data
      begin insert into loose values (6, 'deep'); return 1; end;
    create trigger spy after update on invoice for each row begin ${body}; end`,
  cleanup: 'drop trigger spy; drop function deep',
  sql: [PAY],
  ends: { rejected: /^boundary / },
}));

/** Names of a function, and how a trigger can call it: the server compares by a collation. */
const HIDDEN_CALLS: Readonly<Record<string, readonly [name: string, call: string]>> = {
  'another spelling of its name': ['deep', 'd\u00e9ep()'],
  'another spelling in capitals': ['deep', 'D\u00c9EP()'],
  'its name without the accent': ['d\u00e9ep', 'deep()'],
  'a quote in its name': ['`de``ep`', '`de``ep`()'],
  'a blank in its name': ['`deep down`', '`deep down`()'],
  'a blank and an accent in its name': ['`deep down`', '`d\u00e9ep down`()'],
};

const hiddenCalls: readonly MariadbEscape[] = Object.entries(HIDDEN_CALLS).map(
  ([what, [name, call]]) => ({
    name: `trigger that calls a function with ${what}`,
    setup: `create function ${name}() returns int modifies sql data
        begin insert into loose values (6, 'deep'); return 1; end;
      create trigger spy after update on invoice for each row set @x = ${call}`,
    cleanup: `drop trigger spy; drop function ${name}`,
    sql: [PAY],
    ends: { rejected: /^boundary .*function .*it names .*loose/ },
  }),
);

const hiddenTable: MariadbEscape = {
  name: 'trigger that writes a table with a quote in its name',
  setup: `create table \`lo\`\`ose\` (id int) engine = myisam;
    create trigger spy after update on invoice for each row insert into \`lo\`\`ose\` values (1)`,
  cleanup: 'drop trigger spy; drop table `lo``ose`',
  sql: [PAY],
  ends: { rejected: /^boundary .*MyISAM/ },
};

/** Tables of engines that act elsewhere, by what stands after the columns. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  MRG_MyISAM: 'engine = merge',
  CSV: 'engine = csv',
  MEMORY: 'engine = memory',
};

const elsewhere: readonly MariadbEscape[] = Object.entries(ELSEWHERE).map(([engine, options]) => ({
  name: `trigger that writes a table of engine ${engine}`,
  setup: `create table elsewhere (id int not null, text varchar(50) not null) ${options};
    create trigger spy after update on invoice for each row insert into elsewhere values (5, 'x')`,
  cleanup: 'drop trigger spy; drop table elsewhere',
  sql: [PAY],
  ends: { rejected: new RegExp(`^boundary .*elsewhere \\(BASE TABLE of engine ${engine}\\)`) },
}));

const definitions: readonly MariadbEscape[] = [
  {
    name: 'a trigger that writes an unregistered table of InnoDB is counted',
    setup:
      "create trigger spy after update on invoice for each row insert into hidden values (5, 'spy')",
    cleanup: 'drop trigger spy',
    sql: [PAY],
    ends: { rejected: /^comparison INDETERMINATE .*undo entries/ },
  },
  {
    name: 'a trigger that writes a registered table is observed',
    setup:
      'create trigger spy after update on invoice for each row insert into line (invoice) values (new.id)',
    cleanup: 'drop trigger spy',
    sql: [PAY],
    ends: { rejected: /^comparison DIVERGED/ },
  },
  {
    name: 'a BEFORE trigger that changes the row is observed',
    setup: 'create trigger spy before update on invoice for each row set new.amount = 0',
    cleanup: 'drop trigger spy',
    sql: [PAY],
    ends: { rejected: /^comparison DIVERGED/ },
  },
  {
    name: 'a trigger before the recorder is refused',
    setup: `create trigger spy after update on invoice for each row
      precedes effectmatch_update_52d6e3de4fa0 insert into line (invoice) values (new.id)`,
    cleanup: 'drop trigger spy',
    sql: [PAY],
    ends: { rejected: /^boundary .*not in its place/ },
  },
  {
    name: 'a recorder that is missing',
    setup: 'drop trigger effectmatch_insert_52d6e3de4fa0',
    cleanup: 'provision',
    sql: [PAY],
    ends: { rejected: /^boundary .*missing, changed/ },
  },
  {
    name: 'a recorder that was replaced',
    setup: `create or replace trigger effectmatch_delete_52d6e3de4fa0
      after delete on invoice for each row set @x = 1`,
    cleanup: 'provision',
    sql: [PAY],
    ends: { rejected: /^boundary .*missing, changed/ },
  },
  {
    name: 'a procedure of EffectMatch that was replaced',
    setup: 'create or replace procedure {control}.observe() select 1',
    cleanup: 'provision',
    sql: [PAY],
    ends: { rejected: /^boundary .*procedure observe/ },
  },
  {
    name: 'a foreign key that deletes rows of another table',
    setup: `alter table line drop foreign key line_invoice;
      alter table line add constraint line_invoice foreign key (invoice) references invoice (id) on delete cascade`,
    cleanup: `alter table line drop foreign key line_invoice;
      alter table line add constraint line_invoice foreign key (invoice) references invoice (id)`,
    sql: ['delete from invoice where id = 3'],
    approved: [remove('invoice', { id: 3 })],
    ends: { rejected: /^boundary .*ON DELETE CASCADE/ },
  },
  {
    name: 'a foreign key of an unregistered table that sets rows to null',
    setup: `create table child (id int primary key, i int null, foreign key (i) references invoice (id) on update set null);
      insert into child values (1, 2)`,
    cleanup: 'drop table child',
    sql: [PAY],
    ends: { rejected: /^boundary .*ON UPDATE SET NULL/ },
  },
  {
    name: 'a registered table that became MyISAM',
    setup: 'alter table line drop foreign key line_invoice; alter table line engine = myisam',
    cleanup: `alter table line engine = innodb;
      alter table line add constraint line_invoice foreign key (invoice) references invoice (id)`,
    sql: [PAY],
    ends: { rejected: /^boundary .*engine MyISAM/ },
  },
  {
    name: 'a registered table that keeps history',
    setup: 'alter table line drop foreign key line_invoice; alter table line add system versioning',
    cleanup: `alter table line drop system versioning;
      alter table line add constraint line_invoice foreign key (invoice) references invoice (id)`,
    sql: [PAY],
    ends: { rejected: /^boundary .*system versioned/ },
  },
];

/** Rights that the account must not have. */
const RIGHTS: Readonly<Record<string, readonly [grant: string, revoke: string]>> = {
  FILE: ['grant file on *.* to {exec}', 'revoke file on *.* from {exec}'],
  SUPER: ['grant super on *.* to {exec}', 'revoke super on *.* from {exec}'],
  'the whole database': ['grant insert on {db}.* to {exec}', 'revoke insert on {db}.* from {exec}'],
  'an unregistered table': [
    'grant insert on {db}.hidden to {exec}',
    'revoke insert on {db}.hidden from {exec}',
  ],
  'a column': [
    'grant update (text) on {db}.hidden to {exec}',
    'revoke update (text) on {db}.hidden from {exec}',
  ],
  'a function': [
    'grant execute on function {db}.act to {exec}',
    'revoke execute on function {db}.act from {exec}',
  ],
  'a sequence': [
    'grant insert on {db}.numbers to {exec}',
    'revoke insert on {db}.numbers from {exec}',
  ],
  'a role': ['create role em_r{n}; grant em_r{n} to {exec}', 'drop role em_r{n}'],
  'a proxy': [
    'grant proxy on root@localhost to {exec}',
    'revoke proxy on root@localhost from {exec}',
  ],
  'grant option': [
    'grant select on {db}.invoice to {exec} with grant option',
    'revoke grant option on {db}.invoice from {exec}',
  ],
};

const rights: readonly MariadbEscape[] = Object.entries(RIGHTS).flatMap(
  ([what, [grant, revoke]]) => [
    {
      name: `right: ${what}`,
      setup: grant,
      cleanup: revoke,
      sql: [PAY],
      ends: { rejected: /^boundary .*right / },
    },
  ],
);

const afterApproval: readonly MariadbEscape[] = [
  {
    name: 'after the approval: a table that may be read becomes a view that writes',
    approvedThen: `rename table vendor to vendor_table; create function buy() returns int modifies sql data
      begin insert into loose values (9, 'bought'); return 1; end; create view vendor as select buy() as id`,
    cleanup: 'drop view vendor; drop function buy; rename table vendor_table to vendor',
    sql: [PAY, 'select id from vendor'],
    ends: { rejected: /^boundary .*vendor.*view/s },
  },
  {
    name: 'after the approval: a table that may be read is kept by another engine',
    approvedThen: 'alter table vendor engine = myisam',
    cleanup: 'alter table vendor engine = innodb',
    sql: [PAY],
    ends: { rejected: /^boundary .*vendor.*engine MyISAM/s },
  },
  {
    name: 'after the approval: the account gets a second entry with more rights for this host',
    approvedThen: `create user {exec}@'127.0.0.1' identified by 'secret of execution';
      grant all on *.* to {exec}@'127.0.0.1'`,
    cleanup: "drop user {exec}@'127.0.0.1'",
    sql: [PAY, "insert into loose values (9, 'x')"],
    ends: { rejected: /^boundary .*right / },
  },
  {
    name: 'after the approval: a function of a shared library is there',
    approvedThen:
      "insert into mysql.func values ('run_command', 0, 'run.so', 'function'); flush privileges",
    cleanup: "delete from mysql.func where name = 'run_command'; flush privileges",
    sql: [PAY],
    ends: { rejected: /^boundary .*native function run_command/ },
  },
  {
    name: 'after the approval: a trigger appears',
    approvedThen:
      "create trigger spy after update on invoice for each row insert into loose values (5, 'x')",
    cleanup: 'drop trigger spy',
    sql: [PAY],
    ends: { rejected: /^boundary / },
  },
  {
    name: 'after the approval: the column changes its type',
    approvedThen: 'alter table invoice modify amount decimal(12, 4) not null',
    cleanup: 'alter table invoice modify amount decimal(10, 2) not null',
    sql: [PAY],
    ends: { committed: PAY },
  },
  {
    name: 'after the approval: a column appears',
    approvedThen: 'alter table invoice add extra int not null default 5',
    cleanup: 'alter table invoice drop extra',
    sql: [PAY],
    ends: { rejected: /^boundary .*columns or key changed/ },
  },
  {
    name: 'after the approval: rights are taken away',
    approvedThen: 'revoke update on {db}.invoice from {exec}',
    cleanup: 'grant update on {db}.invoice to {exec}',
    sql: [PAY],
    ends: { rejected: /^boundary .*right / },
  },
  {
    name: 'after the approval: the row was paid already',
    approvedThen: PAY,
    sql: [PAY],
    ends: { rejected: /^comparison DIVERGED/ },
  },
];

const server: readonly MariadbEscape[] = [
  {
    name: 'a server that does not flush commits',
    setup: 'set global innodb_flush_log_at_trx_commit = 2',
    cleanup: 'set global innodb_flush_log_at_trx_commit = 1',
    sql: [PAY],
    ends: { rejected: /^boundary .*innodb_flush_log_at_trx_commit = 2/ },
  },
  {
    name: 'a server that runs SQL in every new session',
    setup: "set global init_connect = 'set foreign_key_checks = 0'",
    cleanup: "set global init_connect = ''",
    sql: [PAY],
    ends: { rejected: /^boundary .*init_connect/ },
  },
];

const controls: readonly MariadbEscape[] = [
  { name: 'control: update', sql: [PAY], ends: { committed: PAY } },
  {
    name: 'control: insert with a generated key',
    sql: ["insert into line (invoice, text) values (2, 'x')"],
    approved: [insert('line', { id: generated('new'), invoice: 2, text: 'x' })],
    ends: { committed: "insert into line (id, invoice, text) values ({new}, 2, 'x')" },
  },
  {
    name: 'control: the same statement twice, with other values',
    sql: [['one'], ['two']].map((values) => ({
      ...{ sql: 'insert into line (invoice, text) values (2, ?)', values },
    })),
    approved: ['one', 'two'].map((text) =>
      insert('line', { id: generated(text), invoice: 2, text }),
    ),
    ends: {
      committed:
        "insert into line (id, invoice, text) values ({new} - 1, 2, 'one'), ({new}, 2, 'two')",
    },
  },
  {
    name: 'control: upsert',
    sql: [
      "insert into line (id, invoice, text) values (1, 3, 'x') on duplicate key update text = 'new'",
    ],
    approved: [update('line', { id: 1 }, { text: ['first', 'new'] })],
    ends: { committed: "update line set text = 'new' where id = 1" },
  },
  {
    name: 'control: replace',
    sql: ["replace into line (id, invoice, text) values (1, 3, 'new')"],
    approved: [update('line', { id: 1 }, { text: ['first', 'new'] })],
    ends: { committed: "update line set text = 'new' where id = 1" },
  },
  {
    name: 'control: a key that changes',
    sql: ['update line set id = 8 where id = 1'],
    approved: [remove('line', { id: 1 }), insert('line', { id: 8, invoice: 3, text: 'first' })],
    ends: { committed: 'update line set id = 8 where id = 1' },
  },
  {
    name: 'control: several tables in one statement',
    sql: ["update invoice i join line l on l.invoice = i.id set i.amount = 10, l.text = 'both'"],
    approved: [
      update('invoice', { id: 3 }, { amount: ['9', '10'] }),
      update('line', { id: 1 }, { text: ['first', 'both'] }),
    ],
    ends: {
      committed: "update invoice set amount = 10 where id = 3; update line set text = 'both'",
    },
  },
  {
    name: 'control: values of parameters',
    sql: [
      {
        sql: 'update invoice set note = ?, amount = ? where id = ?',
        values: ['\u{1f600}', { $dec: '1.25' }, 2],
      },
    ],
    approved: [update('invoice', { id: 2 }, { note: ['b', '\u{1f600}'], amount: ['70', '1.25'] })],
    ends: { committed: "update invoice set note = '\u{1f600}', amount = 1.25 where id = 2" },
  },
];

export const MARIADB_ESCAPES: readonly MariadbEscape[] = [
  ...[...controls, ...notAdmitted, ...denied, ...observed, ...unobservable],
  ...[
    ...hiddenCode,
    ...hiddenCalls,
    hiddenTable,
    ...elsewhere,
    ...definitions,
    ...rights,
    ...afterApproval,
    ...server,
  ],
];
