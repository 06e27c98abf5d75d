/** The adapters and operations whose requests and verdicts a person may see. Defaults to all. */
export interface Sight {
  readonly adapters?: readonly string[] | undefined;
  readonly operations?: readonly string[] | undefined;
}

/** What a request, a verdict or an event is about. */
export interface Subject {
  readonly adapter: string;
  readonly operation?: string | undefined;
}

/** Whether the person may see everything. */
export function seesAll({ adapters, operations }: Sight): boolean {
  return adapters === undefined && operations === undefined;
}

/** Whether the person may see `subject`. A list of operations hides subjects without one. */
export function sees({ adapters, operations }: Sight, { adapter, operation }: Subject): boolean {
  if (adapters !== undefined && !adapters.includes(adapter)) return false;
  return operations === undefined || operations.some((name) => name === operation);
}
