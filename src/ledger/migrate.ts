import { EffectMatchError, invariant } from '../errors.ts';

/**
 * One step of a store's schema. Steps are numbered from 1 and never edited once released; new ones
 * are added at the end.
 */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/**
 * The steps that a store at version `current` still needs, in order. Refuses a store that a newer
 * release wrote, because an older program does not know what its rows mean. Call it inside the
 * transaction that applies the steps, so that if many processes start at once, one migrates and the
 * others find nothing to do.
 */
export function pendingMigrations(
  migrations: readonly Migration[],
  current: number,
  store: string,
): readonly Migration[] {
  migrations.forEach(({ version }, index) => {
    invariant(version === index + 1, 'migrations are numbered from 1 without a gap');
  });
  if (current > migrations.length) {
    throw new EffectMatchError(
      'ERR_EM_STORE_NEWER',
      `${store} has schema version ${current} and this release knows versions up to ${migrations.length}; ` +
        'use the release that wrote it, or a newer one',
    );
  }
  return migrations.slice(current);
}
