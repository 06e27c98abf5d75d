import { copyAction, copyChecked } from '../../backend/action.ts';
import { refuseAction } from '../../contract/action-input.ts';
import type { AdapterFactory } from '../../contract/adapter.ts';
import { isHeaderName } from '../../http/content.ts';
import { refused } from '../../http/errors.ts';
import type { Gateway } from '../../http/gateway.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { openOperations, type RequestSource } from './operations.ts';
import type { OpaqueOperation, OpaqueOptions } from './options.ts';

/** What an agent asks for: a registered operation, with input that its own check lets through. */
export interface OpaqueAction {
  readonly operation: string;
  readonly input: Value;
}

/**
 * A service that others may write to, or that knows no idempotency key. The request is constrained,
 * sent once and judged by what can be read back. Nothing is held and nothing can be rolled back.
 */
export function opaqueHttp(options: OpaqueOptions): AdapterFactory<OpaqueAction> {
  return {
    open: async (context) =>
      openOperations('OPAQUE', options, context, ({ gateway }) => constrained(options, gateway)),
  };
}

/** Requests supplied by the agent, limited to what the registered operations allow. */
function constrained({ operations }: OpaqueOptions, gateway: Gateway): RequestSource<OpaqueAction> {
  const names = Object.keys(operations);
  for (const [name, operation] of Object.entries(operations)) checkOpaque(name, operation);
  const find = (name: string) => {
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation !== undefined) return operation;
    throw refuseAction(`unknown operation "${name}" (there are: ${names.join(', ')})`);
  };
  return {
    parseAction(untrusted) {
      const { operation, input } = readAction(untrusted);
      const refusal = `operation "${operation}" does not take this`;
      return { operation, input: copyChecked(refusal, () => find(operation).input(input)) };
    },
    describeAction: ({ operation, input }) => ({ operation, input }),
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
    // The action is not stored. With several operations recovery cannot tell which one it was, and
    // does not guess.
    nameOf: () => (names.length === 1 ? names[0] : undefined),
  };
}

function checkOpaque(name: string, { input, request, idempotency }: OpaqueOperation): void {
  if (typeof input !== 'function')
    throw refused(`operation "${name}" needs input: what an agent may say`);
  if (typeof request !== 'function')
    throw refused(`operation "${name}" does not say how its request is made`);
  if (idempotency !== undefined && !isHeaderName(idempotency.header))
    throw refused(`the idempotency header of operation "${name}" is not the name of a header`);
}

function readAction(untrusted: unknown): OpaqueAction {
  const copy = copyAction(untrusted);
  const { operation, input, ...more } = isObject(copy) ? copy : {};
  if (typeof operation === 'string' && input !== undefined && Object.keys(more).length === 0)
    return { operation, input };
  throw refuseAction('an action is { operation, input } and nothing else');
}
