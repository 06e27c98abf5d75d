import { quoteName } from '../../../postgres/identifier.ts';
import { isHarmlessSetting, TRUSTED_LIBRARIES } from './builtins.ts';
import type { Catalog } from './catalog.ts';
import { type BoundaryFacts, isVouchedFor, type Outlets } from './facts.ts';
import type { Index, Reach } from './reach.ts';

const REQUIRED: readonly (readonly [name: string, value: string, why: string])[] = [
  ['fsync', 'on', 'commits are acknowledged before they are on disk'],
  ['full_page_writes', 'on', 'a torn page loses acknowledged commits'],
  ['track_counts', 'on', 'the counters of the second witness stand still'],
  ['lo_compat_privileges', 'off', 'large objects have no access control'],
  ['allow_system_table_mods', 'off', 'catalogues can be written like tables'],
  ['zero_damaged_pages', 'off', 'damaged rows vanish silently'],
  ['ignore_system_indexes', 'off', 'catalogue constraints are not enforced'],
  [
    'standard_conforming_strings',
    'on',
    'strings in function bodies mean something else than they say',
  ],
  ['session_replication_role', 'origin', 'triggers do not fire'],
  ['row_security', 'on', 'policies are not applied'],
  ['default_transaction_read_only', 'off', 'no transaction can write'],
];

/** Settings of the server, and those stored on databases and roles. */
export function surveySettings(
  catalog: Catalog,
  facts: BoundaryFacts,
  reach: Reach,
  outlets: Outlets,
): void {
  const server = new Map(catalog.server_settings.map(({ name, value }) => [name, value]));
  const set = (name: string, value: string) => [
    `ALTER SYSTEM SET ${name} = ${value}`,
    'SELECT pg_catalog.pg_reload_conf()',
  ];
  for (const [name, value, why] of REQUIRED) {
    const found = server.get(name);
    if (found === value) outlets.denied(`setting ${name}`, `is ${value}`);
    else
      outlets.open({
        outlet: `setting ${name}`,
        object: name,
        why: `It is ${found}: ${why}`,
        fix: set(name, value),
        needs: 'superuser',
      });
  }
  outlets.denied(
    'setting synchronous_commit',
    `pinned when the candidate is promoted (server: ${server.get('synchronous_commit')})`,
  );
  outlets.denied(
    'PREPARE TRANSACTION',
    'the deferred check on the record channel raises without a marker',
  );
  for (const name of [
    'shared_preload_libraries',
    'session_preload_libraries',
    'local_preload_libraries',
  ]) {
    const libraries = (server.get(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean);
    for (const library of libraries) {
      if (TRUSTED_LIBRARIES.has(library) || facts.trustedCode?.includes(library))
        outlets.observed(
          `library ${library}`,
          `in ${name}; watches and does not act, or vouched for`,
        );
      else
        outlets.open({
          outlet: `library ${library}`,
          object: name,
          why: `${name} loads it into every session and its code is not known`,
          fix: [`ALTER SYSTEM RESET ${name}`, 'SELECT pg_catalog.pg_reload_conf()'],
          needs: 'superuser; shared_preload_libraries also a restart',
        });
    }
  }
  surveyStored(catalog, facts, reach, outlets);
}

/** Settings stored on databases and roles. */
function surveyStored(
  catalog: Catalog,
  facts: BoundaryFacts,
  reach: Reach,
  outlets: Outlets,
): void {
  const serverPath =
    catalog.server_settings.find(({ name }) => name === 'search_path')?.value ?? '';
  const hides = new Set(['', facts.executor, facts.control]);
  // What the server has is read in a session of the control login, where a stored path takes its
  // place.
  if (!catalog.settings.some(({ name, role }) => name === 'search_path' && hides.has(role))) {
    const stored = {
      outlet: 'setting search_path of the server',
      value: serverPath,
      subject: 'ALTER SYSTEM',
    };
    surveySearchPath({ ...stored, isOfAgents: true }, outlets);
  }
  const ours = new Set([
    '',
    facts.executor,
    facts.control,
    facts.owner,
    ...reach.principals.keys(),
  ]);
  for (const { database, role, name, value } of catalog.settings) {
    if (!ours.has(role)) continue;
    const where = [
      role === '' ? '' : `role ${quoteName(role)}`,
      database === '' ? '' : `database ${quoteName(database)}`,
    ]
      .filter(Boolean)
      .join(' in ');
    const outlet = `setting ${name} of ${where || 'all roles'}`;
    const subject =
      role === '' && database !== ''
        ? `ALTER DATABASE ${quoteName(database)}`
        : `ALTER ROLE ${role === '' ? 'ALL' : quoteName(role)}${database === '' ? '' : ` IN DATABASE ${quoteName(database)}`}`;
    if (name === 'search_path') {
      const isOfAgents = role === '' || role === facts.executor;
      surveySearchPath({ outlet, value, subject, isOfAgents }, outlets);
      continue;
    }
    const readOnly =
      name === 'default_transaction_read_only' && value === 'on' && role === facts.executor;
    if (readOnly) outlets.denied(outlet, 'outside a stage the execution login writes nothing');
    else if (isHarmlessSetting(name))
      outlets.denied(outlet, `is ${value}; affects neither what is written nor how durably`);
    else
      outlets.open({
        outlet,
        object: name,
        why: `It is ${value} in every new session there, before anything of ours runs`,
        fix: [`${subject} RESET ${quoteName(name)}`],
        needs: 'superuser, or the owner of the database or role',
      });
  }
}

/**
 * A stored search path decides which objects the names in agent SQL mean, and effects are compared
 * by object. Our own calls name schemas and the control login sets its own path, so it decides
 * nothing else, unless application objects come before the server's: then any operator and function
 * of the server in agent SQL could be one of the application.
 */
function surveySearchPath(
  stored: { outlet: string; value: string; subject: string; isOfAgents: boolean },
  outlets: Outlets,
): void {
  const { outlet, value, subject, isOfAgents } = stored;
  const schemas = value.match(/(?:"(?:[^"]|"")*"|[^,"])+/g)?.map((part) => part.trim()) ?? [];
  const isSystem = (schema: string) => /^"?pg_catalog"?$/.test(schema);
  if (!isOfAgents)
    outlets.denied(outlet, `is ${value}; no session of this role looks up a name by it`);
  else if (schemas.findIndex(isSystem) < 1)
    outlets.denied(
      outlet,
      `is ${value}; says what names in actions mean, and effects are compared by object`,
    );
  else
    outlets.open({
      outlet,
      object: 'search_path',
      why:
        `It is ${value} and puts other schemas before pg_catalog, so that their functions and operators would answer ` +
        'for those of the server. Leave pg_catalog out; the server then looks there first',
      fix: [
        `${subject} SET search_path = ${schemas.filter((schema) => !isSystem(schema)).join(', ')}`,
        ...(subject === 'ALTER SYSTEM' ? ['SELECT pg_catalog.pg_reload_conf()'] : []),
      ],
      needs: 'superuser, or the owner of the database or role',
    });
}

/**
 * Event triggers, foreign servers, replication, large objects, casts, operators: what else can
 * carry data or code.
 */
export function surveyObjects(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  for (const { object, event, enabled } of catalog.eventTriggers) {
    const outlet = `event trigger ${object}`;
    if (enabled === 'D') outlets.denied(outlet, 'it is disabled');
    else if (event !== 'login')
      outlets.observed(
        outlet,
        `fires on ${event}; an execution that changes definitions is refused by the counters`,
      );
    else
      outlets.open({
        outlet,
        object,
        why: 'It runs at every login, before anything of ours',
        fix: [`ALTER EVENT TRIGGER ${object} DISABLE`],
        needs: 'superuser',
      });
  }
  for (const { object, wrapper, owner } of catalog.servers) {
    const users = catalog.mappings
      .filter(({ server }) => server === object)
      .map(({ user }) => user ?? '');
    const reached = users.filter(
      (user) => user === facts.executor || user === 'public' || user === '',
    );
    for (const user of reached) {
      const who = user === facts.executor ? quoteName(user) : 'PUBLIC';
      outlets.open({
        outlet: `user mapping of ${who} on ${object}`,
        object,
        why: `${quoteName(facts.executor)} can log in to another server with it`,
        fix: [`DROP USER MAPPING FOR ${who} SERVER ${object}`],
        needs: `${quoteName(owner)} or a superuser`,
      });
    }
    if (reached.length === 0)
      outlets.denied(
        `foreign server ${object} (${wrapper})`,
        'no user mapping and no foreign table within reach',
      );
  }
  if (catalog.servers.length === 0) outlets.denied('foreign servers', 'none');
  for (const { object, all, tables } of catalog.publications) {
    outlets.observed(
      `publication ${object}`,
      `${all ? 'all tables' : tables.join(', ') || 'no table'}: subscribers get what was compared, after the commit`,
    );
  }
  for (const { object, enabled } of catalog.subscriptions) {
    outlets.denied(
      `subscription ${object}`,
      `${enabled ? 'active' : 'disabled'}: writes as another session, not as the execution`,
    );
  }
  surveyLargeObjects(catalog, facts, outlets);
  outlets.denied(
    'NOTIFY and LISTEN',
    'the statement is not admitted, pg_notify is not executable, and function bodies with them are refused',
  );
  outlets.denied(
    'COPY, DO, LOCK, SET, DDL and transaction control by the agent',
    'the statement is not admitted; definitions changed by code show in the counters',
  );
  surveyCasts(catalog, facts, index, outlets);
  for (const { description, extension, builtin } of catalog.operators) {
    if (builtin === 'setval')
      outlets.open({
        outlet: description,
        object: description,
        why: 'It is a sign for setval, which moves a sequence: neither recorders nor counters see that',
        fix: [`DROP ${description.replace('operator', 'OPERATOR')}`],
        needs: 'the owner of the operator, or a superuser',
      });
    else if (extension === null)
      outlets.observed(
        description,
        'its function is judged above; our own statements name operators by schema',
      );
  }
}

function surveyLargeObjects(catalog: Catalog, facts: BoundaryFacts, outlets: Outlets): void {
  const { owned, writable } = catalog.largeObjects[0] ?? { owned: 0, writable: 0 };
  const isOpen = outlets.problems.some(({ object }) => /^pg_catalog\.lo/.test(object));
  const mine = `${owned} owned and ${writable} writable by ${quoteName(facts.executor)}`;
  if (!isOpen)
    outlets.denied('large objects', `${mine}; none of the writing functions is executable`);
}

/** A cast on a registered type would decide what approvals and records say. */
function surveyCasts(catalog: Catalog, facts: BoundaryFacts, index: Index, outlets: Outlets): void {
  const types = new Set<number>();
  const byOid = new Map(catalog.types.map((row) => [row.oid, row]));
  const add = (oid: number): void => {
    if (oid === 0 || types.has(oid)) return;
    types.add(oid);
    const type = byOid.get(oid);
    if (type) for (const part of [type.base, type.element]) add(part);
  };
  for (const column of catalog.columns)
    if (index.registered.has(column.relation)) add(column.typeOid);
  for (const type of catalog.types) if (index.registered.has(type.relation)) add(type.oid);
  for (const cast of catalog.casts) {
    const called = index.function.get(cast.function);
    const isTrusted =
      isVouchedFor(cast, facts) && (called === undefined || isVouchedFor(called, facts));
    const touches = types.has(cast.sourceOid) || types.has(cast.targetOid);
    if (isTrusted || cast.function === 0 || !touches) continue;
    outlets.open({
      outlet: cast.description,
      object: `CAST (${cast.source} AS ${cast.target})`,
      why: 'It is application code that decides how values of a registered column read',
      fix: [`DROP CAST (${cast.source} AS ${cast.target})`],
      needs: 'the owner of either type, or a superuser',
    });
  }
}
