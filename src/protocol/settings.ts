import { checked, dictionary, form } from './schema.ts';

const MAX_SETTINGS = 32;

const nameSchema = form(
  /^(?=.{3,63}$)[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+$/,
  'the name of a session setting, such as app.actor: small letters, digits, _ and at least one dot',
);
const valueSchema = form(/^[^\0]{0,1024}$/s, 'text of at most 1024 characters without NUL');

/** Session settings for an action, by name. */
export const settingsSchema = checked(
  dictionary(nameSchema, valueSchema),
  (settings) => {
    const { length } = Object.keys(settings);
    return length >= 1 && length <= MAX_SETTINGS;
  },
  `must have 1 to ${MAX_SETTINGS} settings`,
);

/**
 * Session settings for an action, by name. Row security and audit triggers read them to find out
 * for whom it runs. They are part of A, so an approver sees and signs them.
 */
export type SessionSettings = { readonly [name: string]: string };
