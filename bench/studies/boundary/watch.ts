import type { AdapterFactory, PromotableAdapter, Survey } from '../../../src/contract/adapter.ts';
import type { ConsumedPermit } from '../../../src/contract/proof.ts';

/**
 * What a study sees and changes between the runtime and its adapter. The adapter has no option for
 * any of it.
 */
export interface Watch {
  /** Every survey that the adapter answered with, in order. */
  readonly surveys: Survey[];
  /** The ablation: the first survey is presented for ever. */
  readonly reuses?: boolean;
  /** Runs once the action is done, while its candidate is held. */
  held?: (() => Promise<void>) | undefined;
  /** Which permit is presented in place of the candidate's own. */
  present?: (own: ConsumedPermit) => ConsumedPermit;
}

/** The same adapter under watch. */
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
      const first = watch.reuses ? await survey() : undefined;
      adapter.survey = async () => {
        const found = first ?? (await survey());
        watch.surveys.push(found);
        return found;
      };
      adapter.stage = async (...given) => {
        const staged = await stage(...given);
        if (staged.kind === 'held') {
          const promote = staged.stage.promote.bind(staged.stage);
          staged.stage.promote = (permit) => promote(watch.present?.(permit) ?? permit);
          await watch.held?.();
        }
        return staged;
      };
      return adapter;
    },
  };
}
