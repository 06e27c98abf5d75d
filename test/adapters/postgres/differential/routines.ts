import type { Random } from '../../../random.ts';
import type { TableSpec } from './schema.ts';
import { randomStatement } from './statements.ts';

/** Code of the application around the tables: what makes an outcome differ from its statement. */
export interface Routines {
  readonly ddl: string;
  readonly entryPoints: readonly string[];
  /** Whether rolled-back blocks occur. */
  readonly undoes: boolean;
}

/** The table that nobody registered. */
export const STRAY = 'stray';

const chance = (from: Random, share: number) => from.fraction() < share;

/** Random triggers of every timing and level, and random functions to call. */
export function randomRoutines(from: Random, tables: readonly TableSpec[]): Routines {
  const writer = { from, tables, undoes: chance(from, 0.6), strays: chance(from, 0.12) };
  const triggers = Array.from({ length: 2 + from.below(5) }, (_, index) =>
    randomTrigger(writer, index),
  );
  const functions = Array.from({ length: 3 }, (_, index) => randomFunction(writer, index));
  return {
    ddl: [
      `create table ${STRAY} (at integer);`,
      `create function write_stray() returns void language sql security definer as 'insert into ${STRAY} values (1)';`,
      ...triggers,
      ...functions,
    ].join('\n'),
    entryPoints: functions.map((_, index) => `act${index}`),
    undoes: writer.undoes,
  };
}

interface Writer {
  readonly from: Random;
  readonly tables: readonly TableSpec[];
  readonly undoes: boolean;
  readonly strays: boolean;
}

/**
 * A statement, or a block that catches errors and so rolls back what it wrote, nested up to three
 * deep.
 */
function randomItem(writer: Writer, depth = 0): string {
  const { from, tables, undoes, strays } = writer;
  if (strays && chance(from, 0.15)) return 'perform write_stray();';
  if (!undoes || depth > 2 || chance(from, 0.5)) return `${randomStatement(from, tables)};`;
  const inner = Array.from({ length: 1 + from.below(2) }, () => randomItem(writer, depth + 1));
  const fails = from.pick([
    "raise exception 'undo';",
    "raise exception 'undo';",
    'perform 1 / 0;',
    '',
  ]);
  const instead = chance(from, 0.3) ? `${randomStatement(from, tables)};` : 'null;';
  return `begin ${inner.join(' ')} ${fails} exception when others then ${instead} end;`;
}

/**
 * Most writes in triggers are wrapped, so that an operation does not fail only because its trigger
 * did.
 */
function forgiving(writer: Writer): string {
  const item = randomItem(writer);
  return writer.undoes && chance(writer.from, 0.5)
    ? `begin ${item} exception when others then null; end;`
    : item;
}

function randomTrigger(writer: Writer, index: number): string {
  const { from, tables } = writer;
  const table = from.pick(tables);
  const name = `${from.pick(['a', 'z'])}_trigger${index}`;
  const event = from.pick([
    'insert',
    'update',
    'delete',
    'insert or update',
    'insert or update or delete',
  ]);
  const drawn = from.pick([
    'before row',
    'before row',
    'after row',
    'after row',
    'before statement',
    'after statement',
    'constraint',
  ]);
  // The copies of a constraint trigger in a schema that the execution login may not use cannot be
  // forced early.
  const kind = drawn === 'constraint' && table.partitioned ? 'after row' : drawn;
  const write = `if pg_trigger_depth() < ${1 + from.below(3)} then ${forgiving(writer)} end if;`;
  const define = (body: string) =>
    `create function ${name}() returns trigger language plpgsql as $body$ begin ${body} end $body$;`;
  const n = table.n.sql;
  if (kind === 'before row') {
    const body =
      `if tg_op = 'DELETE' then if old.${n} % 5 = 0 then return null; end if; ${chance(from, 0.3) ? write : ''} return old; end if; ` +
      `${chance(from, 0.3) ? write : ''} new.${n} := coalesce(new.${n}, 0) + ${from.below(2)}; ` +
      `if new.${n} % 7 = 3 then return null; end if; return new;`;
    return `${define(body)}\ncreate trigger ${name} before ${event} on ${table.sql} for each row execute function ${name}();`;
  }
  const own = `update ${table.sql} set ${n} = ${n} + 1 where ${table.id.sql} = ${event.includes('delete') ? '3' : `new.${table.id.sql}`};`;
  const body =
    kind === 'after row' && chance(from, 0.4)
      ? `if pg_trigger_depth() < 2 then ${own} end if; return null;`
      : `${write} return null;`;
  if (kind === 'constraint') {
    const when = from.pick([
      'deferrable initially deferred',
      'deferrable initially immediate',
      'deferrable initially deferred',
    ]);
    return `${define(body)}\ncreate constraint trigger ${name} after ${event} on ${table.sql} ${when} for each row execute function ${name}();`;
  }
  const [timing, level] = kind.split(' ');
  return `${define(body)}\ncreate trigger ${name} ${timing} ${event} on ${table.sql} for each ${level} execute function ${name}();`;
}

function randomFunction(writer: Writer, index: number): string {
  const { from } = writer;
  const items = Array.from({ length: 1 + from.below(3) }, () => randomItem(writer)).join(' ');
  const body = chance(from, 0.3) ? `for i in 1..a loop ${items} end loop;` : items;
  const definer = chance(from, 0.3) ? ' security definer' : '';
  return `create function act${index}(a integer) returns void language plpgsql${definer} as $body$ begin ${body} end $body$;`;
}
