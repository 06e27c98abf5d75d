import type { CallToolResult } from '@modelcontextprotocol/client';
import type { Approval } from '../../contract/adapter.ts';
import { messageOf } from '../../errors.ts';
import { decodeData } from '../../http/content.ts';
import { findingsOf, lookAgain, NOT_FOUND, type ReadBackResult } from '../../http/findings.ts';
import { parseJson } from '../../http/json.ts';
import { type Plan, planOf } from '../../http/plan.ts';
import type { ReadBackFindings } from '../../http/remote.ts';
import { findRounded, type Row, type Value } from '../../protocol/value.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import type { ClassifiedTool, McpOperation, McpReadBack } from './options.ts';

/**
 * Asks read-only tools what the call did. Only what is found counts. A missing or unusable answer
 * and "not found" prove nothing, because the call may still be running.
 */
export async function readBack(
  upstream: Upstream,
  key: string,
  { readBack: options, assigns = [] }: McpOperation,
  approved: Approval,
): Promise<ReadBackFindings | string> {
  const { covers, waitsMs } = options;
  const plan = planOf(approved.effects);
  const found = await lookAgain(() => look(upstream, key, options, plan), waitsMs);
  return typeof found === 'string' ? found : findingsOf(found, { covers, assigns });
}

async function look(
  upstream: Upstream,
  key: string,
  { reads, found }: McpReadBack,
  plan: Plan,
): Promise<ReadBackResult | string> {
  const answers: Record<string, Value> = {};
  for (const [name, { tool, arguments: argumentsOf }] of Object.entries(reads)) {
    const reading = await callReading(upstream, tool, argumentsOf(plan, key));
    if (reading.kind === 'silent') return reading.why;
    answers[name] = reading.value;
  }
  const shown = found(answers, plan, key);
  if (shown === undefined) return NOT_FOUND;
  // Use nothing else: no answer proves that a call which was made did nothing.
  const { records, unattributed = 0 } = shown;
  return { records, unattributed };
}

/** Calls a read-only tool. An error says nothing about the data. */
export async function callReading(
  upstream: Upstream,
  { name, definition }: ClassifiedTool,
  given: Row,
): Promise<ToolReading> {
  try {
    const input = decodeData(given) as Row;
    return readAnswer(name, await upstream.call({ tool: name, definition, input }));
  } catch (error) {
    return { kind: 'silent', why: messageOf(error) };
  }
}

/** The answer of a read-only tool, or why it is not used. */
type ToolReading =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'silent'; readonly why: string };

/**
 * Reads the answer as a value: its structured content, or its only text, parsed if it is JSON. Text
 * keeps all digits of a number. Structured content is already parsed, so it is unusable if it has a
 * number that may have been rounded.
 */
export function readAnswer(tool: string, result: CallToolResult): ToolReading {
  const silent = (why: string) => ({ kind: 'silent' as const, why: `"${tool}" ${why}` });
  const { structuredContent, content, isError } = result;
  if (isError === true) return silent('answered with an error');
  if (structuredContent !== undefined) {
    if (findRounded(structuredContent) !== undefined)
      return silent('answered with a number that may have been rounded');
    const value = parseJson(Buffer.from(JSON.stringify(structuredContent)));
    return value === undefined ? silent('gave no usable answer') : { kind: 'read', value };
  }
  const [first, ...more] = content;
  if (first?.type !== 'text' || more.length > 0) return silent('did not answer with a single text');
  return { kind: 'read', value: parseJson(Buffer.from(first.text)) ?? first.text };
}
