import { quoteName } from '../../../postgres/identifier.ts';
import { isHarmlessSetting, TRUSTED_LIBRARIES } from './builtins.ts';
import type { SettingRow } from './catalog.ts';
import { at, type Outlets, type SurveyContext } from './facts.ts';

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

const RELOAD = 'SELECT pg_catalog.pg_reload_conf()';
const ADMIN = 'superuser, or the owner of the database or role';

/** Settings of the server, and those stored on databases and roles. */
export function surveySettings(context: SurveyContext): void {
  const { catalog, outlets } = context;
  const server = new Map(catalog.server_settings.map(({ name, value }) => [name, value]));
  for (const [name, value, why] of REQUIRED) {
    const found = server.get(name);
    if (found === value) outlets.denied(`setting ${name}`, `is ${value}`);
    else
      outlets.open(
        at.server(name),
        `setting ${name}`,
        `It is ${found}: ${why}`,
        `ALTER SYSTEM SET ${name} = ${value}`,
        RELOAD,
      );
  }
  const commit = server.get('synchronous_commit');
  outlets.denied(
    'setting synchronous_commit',
    `pinned when the candidate is promoted (server: ${commit})`,
  );
  outlets.denied(
    'PREPARE TRANSACTION',
    'the deferred check on the record channel raises without a marker',
  );
  for (const kind of ['shared', 'session', 'local']) {
    const setting = `${kind}_preload_libraries`;
    if (context.facts.tier !== 'managed')
      surveyLibraries(context, setting, server.get(setting) ?? '');
    else {
      const list = server.get(setting) ?? 'not visible to this login';
      const by = `${list}; what the provider loads into its server is trusted`;
      outlets.denied(`setting ${setting}`, by, 'provider');
    }
  }
  surveyStored(context, server.get('search_path') ?? '');
}

function surveyLibraries({ facts, outlets }: SurveyContext, setting: string, list: string): void {
  const libraries = list.split(',').map((part) => part.trim());
  for (const library of libraries.filter(Boolean)) {
    const outlet = `library ${library}`;
    if (TRUSTED_LIBRARIES.has(library) || facts.trustedCode?.includes(library))
      outlets.observed(outlet, `in ${setting}; watches and does not act, or vouched for`);
    else
      outlets.open(
        { object: setting, needs: 'superuser; shared_preload_libraries also a restart' },
        outlet,
        `${setting} loads it into every session and its code is not known`,
        `ALTER SYSTEM RESET ${setting}`,
        RELOAD,
      );
  }
}

/** Settings stored on databases and roles. */
function surveyStored({ catalog, facts, reach, outlets }: SurveyContext, serverPath: string): void {
  const { executor, control, owner } = facts;
  const hides = ['', executor, control];
  // The server's search path is read in a session of the control login, where a stored path would
  // replace it.
  if (!catalog.settings.some(({ name, role }) => name === 'search_path' && hides.includes(role))) {
    const outlet = 'setting search_path of the server';
    const stored = { outlet, value: serverPath, subject: 'ALTER SYSTEM', isOfAgents: true };
    surveySearchPath(stored, outlets);
  }
  const ours = new Set([...hides, owner, ...reach.principals.keys()]);
  for (const setting of catalog.settings.filter(({ role }) => ours.has(role))) {
    const { role, name, value } = setting;
    const { where, subject } = placeOf(setting);
    const outlet = `setting ${name} of ${where || 'all roles'}`;
    const isReadOnly = name === 'default_transaction_read_only' && value === 'on';
    if (name === 'search_path') {
      const isOfAgents = role === '' || role === executor;
      surveySearchPath({ outlet, value, subject, isOfAgents }, outlets);
    } else if (isReadOnly && role === executor)
      outlets.denied(outlet, 'outside a stage the execution login writes nothing');
    else if (isHarmlessSetting(name))
      outlets.denied(outlet, `is ${value}; affects neither what is written nor how durably`);
    else
      outlets.open(
        { object: name, needs: ADMIN },
        outlet,
        `It is ${value} in every new session there, before anything of ours runs`,
        `${subject} RESET ${quoteName(name)}`,
      );
  }
}

/** Where a setting is stored, in words, and how the statement that changes it begins. */
function placeOf({ database, role }: SettingRow) {
  const places = [
    role === '' ? '' : `role ${quoteName(role)}`,
    database === '' ? '' : `database ${quoteName(database)}`,
  ];
  const where = places.filter(Boolean).join(' in ');
  if (role === '' && database !== '')
    return { where, subject: `ALTER DATABASE ${quoteName(database)}` };
  const inDatabase = database === '' ? '' : ` IN DATABASE ${quoteName(database)}`;
  return { where, subject: `ALTER ROLE ${role === '' ? 'ALL' : quoteName(role)}${inDatabase}` };
}

/**
 * A stored search path decides which objects the names in agent SQL mean, and effects are compared
 * by object. It affects nothing else, because our own calls name schemas and the control login sets
 * its own path. The exception is a path with application schemas before pg_catalog: application
 * functions and operators could then stand in for the server's.
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
    outlets.open(
      { object: 'search_path', needs: ADMIN },
      outlet,
      `It is ${value} and puts other schemas before pg_catalog, so that their functions and operators would answer ` +
        'for those of the server. Leave pg_catalog out; the server then looks there first',
      `${subject} SET search_path = ${schemas.filter((schema) => !isSystem(schema)).join(', ')}`,
      ...(subject === 'ALTER SYSTEM' ? [RELOAD] : []),
    );
}
