import type { Value } from '../../protocol/value.ts';
import type { CheckedAction, CheckedCall } from './action.ts';
import { overAction, untilEnded } from './built-ins.ts';
import { copyDocument, type Document, takeDocument, writeDocument } from './document.ts';
import type { SnapshotTool } from './options.ts';

/** How one call ended. A failed call left nothing; `failed` is the tool's own message. */
export interface CallReport {
  readonly tool: string;
  readonly failed?: string;
}

/** What the calls made of the state, or the call that ended the action. */
export type Run =
  | { readonly kind: 'done'; readonly held: Document; readonly calls: readonly CallReport[] }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string };

/** What running tools needs beside the state. */
export interface ToolBench {
  readonly tools: { readonly [name: string]: SnapshotTool };
  readonly toolTimeoutMs: number;
  /** Whether a tool's message may be kept: it may quote values. */
  readonly quotesValues: boolean;
}

/** Kept from before any tool has run. */
const { stringify } = JSON;
const { hasOwn } = Object;

/**
 * Runs the calls in order, each on a copy of its own that is read back as text when the call ends.
 * So a failed call is undone by forgetting its copy, and a tool that keeps its copy (or goes on
 * working on it) keeps only that.
 *
 * Whether a call wrote to built-in objects is looked at before anything else of the process gets to
 * run, and at the end. In between nothing relies on them: all that comes out of a call is the text
 * of a state, and a new one is written once more after the last look, when it is known that nothing
 * stood in the way. That text is compared and promoted.
 */
export function runCalls(bench: ToolBench, base: Document, action: CheckedAction): Promise<Run> {
  return overAction((isIntact) => runInOrder(bench, base, action, isIntact));
}

async function runInOrder(
  bench: ToolBench,
  base: Document,
  action: CheckedAction,
  isIntact: () => boolean,
): Promise<Run> {
  const progress: Progress = { held: base, calls: [], failure: undefined };
  try {
    for (let index = 0; progress.failure === undefined && index < action.calls.length; index += 1) {
      const call = action.calls[index] as CheckedCall;
      const started = startCall(bench, progress.held, call);
      if (started.kind !== 'pending') {
        endCall(bench, progress, call, started);
        continue;
      }
      isIntact();
      const ended = await started.ended;
      isIntact();
      endCall(bench, progress, call, ended);
    }
    const { held, calls, failure } = progress;
    if (isIntact() && (held === base || isCanonical(held))) {
      return failure ?? { kind: 'done', held, calls };
    }
  } catch (error) {
    // With spoilt built-ins anything may throw, even what stands around a tool.
    if (isIntact()) throw error;
  }
  return SPOILT;
}

function isCanonical({ state, text }: Document): boolean {
  try {
    return writeDocument(state) === text;
  } catch {
    return false;
  }
}

/** What became of the calls so far. */
interface Progress {
  held: Document;
  readonly calls: CallReport[];
  failure: Run | undefined;
}

const SPOILT: Run = {
  kind: 'failed',
  reason: 'tool-failed',
  detail: 'a call wrote to built-in objects, such as a __proto__; that was undone',
};

type Ended =
  | { readonly kind: 'done'; readonly held: Document }
  | { readonly kind: 'failed' | 'late'; readonly why: string };

function endCall(bench: ToolBench, progress: Progress, call: CheckedCall, ended: Ended): void {
  if (ended.kind === 'done') {
    progress.held = ended.held;
    progress.calls.push({ tool: call.tool });
    return;
  }
  const words = bench.quotesValues ? ended.why : 'its message is not kept, since values are not';
  progress.calls.push({ tool: call.tool, failed: words });
  if (ended.kind !== 'late' && call.mayFail) return;
  const reason = ended.kind === 'late' ? 'tool-timeout' : 'tool-failed';
  progress.failure = {
    kind: 'failed',
    reason,
    detail: `call ${progress.calls.length} (${call.tool}): ${words}`,
  };
}

/** Only a promise is waited for: a call that has ended costs no turn of the event loop. */
type Started = Ended | { readonly kind: 'pending'; readonly ended: Promise<Ended> };

function startCall(bench: ToolBench, held: Document, { tool, args }: CheckedCall): Started {
  const run = hasOwn(bench.tools, tool) ? bench.tools[tool] : undefined;
  if (run === undefined) return { kind: 'failed', why: 'there is no such tool' };
  try {
    const state = copyDocument(held.state);
    const returned = run(state, copyDocument(args));
    // What is no promise has ended: not a single task of it may still change the copy before it is
    // read.
    if (!isThenable(returned)) return { kind: 'done', held: readBack(state, held) };
    return { kind: 'pending', ended: awaitCall(bench, returned, state, held) };
  } catch (error) {
    return { kind: 'failed', why: describeError(error) };
  }
}

async function awaitCall(
  bench: ToolBench,
  returned: unknown,
  state: Value,
  held: Document,
): Promise<Ended> {
  try {
    // Once: what only looks like a promise may do its work whenever it is asked.
    const end = Promise.resolve(returned);
    if (await endsInTime(end, bench.toolTimeoutMs))
      return { kind: 'done', held: readBack(state, held) };
    untilEnded(end);
    return { kind: 'late', why: `it did not end within ${bench.toolTimeoutMs} ms` };
  } catch (error) {
    return { kind: 'failed', why: describeError(error) };
  }
}

/** What a call left. Most calls only read, and to see that takes a fraction of the time. */
function readBack(state: Value, before: Document): Document {
  if (stringify(state) === before.text) return before;
  const after = takeDocument(state);
  return after.text === before.text ? before : after;
}

function isThenable(returned: unknown): boolean {
  return (
    ((typeof returned === 'object' && returned !== null) || typeof returned === 'function') &&
    'then' in returned
  );
}

/**
 * False when a promise is still open after the time; its copy is then nobody's. What it rejects
 * with is thrown.
 */
async function endsInTime(end: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([end.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

const MAX_WORDS = 500;

/** A tool may throw anything, even something that cannot be turned into text. */
function describeError(error: unknown): string {
  try {
    const words = error instanceof Error ? error.message : String(error);
    return words.slice(0, MAX_WORDS).toWellFormed();
  } catch {
    return 'it threw something that is not an error';
  }
}
