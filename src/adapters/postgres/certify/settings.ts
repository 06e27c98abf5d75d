import { quoteName } from '../../../postgres/identifier.ts';
import { isHarmlessSetting } from './builtins.ts';
import type { SettingRow } from './catalog.ts';
import type { Outlets, SurveyContext } from './facts.ts';

const RELOAD = 'SELECT pg_catalog.pg_reload_conf()';
const ADMIN = 'superuser, or the owner of the database or role';

/** The search path of the server, and settings stored on databases and roles. */
export function surveySettings({ catalog, facts, reach, outlets }: SurveyContext): void {
  const { executor, control, owner } = facts;
  const value = catalog.server_settings.find(({ name }) => name === 'search_path')?.value ?? '';
  const hides = ['', executor, control];
  // The server's search path is read in a session of the control login, where a stored path would
  // replace it.
  if (!catalog.settings.some(({ name, role }) => name === 'search_path' && hides.includes(role))) {
    const outlet = 'setting search_path of the server';
    const stored = { outlet, value, subject: 'ALTER SYSTEM', isOfAgents: true };
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
