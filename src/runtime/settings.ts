import { EffectMatchError } from '../errors.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Admitted } from './deployment.ts';

/** Throws if an approval has settings that cannot be applied. */
export function demandSettable(
  admitted: Pick<Admitted, 'name' | 'adapter'>,
  settings: SessionSettings | undefined,
): void {
  const why = findRefusedSetting(admitted, settings);
  if (why !== undefined) throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', why);
}

/**
 * Why these settings cannot be applied to a session of this adapter; undefined if they can, or if
 * there are none. Checked when an approval is made, and again when it is used.
 */
export function findRefusedSetting(
  { name: adapterName, adapter }: Pick<Admitted, 'name' | 'adapter'>,
  settings: SessionSettings = {},
): string | undefined {
  const names = Object.keys(settings);
  if (names.length === 0) return undefined;
  if (adapter.capability !== 'PROMOTABLE' || adapter.settingRefusal === undefined)
    return `adapter "${adapterName}" has no session settings, so ${names.join(', ')} cannot be set; leave it out`;
  for (const name of names) {
    const why = adapter.settingRefusal(name);
    if (why !== undefined) return `the setting ${name} ${why}; use a name such as app.actor`;
  }
  return undefined;
}
