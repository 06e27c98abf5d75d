import type {
  Adapter,
  AdapterFactory,
  Evidence,
  PromotableAdapter,
  Stage,
  Staged,
} from '../../src/contract/adapter.ts';

/**
 * The subject, except for what `changes` names. Methods still run on the subject itself, private
 * fields included.
 */
export function overlay<T extends object>(subject: T, changes: Partial<T>): T {
  return new Proxy(subject, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name);
      const value: unknown = Reflect.get(target, name, target);
      // An arrow, because `await using` of this V8 does not take a bound function for a dispose
      // method.
      return typeof value === 'function'
        ? (...parameters: unknown[]) => value.apply(target, parameters)
        : value;
    },
  });
}

/**
 * A factory whose adapters are changed as they are opened: for adapters that lie, lose or
 * interfere.
 */
export function overlayAdapter<A>(
  factory: AdapterFactory<A>,
  change: (adapter: Adapter<A>) => Partial<Adapter<A>>,
) {
  return {
    async open(context) {
      const adapter = await factory.open(context);
      return overlay(adapter, change(adapter));
    },
  } satisfies AdapterFactory<A>;
}

/** Changes every stage that the adapter holds. */
export function overlayStages<A>(
  adapter: PromotableAdapter<A>,
  change: (stage: Stage) => Partial<Stage>,
) {
  return {
    async stage(...asked): Promise<Staged> {
      const staged = await adapter.stage(...asked);
      if (staged.kind === 'failed') return staged;
      return { kind: 'held', stage: overlay(staged.stage, change(staged.stage)) };
    },
  } satisfies Partial<PromotableAdapter<A>>;
}

/**
 * An adapter, of whatever capability, whose observer reports what `alter` makes of its evidence.
 */
export function alterEvidence<A>(
  factory: AdapterFactory<A>,
  alter: (evidence: Evidence) => Evidence,
) {
  return overlayAdapter(factory, (adapter) =>
    adapter.capability === 'PROMOTABLE'
      ? overlayStages(adapter, (stage) => ({ observe: async () => alter(await stage.observe()) }))
      : { readBack: async (...asked) => alter(await adapter.readBack(...asked)) },
  );
}

/** The channel does not answer. */
export function silence(evidence: Evidence, channel: string): Evidence {
  const channels = evidence.channels.map((report) =>
    report.channel === channel
      ? { channel, kind: 'silent' as const, why: 'it was silenced' }
      : report,
  );
  return { ...evidence, channels };
}

/** The channel is not even mentioned. */
export function withoutChannel(evidence: Evidence, channel: string): Evidence {
  return {
    ...evidence,
    channels: evidence.channels.filter((report) => report.channel !== channel),
  };
}
