import { quoteName, sqlName } from '../../../postgres/identifier.ts';
import { REVIEWED_FUNCTIONS, SESSION_STATE } from '../certify/builtins.ts';
import type { StatementNames, WrittenName } from './names.ts';

/** A function of the application or an extension, and whether statements may name it. */
interface GatedFunction {
  readonly schema: string;
  /** It is an entry point, the survey judged it, or its extension is vouched for. */
  readonly isCertified: boolean;
}

/** A table or view, and whether statements may name it. */
interface GatedRelation {
  readonly schema: string;
  readonly isRegistered: boolean;
}

/**
 * What names mean in the catalogue that a survey read. Overloads are not distinguished: a name is
 * admitted only if everything that it could mean is admitted.
 */
export interface GateCatalog {
  /** Schemas that sessions of the execution login search after the server's own. */
  readonly path: readonly string[];
  /** Names of the server's built-in functions and types. */
  readonly builtins: ReadonlySet<string>;
  readonly builtinTypes: ReadonlySet<string>;
  /** The server's own tables and views, as `schema.name`. */
  readonly systemRelations: ReadonlySet<string>;
  functionsNamed(name: string): readonly GatedFunction[];
  /**
   * Whether the application or an extension has a type with this name. The survey judges all of
   * them.
   */
  hasType(name: string): boolean;
  relationsNamed(name: string): readonly GatedRelation[];
}

const SYSTEM = 'pg_catalog';

/** Why a statement with these names is not admitted; undefined if it is. */
export function refuseNames(names: StatementNames, catalog: GateCatalog): string | undefined {
  return (
    first(names.writes, (name) => refuseTable(name, catalog, 'write')) ??
    first(names.reads, (name) => refuseTable(name, catalog, 'read')) ??
    first(names.calls, (name) => refuseCall(name, catalog)) ??
    first(names.attributes, (name) => refuseAttribute(name, catalog)) ??
    first(names.types, (name) => refuseType(name, catalog)) ??
    first(names.samples, refuseSample)
  );
}

function refuseCall(written: WrittenName, catalog: GateCatalog): string | undefined {
  const { name } = written;
  const isBuiltin = sees(written, SYSTEM, catalog) && catalog.builtins.has(name);
  if (isBuiltin && !REVIEWED_FUNCTIONS.has(name))
    return `${name}() is not admitted: it is not one of the built-in functions that were reviewed for the managed boundary`;
  const others = catalog
    .functionsNamed(name)
    .filter(({ schema }) => sees(written, schema, catalog));
  const open = others.find(({ isCertified }) => !isCertified);
  if (open !== undefined)
    return `${sqlName({ schema: open.schema, name })}() is not admitted: it is not a registered entry point, nor certified; name it in entryPoints`;
  // A call with one argument can also be a cast, and its type is judged as such.
  const isKnown = isBuiltin || others.length > 0 || refuseType(written, catalog) === undefined;
  return isKnown ? undefined : `there is no function ${write(written)}`;
}

/**
 * A field takes precedence over a function of the same name. Which one is meant is not decided
 * here, so the function must be admitted.
 */
function refuseAttribute(name: string, catalog: GateCatalog): string | undefined {
  const isOpen =
    SESSION_STATE.has(name) ||
    (catalog.builtins.has(name) && !REVIEWED_FUNCTIONS.has(name)) ||
    catalog.functionsNamed(name).some(({ isCertified }) => !isCertified);
  if (!isOpen) return undefined;
  return `.${quoteName(name)} is not admitted: it could call the function ${name}(), which is not certified`;
}

function refuseType(written: WrittenName, catalog: GateCatalog): string | undefined {
  const isBuiltin = sees(written, SYSTEM, catalog) && catalog.builtinTypes.has(written.name);
  return isBuiltin || catalog.hasType(written.name)
    ? undefined
    : `there is no type ${write(written)}`;
}

function refuseTable(
  written: WrittenName,
  catalog: GateCatalog,
  act: 'write' | 'read',
): string | undefined {
  const isSystem = [SYSTEM, 'information_schema'].some(
    (schema) =>
      sees(written, schema, catalog) && catalog.systemRelations.has(`${schema}.${written.name}`),
  );
  if (isSystem && act === 'write') return `${write(written)} is not admitted: the server owns it`;
  const found = catalog
    .relationsNamed(written.name)
    .filter(({ schema }) => sees(written, schema, catalog));
  const open = found.find(({ isRegistered }) => !isRegistered);
  if (open !== undefined)
    return `${sqlName({ ...open, name: written.name })} is not admitted: it is not registered; name it in relations or views, then run \`effectmatch provision\``;
  return isSystem || found.length > 0 ? undefined : `there is no table ${write(written)}`;
}

function refuseSample({ schema, name }: WrittenName): string | undefined {
  const isReviewed = (schema ?? SYSTEM) === SYSTEM && ['bernoulli', 'system'].includes(name);
  return isReviewed ? undefined : `TABLESAMPLE ${name} is not admitted; use BERNOULLI or SYSTEM`;
}

/** Whether a name could refer to an object in this schema. */
function sees({ schema }: WrittenName, of: string, { path }: GateCatalog): boolean {
  return schema === undefined ? of === SYSTEM || path.includes(of) : schema === of;
}

function write({ schema, name }: WrittenName): string {
  return schema === undefined ? quoteName(name) : sqlName({ schema, name });
}

function first<T>(items: readonly T[], judge: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const why = judge(item);
    if (why !== undefined) return why;
  }
  return undefined;
}
