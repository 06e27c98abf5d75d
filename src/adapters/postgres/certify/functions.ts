import { hash } from 'node:crypto';
import { quoteName } from '../../../postgres/identifier.ts';
import { TRUSTED_FUNCTIONS } from '../provision/functions.ts';
import { SQL } from '../sql.ts';
import { findUnseenAct, judgeBody } from './body.ts';
import { dangerOf, isHarmlessSetting, TRUSTED_EXTENSIONS } from './builtins.ts';
import { type Catalog, type FunctionRow, readRows, type TextReader } from './catalog.ts';
import { type BoundaryFacts, isVouchedFor, type Outlets } from './facts.ts';
import { closeExecute, type Index, type Reach, type Route } from './reach.ts';

/** What a review binds to: everything that decides what a function does. */
export function digestFunction(row: FunctionRow): string {
  const { language, owner, definer, config, source, sqlBody, library, defaults } = row;
  const decisive = [
    language,
    owner,
    definer,
    config,
    source,
    sqlBody,
    library,
    ...(defaults === null ? [] : [defaults]),
  ];
  return hash('sha256', JSON.stringify(decisive), 'hex').slice(0, 32);
}

/**
 * Functions that somebody other than a superuser may execute, and foreign tables they may use, by
 * role.
 */
export async function readUsable(
  control: TextReader,
  roles: readonly string[],
): Promise<readonly { role: string; kind: string; oid: number }[]> {
  return await readRows<{ role: string; kind: string; oid: number }>(
    control,
    SQL.rights.get('usable_by'),
    [roles],
  );
}

/**
 * Every application function an execution can set in motion: who it runs as, in what language, and
 * what its text does.
 */
export function surveyFunctions(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  reach: Reach,
  outlets: Outlets,
): void {
  const entryPoints = new Set(facts.entryPoints.map(({ oid }) => oid));
  const called = new Set(
    catalog.uses
      .filter((use) => reachesUse(use.relation, index, reach) || use.type !== 0)
      .map((use) => use.function),
  );
  for (const row of catalog.functions) {
    if (row.schema === 'effectmatch') surveyOwn(row, facts, index, outlets);
    const route = reach.functions.get(row);
    if (route === undefined) continue;
    const isTrusted = isTrustedExtension(row, facts);
    if (
      index.executable.has(row.oid) &&
      !row.trigger &&
      !entryPoints.has(row.oid) &&
      !called.has(row.oid) &&
      !isTrusted
    ) {
      outlets.open({
        outlet: `function ${row.object}`,
        object: row.object,
        why: `${quoteName(facts.executor)} may execute it and it is no registered entry point`,
        fix: closeExecute(row, facts.executor),
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    }
    if (isVouchedFor(row, facts)) continue;
    const before = outlets.problems.length;
    const close = index.executable.has(row.oid)
      ? [...route.close, ...closeExecute(row, facts.executor)]
      : route.close;
    judge(row, { by: route.by, close: [...new Set(close)] }, facts, outlets);
    if (outlets.problems.length > before) continue;
    outlets.observed(
      `function ${row.object}`,
      `reached through ${route.by}; writes are recorded or counted, digest ${digestFunction(row)}`,
    );
  }
  for (const { oid, name } of facts.entryPoints) {
    if (!index.executable.has(oid))
      outlets.denied(
        `entry point ${name}`,
        'registered, but the execution login may not execute it',
      );
  }
  outlets.denied(
    'functions of trusted extensions',
    `compute values only: ${catalog.extensions
      .filter(({ name }) => isTrustedName(name, facts))
      .map(({ name, version }) => `${name} ${version}`)
      .join(', ')}`,
  );
}

function reachesUse(relation: number, index: Index, reach: Reach): boolean {
  const row = index.relation.get(relation);
  return row !== undefined && reach.relations.has(row);
}

function isTrustedName(extension: string, facts: BoundaryFacts): boolean {
  return TRUSTED_EXTENSIONS.has(extension) || (facts.trustedCode ?? []).includes(extension);
}

function isTrustedExtension(row: FunctionRow, facts: BoundaryFacts): boolean {
  return row.extension !== null && isTrustedName(row.extension, facts);
}

/**
 * The product's own functions: only the agreed ones are callable, and they run as their owner with
 * pinned names.
 */
function surveyOwn(row: FunctionRow, facts: BoundaryFacts, index: Index, outlets: Outlets): void {
  const open = (why: string, fix: string) =>
    outlets.open({
      outlet: `function ${row.object}`,
      object: row.object,
      why,
      fix: [fix],
      needs: `${quoteName(row.owner)} or a superuser`,
    });
  const own = TRUSTED_FUNCTIONS.get(row.name);
  const revoke = closeExecute(row, facts.executor)[0] ?? '';
  if (own === undefined) {
    open('It is in our schema and none of ours', `DROP ROUTINE ${row.object}`);
    return;
  }
  const hasSettings = own.settings.every((name) =>
    row.config?.some((text) => text.toLowerCase().startsWith(`${name}=`)),
  );
  const isRight =
    row.definer && row.language === 'plpgsql' && row.source === own.body && hasSettings;
  if (!isRight) open('It is not as provisioning made it', own.create);
  if (row.owner !== facts.owner) {
    open(
      `It belongs to ${quoteName(row.owner)}`,
      `ALTER ROUTINE ${row.object} OWNER TO ${quoteName(facts.owner)}`,
    );
  }
  if (!index.executable.has(row.oid)) return;
  if (!own.isCallable) open('The execution login may call it and must not', revoke);
  else
    outlets.denied(
      `function ${row.object}`,
      'callable; what it may change needs a secret that agent SQL does not have',
    );
}

function judge(row: FunctionRow, route: Route, facts: BoundaryFacts, outlets: Outlets): void {
  const open = (why: string, fix: readonly string[]) =>
    outlets.open({
      outlet: `function ${row.object}`,
      object: row.object,
      why: `${why}; reached through ${route.by}`,
      fix: fix.length > 0 ? fix : closeExecute(row, facts.executor),
      needs: `${quoteName(row.owner)} or a superuser`,
    });
  for (const setting of row.config ?? []) {
    const name = setting.split('=')[0] ?? '';
    if (name !== 'search_path' && !isHarmlessSetting(name))
      open(`It runs with its own ${name}`, [
        `ALTER ROUTINE ${row.object} RESET ${quoteName(name)}`,
      ]);
  }
  if (row.definer && !row.config?.some((setting) => setting.startsWith('search_path='))) {
    open('It is SECURITY DEFINER and finds names where the caller says', [
      `ALTER ROUTINE ${row.object} SET search_path = pg_catalog, ${quoteName(row.schema)}, pg_temp`,
    ]);
  }
  const review = facts.reviews?.find((known) => known.function === row.object);
  if (review?.digest === digestFunction(row)) {
    outlets.observed(`function ${row.object}`, `read by ${review.by}, digest ${review.digest}`);
    return;
  }
  const hint = `(or have it read and declare its digest ${digestFunction(row)})`;
  if (row.kind === 'a') {
    // Whoever calls an aggregate needs no right to its parts: its owner's right to them counts.
    for (const part of row.parts) {
      const danger = part === 'setval' ? 'moves a sequence' : dangerOf(part);
      if (danger !== undefined) open(`It is made of ${part}, which ${danger}`, route.close);
    }
    return;
  }
  if (row.language === 'internal') {
    open(`It is another name for a built-in, with a volatility of its own ${hint}`, route.close);
    return;
  }
  if (row.language !== 'sql' && row.language !== 'plpgsql') {
    const why = row.trusted
      ? `Its language ${row.language} is not judged`
      : `Its language ${row.language} is not bound by the database's rules`;
    open(row.trusted ? `${why} ${hint}` : why, route.close);
    return;
  }
  const reasons = judgeBody(row.sqlBody ?? row.source);
  const ofDefaults = findUnseenAct(row.defaults ?? '');
  for (const reason of new Set([...reasons, ...(ofDefaults === undefined ? [] : [ofDefaults])]))
    open(`It ${reason} ${hint}`, route.close);
}

/** Native code and foreign tables within the rights of a role whose rights are lent. */
export function surveyLentCode(
  {
    catalog,
    facts,
    index,
    reach,
    outlets,
  }: { catalog: Catalog; facts: BoundaryFacts; index: Index; reach: Reach; outlets: Outlets },
  usable: readonly { role: string; kind: string; oid: number }[],
): void {
  for (const { role, kind, oid } of usable) {
    const route = reach.principals.get(role);
    if (kind === 'foreign table') {
      const row = index.relation.get(oid);
      if (row === undefined) continue;
      const via = route ? `, whose rights are lent by ${route.by}` : '';
      outlets.open({
        outlet: `foreign table ${row.object}`,
        object: row.object,
        why: `${quoteName(role)}${via} may use it: its rows are on another server and do not roll back with ours`,
        fix:
          row.owner === role
            ? [`DROP FOREIGN TABLE ${row.object}`]
            : [`REVOKE ALL ON TABLE ${row.object} FROM PUBLIC, ${quoteName(role)}`],
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    }
    if (kind === 'foreign server' || kind === 'foreign data wrapper')
      surveyForeign(kind, oid, { role, route });
    const row = kind === 'function' && route ? index.function.get(oid) : undefined;
    const isNative =
      row !== undefined &&
      !isTrustedExtension(row, facts) &&
      !['sql', 'plpgsql', 'internal'].includes(row.language);
    if (!isNative || route === undefined) continue;
    outlets.open({
      outlet: `function ${row.object}`,
      object: row.object,
      why: `${quoteName(role)} may execute this ${row.language} function, and its rights are lent by ${route.by}`,
      fix: [`REVOKE EXECUTE ON ROUTINE ${row.object} FROM PUBLIC, ${quoteName(role)}`],
      needs: `${quoteName(row.owner)} or a superuser`,
    });
  }
  /**
   * Whoever may use a server can make a table of it in a function, and what is sent there does not
   * roll back with ours.
   */
  function surveyForeign(
    kind: string,
    oid: number,
    { role, route }: { role: string; route: Route | undefined },
  ): void {
    const found = (kind === 'foreign server' ? catalog.servers : catalog.wrappers).find(
      (row) => row.oid === oid,
    );
    if (found === undefined || route === undefined) return;
    const name = kind.toUpperCase();
    const superuser = catalog.roles.find((row) => row.super)?.name ?? facts.owner;
    const owner = `ALTER ${name.replace('FOREIGN SERVER', 'SERVER')} ${found.object} OWNER TO ${quoteName(superuser)}`;
    outlets.open({
      outlet: `${kind} ${found.object}`,
      object: found.object,
      why: `${quoteName(role)} may use it, and its rights are lent by ${route.by}: what is sent to another server does not roll back with ours`,
      fix: [
        ...(found.owner === role ? [owner] : []),
        `REVOKE USAGE ON ${name} ${found.object} FROM PUBLIC, ${quoteName(role)}`,
      ],
      needs: 'superuser',
    });
  }
  const untrusted = catalog.extensions.filter(({ name }) => !isTrustedName(name, facts));
  for (const { name, version } of untrusted) {
    const isOpen = outlets.problems.some(({ object }) =>
      catalog.functions.some((row) => row.extension === name && row.object === object),
    );
    if (!isOpen)
      outlets.denied(
        `extension ${quoteName(name)} ${version}`,
        'nobody an execution can act as may execute its functions',
      );
  }
}
