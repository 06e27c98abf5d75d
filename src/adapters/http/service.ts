import { type ManifestSchema, plainSchema } from '../../backend/manifest-schema.ts';
import { normaliseManifest } from '../../backend/normalise.ts';
import type { AdapterContext, RemoteAdapter } from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { fillPath } from '../../http/content.ts';
import { invalid, refused } from '../../http/errors.ts';
import { Gateway } from '../../http/gateway.ts';
import { normaliseNumbers, normaliseRow } from '../../http/number.ts';
import { type DescribedService, readRows } from '../../http/remote.ts';
import type { ChangeRecord, StateRead } from '../../protocol/effect.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import type { HttpOptions, TargetOptions } from './options.ts';

/** What every adapter of this folder has. */
export type OpenedService = Pick<
  DescribedService,
  'backend' | 'gateway' | 'module' | 'configuration'
> &
  Pick<RemoteAdapter, 'registration' | 'profiles' | 'normalise' | 'read'>;

/** Checks what the options say about the service and its targets, and opens its gateway. */
export function openService<Options extends HttpOptions>(
  options: Options,
  names: OptionNames<Options>,
  context: AdapterContext,
  capability?: RemoteAdapter['capability'],
): OpenedService {
  const misnamed = misnamedOption(options, names);
  if (misnamed !== undefined) throw refused(misnamed);
  const { service, profile = 'row-event', values = 'plain', ...declared } = options;
  const gateway = new Gateway(service, context);
  const targets = targetsOf(declared.targets);
  const registration: Registration = {
    profile,
    values,
    targets,
    ...(capability !== undefined && { capability }),
  };
  // Values as stated, numbers in the form in which JSON is read.
  const schema: ManifestSchema = {
    ...plainSchema(registration),
    store: (_relation, _column, value) => normaliseNumbers(value),
  };
  return {
    backend: service.backend,
    gateway,
    module: import.meta.url,
    configuration: identifyOptions({ url: service.url, ...declared }),
    registration,
    profiles: ['row-event', 'net-state', 'relation-write'],
    normalise: async (manifest) => normaliseManifest(schema, manifest),
    read: (reads) => readRows(reads, (read) => readEntry(gateway, declared.targets, read)),
  };
}

function targetsOf(options: Readonly<Record<string, TargetOptions>>): readonly Target[] {
  const targets = Object.entries(options ?? {}).map(([name, { columns, key, volatile = [] }]) => {
    if (![columns, key, volatile].every(isNameList) || columns.length === 0)
      throw refused(`target "${name}" needs columns and key, as lists of names`);
    const stray = [...key, ...volatile].find((column) => !columns.includes(column));
    if (stray !== undefined)
      throw refused(`"${stray}" of target "${name}" is not among its columns`);
    return {
      name,
      columns: [...columns],
      key: [...key],
      volatile: [...volatile],
    };
  });
  if (targets.length === 0) throw refused('register at least one target');
  return targets;
}

function isNameList(list: unknown): boolean {
  return Array.isArray(list) && list.every((column) => typeof column === 'string' && column !== '');
}

/** Options as they decide what is sent and what is believed: functions count by their text. */
function identifyOptions(options: object): string {
  const plain = (value: unknown): unknown => {
    if (typeof value === 'function') return `function ${String(value)}`;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== 'object' || value === null) return value ?? null;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
  };
  return digestValueOf('effectmatch/http-options/v1', plain(options)).slice(0, 32);
}

async function readEntry(
  gateway: Gateway,
  targets: Readonly<Record<string, TargetOptions>>,
  { target, key }: StateRead,
): Promise<Row | null> {
  const how = targets[target]?.read;
  if (how === undefined)
    throw invalid(`"${target}" cannot be read; register how, or do not require it`);
  const found = await gateway.read(`"${target}"`, fillPath(how.path, key));
  return found === undefined ? null : normaliseRow(how.row(found.body, found.headers));
}

/** A record with its numbers in the form of a manifest's: an option's function may calculate. */
export function normaliseRecord(record: ChangeRecord): ChangeRecord {
  const { key, before, after } = record;
  return {
    ...record,
    key: key && normaliseRow(key),
    before: before && normaliseRow(before),
    after: after && normaliseRow(after),
  };
}

/** What stands at a path of fields in a response. */
export function fieldAt(body: Value, path: readonly string[]): Value | undefined {
  let at: Value | undefined = body;
  for (const name of path)
    at = at !== undefined && isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at ?? undefined;
}
