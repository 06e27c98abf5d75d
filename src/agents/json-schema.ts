import { EffectMatchError } from '../errors.ts';
import type { Operation } from '../runtime/operation.ts';

/** A JSON Schema of an object, as tools describe their input. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | object;
  readonly [keyword: string]: unknown;
}

/** The part of Standard JSON Schema that is used here; zod and others offer it. */
interface StandardJsonSchema {
  readonly jsonSchema?: {
    input(options: { readonly target: 'draft-2020-12' }): Readonly<Record<string, unknown>>;
  };
}

/** The JSON Schema of an operation's input, from the schema library itself. */
export function schemaOf({ name, input }: Operation): JsonSchema {
  const { jsonSchema } = input['~standard'] as StandardJsonSchema;
  if (jsonSchema === undefined)
    throw misconfigured(name, 'its schema library writes no JSON Schema; give one in "schemas"');
  try {
    const { $schema: _, ...schema } = jsonSchema.input({ target: 'draft-2020-12' });
    return schema;
  } catch (cause) {
    throw misconfigured(name, 'its input has no JSON Schema; give one in "schemas"', cause);
  }
}

function misconfigured(
  name: string,
  why: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_CONFIG_INVALID'> {
  const message = `operation "${name}" cannot become a tool: ${why}`;
  return new EffectMatchError('ERR_EM_CONFIG_INVALID', message, { cause });
}

/** A schema that frameworks take: it describes the input, and the tool itself checks it. */
export interface DescribedInput {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'effectmatch';
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: {
      input(): Record<string, unknown>;
      output(): Record<string, unknown>;
    };
    readonly types?: { readonly input: unknown; readonly output: unknown };
  };
}

/** A JSON Schema as a Standard Schema. */
export function describeInput(schema: JsonSchema): DescribedInput {
  const describe = () => ({ ...schema });
  const validate = (value: unknown) => ({ value });
  const jsonSchema = { input: describe, output: describe };
  return { '~standard': { version: 1, vendor: 'effectmatch', validate, jsonSchema } };
}
