import {
  type Attributes,
  context,
  type Meter,
  metrics,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { given } from '../contract/options.ts';
import type { Step } from '../contract/steps.ts';
import type { Activity, Ending, Telemetry, Trace } from '../runtime/telemetry.ts';
import { createInstruments, type Instruments } from './instruments.ts';

/** Where to report. The globally registered providers are the default. */
export interface TelemetryOptions {
  readonly tracer?: Tracer;
  readonly meter?: Meter;
}

const NAME = 'effectmatch';

/**
 * Reports every activity as a span with one child per completed step, and counts and times them.
 * Attributes are names of adapters, steps, dispositions, gates and codes, and random or digested
 * ids: never a value, a key, a statement, a task or a message.
 */
export function openTelemetry(options: TelemetryOptions = {}): Telemetry {
  const tracer = options.tracer ?? trace.getTracer(NAME);
  const instruments = createInstruments(options.meter ?? metrics.getMeter(NAME));
  return {
    begin: (activity) => new SpanTrace(tracer, instruments, activity),
    watchOrphans: (count) => instruments.watchOrphans(count),
  };
}

/** Milliseconds since the epoch, more precise than the clock for records. */
const nowMs = () => performance.timeOrigin + performance.now();

class SpanTrace implements Trace {
  readonly #tracer: Tracer;
  readonly #instruments: Instruments;
  readonly #activity: Activity;
  readonly #span: Span;
  readonly #startedMs = nowMs();
  #lastMs = this.#startedMs;

  constructor(tracer: Tracer, instruments: Instruments, activity: Activity) {
    this.#tracer = tracer;
    this.#instruments = instruments;
    this.#activity = activity;
    const attributes = adapterOf(activity);
    this.#span = tracer.startSpan(`effectmatch.${activity.kind}`, {
      startTime: this.#startedMs,
      attributes,
    });
  }

  /**
   * A step's span starts where the previous step ended, so together they cover the whole activity.
   */
  step(step: Step): void {
    const endedMs = nowMs();
    const parent = trace.setSpan(context.active(), this.#span);
    const options = { startTime: this.#lastMs, attributes: { 'effectmatch.step': step } };
    this.#tracer.startSpan(`effectmatch.${step}`, options, parent).end(endedMs);
    const { kind } = this.#activity;
    const labels = {
      ...adapterOf(this.#activity),
      'effectmatch.activity': kind,
      'effectmatch.step': step,
    };
    this.#instruments.stepDuration.record((endedMs - this.#lastMs) / 1000, labels);
    this.#lastMs = endedMs;
  }

  end(ending: Ending): void {
    const endedMs = nowMs();
    const labels = { ...adapterOf(this.#activity), ...labelsOf(ending) };
    this.#span.setAttributes(labels);
    if (ending.kind === 'verdict')
      this.#span.setAttribute('effectmatch.execution', ending.execution);
    if (ending.kind === 'fault') this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end(endedMs);
    this.#instruments.count(this.#activity.kind, ending, labels);
    const timed = { ...labels, 'effectmatch.activity': this.#activity.kind };
    this.#instruments.duration.record((endedMs - this.#startedMs) / 1000, timed);
  }
}

function adapterOf({ adapter, route }: Activity): Attributes {
  return given({ 'effectmatch.adapter': adapter, 'http.route': route });
}

function labelsOf(ending: Ending): Attributes {
  switch (ending.kind) {
    case 'verdict': {
      const { disposition, gate, reason } = ending;
      return given({
        'effectmatch.disposition': disposition,
        'effectmatch.gate': gate,
        'effectmatch.reason': reason,
      });
    }
    case 'shadow':
      return { 'effectmatch.would': ending.would };
    case 'fault':
      return { 'effectmatch.code': ending.code };
    case 'answered':
      return { 'http.response.status_code': ending.status };
    case 'recovered':
    case 'watched':
    case 'done':
      return {};
  }
}
