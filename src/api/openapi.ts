import { jsonSchemaOf, type Schema, type SchemaDocument } from '../protocol/schema.ts';
import type { ApiEndpoint, Parameter } from './endpoint.ts';
import { problemSchema, type RefusalStatus, titleOf } from './problem.ts';
import { NAMED } from './shapes.ts';

const ABOUT = `Ask for changes, answer them, execute them and read what is recorded. A token only lets
you call: approvals, declines and resolutions are signed with keys that the server does not have.
Faults of the server (500) and stores that cannot be reached (503) may answer any call, as a
problem document like every refusal.`;

const names = new Map(NAMED.map(([name, schema]) => [schema, `#/components/schemas/${name}`]));
const refOf = (schema: Schema<unknown>) => names.get(schema);

/** The refusals that an endpoint may answer with, in ascending order. */
function refusalStatusesOf(endpoint: ApiEndpoint): readonly RefusalStatus[] {
  const { scopes, query, body, refusals } = endpoint;
  const takes = Object.keys(query).length > 0 || body !== undefined;
  const statuses: readonly RefusalStatus[] = [
    ...([403, 421] as const),
    ...(scopes === undefined ? [] : ([401, 429] as const)),
    ...(takes ? ([400] as const) : []),
    ...(body === undefined ? [] : ([408, 413, 415] as const)),
    ...refusals,
  ];
  return [...new Set(statuses)].sort((a, b) => a - b);
}

/** The OpenAPI document of these endpoints. */
export function openApiOf(endpoints: readonly ApiEndpoint[], version: string): SchemaDocument {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] ??= {};
    Object.assign(paths[endpoint.path] as object, {
      [endpoint.method.toLowerCase()]: operationOf(endpoint),
    });
  }
  const schemas = NAMED.map(([name, schema]) => [name, jsonSchemaOf(schema, refOf)]);
  return {
    openapi: '3.1.0',
    info: { title: 'EffectMatch', version, description: ABOUT, license: { name: 'MIT' } },
    servers: [{ url: '/' }],
    tags: [...new Set(endpoints.map(({ group }) => group))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token that `effectmatch token new` printed.',
        },
      },
    },
  };
}

function operationOf(endpoint: ApiEndpoint): SchemaDocument {
  const { id, group, summary, about, scopes, parameters, query, body } = endpoint;
  const needs = scopes === undefined ? 'No token is needed.' : `Scope: ${scopes.join(' or ')}.`;
  return {
    operationId: id,
    tags: [group],
    summary,
    description: about === undefined ? needs : `${about}\n\n${needs}`,
    security: scopes === undefined ? [] : [{ token: [] }],
    parameters: [
      ...Object.entries(parameters).map(([name, one]) => parameterOf(name, 'path', one)),
      ...Object.entries(query).map(([name, one]) => parameterOf(name, 'query', one)),
    ],
    ...(body !== undefined && {
      requestBody: {
        required: true,
        description: body.about,
        content: { 'application/json': { schema: describe(body.schema) } },
      },
    }),
    responses: responsesOf(endpoint),
  };
}

function parameterOf(name: string, place: 'path' | 'query', { about, schema }: Parameter) {
  const described = describe(schema as Schema<unknown>);
  return { name, in: place, required: place === 'path', description: about, schema: described };
}

function responsesOf(endpoint: ApiEndpoint): SchemaDocument {
  const { answer, summary, created, type = 'application/json' } = endpoint;
  const content = { [type]: { schema: describe(answer) } };
  const answered = [
    ['200', { description: `${summary}.`, content }],
    ...(created === undefined ? [] : [['201', { description: created, content }]]),
  ];
  const problem = { 'application/problem+json': { schema: describe(problemSchema) } };
  const refused = refusalStatusesOf(endpoint).map((status) => {
    return [status, { description: titleOf(status), content: problem }];
  });
  return Object.fromEntries([...answered, ...refused]);
}

function describe(schema: Schema<unknown>): SchemaDocument {
  const ref = refOf(schema);
  return ref === undefined ? jsonSchemaOf(schema, refOf) : { $ref: ref };
}
