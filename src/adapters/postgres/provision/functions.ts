import { SQL } from '../sql.ts';

/** A function of schema `effectmatch`, as provisioning creates it. */
interface TrustedFunction {
  /** The statement that creates or replaces it. */
  readonly create: string;
  readonly body: string;
  /** Names of the settings that it runs with. */
  readonly settings: readonly string[];
  /** Whether the execution login may call it. */
  readonly isCallable: boolean;
}

const GRANTED = SQL.functions.get('grant_execution', { execution: '' });

/** The trusted functions by name. Their bodies are compared with the catalogue at admission. */
export const TRUSTED_FUNCTIONS: ReadonlyMap<string, TrustedFunction> = new Map(
  SQL.functions.names
    .filter((name) => !/^(?:grant|revoke)_/.test(name))
    .map((name) => {
      const create = SQL.functions.get(name);
      const [head = '', body = ''] = create.split('$effectmatch$');
      const settings = [...head.matchAll(/^ +set (\w+) =/gm)].map((match) => match[1] ?? '');
      const isCallable = new RegExp(`effectmatch\\.${name}\\b`).test(GRANTED);
      return [name, { create, body, settings, isCallable }];
    }),
);
