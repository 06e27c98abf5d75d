import { z } from 'zod';
import { EffectMatchError } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import type { Target } from '../../src/protocol/registration.ts';
import type { Row } from '../../src/protocol/value.ts';
import type { Write } from './backend.ts';

/** What an agent submits to a backend in memory: writes that run in order. */
export interface MemoryAction {
  readonly writes: readonly Write[];
}

const rowSchema = z.record(z.string(), z.json()) as unknown as z.ZodType<Row>;
const actionSchema = z.strictObject({
  writes: z.array(
    z.discriminatedUnion('op', [
      z.strictObject({ op: z.literal('insert'), target: z.string(), row: rowSchema }),
      z.strictObject({
        op: z.literal('update'),
        target: z.string(),
        key: rowSchema,
        set: rowSchema,
      }),
      z.strictObject({ op: z.literal('delete'), target: z.string(), key: rowSchema }),
    ]),
  ),
});

/**
 * Checks an untrusted action completely and copies it, so that the caller cannot change it
 * afterwards.
 */
export function parseMemoryAction(targets: readonly Target[], input: unknown): MemoryAction {
  const { writes } =
    actionSchema.safeParse(copyOf(input)).data ?? refuse('it is not of the form { writes: [...] }');
  for (const write of writes) {
    const target =
      targets.find(({ name }) => name === write.target) ?? refuse(`no table "${write.target}"`);
    const key = write.op === 'insert' ? write.row : write.key;
    const set = write.op === 'update' ? write.set : {};
    if (target.key.some((column) => !Object.hasOwn(key, column)))
      refuse(`"${target.name}" is addressed by its key`);
    const unknown = Object.keys({ ...key, ...set }).find(
      (column) => !target.columns.includes(column),
    );
    if (unknown !== undefined) refuse(`"${target.name}" has no column "${unknown}"`);
    const fixed = Object.keys(set).find((column) => target.key.includes(column));
    if (fixed !== undefined) refuse(`"${fixed}" is a key column`);
  }
  return { writes };
}

/** Canonical text refuses whatever is not plain data without running any of it. */
function copyOf(input: unknown): unknown {
  try {
    return JSON.parse(canonical(input));
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}

function refuse(why: string): never {
  throw new EffectMatchError('ERR_EM_ACTION_INVALID', `the action cannot run: ${why}`);
}
