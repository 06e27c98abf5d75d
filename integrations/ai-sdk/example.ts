import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, type ModelMessage } from 'ai';
import { aiSdkTools } from 'effectmatch/agents/ai-sdk';
import { type Converse, TASK } from '../../examples/agents/office.ts';

export const converse: Converse = async (office, { baseUrl, apiKey, model: modelId }) => {
  const model = createOpenAICompatible({ name: 'place', baseURL: baseUrl, apiKey })(modelId);
  const { tools, toolApproval } = aiSdkTools(office.tools);
  const messages: ModelMessage[] = [{ role: 'user', content: TASK }];
  for (;;) {
    const stopWhen = isStepCount(10);
    const result = await generateText({ model, tools, toolApproval, messages, stopWhen });
    messages.push(...result.responseMessages);
    const asked = result.content.filter((part) => part.type === 'tool-approval-request');
    if (asked.length === 0) return result.text;
    for (const { reason } of asked) office.show(reason ?? '');
    await office.sign();
    const content = asked.map(({ approvalId }) => {
      return { type: 'tool-approval-response', approvalId, approved: true } as const;
    });
    messages.push({ role: 'tool', content });
  }
};
