import { EffectMatchError } from '../errors.ts';
import type { ChatMessage, ChatToolCall } from './loop.ts';
import type { AgentTool } from './tools.ts';

/** An endpoint that speaks OpenAI's chat completions. */
export interface Endpoint {
  /** For example `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly model: string;
  /** Called with each piece of text as it arrives. If set, the response is streamed. */
  readonly onText?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** The part of a tool that a model sees. */
type ToolDescription = Pick<AgentTool, 'name' | 'description' | 'inputSchema'>;

/** Requests the model's next message. */
export async function complete(
  endpoint: Endpoint & { readonly tools: readonly ToolDescription[] },
  messages: readonly ChatMessage[],
): Promise<ChatMessage> {
  const { baseUrl, apiKey, model, onText, signal, tools } = endpoint;
  const described = tools.map(({ name, description, inputSchema: parameters }) => ({
    type: 'function',
    function: { name, description, parameters },
  }));
  const stream = onText !== undefined;
  const response = await fetch(`${baseUrl.replace(/\/$/, '')}/chat/completions`, {
    method: 'POST',
    redirect: 'error',
    headers: {
      'content-type': 'application/json',
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({
      model,
      messages,
      stream,
      ...(tools.length > 0 && { tools: described }),
    }),
    ...(signal && { signal }),
  });
  if (!response.ok || response.body === null) throw await failed(response);
  if (onText !== undefined) return await readStream(response.body, onText);
  const answer = parseAnswer<{ choices?: { message?: ChatMessage }[] }>(await response.text());
  const message = answer.choices?.[0]?.message;
  if (!message) throw unavailable('its answer has no message');
  return asMessage(message.content ?? null, message.tool_calls ?? []);
}

interface Delta {
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

async function readStream(
  body: ReadableStream<Uint8Array>,
  onText: (text: string) => void,
): Promise<ChatMessage> {
  let content = '';
  const calls: { id: string; name: string; text: string }[] = [];
  for await (const delta of deltasOf(body)) {
    if (delta.content) onText(delta.content);
    content += delta.content ?? '';
    for (const { index, id = '', function: part } of delta.tool_calls ?? []) {
      if (!(Number.isInteger(index) && index >= 0 && index < MAX_CALLS)) throw badCalls();
      const known = calls[index] ?? { id: '', name: '', text: '' };
      calls[index] = known;
      known.id += id;
      known.name += part?.name ?? '';
      known.text += part?.arguments ?? '';
    }
  }
  const made = calls.filter(Boolean).map(({ id, name, text }): ChatToolCall => {
    return { id, type: 'function', function: { name, arguments: text } };
  });
  return asMessage(content === '' ? null : content, made);
}

/** Reads server-sent events: lines that begin with `data:`, up to `[DONE]`. */
async function* deltasOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Delta> {
  let rest = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const data = line.startsWith('data:') ? line.slice('data:'.length).trim() : '';
      if (data === '[DONE]') return;
      if (data === '') continue;
      const delta = parseAnswer<{ choices?: { delta?: Delta }[] }>(data).choices?.[0]?.delta;
      if (delta) yield delta;
    }
  }
}

function parseAnswer<T extends object>(text: string): Partial<T> {
  try {
    return Object(JSON.parse(text));
  } catch (cause) {
    throw unavailable('its answer is not JSON', cause);
  }
}

/** The most tool calls accepted in one message. */
const MAX_CALLS = 1000;

function isCall(call: unknown): boolean {
  const { id, function: called } = Object(call) as Partial<ChatToolCall>;
  const words = [id, called?.name, called?.arguments];
  return words.every((word) => typeof word === 'string');
}

function badCalls(): EffectMatchError {
  return unavailable('its answer has calls that cannot be read');
}

function asMessage(content: string | null, calls: readonly ChatToolCall[]): ChatMessage {
  if (!Array.isArray(calls) || calls.length > MAX_CALLS || !calls.every(isCall)) throw badCalls();
  return { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) };
}

async function failed(response: Response): Promise<EffectMatchError> {
  const words = (await response.text().catch(() => '')).slice(0, 500).toWellFormed();
  return unavailable(`it answered ${response.status}: ${words}`);
}

function unavailable(why: string, cause?: unknown): EffectMatchError<'ERR_EM_MODEL_UNAVAILABLE'> {
  const message = `the model could not be asked: ${why}`;
  return new EffectMatchError('ERR_EM_MODEL_UNAVAILABLE', message, { cause });
}
