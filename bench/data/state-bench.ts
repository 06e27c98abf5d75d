// STATE-Bench native replays, recorded in state-bench/*.jsonl. The README there explains every
// field.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { applyPatch, type Json, type PatchStep } from './patch.ts';

/** Records by namespace and id. */
export type Snapshot = { readonly [namespace: string]: { readonly [id: string]: StateRecord } };
export type StateRecord = { readonly [field: string]: Json };

export type VariantName =
  | 'clean'
  | 'omitFirstWrite'
  | 'duplicateFirstWrite'
  | 'omitFirstMutation'
  | 'duplicateFirstMutation';

/** How one sequence of calls ended in the native simulators. */
export interface Variant {
  readonly final: Snapshot;
  readonly equalsClean: boolean;
  readonly equalsInitial: boolean;
  /** Whether the benchmark's own check of the final state passes. Never used for an approval. */
  readonly nativeStatePass: boolean;
  /** The errors that tools reported, by position in this variant's sequence. */
  readonly errors: ReadonlyMap<number, string>;
}

/** One replayed call of the clean sequence. */
export interface RecordedCall {
  readonly tool: string;
  readonly arguments: Json;
  readonly error: boolean;
  readonly diff: readonly PatchStep[];
}

/** What was public before the first mutation. An approval may depend on nothing else. */
export interface Packet {
  readonly domain: string;
  readonly taskId: string;
  readonly now: string;
  readonly userId: string;
  readonly messages: readonly string[];
  readonly initial: Snapshot;
  /** Read-only catalogue records by kind: products, promotions, flights. */
  readonly reference: { readonly [kind: string]: readonly StateRecord[] };
}

export interface StateTask {
  readonly packet: Packet;
  readonly cohort206: boolean;
  readonly approved12: boolean;
  readonly liveAgent6: boolean;
  readonly timing18: boolean;
  readonly firstWrite: number | null;
  readonly firstMutation: number | null;
  readonly writeCount: number;
  readonly calls: readonly RecordedCall[];
  readonly variants: { readonly [name in VariantName]?: Variant };
}

export const STATE_FILES = ['state-bench/tasks.jsonl', 'state-bench/reference-data.jsonl'] as const;

const json: z.ZodType<Json> = z.json() as z.ZodType<Json>;
const record = z.record(z.string(), json);
const snapshot = z.record(z.string(), z.record(z.string(), record));
const patch = z.array(
  z.union([
    z.strictObject({ op: z.enum(['add', 'replace']), path: z.string(), value: json }),
    z.strictObject({ op: z.literal('remove'), path: z.string() }),
  ]),
);
const call = z.strictObject({
  i: z.int(),
  tool: z.string(),
  arguments: json,
  isWrite: z.boolean(),
  isPreview: z.boolean(),
  changedState: z.boolean(),
  error: z.boolean(),
  errorMessage: z.string().optional(),
  result: json.optional(),
  diff: patch.optional(),
});
const variant = z.union([
  z.strictObject({ sameAs: z.string() }),
  z.strictObject({
    finalDiff: patch,
    equalsClean: z.boolean(),
    equalsInitial: z.boolean(),
    anyToolError: z.boolean(),
    errors: z.array(z.strictObject({ pos: z.int(), tool: z.string(), message: z.string() })),
    nativeStatePass: z.boolean(),
  }),
]);
const index = z.int().nonnegative().nullable();
const line = z.strictObject({
  domain: z.string(),
  paperDomain: z.string(),
  taskId: z.string(),
  now: z.string(),
  userId: z.string(),
  cohort206: z.boolean(),
  approved12: z.boolean(),
  liveAgent6: z.boolean(),
  timing18: z.boolean(),
  firstWrite: index,
  firstMutation: index,
  writeCount: z.int(),
  userMessages: z.array(z.string()),
  userMessagesBeforeFirstWrite: z.int(),
  initial: snapshot,
  calls: z.array(call),
  variants: z.strictObject({
    clean: variant,
    omitFirstWrite: variant.optional(),
    duplicateFirstWrite: variant.optional(),
    omitFirstMutation: variant.optional(),
    duplicateFirstMutation: variant.optional(),
  }),
});
const referenceLine = z.strictObject({
  domain: z.string(),
  taskId: z.string(),
  reference: z.record(z.string(), z.array(record)),
});

type Line = z.infer<typeof line>;

/**
 * Loads every task in the file. Throws if the data contradicts itself, because a study must not run
 * on it then.
 */
export function loadStateTasks(folder: string): readonly StateTask[] {
  const read = <T>(name: string, schema: z.ZodType<T>) => {
    const file = join(folder, name);
    return readLines(file, readFileSync(file, 'utf8'), schema);
  };
  const references = new Map(
    read(STATE_FILES[1], referenceLine).map((found) => [nameOf(found), found.reference]),
  );
  return read(STATE_FILES[0], line).map((found) => {
    const reference = references.get(nameOf(found));
    if (reference === undefined) throw new Error(`${nameOf(found)} has no reference data`);
    const { domain, taskId, now, userId, userMessages: messages, initial } = found;
    const task: StateTask = {
      packet: { domain, taskId, now, userId, messages, initial, reference },
      cohort206: found.cohort206,
      approved12: found.approved12,
      liveAgent6: found.liveAgent6,
      timing18: found.timing18,
      firstWrite: found.firstWrite,
      firstMutation: found.firstMutation,
      writeCount: found.writeCount,
      calls: found.calls.map(({ tool, arguments: given, error, diff = [] }) => ({
        tool,
        arguments: given,
        error,
        diff,
      })),
      variants: readVariants(found),
    };
    checkTask(found, task);
    return task;
  });
}

function nameOf({ domain, taskId }: { readonly domain: string; readonly taskId: string }): string {
  return `${domain}/${taskId}`;
}

/** Parses the lines of a file. An error names the file and the line. */
export function readLines<T>(file: string, content: string, schema: z.ZodType<T>): T[] {
  const lines = content.split('\n').filter(Boolean);
  return lines.map((text, at) => {
    const read = schema.safeParse(JSON.parse(text));
    if (read.success) return read.data;
    throw new Error(`${file}, line ${at + 1}: ${z.prettifyError(read.error)}`);
  });
}

function readVariants({ variants, initial }: Line): StateTask['variants'] {
  const all = new Map(Object.entries(variants));
  const entries = [...all].map(([name, given]) => {
    const found = given !== undefined && 'sameAs' in given ? all.get(given.sameAs) : given;
    if (found === undefined || 'sameAs' in found) throw new Error(`variant ${name} names no other`);
    const { finalDiff, equalsClean, equalsInitial, errors, nativeStatePass } = found;
    const final = applyPatch(initial, finalDiff);
    const told = new Map(errors.map((e) => [e.pos, e.message]));
    return [name, { final, equalsClean, equalsInitial, errors: told, nativeStatePass }];
  });
  return Object.fromEntries(entries) as StateTask['variants'];
}

function checkTask(found: Line, { calls, packet, variants }: StateTask): void {
  const demand = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`${nameOf(found)}: ${what}`);
  };
  const { clean } = variants;
  if (clean === undefined) throw new Error(`${nameOf(found)}: there is no clean variant`);
  const replayed = calls.reduce((state, { diff }) => applyPatch(state, diff), packet.initial);
  demand(
    isDeepStrictEqual(replayed, clean.final),
    'the calls do not lead to the clean final state',
  );
  demand(
    found.calls.every(({ changedState, diff }) => changedState === (diff !== undefined)),
    'a call has a difference and says that nothing changed, or the reverse',
  );
  demand(
    isDeepStrictEqual(
      [...clean.errors.keys()],
      calls.flatMap(({ error }, at) => (error ? [at] : [])),
    ),
    'the errors of the clean variant are not those of its calls',
  );
  for (const [name, { final, equalsClean, equalsInitial }] of Object.entries(variants)) {
    demand(
      isDeepStrictEqual(final, clean.final) === equalsClean,
      `${name} and clean: equalsClean is wrong`,
    );
    demand(
      isDeepStrictEqual(final, packet.initial) === equalsInitial,
      `${name}: equalsInitial is wrong`,
    );
  }
}
