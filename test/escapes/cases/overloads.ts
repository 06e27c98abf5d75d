import type { EscapeCase, Expectation } from '../case.ts';
import { ACT, boundary, PAID, replaceAct, state } from './shop.ts';

/** The registered entry point takes nothing; another function has its name, and does more. */
const overload = (
  name: string,
  other: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `overload: ${name}`,
  setup: `${replaceAct('null')}; ${other}`,
  entryPoints: ['app.act()', 'app.work'],
  action: ACT,
  approved: PAID,
  expectation,
  ...more,
});

const other = (parameters: string, right = 'revoke') =>
  `create function app.act(${parameters}) returns void language plpgsql as $act$ begin delete from app.line; end $act$;
   ${right === 'revoke' ? 'revoke' : 'grant'} execute on all functions in schema app ${right === 'revoke' ? 'from' : 'to'} public; grant execute on function app.act() to {exec}`;

/** Several functions of one name: the registered one is called, and no other. */
export const OVERLOADS: readonly EscapeCase[] = [
  overload('control: the registered one is called', other('more int'), { kind: 'committed' }),
  overload('another that the agent calls itself', other('more int'), state('42501'), {
    action: { sql: 'select app.act(1)' },
  }),
  overload(
    'another that everybody may execute',
    other('more int', 'grant'),
    boundary('not a registered entry point'),
    { managedCommits: true },
  ),
  overload('another that answers the same call', other('more int default 1'), state('42725')),
  overload('another that answers the same call, made after the approval', '', state('42725'), {
    setup: replaceAct('null'),
    approvedThen: other('more int default 1'),
  }),
  overload(
    'a name that several have',
    other('more int'),
    {
      kind: 'refused',
      code: 'ERR_EM_ADAPTER_REFUSED',
      because: 'write one of app.act(), app.act(integer)',
    },
    {
      entryPoints: ['app.act', 'app.work'],
    },
  ),
];
