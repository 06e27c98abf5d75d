import { type ChatMessage, runLoop } from 'effectmatch/agents/loop';
import { type Converse, TASK } from './office.ts';

/** Without a framework: the loop returns while a person has to sign, and goes on afterwards. */
export const converse: Converse = async (office, place) => {
  let messages: readonly ChatMessage[] = [{ role: 'user', content: TASK }];
  for (;;) {
    const result = await runLoop({ ...place, tools: office.tools, messages });
    messages = result.messages;
    if (result.kind !== 'paused') return messages.at(-1)?.content ?? '';
    for (const { rendering, link } of result.waiting) office.show(`${rendering}\n${link}`);
    await office.sign();
  }
};
