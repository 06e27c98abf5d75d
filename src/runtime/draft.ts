import type { CallAnswer, TaskStage } from '../contract/adapter.ts';
import type { Proposal } from '../protocol/license.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import { Calls, limitsFor, type TaskLimits } from './calls.ts';
import type { AdmittedPromotable, Deployment, OpenTask } from './deployment.ts';
import {
  certifyRehearsal,
  type PlanRequest,
  promotableNamed,
  refused,
  rehearse,
} from './rehearse.ts';
import { demandSettable } from './settings.ts';

/** Options of a draft. */
export interface DraftTaskOptions extends TaskLimits {
  /** Session settings for the calls. They become part of the proposal. */
  readonly set?: SessionSettings;
}

/** What to propose a recorded draft as. */
export type DraftPlan = Omit<PlanRequest, 'adapter' | 'action' | 'set'>;

/** A proposal made from a draft, and its action. */
export interface DraftProposal {
  readonly proposal: Proposal;
  readonly action: unknown;
}

/** Work without an approval: calls on a candidate that can only be discarded. */
export interface Draft extends AsyncDisposable {
  readonly adapter: string;
  readonly set?: SessionSettings;
  /** When the candidate is discarded unless the draft ends first. */
  readonly expiresAt: string;
  /** Runs one action on the candidate and returns its rows. Records the action if it succeeds. */
  call(action: unknown): Promise<CallAnswer>;
  /** Discards the candidate and the recorded calls. */
  discard(): Promise<void>;
  /**
   * Discards the candidate and returns the recorded calls as one action. Throws
   * `ERR_EM_REHEARSAL_REFUSED` if no call succeeded or the draft was already over.
   */
  end(): Promise<unknown>;
  /**
   * Ends the draft, rehearses the recorded calls, and proposes their outcome. The execution has to
   * reproduce it. No locks are held after this. A draft that changed nothing is refused.
   */
  submit(plan: DraftPlan): Promise<DraftProposal>;
}

/** Opens a candidate without a license, so nothing can ever promote it. */
export async function openDraft(
  deployment: Deployment,
  name: string,
  options: DraftTaskOptions = {},
): Promise<Draft> {
  const { set: settings = {} } = options;
  const admitted = promotableNamed(deployment, name);
  const limits = limitsFor(deployment, name, options);
  demandSettable(admitted, settings);
  const { adapter } = admitted;
  if (adapter.hold === undefined || adapter.joinActions === undefined)
    throw refused(`"${name}" cannot hold a candidate for many calls; plan one action instead`);
  const proofs = await certifyRehearsal(deployment, admitted, 'draft', {
    action: undefined,
    reads: [],
  });
  if (proofs.kind === 'uncertified')
    throw refused(`the boundary cannot be certified: ${proofs.detail}`);
  const terms = { reads: [], settings, deadlineMs: limits.deadlineMs };
  const held = await adapter.hold(proofs.claim, proofs.certificate, terms);
  if (held.kind === 'failed')
    throw refused(`no candidate could be held (${held.reason}): ${held.detail}`);
  const { stage } = held;
  const calls = new Calls({ deployment, admitted, stage, survey: proofs.survey, limits });
  return recordDraft(deployment, { admitted, calls, stage, options });
}

interface DraftParts {
  readonly admitted: AdmittedPromotable;
  readonly calls: Calls;
  readonly stage: TaskStage;
  readonly options: DraftTaskOptions;
}

function recordDraft(deployment: Deployment, parts: DraftParts): Draft & OpenTask {
  const { admitted, calls, stage, options } = parts;
  const { set } = options;
  const adapter = admitted.name;
  const recorded: unknown[] = [];
  const draft: Draft & OpenTask = {
    adapter,
    ...(set && { set }),
    expiresAt: calls.expiresAt,
    async call(action) {
      const copy = copyOf(action);
      const answer = await calls.call(copy);
      if (answer.kind === 'done') recorded.push(copy);
      return answer;
    },
    async discard() {
      recorded.length = 0;
      await draft.interrupt('the draft was discarded');
    },
    async interrupt(why) {
      calls.giveUp({ reason: 'task-discarded', detail: why });
      await ended;
    },
    async end() {
      await calls.complete();
      const refusal = await ended;
      if (refusal !== undefined)
        throw refused(`the draft is over: ${refusal.detail}; open another`);
      if (recorded.length === 0) throw refused('no call of the draft succeeded');
      return admitted.adapter.joinActions?.(recorded);
    },
    async submit(plan) {
      const action = await draft.end();
      const request = { ...plan, adapter, action, ...(set && { set }) };
      const proposal = await rehearse(deployment, request);
      if (proposal.approved.effects.length > 0) return { proposal, action };
      throw refused(
        'the draft only read data, so there is nothing to approve; make a call that writes',
      );
    },
    [Symbol.asyncDispose]: () => draft.discard(),
  };
  deployment.tasks.add(draft);
  /** Resolves once the candidate is discarded: with undefined if the draft ended normally. */
  const ended = calls.over.then(async (refusal) => {
    deployment.tasks.delete(draft);
    await stage.discard();
    return refusal;
  });
  ended.catch(() => {});
  return draft;
}

/**
 * Copies the action, so that the caller cannot change what is recorded. Anything that cannot be
 * cloned becomes undefined, which adapters refuse.
 */
function copyOf(action: unknown): unknown {
  try {
    return structuredClone(action);
  } catch {
    return undefined;
  }
}
