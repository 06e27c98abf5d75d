import { generated, insert, remove, update } from '../../../src/protocol/draft.ts';
import type { MariadbEscape } from './case.ts';

const PAY = "update invoice set status = 'paid' where id = 1";
const TRIGGER = 'create trigger spy after update on invoice for each row';

/** Code that acts on what is observed, by the statements of a trigger's body. */
const AGAINST_RECORDS: Readonly<Record<string, string>> = {
  'adds records': `insert into {control}.record (stage, relation, op, before_image, after_image)
    select stage, relation, op, after_image, before_image from {control}.record`,
  'deletes its record': 'delete from {control}.record',
  'changes its record': "update {control}.record set relation = 'line'",
  'changes its stage': 'update {control}.stage set token = token + 1',
  'removes its stage': 'delete from {control}.stage',
  'writes a marker': "insert into {control}.marker values ('x', 'committed', '', '', '')",
  'reads the key of the deployment': 'set @x = (select hex(inner_pad) from {control}.deployment)',
  'calls a function of the control database': 'set @x = {control}.tamper()',
  'reaches the records through a view': 'set @x = (select count(*) from records)',
  'hides the records behind a temporary table': `create temporary table if not exists
    {control}.record (id int auto_increment primary key)`,
  'hides a table behind a temporary one':
    'create temporary table if not exists line (id int primary key)',
  'ends another session': 'kill 999999',
};

const againstRecords: readonly MariadbEscape[] = Object.entries(AGAINST_RECORDS).map(
  ([what, body]) => ({
    name: `trigger that ${what}`,
    setup: `create or replace view records as select * from {control}.record;
      create or replace function {control}.tamper() returns int modifies sql data
        begin delete from record; return 1; end;
      ${TRIGGER} begin ${body}; end`,
    cleanup: 'drop trigger spy; drop view records; drop function {control}.tamper',
    sql: [PAY],
    ends: { rejected: /^boundary .*(?:database of records|the word)/ },
  }),
);

/** Code that changes what the session means, and could change it back before anything looks. */
const SESSION: Readonly<Record<string, string>> = {
  'sets the character set': 'set names latin1',
  'sets the character set after a variable': 'set @a = 1, charset latin1',
  'sets the character set by two words': 'set char set latin1',
  'sets the transaction': 'set session transaction isolation level read uncommitted',
};

const session: readonly MariadbEscape[] = Object.entries(SESSION).map(([what, body]) => ({
  name: `trigger that ${what}`,
  setup: `${TRIGGER} begin ${body}; end`,
  cleanup: 'drop trigger spy',
  sql: [PAY],
  ends: { rejected: /^boundary .*session/ },
}));

/** Code whose names and words are not where they seem to be, because comments are between them. */
const COMMENTED: Readonly<Record<string, string>> = {
  'a table after a comment that ends with a dot': "insert into -- x.\n loose values (5, 'x')",
  'a table after another comment that ends with a dot': "insert into #x.\n loose values (5, 'x')",
  'a comment before the dot': "insert into {db}/**/.loose values (5, 'x')",
  'a function after a comment that ends with a dot': 'set @x = -- x.\n deep()',
  'a sequence after a comment that ends with a dot': 'set @x = nextval(-- x.\n numbers)',
  'a variable after a comment that ends with a dot': 'set -- x.\n foreign_key_checks = 0',
  'a comment between two words': 'set session transaction /* x */ isolation level read uncommitted',
};

const commented: readonly MariadbEscape[] = Object.entries(COMMENTED).map(([what, body]) => ({
  name: `trigger with ${what}`,
  setup: `create function deep() returns int modifies sql data
      begin insert into loose values (6, 'deep'); return 1; end;
    ${TRIGGER} begin ${body}; end`,
  cleanup: 'drop trigger spy; drop function deep',
  sql: [PAY],
  ends: { rejected: /^boundary .*(?:loose|numbers|session)/ },
}));

/** Statements of a trigger that write files or tables of the server itself. */
const OF_THE_SERVER: Readonly<Record<string, string>> = {
  'points the server at another one': "change master to master_host = 'x'",
  'registers another server': "create server {db} foreign data wrapper x options (host 'x')",
};

const ofTheServer: readonly MariadbEscape[] = Object.entries(OF_THE_SERVER).map(([what, body]) => ({
  name: `trigger that ${what}`,
  setup: `${TRIGGER} begin ${body}; end`,
  cleanup: 'drop trigger spy; drop server if exists {db}; reset slave all',
  sql: [PAY],
  ends: { rejected: /^boundary .*it has the words/ },
}));

/** Defaults act even if INSERT IGNORE then skips the row, which leaves no undo entry. */
const defaults: readonly MariadbEscape[] = ['nextval(numbers)', 'setval(numbers, 5000)'].map(
  (value) => ({
    name: `trigger that skips a row whose default is ${value}`,
    setup: `create table counted (id int primary key, n bigint default ${value});
      insert into counted values (1, 1);
      ${TRIGGER} insert ignore into counted (id) values (1)`,
    cleanup: 'drop trigger spy; drop table counted',
    sql: [PAY],
    ends: { rejected: /^boundary .*default of .*numbers/ },
  }),
);

const oracle: MariadbEscape = {
  name: 'trigger that assigns a session variable without SET',
  setup: `set sql_mode = oracle;
    create trigger spy after update on invoice for each row begin timestamp := 1; end;
    set sql_mode = default`,
  cleanup: 'drop trigger spy',
  sql: [PAY],
  ends: { rejected: /^boundary .*session variable/ },
};

/** Code that could pass for ours by its name. */
const named: readonly MariadbEscape[] = ['invoice', 'hidden'].map((table) => ({
  name: `trigger on ${table} that has a name like a recorder`,
  setup: `create trigger effectmatch_spy after insert on ${table} for each row
      insert into loose values (5, 'spy');
    create trigger effectmatch_too after update on invoice for each row
      insert into ${table === 'hidden' ? "hidden values (6, 'x')" : "loose values (6, 'x')"}`,
  cleanup: 'drop trigger effectmatch_spy; drop trigger effectmatch_too',
  sql: [PAY],
  ends: { rejected: /^boundary .*trigger .*effectmatch_.*loose/s },
}));

const rewritten: readonly MariadbEscape[] = [
  {
    name: 'after the approval: a routine gets another body, and shows the old one',
    setup: `create function calm() returns int modifies sql data begin return 1; end;
      ${TRIGGER} set @x = calm()`,
    approvedThen: `update mysql.proc set body = "begin insert into loose values (5, 'x'); return 1; end"
      where db = '{db}' and name = 'calm'`,
    cleanup: 'drop trigger spy; drop function calm',
    sql: [PAY],
    ends: { rejected: /^boundary .*function .*calm.*loose/ },
  },
  {
    name: 'after the approval: a procedure of EffectMatch gets another body, and shows the old one',
    approvedThen: `update mysql.proc set body = 'begin select 1; end'
      where db = '{control}' and name = 'observe'`,
    cleanup: 'provision',
    sql: [PAY],
    ends: { rejected: /^boundary .*procedure observe/ },
  },
];

/** Tables of the control database that no longer do what they are for. */
const CONTROL_TABLES: Readonly<Record<string, readonly [change: string, undo: string]>> = {
  'a marker table that a rollback does not restore': [
    'alter table {control}.marker engine = aria',
    'alter table {control}.marker engine = innodb',
  ],
  'a marker table without its key': [
    'alter table {control}.marker drop primary key',
    'alter table {control}.marker add primary key (occurrence)',
  ],
  'a marker table whose key is compared by a collation': [
    'alter table {control}.marker modify occurrence varchar(255) character set latin1 not null',
    'alter table {control}.marker modify occurrence varchar(255) character set ascii collate ascii_bin not null',
  ],
  'a record table of another engine': [
    'alter table {control}.record engine = myisam',
    'alter table {control}.record engine = innodb',
  ],
  'a stage table of another engine': [
    'alter table {control}.stage engine = myisam',
    'alter table {control}.stage engine = innodb',
  ],
  'a trigger of others on the probe table': [
    "create trigger {control}.spy after insert on {control}.probe for each row insert into {db}.loose values (5, 'x')",
    'drop trigger {control}.spy',
  ],
};

const controlTables: readonly MariadbEscape[] = Object.entries(CONTROL_TABLES).map(
  ([name, [setup, cleanup]]) => ({
    ...{ name, setup, cleanup },
    sql: [PAY, "insert into {control}.probe values ('agent')"],
    ends: { rejected: /^boundary .*(?:of records|trigger on probe)/ },
  }),
);

/** Functions of a package are called by two names. */
const packaged: MariadbEscape = {
  name: 'trigger that calls a function of a package',
  setup: `set sql_mode = oracle;
    create package kit as function leak return int; end;
    create package body kit as function leak return int as begin
      insert into loose values (5, 'x'); return 1; end; end;
    set sql_mode = default;
    ${TRIGGER} set @x = kit.leak()`,
  cleanup: 'drop trigger spy; set sql_mode = oracle; drop package kit; set sql_mode = default',
  sql: [PAY],
  ends: { rejected: /^boundary .*loose/ },
};

/** Two functions of which a name without quotes would be the same. */
const sameName: MariadbEscape = {
  name: 'trigger that calls a function whose database and name read like those of another one',
  setup: `create database \`x{n}.y\`; create database x{n};
    create function \`x{n}.y\`.f() returns int modifies sql data
      begin insert into {db}.loose values (5, 'x'); return 1; end;
    create function x{n}.\`y.f\`() returns int return 1;
    ${TRIGGER} set @x = \`x{n}.y\`.f() + x{n}.\`y.f\`()`,
  cleanup: 'drop trigger spy; drop database `x{n}.y`; drop database x{n}',
  sql: [PAY],
  ends: { rejected: /^boundary .*function .*loose/ },
};

/** Ways of the server to run code or to write rows, in a trigger that could hide behind them. */
const IN_A_TRIGGER: Readonly<Record<string, readonly [setup: string, body: string, ends: RegExp]>> =
  {
    'a stored aggregate function': [
      `create or replace aggregate function spied(n int) returns int modifies sql data
        begin declare continue handler for not found return 1;
          loop fetch group next row; insert into loose values (5, 'x'); end loop; end`,
      'set @x = (select spied(id) from line)',
      /^boundary .*function .*spied.*loose/,
    ],
    'a table whose partitions the server adds by itself': [
      `set timestamp = 1000000000;
        create or replace table spied (id int primary key, n int) with system versioning
          partition by system_time interval 1 hour auto partitions 3;
        set timestamp = default; insert into spied values (1, 1)`,
      'update spied set n = 2',
      /^stage .*HISTORY partition/,
    ],
    'a table that keeps history': [
      `create or replace table spied (id int primary key, n int) with system versioning;
        insert into spied values (1, 1)`,
      'update spied set n = 2',
      /^comparison INDETERMINATE/,
    ],
    'the removal of history': [
      `create or replace table spied (id int primary key, n int) with system versioning;
        insert into spied values (1, 1); update spied set n = 2; set @old = 1`,
      'delete history from spied',
      /^comparison INDETERMINATE/,
    ],
    'a cascade of unregistered tables': [
      `create or replace table spied (id int primary key);
        create or replace table below (id int, foreign key (id) references spied (id) on delete cascade);
        insert into spied values (1); insert into below values (1), (1)`,
      'delete from spied',
      /^comparison INDETERMINATE/,
    ],
    'an error that a handler swallows': [
      'create or replace table spied (id int primary key)',
      `declare continue handler for sqlexception begin end;
        insert into line (id, invoice) values (80, 1), (1, 1)`,
      /^comparison DIVERGED/,
    ],
    'a savepoint that a later write outlives': [
      'create or replace table spied (id int primary key)',
      `savepoint a; insert into line (invoice) values (1); rollback to savepoint a;
        insert into line (invoice) values (2)`,
      /^comparison DIVERGED/,
    ],
    'a row that JSON_TABLE and a window make': [
      'create or replace table spied (id int primary key)',
      `insert into line (invoice) select row_number() over (order by a)
        from json_table('[1, 2]', '$[*]' columns (a int path '$')) j`,
      /^comparison DIVERGED/,
    ],
  };

const inTrigger: readonly MariadbEscape[] = Object.entries(IN_A_TRIGGER).map(
  ([what, [setup, body, ends]]) => ({
    name: `trigger with ${what}`,
    setup: `${setup}; ${TRIGGER} begin ${body}; end`,
    cleanup: `drop trigger spy; drop table if exists below, spied;
      drop function if exists spied`,
    sql: [PAY],
    ends: { rejected: ends },
  }),
);

/** Foreign keys of other tables, whose actions the commit itself would set off. */
const afterTheGate: readonly MariadbEscape[] = ['cascade', 'set null'].map((action) => ({
  name: `a table whose rows the commit would change: on delete ${action} of a stage`,
  setup: `create table spied (id int primary key, c bigint unsigned null,
      foreign key (c) references {control}.stage (connection) on delete ${action});
    set foreign_key_checks = 0; insert into spied select seq, seq from seq_1_to_5000;
    set foreign_key_checks = 1`,
  cleanup: 'drop table spied',
  sql: [PAY],
  ends: { rejected: /^boundary .*foreign key .*spied/ },
}));

/** Rows of the server's tables of rights that SHOW GRANTS of the account does not show. */
const HIDDEN_RIGHTS: Readonly<Record<string, readonly [row: string, agent: string]>> = {
  'on a database for all accounts': [
    "insert into mysql.db (host, db, user, insert_priv) values ('%', 'x{n}', '', 'Y')",
    "insert into x{n}.loose values (5, 'x')",
  ],
  'on databases like it for all accounts': [
    "insert into mysql.db (host, db, user, execute_priv) values ('%', 'x\\\\_%', '', 'Y')",
    'select x{n}.act()',
  ],
  'on a database for this host': [
    "insert into mysql.db (host, db, user, insert_priv) values ('127.%', 'x{n}', '{exec}', 'Y')",
    "insert into x{n}.loose values (5, 'x')",
  ],
  'on a table for this host': [
    `insert into mysql.tables_priv (host, db, user, table_name, table_priv)
      values ('127.%', 'x{n}', '{exec}', 'loose', 'Insert')`,
    "insert into x{n}.loose values (5, 'x')",
  ],
  'on a column for this host': [
    `insert into mysql.tables_priv (host, db, user, table_name, column_priv)
      values ('127.%', 'x{n}', '{exec}', 'loose', 'Insert');
    insert into mysql.columns_priv (host, db, user, table_name, column_name, column_priv)
      values ('127.%', 'x{n}', '{exec}', 'loose', 'id', 'Insert')`,
    'insert into x{n}.loose (id) values (5)',
  ],
  'on a function for this host': [
    `insert into mysql.procs_priv (host, db, user, routine_name, routine_type, proc_priv)
      values ('127.%', 'x{n}', '{exec}', 'act', 'FUNCTION', 'Execute')`,
    'select x{n}.act()',
  ],
};

const hiddenRights: readonly MariadbEscape[] = Object.entries(HIDDEN_RIGHTS).map(
  ([what, [row, agent]]) => ({
    name: `right ${what} that the account's own list does not show`,
    setup: `create database x{n}; create table x{n}.loose (id int, text varchar(9)) engine = myisam;
      create function x{n}.act() returns int modifies sql data
        begin insert into loose values (5, 'x'); return 1; end;
      ${row}; flush privileges`,
    cleanup: `drop database x{n}; delete from mysql.db where db like 'x%';
      delete from mysql.tables_priv where db = 'x{n}'; delete from mysql.columns_priv where db = 'x{n}';
      delete from mysql.procs_priv where db = 'x{n}'; flush privileges`,
    sql: [PAY, agent],
    ends: { rejected: /^boundary .*rights of .* on x/ },
  }),
);

/** A table that gets a period after the approval, which one statement could split. */
const period: MariadbEscape = {
  name: 'after the approval: rows get a period that a statement splits',
  approvedThen: `alter table moment add begins date not null default '2024-01-01',
    add ends date not null default '2025-01-01', add period for p (begins, ends)`,
  cleanup: 'alter table moment drop period for p, drop begins, drop ends',
  sql: [PAY, "update moment for portion of p from '2024-02-01' to '2024-03-01' set doc = '1'"],
  ends: { rejected: /^boundary .*moment.*period/ },
};

/** Statements that run, and whose effects were not approved. */
const OBSERVED: Readonly<Record<string, readonly string[]>> = {
  'two keys that the collation calls one': [
    "insert into code values ('b', 1)",
    "update code set id = 'B' where id = 'b'",
  ],
  'a key with a blank at its end': ["update code set id = 'a ' where id = 'a'"],
  'a key with an accent': ["update code set id = '\u00e1' where id = 'a'"],
  'a write that is undone by a second one, and a third': [
    'update code set n = 2',
    'update code set n = 1',
    'update code set n = 3',
  ],
  'a row that is deleted and inserted with another value': [
    "delete from code where id = 'a'",
    "insert into code values ('a', 9)",
  ],
  'rows that an IGNORE skips, beside one that it changes': [
    "insert into code values ('c', 3)",
    "update ignore code set id = 'A' where id in ('a', 'c') order by id desc",
  ],
  'a statement that a user variable chooses': [
    'select @a := 7',
    "update code set n = @a where id = 'a'",
  ],
  'a value from a user lock': ["update code set n = get_lock('mine', 0) + 5 where id = 'a'"],
  'a zero date': ["update moment set at = '0000-00-00' where id = 1"],
  'a row that GROUP BY leaves to the server': [
    "insert into line (invoice, text) select invoice, text from line group by 'all of them'",
  ],
  'a JSON document whose members change places': [
    `update moment set doc = '{"a": 1, "b": 2}' where id = 1`,
    `update moment set doc = '{"b": 2, "a": 1}' where id = 1`,
  ],
  'a geometry value as a JSON document': [
    'update moment set doc = st_asgeojson(point(1, 2)) where id = 1',
  ],
  'a value that an earlier statement put into a variable': [
    'select max(n) + 8 from code into @a',
    "update code set n = @a where id = 'a'",
  ],
  'a row by a window over a variable': [
    `insert into line (invoice, text)
      select row_number() over (order by id), (@n := ifnull(@n, 0) + 1) from invoice`,
  ],
  'rows of a JSON document': [
    `insert into line (invoice, text)
      select a, 'json' from json_table('[1, 2]', '$[*]' columns (a int path '$')) j`,
  ],
  'an identifier that looks like the last one': [
    'insert into line (invoice, text) values (1, last_insert_id(900))',
  ],
  'a row found by a lock that waits': [
    'select n from code for update wait 100',
    "update code set n = @@innodb_lock_wait_timeout + 5 where id = 'a'",
  ],
  'a deletion that returns its row': ["delete from code where id = 'a' returning @a := n"],
  'a deletion through an alias': [
    'delete from a using line as a join invoice as b on a.invoice = b.id where b.id = 3',
  ],
  'a geometry value as text, without its tag': [
    "update code set n = st_x(point(9, 2)) where id = 'a'",
  ],
  'a largest unsigned number': ["update code set n = 18446744073709551615 where id = 'a'"],
};

const observed: readonly MariadbEscape[] = Object.entries(OBSERVED).map(([what, sql]) => ({
  name: `observed: ${what}`,
  sql: [PAY, ...sql],
  ends: { rejected: /^comparison (?:DIVERGED|INDETERMINATE)/ },
}));

/** Statements that fail by the session's modes, which nothing can change. */
const FAILING: Readonly<Record<string, RegExp>> = {
  "update code set n = -1 where id = 'a'": /Out of range/,
  "update code set n = n - 5 where id = 'a'": /out of range/,
  "update moment set at = '0000-13-01' where id = 1": /Incorrect date/,
  "update moment set at = '2024-02-30' where id = 1": /Incorrect date/,
  "update moment set doc = '{' where id = 1": /CONSTRAINT `moment.doc` failed/,
  'update moment set doc = point(1, 2) where id = 1': /Incorrect string value/,
  "update ignore line set text = repeat('x', 60) where id = nextval(numbers)": /denied/,
  'insert into line (invoice) select a.invoice from line a, (select act()) b': /denied/,
  'select count(*) from invoice procedure analyse(1, 1) into @a': /syntax|PROCEDURE/,
  'extended select 1': /syntax/,
  'partitions select 1': /syntax/,
  'format=json select 1': /syntax/,
  "values (1) into outfile '{file}'": /syntax|FILE privilege/,
  'select * from performance_schema.events_statements_history': /denied/,
  'select trx_id from information_schema.innodb_trx': /PROCESS privilege/,
  "select load_file('/etc/passwd') into outfile '{file}'": /FILE privilege/,
  'insert into line (invoice) select invoice from line for system_time all': /not system-versioned/,
};

const failing: readonly MariadbEscape[] = Object.entries(FAILING).map(([text, because]) => ({
  name: `fails: ${text}`,
  sql: [PAY, text],
  ends: { rejected: new RegExp(`^stage .*(?:${because.source})`, 's') },
}));

const chosen: readonly MariadbEscape[] = [
  {
    name: 'a chosen identifier with leading zeros does not pass for a generated one',
    sql: ["insert into padded (id, text) values (00700, 'x')"],
    approved: [insert('padded', { id: generated('new'), text: 'x' })],
    ends: { rejected: /^comparison DIVERGED/ },
  },
  {
    name: 'an identifier that a trigger chooses does not pass for a generated one',
    setup: 'create trigger spy before insert on padded for each row set new.id = 700',
    cleanup: 'drop trigger spy',
    sql: ["insert into padded (text) values ('x')"],
    approved: [insert('padded', { id: generated('new'), text: 'x' })],
    ends: { rejected: /^(?:comparison DIVERGED|boundary .*not in its place)/ },
  },
  {
    name: 'an identifier that an update chooses does not pass for a generated one',
    sql: ["insert into padded (text) values ('x')", "update padded set id = 700 where text = 'x'"],
    approved: [insert('padded', { id: generated('new'), text: 'x' })],
    ends: { rejected: /^comparison DIVERGED/ },
  },
];

const controls: readonly MariadbEscape[] = [
  {
    name: 'control: a key of another case',
    sql: ["update code set id = 'A' where id = 'a'"],
    approved: [remove('code', { id: 'a' }), insert('code', { id: 'A', n: 1 })],
    ends: { committed: "update code set id = 'A' where id = 'a'" },
  },
  {
    name: 'control: a trigger that declares variables and writes what was approved',
    setup: `${TRIGGER} begin declare wanted int default 1;
      set wanted = wanted + 1; update code set n = wanted where id = 'a'; end`,
    cleanup: 'drop trigger spy',
    sql: [PAY],
    approved: [
      update('invoice', { id: 1 }, { status: ['pending', 'paid'] }),
      update('code', { id: 'a' }, { n: [1, 2] }),
    ],
    ends: { committed: `${PAY}; update code set n = 2 where id = 'a'` },
  },
];

/** Attempts through the code of the database, and through values that look alike. */
export const CODE_ESCAPES: readonly MariadbEscape[] = [
  ...[...controls, ...againstRecords, ...session, oracle, ...named, ...rewritten, packaged],
  ...[sameName, ...afterTheGate, ...hiddenRights, ...inTrigger, period],
  ...[...commented, ...ofTheServer, ...defaults],
  ...controlTables,
  ...[...observed, ...failing, ...chosen],
];
