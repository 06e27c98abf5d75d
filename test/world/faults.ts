import { STEPS, type Step } from '../../src/contract/steps.ts';
import { MEMORY_CHANNELS } from './adapter.ts';

/** Every port method that a runtime awaits while it executes, recovers or releases. */
export const CALLS = [
  'adapter.read',
  'adapter.survey',
  'adapter.stage',
  'stage.read',
  'stage.observe',
  'stage.recheck',
  'stage.promote',
  'stage.discard',
  'markers.find',
  'markers.void',
  'adapter.dispatch',
  'adapter.readBack',
  'ledgers.claim',
  'ledgers.holder',
  'ledgers.standing',
  'ledgers.unsettled',
  'ledgers.consumePermit',
  'ledgers.voidPermit',
  'ledgers.permit',
  'ledgers.record',
  'ledgers.terminal',
  'ledgers.acknowledge',
  'ledgers.keep',
] as const;
export type Call = (typeof CALLS)[number];

/** Those that one execution with its continuation makes twice. */
const REPEATED: readonly Call[] = ['adapter.read', 'adapter.survey', 'ledgers.acknowledge'];

/**
 * An exception in a living process, which cleans up behind itself, or the end of the process, which
 * does not.
 */
export type Ending = 'throw' | 'die';

/** The one thing that goes wrong. `nth` counts from 1, from the moment the fault is armed. */
export type Fault =
  | { readonly kind: 'none' }
  /** At a named step. */
  | { readonly kind: 'step'; readonly step: Step; readonly ending: Ending }
  /** In a port method, before or after it has done its work. */
  | {
      readonly kind: 'call';
      readonly call: Call;
      readonly when: 'before' | 'after';
      readonly ending: Ending;
      readonly nth: number;
    }
  /** Promotion answers that it does not know, having committed or not. */
  | { readonly kind: 'reply'; readonly committed: boolean }
  /** The observer reports something else than what is there. */
  | { readonly kind: 'evidence'; readonly how: 'drop' | 'duplicate' | 'alter' }
  | { readonly kind: 'silence'; readonly channel: string }
  /** The backend makes something else of the first write. */
  | { readonly kind: 'logic'; readonly how: 'add' | 'remove' | 'alter' }
  /** Somebody else changes a declared row, or the schema, when the step is reached. */
  | { readonly kind: 'state' | 'schema'; readonly at: Step }
  | { readonly kind: 'clock'; readonly at: Step; readonly byMs: number }
  /**
   * What becomes of a request: lost on the way, answered into nowhere, still travelling, or refused
   * at the door.
   */
  | { readonly kind: 'network'; readonly how: Network };

export type Network = 'lost-request' | 'lost-reply' | 'in-flight' | 'not-sent';

const ENDINGS = ['throw', 'die'] as const;
const CLOCK_STEPS_MS = [-3_600_000, 3_600_000];

/** Every fault there is, so that a test can leave none out. */
export function everyFault(): readonly Fault[] {
  const calls = CALLS.flatMap((call) =>
    (REPEATED.includes(call) ? [1, 2] : [1]).flatMap((nth) =>
      (['before', 'after'] as const).flatMap((when) =>
        ENDINGS.map((ending) => ({ kind: 'call' as const, call, when, ending, nth })),
      ),
    ),
  );
  const steps = STEPS.flatMap((step) =>
    ENDINGS.map((ending) => ({ kind: 'step' as const, step, ending })),
  );
  const changes = STEPS.flatMap((at) => [
    { kind: 'state' as const, at },
    { kind: 'schema' as const, at },
    ...CLOCK_STEPS_MS.map((byMs) => ({ kind: 'clock' as const, at, byMs })),
  ]);
  return [
    { kind: 'none' },
    ...steps,
    ...calls,
    { kind: 'reply', committed: true },
    { kind: 'reply', committed: false },
    ...(['drop', 'duplicate', 'alter'] as const).map((how) => ({ kind: 'evidence' as const, how })),
    ...[...MEMORY_CHANNELS, 'receipt', 'audit'].map((channel) => ({
      kind: 'silence' as const,
      channel,
    })),
    ...(['add', 'remove', 'alter'] as const).map((how) => ({ kind: 'logic' as const, how })),
    ...changes,
    ...(['lost-request', 'lost-reply', 'in-flight', 'not-sent'] as const).map((how) => ({
      kind: 'network' as const,
      how,
    })),
  ];
}
