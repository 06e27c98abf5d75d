import type { GateCatalog } from '../gate/resolve.ts';
import type { BoundaryTier } from '../options.ts';
import { SQL } from '../sql.ts';
import { namesIn, startsStatement, tokenize } from './body.ts';
import { isHarmlessSetting } from './builtins.ts';
import { readRows } from './catalog.ts';
import { isVouchedFor, type SurveyContext } from './facts.ts';
import { reviewerOf } from './reviews.ts';

/**
 * What every role may use on a server whose defaults cannot be revoked, and whose effects neither
 * recorders nor counters see.
 */
export function listUnclosed(
  dangers: ReadonlyMap<string, string>,
  tier: BoundaryTier,
): ReadonlyMap<string, string> {
  if (tier !== 'managed') return new Map();
  return new Map([...dangers, ['pg_settings', 'changes settings of the session']]);
}

/**
 * Names in application code that rights leave open. Names in strings count, and so does a column of
 * that name, because the text does not show what is meant.
 */
export function findUnclosed({ unclosed }: SurveyContext, text: string): readonly string[] {
  if (unclosed.size === 0) return [];
  return [...namesIn(text)].flatMap((name) => {
    const why = unclosed.get(name);
    return why === undefined ? [] : [`names ${name}, which ${why}`];
  });
}

/**
 * Settings that a body changes with SET LOCAL. The provider may have granted rights to them that
 * cannot be revoked.
 */
export function judgeLocal({ facts }: SurveyContext, text: string): readonly string[] {
  if (facts.tier !== 'managed') return [];
  const tokens = tokenize(text);
  return tokens.flatMap((token, at) => {
    const isSet = token.text === 'set' && startsStatement(tokens, at);
    const name = tokens[at + 2]?.text ?? '';
    if (!isSet || tokens[at + 1]?.text !== 'local' || isHarmless(name)) return [];
    return [`changes the setting ${name} (SET LOCAL)`];
  });
}

/**
 * `role` is harmless, because the execution login has no other role to change to and a function
 * with other rights cannot change it. Promotion pins `synchronous_commit`.
 */
function isHarmless(setting: string): boolean {
  return ['role', 'synchronous_commit'].includes(setting) || isHarmlessSetting(setting);
}

/** What names mean under this survey: everything that it judged, and the server's own objects. */
export async function readGateCatalog(context: SurveyContext): Promise<GateCatalog> {
  const { control, facts, index, reach } = context;
  const query = SQL.rights.get('server_names');
  const rows = await readRows<{ kind: string; name: string }>(control, query);
  const named = Map.groupBy(rows, ({ kind }) => kind);
  const namesOf = (kind: string) => new Set((named.get(kind) ?? []).map(({ name }) => name));
  const entries = new Set(facts.entryPoints.map(({ oid }) => oid));
  return {
    path: facts.path ?? [],
    builtins: namesOf('function'),
    builtinTypes: namesOf('type'),
    systemRelations: namesOf('relation'),
    functionsNamed: (name) =>
      index
        .functionsNamed(name)
        .filter((row) => index.executable.has(row.oid) && !row.trigger)
        .map((row) => ({
          schema: row.schema,
          // What a person has read was read for the schema's own calls, not for any arguments.
          isCertified:
            entries.has(row.oid) ||
            isVouchedFor(row, facts) ||
            (reach.functions.has(row) && reviewerOf(row, facts) === undefined),
        })),
    hasType: (name) => index.typesNamed(name).length > 0,
    relationsNamed: (name) =>
      index.relationsNamed(name).map((row) => ({
        schema: row.schema,
        isRegistered: index.registered.has(row.oid) || index.views.has(row.oid),
      })),
  };
}
