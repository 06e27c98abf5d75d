import { EffectMatchError } from '../errors.ts';

/** Whether a store is named by the address of a PostgreSQL database. */
export function isPostgresAddress(place: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(place);
}

/** Why a place cannot hold records. Does not quote it: an address may contain a password. */
export function wrongPlace(option: string, place: string): string | undefined {
  if (isPostgresAddress(place) || !/^\s*[a-z][a-z0-9+.-]*:\/\//i.test(place)) return undefined;
  return `\`${option}\` is an address, but not one of PostgreSQL; give the path of a file, or postgres://…`;
}

/** Throws if a place cannot hold records, so that an address is never used as a file name. */
export function demandPlace(option: string, place: string): void {
  const wrong = wrongPlace(option, place);
  if (wrong !== undefined) throw new EffectMatchError('ERR_EM_CONFIG_INVALID', wrong);
}
