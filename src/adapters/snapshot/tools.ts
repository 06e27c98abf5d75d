import type { Value } from '../../protocol/value.ts';
import type { CheckedAction, CheckedCall } from './action.ts';
import { keepBuiltIns, overAction } from './built-ins.ts';
import { readDocument, writeDocument } from './document.ts';
import type { SnapshotTool } from './options.ts';

/** How one call ended. A failed call left nothing; `failed` is the tool's own message. */
export interface CallReport {
  readonly tool: string;
  readonly failed?: string;
}

/** What the calls made of the state, or the call that ended the action. */
export type Run =
  | { readonly kind: 'done'; readonly text: string; readonly calls: readonly CallReport[] }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string };

/** What running tools needs beside the state. */
export interface ToolBench {
  readonly tools: { readonly [name: string]: SnapshotTool };
  readonly toolTimeoutMs: number;
  /** Whether a tool's message may be kept: it may quote values. */
  readonly quotesValues: boolean;
}

/**
 * Runs the calls in order, each on a copy of its own that is read back as text when the call ends. So a failed call
 * is undone by forgetting its copy, and a tool that keeps its copy (or goes on working on it) keeps only that.
 */
export async function runCalls(bench: ToolBench, base: string, action: CheckedAction): Promise<Run> {
  return await overAction(() => runInOrder(bench, base, action));
}

async function runInOrder(bench: ToolBench, base: string, action: CheckedAction): Promise<Run> {
  let text = base;
  const calls: CallReport[] = [];
  for (const [index, call] of action.calls.entries()) {
    const result = await runCall(bench, text, call);
    if (result.kind === 'done') {
      text = result.text;
      calls.push({ tool: call.tool });
      continue;
    }
    const words = bench.quotesValues ? result.why : 'its message is not kept, since values are not';
    if (result.kind === 'late' || !call.mayFail) {
      const reason = result.kind === 'late' ? 'tool-timeout' : 'tool-failed';
      return { kind: 'failed', reason, detail: `call ${index + 1} (${call.tool}): ${words}` };
    }
    calls.push({ tool: call.tool, failed: words });
  }
  return { kind: 'done', text, calls };
}

type Ended =
  | { readonly kind: 'done'; readonly text: string }
  | { readonly kind: 'failed' | 'late'; readonly why: string };

async function runCall(bench: ToolBench, text: string, { tool, args }: CheckedCall): Promise<Ended> {
  const run = Object.hasOwn(bench.tools, tool) ? bench.tools[tool] : undefined;
  if (run === undefined) return { kind: 'failed', why: 'there is no such tool' };
  const { result, intact } = await keepBuiltIns(async () => await runTool(bench, run, readDocument(text), args));
  return intact
    ? result
    : { kind: 'failed', why: 'it wrote to built-in objects, such as a __proto__; that was undone' };
}

async function runTool(bench: ToolBench, run: SnapshotTool, state: Value, args: Value): Promise<Ended> {
  try {
    const returned = run(state, structuredClone(args));
    // What is no promise has ended: not a single task of it may still change the copy before it is read.
    if (isThenable(returned) && !(await endsInTime(returned, bench.toolTimeoutMs))) {
      return { kind: 'late', why: `it did not end within ${bench.toolTimeoutMs} ms` };
    }
    return { kind: 'done', text: writeDocument(state) };
  } catch (error) {
    return { kind: 'failed', why: describeError(error) };
  }
}

function isThenable(returned: unknown): boolean {
  return ((typeof returned === 'object' && returned !== null) || typeof returned === 'function') && 'then' in returned;
}

/** False when a promise is still open after the time; its copy is then nobody's. What it rejects with is thrown. */
async function endsInTime(returned: unknown, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([Promise.resolve(returned).then(() => true), late]);
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
