export type PostgresAction = any;
export type PostgresStatement = any;
export type PostgresValue = any;
export interface CheckedAction {
  readonly statements: readonly { sql: string; values: readonly unknown[] }[];
}
const probes = new WeakSet<object>();
export function parseAction(_gate: unknown, input: any): CheckedAction {
  return { statements: (input.statements ?? [input]).map((s: any) => ({ sql: s.sql, values: s.values ?? [] })) };
}
export function describeAction(a: CheckedAction): any {
  return JSON.parse(JSON.stringify(a));
}
export function probeAction(token: string): CheckedAction {
  const a = { statements: [{ sql: 'insert into effectmatch.probe values ($1)', values: [token] }] };
  probes.add(a);
  return a;
}
export function isProbe(a: CheckedAction) {
  return probes.has(a);
}
