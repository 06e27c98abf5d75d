import type { SandboxRow, SandboxState } from '../../data/toolsandbox.ts';

/**
 * Tools with the effects and refusals that the data describes. This is our own code; the original
 * is not run.
 */
export default function sandboxTools(now: number): {
  readonly [name: string]: (state: SandboxState, args: SandboxRow) => void;
} {
  const setStatus =
    (service: 'cellular' | 'wifi') =>
    (state: SandboxState, { on }: SandboxRow) => {
      const [setting] = state.SETTING;
      if (typeof on !== 'boolean' || setting === undefined)
        throw new Error('on must be true or false');
      if (setting[service] === on) throw new Error(`${service} is already ${on ? 'on' : 'off'}`);
      if (on && setting.low_battery_mode === true) throw new Error('not in low battery mode');
      setting[service] = on;
    };
  const findContact = ({ CONTACT }: SandboxState, person: unknown): number => {
    const at = CONTACT.findIndex(({ person_id }) => person_id === person);
    if (at < 0) throw new Error('there is no such contact');
    return at;
  };
  return {
    set_cellular_service_status: setStatus('cellular'),
    set_wifi_status: setStatus('wifi'),
    remove_contact(state, { person_id }) {
      state.CONTACT.splice(findContact(state, person_id), 1);
    },
    // As in the original, the changed contact moves to the end.
    modify_contact(state, { person_id, ...fields }) {
      if (Object.keys(fields).length === 0) throw new Error('no field was given');
      const [contact] = state.CONTACT.splice(findContact(state, person_id), 1);
      state.CONTACT.push({ ...contact, ...fields });
    },
    add_reminder(state, { content, reminder_timestamp }) {
      if (typeof content !== 'string' || typeof reminder_timestamp !== 'number')
        throw new Error('it needs both');
      state.REMINDER.push({
        ...Object.fromEntries(Object.keys(state.REMINDER[0] ?? {}).map((column) => [column, null])),
        reminder_id: '00000000-0000-5000-8000-000000000001',
        creation_timestamp: now,
        content,
        reminder_timestamp,
      });
    },
    get_current_timestamp: () => undefined,
  };
}

/**
 * The benchmark's own goal check, applied after the decision. It ignores reminders.
 */
export function passesGoal(scenario: string, initial: SandboxState, found: SandboxState): boolean {
  const texts = (rows: readonly SandboxRow[]) =>
    rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))));
  const before = texts(initial.CONTACT);
  const after = texts(found.CONTACT);
  const gone = before.filter((text) => !after.includes(text));
  const come = after.filter((text) => !before.includes(text));
  switch (scenario) {
    case 'cellular_off':
      return found.SETTING.length === 1 && found.SETTING[0]?.cellular === false;
    case 'wifi_off':
      return found.SETTING.length === 1 && found.SETTING[0]?.wifi === false;
    case 'remove_contact_with_id':
      return gone.length === 1 && come.length === 0 && gone[0]?.includes('9e137f06') === true;
    case 'update_contact_with_id_and_phone_number':
      return gone.length === 1 && come.length === 1 && come[0]?.includes('+19876543210') === true;
    default:
      throw new Error(`no goal is known for ${scenario}`);
  }
}
