import type { AdapterContext, RemoteAdapter } from '../../contract/adapter.ts';
import { given, misnamedOption, type OptionNames } from '../../contract/options.ts';
import { fillPath } from '../../http/content.ts';
import { refused } from '../../http/errors.ts';
import { Gateway } from '../../http/gateway.ts';
import { identifyOptions, registerTargets } from '../../http/registered.ts';
import { type DescribedService, readEntries } from '../../http/remote.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import type { HttpOptions } from './options.ts';

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
  const terms = { profile, values, ...given({ capability }) };
  return {
    backend: service.backend,
    gateway,
    module: import.meta.url,
    configuration: identifyOptions({ url: service.url, ...declared }),
    ...registerTargets(terms, declared.targets, refused),
    read: (reads) =>
      readEntries(reads, declared.targets, async ({ path, row }, { target, key }) => {
        const found = await gateway.read(`"${target}"`, fillPath(path, key));
        return found === undefined ? null : row(found.body, found.headers);
      }),
  };
}

/** The value at a path of fields in a response. */
export function fieldAt(body: Value, path: readonly string[]): Value | undefined {
  let at: Value | undefined = body;
  for (const name of path)
    at = at !== undefined && isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at ?? undefined;
}
