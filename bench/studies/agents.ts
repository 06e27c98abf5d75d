// The cost of reaching EffectMatch through an agent's tools: one payment through each integration,
// fifty agents on one MCP server, a long list of pending requests, and the size of the tool list.

import type { Cell, Study, StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { measureCalls } from './agents/calls.ts';
import { measureCrowd } from './agents/crowd.ts';
import { measureListing } from './agents/pending.ts';
import { Site } from './agents/site.ts';
import { measureToolLists } from './agents/tool-list.ts';

async function run(options: StudyOptions): Promise<readonly Cell[]> {
  using folder = temporaryFolder();
  const site = new Site(folder.path);
  await using server = await site.startHttp();
  return [
    ...(await measureCalls(site, server.url, options)),
    ...(await measureCrowd(site, server.url, options)),
    ...(await measureToolLists(site, server.url)),
    ...(await measureListing(site, options)),
  ];
}

export const agentsStudy: Study = {
  name: 'agents',
  about: 'time per call of tools, frameworks and MCP over ensure; many agents, many requests',
  run,
};
