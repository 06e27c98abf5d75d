// Goal: nothing that the execution login writes becomes durable without the marker of the
// transaction that wrote it. Method: real sessions with its credentials, outside the runtime, try
// every way to commit; a superuser then looks.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Hand, OPEN } from '../../postgres/hand.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { isInstalled, VERSIONS } from '../../postgres/server.ts';

const SCHEMA = `
  create table ledger (id integer primary key, text text not null);
  create table parent (id integer primary key);
  create table child (id integer primary key, parent integer not null references parent deferrable initially deferred);
  create procedure own_commit(number integer) language plpgsql as $$ begin
    insert into ledger values (number, 'by a procedure');
    commit;
  end $$;
  create procedure own_stage(number integer) language plpgsql as $$ begin
    perform effectmatch.open('occ_own', '{}', 30000, 2000);
    insert into ledger values (number, 'by a procedure that opens a stage');
    commit;
  end $$;
`;
const ENTRY_POINTS = ['public.own_commit', 'public.own_stage'];
const BEGIN = 'begin read write';
const WRITE = "insert into ledger values (1, 'by hand')";
const VOID = `insert into effectmatch.marker (occurrence, disposition, text, seal_key, seal_mac)
  values ('occ_hand', 'void', '{}', 'k', 'm')`;

interface Try {
  readonly name: string;
  readonly does: (hand: Hand, admin: (sql: string) => Promise<unknown>) => Promise<void>;
  /** Whether the last statement that tried to make it durable was refused in these words. */
  readonly told: RegExp;
}

const TRIES: readonly Try[] = [
  { name: 'autocommit', does: (hand) => hand.say(WRITE), told: /^25006$/ },
  {
    name: 'autocommit with its read-only default switched off',
    does: (hand) => hand.say('set default_transaction_read_only = off', WRITE),
    told: /^SET EM001$/,
  },
  {
    name: 'autocommit in a session that was started read-write',
    does: (hand) => hand.say('set session characteristics as transaction read write', WRITE),
    told: /^SET EM001$/,
  },
  {
    name: 'a transaction without a stage',
    does: (hand) => hand.say(BEGIN, WRITE, 'commit'),
    told: /EM001 ROLLBACK$/,
  },
  {
    name: 'its own COMMIT in a stage',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, 'commit'),
    told: /INSERT EM003$/,
  },
  {
    name: 'its own END in a stage',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, 'end'),
    told: /INSERT EM003$/,
  },
  {
    name: 'COMMIT AND CHAIN, and a write in the chain',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, 'commit and chain', WRITE, 'commit'),
    told: /INSERT EM003 (?:EM001|25006|25P02) \w+$/,
  },
  {
    name: 'ROLLBACK AND CHAIN, and a write in the chain',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, 'rollback and chain', WRITE, 'commit'),
    told: /INSERT ROLLBACK EM001 ROLLBACK$/,
  },
  {
    name: 'a COMMIT after the observation',
    does: (hand) =>
      hand.say(BEGIN, OPEN, WRITE, "select effectmatch.observe('{}', '{}')", 'commit'),
    told: /INSERT SELECT EM003$/,
  },
  {
    name: 'a promotion without the secret',
    does: (hand) =>
      hand.say(
        ...[BEGIN, OPEN, WRITE, "select effectmatch.observe('{}', '{}')", 'savepoint s'],
        "select effectmatch.promote(pg_current_xact_id()::text, 0, 'occ_hand', '{}', 'k', 'm', '\\x00')",
        ...['rollback to s', 'commit'],
      ),
    told: /SAVEPOINT EM004 ROLLBACK EM003$/,
  },
  {
    name: 'PREPARE TRANSACTION in a stage',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, "prepare transaction 'x'", "commit prepared 'x'"),
    told: /INSERT EM003 42704$/,
  },
  {
    name: 'PREPARE TRANSACTION without a stage',
    does: (hand) => hand.say(BEGIN, WRITE, "prepare transaction 'x'", "commit prepared 'x'"),
    told: /EM001 ROLLBACK 42704$/,
  },
  {
    name: 'PREPARE TRANSACTION after a promotion that was rolled back',
    async does(hand) {
      await hand.say(BEGIN, OPEN, WRITE);
      await hand.promote('savepoint s');
      await hand.say('rollback to s', "prepare transaction 'x'", "commit prepared 'x'");
    },
    told: /PROMOTED ROLLBACK EM003 42704$/,
  },
  {
    name: 'a savepoint rolled back around the promotion',
    async does(hand) {
      await hand.say(BEGIN, OPEN, WRITE);
      await hand.promote('savepoint s');
      await hand.say('rollback to s', 'release s', 'commit');
    },
    told: /PROMOTED ROLLBACK RELEASE EM003$/,
  },
  {
    name: 'a savepoint rolled back around a promotion whose guard had already looked',
    async does(hand) {
      await hand.say(BEGIN, OPEN, WRITE);
      await hand.promote('savepoint s');
      await hand.say('set constraints all immediate', 'rollback to s', 'commit');
    },
    told: /PROMOTED SET ROLLBACK EM003$/,
  },
  {
    name: 'a savepoint rolled back around a promotion that met a void marker',
    async does(hand, admin) {
      await hand.say(BEGIN, OPEN, WRITE);
      await admin(VOID);
      await hand.promote('savepoint s');
      await hand.say('rollback to s', 'commit');
    },
    told: /SAVEPOINT 23505 ROLLBACK EM003$/,
  },
  {
    name: 'a stage opened in a savepoint that is rolled back, and a write after it',
    does: (hand) => hand.say(BEGIN, 'savepoint s', OPEN, 'rollback to s', WRITE, 'commit'),
    told: /ROLLBACK EM001 ROLLBACK$/,
  },
  {
    name: 'a stage opened in a savepoint that is released',
    does: (hand) => hand.say(BEGIN, 'savepoint s', OPEN, WRITE, 'release s', 'commit'),
    told: /RELEASE EM003$/,
  },
  {
    name: 'a write in a savepoint around which the stage was opened',
    does: (hand) => hand.say(BEGIN, OPEN, 'savepoint s', WRITE, 'release s', 'commit'),
    told: /RELEASE EM003$/,
  },
  {
    name: 'the guard set to immediate, its refusal rolled back to a savepoint',
    does: (hand) =>
      hand.say(
        BEGIN,
        OPEN,
        WRITE,
        'savepoint s',
        'set constraints all immediate',
        'rollback to s',
        'commit',
      ),
    told: /SAVEPOINT EM003 ROLLBACK EM003$/,
  },
  {
    name: 'a second stage in the same transaction',
    does: (hand) => hand.say(BEGIN, OPEN, WRITE, 'savepoint s', OPEN, 'rollback to s', 'commit'),
    told: /SAVEPOINT 23505 ROLLBACK EM003$/,
  },
  {
    name: 'a trigger that replication settings would silence',
    does: (hand) => hand.say(BEGIN, 'set session_replication_role = replica', WRITE, 'commit'),
    told: /42501 25P02 ROLLBACK$/,
  },
  {
    name: 'a procedure that commits',
    does: (hand) => hand.say('call own_commit(1)'),
    told: /^25006$/,
  },
  {
    name: 'a procedure that commits, read-write',
    does: (hand) => hand.say('set default_transaction_read_only = off', 'call own_commit(1)'),
    told: /^SET EM001$/,
  },
  {
    name: 'a procedure that opens a stage and commits',
    does: (hand) => hand.say('set default_transaction_read_only = off', 'call own_stage(1)'),
    told: /^SET EM003$/,
  },
  {
    name: 'a procedure that commits inside a stage',
    does: (hand) => hand.say(BEGIN, OPEN, 'call own_commit(1)', 'commit'),
    told: /2D000 ROLLBACK$/,
  },
  {
    name: 'several statements in one message of the simple protocol',
    does: (hand) => hand.script(`${BEGIN}; ${OPEN}; ${WRITE}; commit; ${WRITE}`),
    told: /^EM003$/,
  },
  {
    name: 'an implicit transaction of one message of the simple protocol',
    async does(hand) {
      await hand.say('set default_transaction_read_only = off');
      await hand.script(`${OPEN}; ${WRITE}`);
    },
    told: /^SET EM003$/,
  },
  {
    name: 'COPY FROM a program',
    does: (hand) => hand.say(BEGIN, 'copy ledger from program $$echo 1$$', 'commit'),
    told: /42501 ROLLBACK$/,
  },
  {
    name: 'a row whose foreign key is checked at COMMIT',
    does: (hand) =>
      hand.say(
        BEGIN,
        OPEN,
        'insert into child values (1, 1)',
        'insert into parent values (1)',
        'commit',
      ),
    told: /INSERT EM003$/,
  },
  {
    name: 'a lock between observation and promotion that the runtime did not take',
    async does(hand) {
      await hand.say(BEGIN, OPEN, WRITE);
      await hand.promote('select from ledger for update');
      await hand.say('commit');
    },
    told: /SELECT EM006 ROLLBACK$/,
  },
  {
    name: 'a command after the promotion that only locks',
    async does(hand) {
      await hand.say(BEGIN, OPEN, WRITE);
      await hand.promote();
      await hand.say('select from ledger for update', 'commit');
    },
    told: /PROMOTED SELECT EM007$/,
  },
];

for (const version of VERSIONS) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed here`;

  test(`${version}: an execution login without its marker leaves nothing durable`, {
    skip,
  }, async (t) => {
    const relations = ['ledger', 'parent', 'child'];
    const place = await protectedDatabase(
      SCHEMA,
      { relations, entryPoints: ENTRY_POINTS },
      { version },
    );
    after(() => place[Symbol.asyncDispose]());

    await t.test(
      'promoted and committed, the same writes are durable: the tries below could succeed',
      async () => {
        const { told, found } = await attempt(place, async (hand) => {
          await hand.say(BEGIN, OPEN, WRITE);
          await hand.promote();
          await hand.say('commit');
        });
        assert.equal(told.at(-1), 'COMMIT');
        assert.deepEqual(found, [
          { what: 'ledger', text: '(1,"by hand")' },
          { what: 'marker', text: 'committed' },
        ]);
      },
    );

    await t.test(
      'what is written after the promotion is refused, and takes the candidate with it',
      async () => {
        const { told, found } = await attempt(place, async (hand) => {
          await hand.say(BEGIN, OPEN, WRITE);
          await hand.promote();
          await hand.say("insert into ledger values (2, 'late')", 'commit');
        });
        assert.deepEqual([told.slice(-2), found], [['EM001', 'ROLLBACK'], []]);
      },
    );

    for (const { name, does, told: expected } of TRIES) {
      await t.test(name, async () => {
        const { told, found } = await attempt(place, does);
        assert.match(told.join(' '), expected);
        const durable = found.filter(({ text }) => text !== 'void');
        assert.deepEqual(durable, []);
      });
    }
  });
}

/**
 * One try in a fresh session, on empty tables; says what was answered and what is durable once the
 * session is gone.
 */
async function attempt(
  place: ProtectedDatabase,
  does: Try['does'],
): Promise<{
  readonly told: readonly string[];
  readonly found: readonly Record<string, unknown>[];
}> {
  const { db } = place;
  await db.run(
    'delete from child; delete from parent; delete from ledger; delete from effectmatch.marker',
  );
  const hand = await Hand.open(place);
  try {
    await does(hand, (sql) => db.run(sql));
  } finally {
    await hand[Symbol.asyncDispose]();
  }
  const found = await db.run(`
    select 'child' as what, child::text as text from child
    union all select 'ledger', ledger::text from ledger
    union all select 'marker', disposition from effectmatch.marker
    union all select 'parent', parent::text from parent
    union all select 'prepared', gid from pg_prepared_xacts where database = current_database()
    order by 1, 2`);
  return { told: hand.told, found };
}
