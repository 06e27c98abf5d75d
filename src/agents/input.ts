import type { Fields } from '../contract/action-input.ts';
import { errorsOf } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { answerOfError, type ToolAnswer } from './answer.ts';
import type { JsonSchema } from './json-schema.ts';
import type { AgentTool, CallOptions } from './tools.ts';

const MAX_INPUT = 64 * 1024;

/** Hints for clients about tools that read, ask for a change, or send a message. */
export const READING = { readOnlyHint: true, destructiveHint: false, idempotentHint: true };
export const ASKING = { readOnlyHint: false, destructiveHint: true, idempotentHint: true };
export const SAYING = { readOnlyHint: false, destructiveHint: false, idempotentHint: false };
/** SQL stays within the database. An operation may reach other systems through its adapter. */
export const CLOSED = { openWorldHint: false };
export const OPEN = { openWorldHint: true };

/** A statement and its parameters. */
export const SQL_FIELDS = {
  sql: { type: 'string', description: 'One statement.' },
  values: {
    type: 'array',
    items: { type: ['string', 'number', 'boolean', 'null'] },
    description: 'Its parameters, in order.',
  },
};

/** Runs a call and turns errors into answers. Only an abort is thrown. */
export async function answering(
  { onFault }: { readonly onFault?: ((error: unknown) => void) | undefined },
  work: () => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error;
    const answer = answerOfError(error);
    if (answer.status === 'unavailable') onFault?.(error);
    return answer;
  }
}

/** A tool that checks the fields of its input, and answers instead of throwing. */
export function makeTool(
  options: Parameters<typeof answering>[0],
  described: Omit<AgentTool, 'call' | 'show'>,
  work: (fields: Fields, call: CallOptions) => Promise<ToolAnswer>,
): AgentTool {
  const { inputSchema } = described;
  return {
    ...described,
    call: (input, call = {}) =>
      answering(options, async () => await work(readInput(inputSchema, input), call)),
  };
}

/** A plain copy of the input. Rejects unknown fields and inputs that are too long. */
export function readInput({ properties = {}, required = [] }: JsonSchema, input: unknown): Fields {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input);
  if (!isObject) throw invalidInput('it is not an object');
  const { length } = canonical(input);
  if (length > MAX_INPUT) throw invalidInput(`it is longer than ${MAX_INPUT} characters`);
  const fields = structuredClone(input) as Fields;
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined)
    throw invalidInput(`it has an unknown field "${unknown.slice(0, 100)}"`);
  const missing = required.find((name) => fields[name] === undefined);
  if (missing !== undefined) throw invalidInput(`it has no "${missing}"`);
  return fields;
}

/** The SQL statement among the fields of an input. */
export function statementOf({ sql, values }: Fields): Fields {
  return { sql, ...(values !== undefined && { values }) };
}

/** The schema of an object that allows no other fields. */
export function closedSchema(
  properties: Readonly<Record<string, object>>,
  required: readonly string[],
): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** The error for an invalid input. */
export const invalidInput = errorsOf('ERR_EM_INPUT_INVALID', 'the input cannot be used: ');
