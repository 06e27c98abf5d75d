// One episode: an agent serves one task on one path, and what it left is read back.
import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChatMessage } from '../../../src/agents/loop.ts';
import type { Internals } from '../../../src/runtime/runtime.ts';
import type { Snapshot } from '../../data/state-bench.ts';
import { compareStates } from '../../facts.ts';
import { type AgentConfig, converse } from './agent.ts';
import { digestBusiness } from './approval.ts';
import {
  type Approval,
  approve,
  DirectHost,
  EPISODE_MS,
  IntegratedHost,
  type Path,
  readDurable,
  type Verdict,
} from './host.ts';
import type { LiveInput } from './input.ts';
import { type Injection, type OnCall, Session, type SessionCall } from './session.ts';

/** How an episode is run. */
export interface EpisodePlan {
  readonly path: Path;
  readonly agent: AgentConfig;
  /** Whether the host finishes the task when the agent's turn ends without it. */
  readonly hostFinishes: boolean;
  readonly injection?: Injection | undefined;
  /** How long the episode may take; {@link EPISODE_MS} unless told. */
  readonly limitMs?: number;
  /** For ablations of the runtime. */
  readonly internals?: Internals;
}

/** How an agent's part of an episode ended. */
export interface Ended {
  readonly ending:
    | 'turn ended'
    | 'too many turns'
    | 'out of budget'
    | 'timeout'
    | 'error'
    | 'killed';
  /** Who ended the task: the agent, the host when the turn was over, or a failure. */
  readonly finalised: 'by the agent' | 'by the host' | 'discarded';
  readonly verdict: Verdict;
  readonly candidate: Snapshot;
  readonly calls: readonly SessionCall[];
  readonly messages: readonly ChatMessage[];
  readonly summary: string;
  readonly fault?: string;
}

/** What an episode left, as it is kept. */
export interface EpisodeRecord extends Ended {
  readonly task: string;
  readonly agent: string;
  readonly isScripted: boolean;
  readonly path: Path;
  readonly input: { readonly system: string; readonly user: string; readonly tools: string };
  /** The approval as it was saved before the agent started. */
  readonly approval: { readonly digest: string; readonly license: Approval['license'] };
  readonly durable: Snapshot;
  /** Digests of the states without the ids of new cart lines and without the order of lines. */
  readonly means: {
    readonly approved: string;
    readonly candidate: string;
    readonly durable: string;
  };
  readonly candidateCorrect: boolean;
  readonly durableCorrect: boolean;
  /** Equal in every byte, ids and order included. */
  readonly durableStrict: boolean;
  readonly durableInitial: boolean;
  /** Whether the verdict says what the durable state shows. */
  readonly isTruthful: boolean;
}

/** Runs the agent in this process. */
export async function runAgent(
  input: LiveInput,
  plan: EpisodePlan,
  folder: string,
  approval: Approval,
  onCall?: OnCall,
  messages: ChatMessage[] = [],
): Promise<Ended> {
  await using host =
    plan.path === 'direct'
      ? new DirectHost(input, folder)
      : await IntegratedHost.open(input, folder, approval, plan.internals);
  const session = new Session(input, host, { injection: plan.injection, onCall });
  const signal = AbortSignal.timeout(plan.limitMs ?? EPISODE_MS);
  const talking = converse(plan.agent, input, session, { signal, messages });
  const talked = await talking.catch((error: unknown) => ({
    ...{ ending: signal.aborted ? ('timeout' as const) : ('error' as const), summary: '' },
    fault: error instanceof Error ? error.message : String(error),
  }));
  const ending = session.isOverBudget ? 'out of budget' : talked.ending;
  const ended = await finalise(session, host, ending, plan.hostFinishes);
  return { ...talked, ending, ...ended, messages, candidate: host.candidate, calls: session.calls };
}

/** A turn that ended normally is finished by the host; everything else is given up. */
async function finalise(
  session: Session,
  host: DirectHost | IntegratedHost,
  ending: Ended['ending'],
  hostFinishes: boolean,
): Promise<Pick<Ended, 'finalised' | 'verdict'>> {
  if (session.verdict !== undefined) return { finalised: 'by the agent', verdict: session.verdict };
  if (ending === 'turn ended' && hostFinishes)
    return { finalised: 'by the host', verdict: await host.finish() };
  const verdict = await host.discard(`the episode ended: ${ending}`);
  return { finalised: 'discarded', verdict };
}

/** Computes and saves the approval, has the agent run, and reads back what became durable. */
export async function runEpisode(
  input: LiveInput,
  plan: EpisodePlan,
  folder: string,
  run: (approval: Approval) => Promise<Ended> = (approval) =>
    runAgent(input, plan, folder, approval),
): Promise<EpisodeRecord> {
  const approval = await approve(input, folder);
  const saved = JSON.stringify(approval.license);
  writeFileSync(join(folder, 'approval.json'), saved, { flag: 'wx' });
  const ended = await run(approval);
  const durable = readDurable(plan.path, folder);
  const { initial } = input.task.packet;
  const { isInitial, isApproved } = compareStates({ initial, approved: input.target, durable });
  const business = (state: Snapshot) => digestBusiness(initial, state);
  const means = {
    approved: business(input.target),
    candidate: business(ended.candidate),
    durable: business(durable),
  };
  const durableCorrect = means.durable === means.approved;
  return {
    ...ended,
    task: input.name,
    agent: plan.agent.name,
    isScripted: plan.agent.isScripted,
    path: plan.path,
    input: {
      system: input.system,
      user: input.user,
      tools: hash('sha256', JSON.stringify(input.tools)),
    },
    approval: { digest: hash('sha256', saved), license: approval.license },
    durable,
    means,
    candidateCorrect: means.candidate === means.approved,
    durableCorrect,
    durableStrict: isApproved,
    durableInitial: isInitial,
    isTruthful: isTruthful(ended.verdict, { durableCorrect, isInitial }),
  };
}

function isTruthful(
  { kind }: Verdict,
  { durableCorrect, isInitial }: { readonly durableCorrect: boolean; readonly isInitial: boolean },
): boolean {
  if (kind === 'committed') return durableCorrect;
  return kind === 'rejected' ? isInitial : false;
}
