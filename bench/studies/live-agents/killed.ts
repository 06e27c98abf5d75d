// An episode in a process that is killed in the middle, and what a fresh process finds.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { AgentConfig } from './agent.ts';
import type { Ended, EpisodePlan } from './episode.ts';
import { type Approval, recover } from './host.ts';
import type { LiveInput } from './input.ts';
import type { SessionCall } from './session.ts';

/** What the process is told at its start. */
export interface EpisodeOrder {
  readonly data: string;
  readonly name: string;
  readonly path: EpisodePlan['path'];
  readonly agent: AgentConfig;
  readonly folder: string;
  readonly approval: Approval;
}

/** One call that the process made. It waits for an answer before it goes on. */
export interface CallReport {
  readonly call: SessionCall;
  readonly candidate: Ended['candidate'];
  /** Everything that was said so far. */
  readonly messages: Ended['messages'];
}

const PROCESS = fileURLToPath(new URL('./episode-process.ts', import.meta.url));

/** Kills the process right after the last call that changes something, before it can finish. */
export async function runKilled(
  input: LiveInput,
  plan: EpisodePlan,
  given: { readonly data: string; readonly folder: string; readonly approval: Approval },
): Promise<Ended> {
  const { path, agent } = plan;
  const child = fork(PROCESS, { execArgv: ['--no-warnings'] });
  const exited = once(child, 'exit');
  child.send({ ...given, name: input.name, path, agent } satisfies EpisodeOrder);
  const calls: SessionCall[] = [];
  let candidate = input.task.packet.initial;
  let messages: Ended['messages'] = [];
  const changes = input.task.calls.filter(({ diff }) => diff.length > 0).length;
  let changed = 0;
  child.on('message', (report: CallReport) => {
    calls.push(report.call);
    messages = report.messages;
    if (JSON.stringify(report.candidate) !== JSON.stringify(candidate)) changed += 1;
    candidate = report.candidate;
    if (changed === changes) child.kill('SIGKILL');
    else child.send('go on');
  });
  const [, signal] = await exited;
  if (signal !== 'SIGKILL')
    throw new Error('the process of the episode ended before it was killed');
  const verdict =
    path === 'direct'
      ? ({ kind: 'saved' } as const)
      : await recover(input, given.folder, given.approval);
  const said = { calls, messages, summary: '' };
  return { ending: 'killed', finalised: 'discarded', verdict, candidate, ...said };
}
