import type { AdapterContext, RemoteAdapter } from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import { fillPath } from '../../http/content.ts';
import { invalid, refused } from '../../http/errors.ts';
import { Gateway } from '../../http/gateway.ts';
import { normaliseRow } from '../../http/number.ts';
import { identifyOptions, registerTargets } from '../../http/registered.ts';
import { type DescribedService, readRows } from '../../http/remote.ts';
import type { StateRead } from '../../protocol/effect.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import type { HttpOptions, TargetOptions } from './options.ts';

/** What all adapters in this folder have. */
export type OpenedService = Pick<DescribedService, 'backend' | 'module' | 'configuration'> &
  Pick<RemoteAdapter, 'registration' | 'profiles' | 'normalise' | 'read'> & {
    readonly gateway: Gateway;
  };

/** Checks the options for the service and its targets, and opens its gateway. */
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
  const terms = { profile, values, ...(capability !== undefined && { capability }) };
  return {
    backend: service.backend,
    gateway,
    module: import.meta.url,
    configuration: identifyOptions({ url: service.url, ...declared }),
    ...registerTargets(terms, declared.targets, refused),
    read: (reads) => readRows(reads, (read) => readEntry(gateway, declared.targets, read)),
  };
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

/** The value at a path of fields in a response. */
export function fieldAt(body: Value, path: readonly string[]): Value | undefined {
  let at: Value | undefined = body;
  for (const name of path)
    at = at !== undefined && isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at ?? undefined;
}
