import { type ManifestSchema, plainSchema } from '../../backend/manifest-schema.ts';
import { normaliseNumbers, normaliseRow } from '../../http/number.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';

/**
 * A service's rows as manifests see them: values as stated, numbers in the form in which JSON is
 * read.
 */
export function serviceSchema(registration: Registration): ManifestSchema {
  return {
    ...plainSchema(registration),
    store: (_relation, _column, value) => normaliseNumbers(value),
  };
}

/** A record in the same form: an operation's own function may have calculated its numbers. */
export function normaliseRecord(record: ChangeRecord): ChangeRecord {
  const { key, before, after } = record;
  return {
    ...record,
    key: key && normaliseRow(key),
    before: before && normaliseRow(before),
    after: after && normaliseRow(after),
  };
}
