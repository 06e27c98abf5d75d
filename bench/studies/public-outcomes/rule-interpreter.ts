// Rules with the parts that AgentSpec's have: an event that triggers them, predicates that must all
// hold, and what is then enforced. Our own implementation; AgentSpec's code was not available.
import { findForbidden, type WritePolicy } from './call-rules.ts';

/** What an agent is about to do. */
export interface AgentAction {
  readonly tool: string;
  readonly input: string;
}

/** Whether it holds for an action, given those before it. */
type RulePredicate = (action: AgentAction, earlier: readonly AgentAction[]) => boolean;

/** `stop` ends the agent; `skip` leaves the action out; `inspect` asks a person, who is not there. */
type Enforcement = 'stop' | 'skip' | 'inspect';

export interface AgentRule {
  readonly id: string;
  /** The tool whose calls trigger it; `any` for every action. */
  readonly trigger: string;
  readonly check: readonly RulePredicate[];
  readonly enforce: Enforcement;
}

/** What becomes of an action, and which rule said so. */
export type RuleVerdict =
  | { readonly kind: 'continue' }
  | { readonly kind: Enforcement; readonly rule: string };

/** The first rule whose event and predicates hold decides; without one the action runs. */
export function applyRules(
  rules: readonly AgentRule[],
  action: AgentAction,
  earlier: readonly AgentAction[],
): RuleVerdict {
  const found = rules.find(
    ({ trigger, check }) =>
      (trigger === 'any' || trigger === action.tool) &&
      check.every((holds) => holds(action, earlier)),
  );
  return found === undefined ? { kind: 'continue' } : { kind: found.enforce, rule: found.id };
}

/** The tool that runs SQL. */
export const SQL_TOOL = 'execute_sql';

/** Stops at a visible write that the task does not call for. */
export function sqlRules(policy: WritePolicy): readonly AgentRule[] {
  return [
    {
      id: 'stop unlisted write',
      trigger: SQL_TOOL,
      check: [({ input }) => findForbidden([input], policy) !== undefined],
      enforce: 'stop',
    },
  ];
}
