import type { CallToolResult } from '@modelcontextprotocol/client';
import { parseJson } from '../../http/json.ts';
import { findRounded, type Value } from '../../protocol/value.ts';

/** What a reading tool said, or why that is not used. */
export type ToolReading =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'silent'; readonly why: string };

/**
 * The answer as a value: its structured content, otherwise its only text, parsed if that is JSON.
 * Text keeps all digits of a number. Structured content was parsed before it came here, so a number
 * that may have been rounded makes it unusable.
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
