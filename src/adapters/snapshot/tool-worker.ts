// The script of a worker thread. It loads the tools of one adapter and runs one action at a time.
import { parentPort, workerData } from 'node:worker_threads';
import { invariant, messageOf } from '../../errors.ts';
import { writeDocument } from './document.ts';
import type { SnapshotTool } from './options.ts';
import type { ActionMessage, ToolModule } from './tools.ts';

invariant(parentPort !== null, 'this module is started as a worker');
const port = parentPort;
const MAX_CHARACTERS = 500;
const MAX_RETURNED = 1_000_000;

try {
  const { module, data } = workerData as ToolModule;
  const tools = await loadTools(module, data);
  freezeBuiltIns();
  port.on('message', async (message: ActionMessage) => {
    const running = process.getActiveResourcesInfo().length;
    const left = await runCalls(tools, message);
    const isIdle = process.getActiveResourcesInfo().length <= running;
    port.postMessage({ kind: 'ended', text: left, isIdle });
  });
  port.postMessage({ kind: 'ready', tools: [...tools.keys()] });
} catch (error) {
  port.postMessage({ kind: 'refused', why: describeError(error) });
}

async function loadTools(
  module: string,
  data: unknown,
): Promise<ReadonlyMap<string, SnapshotTool>> {
  const exported: { readonly default?: unknown } = await import(module);
  const offered = exported.default ?? exported;
  const tools: unknown = typeof offered === 'function' ? await offered(data) : offered;
  if (typeof tools !== 'object' || tools === null)
    throw new Error('its default export must return an object of tools');
  const entries = Object.entries(tools);
  const wrong = entries.find(([, tool]) => typeof tool !== 'function');
  if (wrong !== undefined) throw new Error(`the tool "${wrong[0]}" is not a function`);
  return new Map(entries);
}

/**
 * Freezes every object that can be reached from JSON data by property names, such as `__proto__.x`
 * or `constructor.prototype.x`. A tool that writes through such a path from the agent fails, and
 * the next action finds the built-in objects unchanged.
 */
function freezeBuiltIns(): void {
  const found = new Set<object>();
  const freeze = (value: unknown): void => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return;
    if (found.has(value)) return;
    found.add(Object.freeze(value));
    freeze(Object.getPrototypeOf(value));
    for (const property of Object.values(Object.getOwnPropertyDescriptors(value)))
      freeze(property.value);
  };
  for (const maker of [Object, Array, String, Number, Boolean, Function]) freeze(maker);
}

/** Returns the resulting text. Reports each call when it ends. A failed call changes nothing. */
async function runCalls(
  tools: ReadonlyMap<string, SnapshotTool>,
  { text: base, calls, wantsReturned }: ActionMessage,
): Promise<string> {
  let text = base;
  for (const { tool, args, mayFail } of calls) {
    try {
      const ran = await runCall(tools.get(tool), text, args);
      const returned = wantsReturned ? { returned: textOf(ran.returned) } : {};
      text = ran.text;
      port.postMessage({ kind: 'call', ...returned });
    } catch (error) {
      port.postMessage({ kind: 'call', failed: describeError(error) });
      if (!mayFail) return base;
    }
  }
  return text;
}

/** Each call gets its own copy, so a tool that keeps it cannot affect later calls. */
async function runCall(
  run: SnapshotTool | undefined,
  text: string,
  args: unknown,
): Promise<{ readonly text: string; readonly returned: unknown }> {
  if (run === undefined) throw new Error('this tool does not exist');
  const state: unknown = JSON.parse(text);
  const answer = run(state, args) as PromiseLike<unknown> | null | undefined;
  // Without a promise, the call has ended. Do not let pending work run before its copy is read.
  const returned = typeof answer?.then === 'function' ? await answer : answer;
  // Most calls only read, and this comparison is cheaper than a canonical text.
  const left = JSON.stringify(state) === text ? text : writeDocument(state);
  return { text: left, returned };
}

/** The return value of a tool as JSON. Anything else is an error. */
function textOf(returned: unknown): string {
  if (returned === undefined) return 'null';
  const text = JSON.stringify(returned);
  if (text === undefined || text.length > MAX_RETURNED)
    throw new Error(`what it returns is not JSON of at most ${MAX_RETURNED} characters`);
  return text;
}

/** A tool may throw anything, even a value that cannot be converted to text. */
function describeError(error: unknown): string {
  try {
    const words = messageOf(error);
    return words.slice(0, MAX_CHARACTERS).toWellFormed();
  } catch {
    return 'it threw something that is not an error';
  }
}
