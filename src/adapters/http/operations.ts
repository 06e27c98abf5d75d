import type { AdapterContext, Approval, RemoteAdapter } from '../../contract/adapter.ts';
import { refused } from '../../http/errors.ts';
import { CHANNELS, checkDeclared } from '../../http/findings.ts';
import { type RemoteBackend, remoteAdapter } from '../../http/remote.ts';
import type { Target } from '../../protocol/registration.ts';
import {
  type HttpOperation,
  type MediatedOptions,
  OPERATION_OPTIONS,
  type OpaqueOptions,
} from './options.ts';
import { readBack } from './read-back.ts';
import { type OpenedService, openService } from './service.ts';

/** Where requests come from: the only difference between MEDIATED and OPAQUE services. */
export interface RequestSource<Action>
  extends Pick<RemoteBackend<Action>, 'parseAction' | 'describeAction' | 'request' | 'probe'> {
  readonly normalise?: RemoteAdapter['normalise'];
  /** The operation that an approval is for, if recovery can know it. */
  nameOf(approved: Approval): string | undefined;
}

/** The adapter of a service with declared operations. */
export function openOperations<Action>(
  capability: RemoteAdapter['capability'],
  options: MediatedOptions | OpaqueOptions,
  context: AdapterContext,
  sourceOf: (service: OpenedService) => RequestSource<Action>,
): RemoteAdapter<Action> {
  const service = openService(options as MediatedOptions, OPERATION_OPTIONS, context, capability);
  const operations: Readonly<Record<string, HttpOperation>> = options.operations ?? {};
  const { gateway, registration } = service;
  if (Object.keys(operations).length === 0) throw refused('register at least one operation');
  for (const [name, operation] of Object.entries(operations))
    checkOperation(name, operation, registration.targets);
  const source = sourceOf(service);
  return remoteAdapter({
    ...service,
    ...source,
    kind: 'http',
    capability,
    context,
    operations,
    channels: CHANNELS,
    send: (content, permit) => gateway.send(content, permit.record.occurrence, { warrant: permit }),
    async lookUp(occurrence, requested, approved) {
      const name = requested ?? source.nameOf(approved);
      const operation = name === undefined ? undefined : operations[name];
      if (operation === undefined) return 'which operation was requested is no longer known';
      return await readBack(gateway, occurrence, operation, approved);
    },
  });
}

/** Checks what every operation must declare, however its request is made. */
function checkOperation(
  name: string,
  { method, path, readBack, assigns = [] }: HttpOperation,
  targets: readonly Target[],
): void {
  if (!['POST', 'PUT', 'PATCH', 'DELETE'].includes(method))
    throw refused(`operation "${name}" has no usable method`);
  const witness = readBack?.witness && { witness: readBack.witness.path };
  const paths = { path, 'readBack.path': readBack?.path, ...witness };
  for (const [field, text] of Object.entries(paths)) {
    if (typeof text !== 'string' || !/^\/(?!\/)/.test(text))
      throw refused(`${field} of operation "${name}" must be a path from "/" on`);
  }
  if (typeof readBack.found !== 'function')
    throw refused(`operation "${name}" does not say how to read back`);
  checkDeclared(name, { covers: readBack.covers, assigns }, targets, refused);
}
