import { generateText, isStepCount, jsonSchema, type ModelMessage, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Makes one call of the tool, or none, and then stops. */
function scripted(sql: string | undefined): MockLanguageModelV4 {
  let left = sql === undefined ? 0 : 1;
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const calls = left > 0;
      left = 0;
      const call = {
        type: 'tool-call' as const,
        toolCallId: 'call-1',
        toolName: 'execute_sql',
        input: JSON.stringify({ sql }),
      };
      const text = { type: 'text' as const, text: 'done' };
      const unified = calls ? ('tool-calls' as const) : ('stop' as const);
      return {
        content: [calls ? call : text],
        finishReason: { unified, raw: undefined },
        usage: USAGE,
        warnings: [],
      };
    },
  });
}

/**
 * A call that pauses for a person, who says yes; the answer is then presented as often as told.
 * `meanwhile` happens between the pause and the yes.
 */
export async function runApprovedCall(
  sql: string,
  execute: (sql: string) => void,
  meanwhile: () => void,
  times: number,
): Promise<boolean> {
  const tools = {
    execute_sql: tool({
      inputSchema: jsonSchema<{ sql: string }>({
        type: 'object',
        properties: { sql: { type: 'string' } },
        required: ['sql'],
      }),
      execute: async (input) => {
        execute(input.sql);
        return 'done';
      },
    }),
  };
  const toolApproval = { execute_sql: async () => 'user-approval' as const };
  const run = async (messages: ModelMessage[], call?: string) =>
    await generateText({
      model: scripted(call),
      stopWhen: isStepCount(3),
      tools,
      toolApproval,
      messages,
    });
  const asked: ModelMessage[] = [{ role: 'user', content: 'pay the invoice' }];
  const paused = await run(asked, sql);
  const requests = paused.content.filter((part) => part.type === 'tool-approval-request');
  meanwhile();
  const content = requests.map(
    ({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true }) as const,
  );
  const answered = [...asked, ...paused.responseMessages, { role: 'tool', content } as const];
  for (let time = 0; time < times; time += 1) await run(answered);
  return requests.length === 1;
}
