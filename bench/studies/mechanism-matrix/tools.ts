// What every condition but EffectMatch has to act with: the agent's tools, and plain requests to
// the service.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from './service.ts';
import type { Session } from './session.ts';
import { CONNECTOR_FILE, type PaymentStep, type Place, type RowStep } from './task.ts';

export interface Answer {
  readonly ok: boolean;
  readonly status: number;
  readonly body: unknown;
}

/** One request to the service. */
export async function exchange(
  place: Place,
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<Answer> {
  const { origin, customer } = place.service;
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: {
      authorization: `${TOKEN}.${customer}`,
      connection: 'close',
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { ok, status } = response;
  return { ok, status, body: await response.json() };
}

/**
 * The agent's tool for payments. A connector stands behind it, which adds whatever it is set up to
 * add.
 */
export async function callPaymentTool(
  place: Place,
  { payee, amount }: PaymentStep,
): Promise<Answer> {
  const { defaults } = JSON.parse(readFileSync(join(place.folder, CONNECTOR_FILE), 'utf8')) as {
    defaults: object;
  };
  return await exchange(place, 'POST', '/payments', { payee, amount, ...defaults });
}

/** The statement of a row step. */
export function statementOf({ table, column, value, id }: RowStep) {
  return { sql: `update ${table} set ${column} = $1 where id = $2`, values: [value, id] };
}

export async function runStatement(session: Session, step: RowStep): Promise<void> {
  const { sql, values } = statementOf(step);
  await session.query(sql, values);
}
