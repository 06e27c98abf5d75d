// What an episode starts from: the public input of an agent, and the approval, which is calculated
// and signed before the agent starts and which the agent never sees.
import { isDeepStrictEqual } from 'node:util';
import { approveState } from '../../approvals/index.ts';
import type { Snapshot, StateTask } from '../../data/state-bench.ts';
import type { LiveTask, ToolSchema } from '../../data/state-native.ts';
import type { Answer, Arguments, DeskData } from '../../state-tools/desk.ts';
import type { Schema } from '../public-outcomes/state-effects.ts';

export const CONFIRMATION = 'request_customer_confirmation';
export const FINISH = 'finish_task';

/** A call of a business tool, with what it answered. */
export interface BusinessCall {
  readonly tool: string;
  readonly args: Arguments;
  readonly answer: Answer;
}

/** Everything of one task that does not depend on who runs it. */
export interface LiveInput {
  readonly name: string;
  readonly task: StateTask;
  readonly live: LiveTask;
  readonly desk: DeskData;
  /** Namespaces and fields, as the application registers them once for all its tasks. */
  readonly schema: Schema;
  readonly system: string;
  readonly user: string;
  readonly tools: readonly ToolSchema[];
  /** The whole business state that the request approves. */
  readonly target: Snapshot;
  /** What the customer answers when asked to confirm, by what was previewed. */
  confirm(made: readonly BusinessCall[]): string;
}

const WRAPPER = `Serve the customer with the business tools that you are given, and with nothing else: no files, no shell, no other source.
Below are the messages that the customer has sent so far, oldest first. What a message agrees to covers only what it names.
If a tool can preview a change, preview it first. If the customer has to agree to a preview, call ${CONFIRMATION} and go on with the reply.
When the work is done, call ${FINISH}, then write your closing answer.

Messages of the customer:`;

const OWN_TOOLS: readonly ToolSchema[] = [
  {
    name: CONFIRMATION,
    description: 'Shows the customer what was previewed, and returns what the customer answers.',
    parameters: {
      type: 'object',
      properties: {
        summary: { type: 'string', description: 'What will be changed and what it costs.' },
      },
      required: ['summary'],
    },
    isWrite: false,
  },
  {
    name: FINISH,
    description: 'Ends the task. Call it once, when everything the customer asked for is done.',
    parameters: { type: 'object', properties: {}, required: [] },
    isWrite: false,
  },
];

const NOT_YET = 'I have not seen what this would do and cost. Please preview it for me first.';
/** Replies that the recorded conversations do not have, because nothing was said in between. */
const REPLIES: { readonly [taskId: string]: string } = {
  '20-triple_policy_compound_disclosure':
    'Yes: the headphones without gift wrap, the speaker with gift wrap, and nothing else.',
  '84-remove_qty_scope_all_vs_one': 'Yes: take the webcam out, all of it, and leave the laptop.',
  '11-cancel_before_shipment': 'Yes, cancel ORD-6015 with the refund to my card.',
  '150-spare_cancel_in_transit_fee_decline':
    'Yes, cancel only the phone case that has not shipped, back to the card and the gift card. I keep the phone.',
};

export function readInput(
  task: StateTask,
  live: LiveTask,
  given: Pick<LiveInput, 'desk' | 'schema' | 'tools'>,
): LiveInput {
  const { packet } = task;
  const reply = live.confirmationReply.text ?? REPLIES[packet.taskId];
  if (reply === undefined) throw new Error(`${packet.taskId}: no reply of the customer is known`);
  return {
    name: `${packet.domain}/${packet.taskId}`,
    task,
    live,
    desk: given.desk,
    schema: given.schema,
    system: live.systemPrompt,
    user: `${WRAPPER}\n${packet.messages.map((text, at) => `${at + 1}. ${text}`).join('\n')}`,
    tools: [...given.tools, ...OWN_TOOLS],
    target: approveState(packet),
    confirm: (made) => (isPreviewed(task, live, made) ? reply : NOT_YET),
  };
}

/** Whether every preview that the recorded conversation needed was made, on the same records. */
function isPreviewed(task: StateTask, live: LiveTask, made: readonly BusinessCall[]): boolean {
  return live.previews.every(({ previewCall }) => {
    const wanted = task.calls[previewCall];
    if (wanted === undefined) throw new Error(`${task.packet.taskId} has no call ${previewCall}`);
    const named = namesOf(wanted.arguments as Arguments);
    return made.some(
      ({ tool, args, answer }) =>
        tool === wanted.tool &&
        answer.status === 'preview' &&
        isDeepStrictEqual(namesOf(args), named),
    );
  });
}

/** The records that a call names. */
function namesOf(args: Arguments): Arguments {
  const names = Object.entries(args).filter(
    ([name, value]) => name.endsWith('_id') && value !== '' && value !== null,
  );
  return Object.fromEntries(names.sort());
}
