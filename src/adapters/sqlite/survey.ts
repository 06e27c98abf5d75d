import { deniedOutlets, fingerprint, openOutlet } from '../../backend/setup.ts';
import type { Outlet, Survey } from '../../protocol/boundary.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import type { SchemaObject, SqliteCatalog } from './catalog.ts';
import { controlProblems, isControlName } from './control.ts';
import { ALLOWED_FUNCTIONS } from './fence.ts';
import { inspectRelation } from './relation.ts';

/** Outlets that exist in every SQLite database, and what closes them. */
const CLOSED = deniedOutlets({
  'ATTACH and DETACH': 'authorizer; the connection allows no attached database',
  'PRAGMA statements and functions': 'authorizer',
  'CREATE, ALTER, DROP, REINDEX, ANALYZE': 'authorizer; schema compared before and after',
  VACUUM: 'not possible inside the held transaction',
  'temporary tables, triggers and views':
    'authorizer; schema_version of temp compared before and after',
  'transaction control and savepoints': 'authorizer; transaction checked after every statement',
  'extension loading': 'switched off on the connection; authorizer',
  'application-defined functions': 'none are registered on the connection; authorizer allow-list',
  'functions in defaults, checks and indexes':
    'trusted_schema is off: only functions SQLite marks innocuous',
  'sqlite_sequence and other tables of SQLite':
    'authorizer; sqlite_sequence compared before and after',
  'control tables of EffectMatch': 'authorizer',
});

/** The setup of the connection that runs agent SQL. It is part of every certificate. */
const ENFORCEMENT = fingerprint([
  process.versions.sqlite,
  CLOSED,
  [...ALLOWED_FUNCTIONS],
  'defensive; no extensions; trusted_schema off; foreign_keys on; no double-quoted strings; synchronous pinned',
]);

/**
 * Lists every outlet of agent SQL in this file, from the current schema. `outlets` depends only on
 * the schema and the registration, so the caller can keep the result while the catalogue's text is
 * the same.
 */
export function surveyCatalog(
  facts: {
    readonly backend: string;
    readonly file: string;
    readonly isReplaced: boolean;
    readonly registration: Registration;
  },
  catalog: SqliteCatalog,
): Survey {
  const { backend, file, registration } = facts;
  const problems = controlProblems(catalog).map((problem) => openOutlet('control tables', problem));
  if (facts.isReplaced)
    problems.push(
      openOutlet('database file', 'another file, or other rights, since it was opened; reopen it'),
    );
  const outlets = [
    ...registration.targets.map((target) => surveyTarget(catalog, target)),
    ...catalog.objects.flatMap((object) => surveyObject(object, registration)),
    ...CLOSED,
    ...problems,
  ];
  return {
    backend,
    executor: 'a node:sqlite connection for stages alone, one at a time, behind an authorizer',
    outlets: Object.freeze(outlets),
    configuration: fingerprint(catalog.text),
    credentials: fingerprint(file),
    enforcement: ENFORCEMENT,
  };
}

/** A registered relation is observed as long as it matches its registration. */
function surveyTarget(catalog: SqliteCatalog, target: Target): Outlet {
  const outlet = `relation ${target.name}`;
  const inspection = inspectRelation(catalog, target.name);
  if (inspection.kind === 'unusable') return openOutlet(outlet, inspection.why);
  const { relation } = inspection;
  const now = [relation.columns.map((column) => column.name), relation.key];
  if (JSON.stringify(now) !== JSON.stringify([target.columns, target.key])) {
    return openOutlet(
      outlet,
      'its columns or key changed after it was registered; open the adapter again',
    );
  }
  const uncompared =
    target.volatile.length === 0
      ? ''
      : `, volatile and not compared: ${target.volatile.join(', ')}`;
  return { outlet, disposition: 'observed', by: `session changeset${uncompared}` };
}

function surveyObject(object: SchemaObject, registration: Registration): readonly Outlet[] {
  const { type, name, table } = object;
  if (isControlName(name) || isControlName(table)) return [];
  switch (type) {
    case 'table':
      if (registration.targets.some((target) => target.name === name)) return [];
      return [
        { outlet: `relation ${name}`, disposition: 'denied', by: 'authorizer: not registered' },
      ];
    case 'trigger':
      return [
        {
          outlet: `trigger ${name} on ${table}`,
          disposition: 'observed',
          by: 'its writes to registered relations are in the changeset, all others are denied by the authorizer',
        },
      ];
    case 'view':
      return [
        {
          outlet: `view ${name}`,
          disposition: 'denied',
          by: 'holds no data; its triggers are listed',
        },
      ];
    case 'index':
      return [];
    default:
      return [
        openOutlet(
          `${type} ${name}`,
          'this release does not know what it is; drop it or use a newer release',
        ),
      ];
  }
}
