import type { Outlet, Survey } from '../../contract/adapter.ts';
import type { Gateway } from '../../http/gateway.ts';

interface Surveyed {
  readonly gateway: Gateway;
  readonly backend: string;
  readonly capability: string;
  readonly operations: Readonly<Record<string, { readonly method: string; readonly path: string }>>;
  readonly optionsDigest: string;
}

const lists = new Map<string, readonly Outlet[]>();

/**
 * The registered requests, and what keeps everything else from being sent with the gateway's
 * credential.
 */
export function surveyService({
  gateway,
  backend,
  capability,
  operations,
  optionsDigest,
}: Surveyed): Survey {
  const outlets: Outlet[] = Object.entries(operations).map(([name, { method, path }]) => ({
    outlet: `operation ${name}: ${method} ${gateway.host}${path}`,
    disposition: 'observed',
    by: 'its own read-back, after it was sent once',
  }));
  outlets.push(
    {
      outlet: 'other requests to the service',
      disposition: 'denied',
      by: 'the gateway alone has the credential',
    },
    {
      outlet: 'other hosts',
      disposition: 'denied',
      by: 'one registered host; no redirect is followed',
    },
  );
  return Object.freeze({
    backend,
    executor: `${capability} gateway to ${gateway.host}`,
    outlets: sharedList(outlets),
    configuration: optionsDigest,
    credentials: gateway.fingerprint(),
    enforcement: 'the agent holds no credential of this service',
  });
}

/**
 * The same list is the same frozen object every time, so that the core need not digest it again.
 */
function sharedList(outlets: Outlet[]): readonly Outlet[] {
  const text = JSON.stringify(outlets);
  const known = lists.get(text);
  if (known !== undefined) return known;
  for (const outlet of outlets) Object.freeze(outlet);
  lists.set(text, Object.freeze(outlets));
  return outlets;
}
