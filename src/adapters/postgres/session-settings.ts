import { invalid } from '../../backend/manifest-schema.ts';
import type { Connection, Reply, WireStatement } from '../../postgres/connection.ts';
import { quoteLiteral, quoteName } from '../../postgres/identifier.ts';
import type { SessionSettings } from '../../protocol/settings.ts';

/** Settings with a dot that belong to EffectMatch or to modules of the server. */
const RESERVED = /^(?:effectmatch|pg_\w+|plpgsql|plperl|plpython3?u|pltcl)\./;

/** Why a setting does not belong to the application; undefined if it may. */
export function refuseSetting(name: string): string | undefined {
  return RESERVED.test(name) ? 'belongs to the server or to EffectMatch' : undefined;
}

/** Refuses settings of loaded libraries and extensions, which can change how the server works. */
export async function refuseServerSettings(
  connection: Connection,
  settings: SessionSettings | undefined,
): Promise<void> {
  if (settings === undefined) return;
  const { rows } = await connection.query(SERVER_SETTINGS, [Object.keys(settings)]);
  const name = rows[0]?.[0];
  if (name != null) throw invalid(`set "${name}"`, 'it belongs to an extension of the server');
}

const SERVER_SETTINGS = `select n from pg_catalog.unnest($1::pg_catalog.text[]) as given(n)
  where exists (select from pg_catalog.pg_settings as s where s.name operator(pg_catalog.=) n)
    or exists (select from pg_catalog.pg_extension as e
      where e.extname operator(pg_catalog.=) pg_catalog.split_part(n, '.', 1))`;

/**
 * Applies settings until the transaction ends. SET takes no parameters, and the execution login may
 * not call set_config(), because agent SQL runs as the same login.
 */
export function applySettings(settings: SessionSettings): readonly WireStatement[] {
  return Object.entries(settings).map(([name, value]) => {
    const quoted = name.split('.').map(quoteName).join('.');
    return { text: `set local ${quoted} = ${quoteLiteral(value)}` };
  });
}

/** Reads the settings back after the action has run. */
export function readSettings(settings: SessionSettings): WireStatement {
  const text =
    'select n, pg_catalog.current_setting(n, true) from pg_catalog.unnest($1::pg_catalog.text[]) as given(n)';
  return { text, values: [Object.keys(settings)] };
}

/** The first setting that no longer has its approved value. */
export function findChangedSetting(
  settings: SessionSettings,
  reply: Reply | undefined,
): string | undefined {
  const found = new Map(reply?.rows.map(([name, value]) => [name, value]));
  return Object.keys(settings).find((name) => found.get(name) !== settings[name]);
}
