import type {
  AdapterFactory,
  CandidateFacts,
  PromotableAdapter,
  Stage,
  Survey,
} from '../../../src/contract/adapter.ts';
import type { ConsumedPermit } from '../../../src/contract/proof.ts';

/**
 * What a study observes and changes between the runtime and its adapter. The adapter itself has no
 * options for this.
 */
export interface Watch {
  /** Every survey that the adapter returned, in order. */
  readonly surveys: Survey[];
  /**
   * Ablations of the final gate. With `certificate` it gets the survey from before staging instead
   * of a fresh one. With `recheck` it also gets the earlier observation of the candidate.
   */
  readonly reuses?: 'certificate' | 'recheck' | undefined;
  /** Runs after the action, while its candidate is held. */
  held?: (() => Promise<void>) | undefined;
  /** Returns the permit to present instead of the candidate's own. */
  present?: (own: ConsumedPermit) => ConsumedPermit;
}

/** Wraps the adapter with a watch. */
export function watched<Action>(
  factory: AdapterFactory<Action>,
  watch: Watch,
): AdapterFactory<Action> {
  return {
    ...factory,
    async open(context) {
      const adapter = (await factory.open(context)) as PromotableAdapter<Action>;
      const survey = adapter.survey.bind(adapter);
      const stage = adapter.stage.bind(adapter);
      let staged: Survey | undefined;
      adapter.survey = async () => {
        const found = staged ?? (await survey());
        watch.surveys.push(found);
        return found;
      };
      adapter.stage = async (...given) => {
        staged = undefined;
        const held = await stage(...given);
        if (held.kind === 'failed') return held;
        if (watch.reuses !== undefined) staged = watch.surveys.at(-1);
        if (watch.reuses === 'recheck') reuseObserved(held.stage);
        const promote = held.stage.promote.bind(held.stage);
        held.stage.promote = (permit) => promote(watch.present?.(permit) ?? permit);
        await watch.held?.();
        return held;
      };
      return adapter;
    },
  };
}

/** Makes the recheck return the facts from when the stage was observed. */
function reuseObserved(stage: Stage): void {
  const observe = stage.observe.bind(stage);
  const recheck = stage.recheck.bind(stage);
  let observed: CandidateFacts | undefined;
  stage.observe = async () => {
    const found = await observe();
    observed = { candidate: found.candidate, evidence: found.evidence };
    return found;
  };
  stage.recheck = async () => {
    const now = await recheck();
    return observed ?? now;
  };
}
