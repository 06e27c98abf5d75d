/** What a person may see: requests and verdicts of these adapters and operations; all unless said. */
export interface Sight {
  readonly adapters?: readonly string[] | undefined;
  readonly operations?: readonly string[] | undefined;
}

/** What a request, a verdict or an event is about. */
export interface Subject {
  readonly adapter: string;
  readonly operation?: string | undefined;
}

/** Whether nothing is hidden from them. */
export function seesAll({ adapters, operations }: Sight): boolean {
  return adapters === undefined && operations === undefined;
}

/** Whether they may see it. What no operation computed is hidden where operations are listed. */
export function sees({ adapters, operations }: Sight, { adapter, operation }: Subject): boolean {
  if (adapters !== undefined && !adapters.includes(adapter)) return false;
  return operations === undefined || operations.some((name) => name === operation);
}
