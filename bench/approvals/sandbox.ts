import type { SandboxState } from '../data/toolsandbox.ts';

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

/** The state that a request approves, derived from its text and the initial state. */
export function approveSandbox(request: string, initial: SandboxState): SandboxState {
  const [, service] = /^Turn off (cellular|wifi)$/.exec(request) ?? [];
  if (service !== undefined) {
    return { ...initial, SETTING: initial.SETTING.map((row) => ({ ...row, [service]: false })) };
  }
  const [, removed] = new RegExp(`^Remove id (${ID}) from my contact$`).exec(request) ?? [];
  if (removed !== undefined) {
    demandContact(initial, removed);
    return {
      ...initial,
      CONTACT: initial.CONTACT.filter(({ person_id }) => person_id !== removed),
    };
  }
  const update = new RegExp(
    `^Update phone number of the person with id (${ID}) to (\\+\\d+)$`,
  ).exec(request);
  const [, person, phone] = update ?? [];
  if (person === undefined || phone === undefined)
    throw new Error(`it is not known what "${request}" asks for`);
  demandContact(initial, person);
  const changed = initial.CONTACT.map((row) =>
    row.person_id === person ? { ...row, phone_number: phone } : row,
  );
  return { ...initial, CONTACT: changed };
}

function demandContact({ CONTACT }: SandboxState, person: string): void {
  const found = CONTACT.filter(({ person_id }) => person_id === person).length;
  if (found !== 1) throw new Error(`${found} contacts have the id ${person}`);
}
