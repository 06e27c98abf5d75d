import type { CallToolResult } from '@modelcontextprotocol/client';
import { parseJson } from '../../http/json.ts';
import { findRounded, type Value } from '../../protocol/value.ts';

/** The answer of a read-only tool, or why it is not used. */
export type ToolReading =
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
  if (first?.type !== 'text' || more.length > 0) return silent('did not answer with one text');
  return { kind: 'read', value: parseJson(Buffer.from(first.text)) ?? first.text };
}
