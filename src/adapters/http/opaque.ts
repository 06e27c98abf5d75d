import { refuseRounded } from '../../contract/action-input.ts';
import type { AdapterContext, AdapterFactory, RemoteAdapter } from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import { buildContent } from '../../http/content.ts';
import { refused } from '../../http/gateway.ts';
import { canonical } from '../../protocol/canon.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { checkOptionNames, type OpaqueOptions } from './options.ts';
import { openShared } from './remote.ts';

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
  return { open: async (context) => openOpaque(options, context) };
}

function openOpaque(options: OpaqueOptions, context: AdapterContext): RemoteAdapter<OpaqueAction> {
  checkOptionNames(options);
  const { operations } = options;
  const names = Object.keys(operations ?? {});
  for (const [name, { input, request, idempotency }] of Object.entries(operations ?? {})) {
    if (typeof input !== 'function')
      throw refused(`operation "${name}" needs input: what an agent may say`);
    if (typeof request !== 'function')
      throw refused(`operation "${name}" does not say how its request is made`);
    if (idempotency !== undefined && !/^[A-Za-z0-9-]+$/.test(idempotency.header)) {
      throw refused(`operation "${name}" has an idempotency header that is no header`);
    }
  }
  const only = names.length === 1 ? operations[names[0] ?? ''] : undefined;
  const { gateway, shared } = openShared('OPAQUE', options, context, {
    check: () => {},
    // The action is not stored. With several operations recovery cannot tell which one it was, and
    // does not guess.
    operationOf: () => only,
  });
  const find = (name: string) => {
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation === undefined)
      throw invalid(`there is no operation "${name}" (there are: ${names.join(', ')})`);
    return operation;
  };
  return {
    ...shared,
    parseAction(input) {
      const { operation, input: said } = readAction(input);
      return { operation, input: constrain(operation, () => find(operation).input(said)) };
    },
    describeAction: ({ operation, input }) => ({ operation, input }),
    buildRequest(_approved, { operation, input }) {
      const { method, path, idempotency, request } = find(operation);
      const fixed = { method, path, idempotency: idempotency?.header.toLowerCase() ?? null };
      return {
        content: buildContent(operation, fixed, request(input), [
          gateway.credentialHeader,
        ]) as unknown as Value,
      };
    },
    // Nothing is demanded of an OPAQUE service, because nothing is promised about it.
    probe: {
      samples: () => [],
      exclusiveCredential: async () => false,
      idempotent: async () => false,
      fingerprint: (digest) => gateway.keyedFingerprint(digest),
    },
  };
}

function readAction(input: unknown): OpaqueAction {
  let copy: unknown;
  try {
    copy = JSON.parse(canonical(input));
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
  refuseRounded(copy, 'the action', 'write it as text, since JSON has no BigInt');
  const action = isObject(copy as Value) ? (copy as { readonly [key: string]: Value }) : {};
  const { operation, input: said, ...more } = action;
  if (typeof operation !== 'string' || said === undefined || Object.keys(more).length > 0) {
    throw invalid('an action is { operation, input } and nothing else');
  }
  return { operation, input: said };
}

/**
 * The operation's own check. What it returns is copied, so that nothing of the caller's is kept.
 */
function constrain(operation: string, check: () => Value): Value {
  try {
    return JSON.parse(canonical(check())) as Value;
  } catch (cause) {
    if (cause instanceof EffectMatchError && cause.code === 'ERR_EM_ACTION_INVALID') throw cause;
    const why = cause instanceof Error ? cause.message : 'it was refused';
    throw new EffectMatchError(
      'ERR_EM_ACTION_INVALID',
      `operation "${operation}" does not take this: ${why}`,
      {
        cause,
      },
    );
  }
}

function invalid(what: string): EffectMatchError<'ERR_EM_ACTION_INVALID'> {
  return new EffectMatchError('ERR_EM_ACTION_INVALID', what);
}
