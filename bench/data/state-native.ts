// The answers of the benchmark's own tools to every call, their schemas and prompts, and the six
// live tasks, recorded in state-bench/native. The README there explains every field.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { type Answer, type DeskData, deskFor, policyKey } from '../state-tools/desk.ts';
import type { Json } from './patch.ts';
import { readLines, type StateTask, type VariantName } from './state-bench.ts';

const FOLDER = 'state-bench/native';
const RESULTS = `${FOLDER}/results.jsonl.gz`;
const DOMAINS = `${FOLDER}/domains.json`;
const LIVE = `${FOLDER}/live6.json`;

/** The files that our tools need in addition to the tasks. */
export const NATIVE_FILES = [RESULTS] as const;
/** The files that a study with live agents needs. */
export const LIVE_FILES = [...NATIVE_FILES, DOMAINS, LIVE] as const;

const json: z.ZodType<Json> = z.json() as z.ZodType<Json>;
const answers = z.array(z.record(z.string(), json));
const resultLine = z.strictObject({
  domain: z.string(),
  taskId: z.string(),
  clean: answers,
  omitFirstWrite: answers.optional(),
  duplicateFirstWrite: answers.optional(),
  omitFirstMutation: answers.optional(),
  duplicateFirstMutation: answers.optional(),
});

/** The answers of one task, in the order of each variant's calls. */
export type RecordedAnswers = {
  readonly [name in VariantName]?: readonly Answer[] | undefined;
};

/** Loads the answers by domain and task, such as `travel/2-cancel_business_international`. */
export function loadAnswers(folder: string): ReadonlyMap<string, RecordedAnswers> {
  const text = gunzipSync(readFileSync(join(folder, RESULTS))).toString('utf8');
  const lines = readLines(RESULTS, text, resultLine);
  return new Map(lines.map(({ domain, taskId, ...own }) => [`${domain}/${taskId}`, own]));
}

/** The policy texts of a domain, by the question asked. */
export type PolicyBook = { readonly [asked: string]: Answer };

/**
 * Collects the policy texts of a domain. They exist only in the benchmark's recorded answers.
 * `except` leaves out the answers of one task, so that its policies come from other tasks.
 */
export function gatherPolicies(
  tasks: readonly StateTask[],
  recorded: ReadonlyMap<string, RecordedAnswers>,
  domain: string,
  except?: string,
): PolicyBook {
  const book: { [asked: string]: Answer } = {};
  for (const { packet, calls } of tasks) {
    if (packet.domain !== domain || packet.taskId === except) continue;
    const own = recorded.get(`${domain}/${packet.taskId}`)?.clean;
    for (const [index, { tool, arguments: given }] of calls.entries()) {
      const answer = own?.[index];
      if (tool !== 'get_policies' || answer === undefined) continue;
      book[policyKey(given as { readonly [name: string]: Json })] ??= answer;
    }
  }
  return book;
}

/** Returns a function that builds our tools' data for a task, with its domain's policies. */
export function deskMaker(
  folder: string,
  tasks: readonly StateTask[],
): (task: StateTask) => DeskData {
  const recorded = loadAnswers(folder);
  const books = new Map<string, PolicyBook>();
  return ({ packet }) => {
    const { domain } = packet;
    const book = books.get(domain) ?? gatherPolicies(tasks, recorded, domain);
    books.set(domain, book);
    return deskFor(packet, book);
  };
}

const tool = z.strictObject({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), json),
  isWrite: z.boolean(),
});
const domainLine = z.strictObject({
  systemPromptTemplate: z.string(),
  maxAgentTurns: z.int(),
  tools: z.array(tool),
});

/** The schema of a business tool that is offered to a model. */
export type ToolSchema = z.infer<typeof tool>;

export function loadDomains(folder: string): {
  readonly [domain: string]: z.infer<typeof domainLine>;
} {
  const text = readFileSync(join(folder, DOMAINS), 'utf8');
  return z.record(z.string(), domainLine).parse(JSON.parse(text));
}

const liveCall = z.object({
  tool: z.string(),
  arguments: z.record(z.string(), json),
  changedState: z.boolean(),
});
const liveTask = z.object({
  domain: z.string(),
  taskId: z.string(),
  userId: z.string(),
  systemPrompt: z.string(),
  userMessages: z.array(z.string()),
  calls: z.array(liveCall),
  previews: z.array(z.object({ previewCall: z.int(), confirmingCall: z.int() })),
  confirmationReply: z.object({ needed: z.boolean(), text: z.string().nullable() }),
});

/** The additional data of one of the six live tasks. */
export type LiveTask = z.infer<typeof liveTask>;

export function loadLiveTasks(folder: string): readonly LiveTask[] {
  return z.array(liveTask).parse(JSON.parse(readFileSync(join(folder, LIVE), 'utf8')));
}
