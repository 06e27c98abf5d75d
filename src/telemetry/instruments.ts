import type { Attributes, BatchObservableCallback, Histogram, Meter } from '@opentelemetry/api';
import type { Activity, Ending } from '../runtime/telemetry.ts';

/** The metrics of a deployment. */
export interface Instruments {
  readonly duration: Histogram;
  readonly stepDuration: Histogram;
  count(kind: Activity['kind'], ending: Ending, labels: Attributes): void;
  /** Calls `count` whenever metrics are collected. Several deployments in one process add up. */
  watchOrphans(count: () => Promise<number>): () => void;
}

export function createInstruments(meter: Meter): Instruments {
  const executions = meter.createCounter('effectmatch.executions', {
    description: 'Executions that ended with a verdict, by disposition and gate',
  });
  const shadows = meter.createCounter('effectmatch.shadows', {
    description: 'Shadows, by what would have been decided',
  });
  const faults = meter.createCounter('effectmatch.faults', {
    description: 'Activities that ended with a fault and not with an answer, by code',
  });
  const recovered = meter.createCounter('effectmatch.recovered', {
    description: 'Attempts without a verdict that recovery looked at, by what it found',
  });
  const takenOver = meter.createCounter('effectmatch.workflows.taken_over', {
    description: 'Runs of silent workers that a watcher took over',
  });
  const waiting = meter.createGauge('effectmatch.waiting', {
    description: 'What waited for a person when a watcher looked last, by kind',
  });
  return {
    duration: meter.createHistogram('effectmatch.activity.duration', {
      description: 'How long an activity took, from its call to its answer',
      unit: 's',
    }),
    stepDuration: meter.createHistogram('effectmatch.step.duration', {
      description: 'How long each step took, from the end of the one before it',
      unit: 's',
    }),
    count(kind, ending, labels) {
      if (ending.kind === 'verdict') executions.add(1, labels);
      if (ending.kind === 'shadow') shadows.add(1, labels);
      if (ending.kind === 'fault') faults.add(1, { ...labels, 'effectmatch.activity': kind });
      if (ending.kind === 'watched') {
        takenOver.add(ending.takenOver);
        for (const [what, number] of Object.entries(ending.waiting))
          waiting.record(number, { 'effectmatch.waiting': what });
      }
      if (ending.kind !== 'recovered') return;
      for (const [result, number] of Object.entries(ending.results)) {
        if (number > 0) recovered.add(number, { ...labels, 'effectmatch.result': result });
      }
    },
    watchOrphans: orphanWatch(meter),
  };
}

function orphanWatch(meter: Meter): Instruments['watchOrphans'] {
  const orphaned = meter.createObservableGauge('effectmatch.attempts.orphaned', {
    description: 'Claimed attempts past their lease without a conclusive verdict',
  });
  const sources = new Set<() => Promise<number>>();
  const observe: BatchObservableCallback = async (result) => {
    let sum = 0;
    for (const source of sources) sum += await source();
    result.observe(orphaned, sum);
  };
  return (count) => {
    if (sources.size === 0) meter.addBatchObservableCallback(observe, [orphaned]);
    sources.add(count);
    return () => {
      if (sources.delete(count) && sources.size === 0)
        meter.removeBatchObservableCallback(observe, [orphaned]);
    };
  };
}
