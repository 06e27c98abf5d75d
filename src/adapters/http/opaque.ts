import type { AdapterFactory } from '../../contract/adapter.ts';
import { constrainedActions, type OpaqueAction } from '../../http/constrained.ts';
import { isHeaderName } from '../../http/content.ts';
import { refused } from '../../http/errors.ts';
import type { Gateway } from '../../http/gateway.ts';
import { openOperations, type RequestSource } from './operations.ts';
import type { OpaqueOperation, OpaqueOptions } from './options.ts';

export type { OpaqueAction };

/**
 * A service that others may write to, or that does not support idempotency keys. The request is
 * constrained, sent once and judged by what can be read back. Nothing is held and nothing can be
 * rolled back.
 */
export function opaqueHttp(options: OpaqueOptions): AdapterFactory<OpaqueAction> {
  return {
    open: async (context) =>
      openOperations('OPAQUE', options, context, ({ gateway }) => constrained(options, gateway)),
  };
}

/** Requests from the agent, limited to what the registered operations allow. */
function constrained({ operations }: OpaqueOptions, gateway: Gateway): RequestSource<OpaqueAction> {
  for (const [name, operation] of Object.entries(operations)) checkOpaque(name, operation);
  const { find, nameOf, ...actions } = constrainedActions(operations, refused);
  return {
    ...actions,
    nameOf,
    request(_approved, { operation, input }) {
      const { method, path, idempotency, request } = find(operation);
      const header = idempotency?.header.toLowerCase() ?? null;
      const fixed = {
        operation,
        method,
        path,
        idempotency: header,
      };
      return gateway.compose(fixed, request(input));
    },
  };
}

function checkOpaque(name: string, { request, idempotency }: OpaqueOperation): void {
  if (typeof request !== 'function')
    throw refused(`operation "${name}" does not say how its request is made`);
  if (idempotency !== undefined && !isHeaderName(idempotency.header))
    throw refused(`the idempotency header of operation "${name}" is not the name of a header`);
}
