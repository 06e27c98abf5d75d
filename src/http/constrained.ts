import { copyAction, copyChecked } from '../backend/action.ts';
import type { AdapterRefusal } from '../backend/setup.ts';
import { refuseAction } from '../contract/action-input.ts';
import type { RemoteAdapter } from '../contract/adapter.ts';
import { isObject, type Value } from '../protocol/value.ts';

/** What an agent asks for: a registered operation, with input that the operation accepts. */
export interface OpaqueAction {
  readonly operation: string;
  readonly input: Value;
}

/** The input check of one operation. */
interface Constrained {
  readonly input: (untrusted: Value) => Value;
}

/** Actions of the agent, limited to what the registered operations accept. */
export function constrainedActions<Operation extends Constrained>(
  operations: Readonly<Record<string, Operation>>,
  refused: AdapterRefusal,
) {
  for (const [name, { input }] of Object.entries(operations)) {
    if (typeof input !== 'function')
      throw refused(
        `operation "${name}" needs the function input, which checks what an agent sends`,
      );
  }
  const names = Object.keys(operations);
  const find = (name: string): Operation => {
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation !== undefined) return operation;
    throw refuseAction(`unknown operation "${name}" (there are: ${names.join(', ')})`);
  };
  const actions: Pick<RemoteAdapter<OpaqueAction>, 'parseAction' | 'describeAction'> = {
    parseAction(untrusted) {
      const { operation, input } = readAction(untrusted);
      const refusal = `operation "${operation}" does not take this`;
      return { operation, input: copyChecked(refusal, () => find(operation).input(input)) };
    },
    describeAction: ({ operation, input }) => ({ operation, input }),
  };
  // The action is not stored. With several operations, recovery cannot know which one it was, and
  // does not guess.
  const nameOf = () => (names.length === 1 ? names[0] : undefined);
  return { ...actions, find, nameOf };
}

function readAction(untrusted: unknown): OpaqueAction {
  const copy = copyAction(untrusted);
  const { operation, input, ...more } = isObject(copy) ? copy : {};
  if (typeof operation === 'string' && input !== undefined && Object.keys(more).length === 0)
    return { operation, input };
  throw refuseAction('an action is { operation, input } and nothing else');
}
