import { quoteName } from '../../../postgres/identifier.ts';
import { TRUSTED_FUNCTIONS } from '../provision/functions.ts';
import { findUnseenAct, judgeBody } from './body.ts';
import { dangerOf, describeUnseen, isHarmlessSetting, TRUSTED_EXTENSIONS } from './builtins.ts';
import type { FunctionRow } from './catalog.ts';
import { at, type BoundaryFacts, isVouchedFor, type SurveyContext } from './facts.ts';
import { findUnclosed, judgeLocal } from './managed.ts';
import { closeExecute, type Route } from './reach.ts';
import { digestFunction, reviewerOf } from './reviews.ts';

/**
 * Every application function that an execution can set in motion: the role it runs as, its
 * language, and what its text does.
 */
export function surveyFunctions(context: SurveyContext): void {
  const { catalog, facts, index, reach, outlets } = context;
  for (const row of catalog.functions) {
    if (row.schema === 'effectmatch') surveyOwn(context, row);
    const route = reach.functions.get(row);
    if (route === undefined) continue;
    surveyCallable(context, row);
    if (isVouchedFor(row, facts)) continue;
    const before = outlets.problems.length;
    const revoke = index.executable.has(row.oid) ? closeExecute(row, facts.executor) : [];
    judge(context, row, { by: route.by, close: [...new Set([...route.close, ...revoke])] });
    if (outlets.problems.length > before) continue;
    const by = `reached through ${route.by}; writes are recorded or counted, digest ${digestFunction(row)}`;
    outlets.observed(`function ${row.object}`, by);
  }
  for (const { oid, name } of facts.entryPoints) {
    const why = 'registered, but the execution login may not execute it';
    if (!index.executable.has(oid)) outlets.denied(`entry point ${name}`, why);
  }
  const trusted = catalog.extensions.filter(({ name }) => isTrustedExtension(name, facts));
  const names = trusted.map(({ name, version }) => `${name} ${version}`).join(', ');
  outlets.denied('functions of trusted extensions', `compute values only: ${names}`);
}

function isTrustedExtension(name: string | null, { trustedCode = [] }: BoundaryFacts) {
  return name !== null && (TRUSTED_EXTENSIONS.has(name) || trustedCode.includes(name));
}

/** Extensions with native code that is out of reach. */
export function surveyExtensions({ catalog, facts, outlets }: SurveyContext): void {
  for (const { name, version } of catalog.extensions) {
    const isOpen = outlets.problems.some(({ object }) =>
      catalog.functions.some((row) => row.extension === name && row.object === object),
    );
    if (isOpen || isTrustedExtension(name, facts)) continue;
    const outlet = `extension ${quoteName(name)} ${version}`;
    if (facts.tier === 'managed')
      outlets.denied(outlet, 'no statement and no code may name its functions', 'gate');
    else outlets.denied(outlet, 'no role that an execution can act as may execute its functions');
  }
}

/**
 * A function that the execution login may call must be an entry point, or one that the schema calls
 * anyway.
 */
function surveyCallable(context: SurveyContext, row: FunctionRow): void {
  const { catalog, facts, index, reach, outlets } = context;
  if (facts.tier === 'managed' || !index.executable.has(row.oid) || row.trigger) return;
  const isUsed = catalog.uses.some((use) => {
    const relation = index.relation.get(use.relation);
    const isReached = relation !== undefined && reach.relations.has(relation);
    return use.function === row.oid && (isReached || use.type !== 0);
  });
  const isEntryPoint = facts.entryPoints.some(({ oid }) => oid === row.oid);
  if (isUsed || isEntryPoint || isTrustedExtension(row.extension, facts)) return;
  outlets.open(
    at.function(row),
    `function ${row.object}`,
    `${quoteName(facts.executor)} may execute it and it is not a registered entry point`,
    ...closeExecute(row, facts.executor),
  );
}

/**
 * Our own functions. Only the intended ones may be callable, and they run as their owner with a
 * pinned search path.
 */
function surveyOwn({ facts, index, outlets }: SurveyContext, row: FunctionRow): void {
  const outlet = `function ${row.object}`;
  const open = (why: string, ...fix: readonly string[]) =>
    outlets.open(at.owned(row), outlet, why, ...fix);
  const own = TRUSTED_FUNCTIONS.get(row.name);
  if (own === undefined) {
    open('It is in our schema and none of ours', `DROP ROUTINE ${row.object}`);
    return;
  }
  const hasSettings = own.settings.every((name) =>
    row.config?.some((text) => text.toLowerCase().startsWith(`${name}=`)),
  );
  const isRight =
    row.definer && row.language === 'plpgsql' && row.source === own.body && hasSettings;
  if (!isRight) open('It is not as provisioning made it', own.create);
  if (row.owner !== facts.owner) {
    const fix = `ALTER ROUTINE ${row.object} OWNER TO ${quoteName(facts.owner)}`;
    open(`It belongs to ${quoteName(row.owner)}`, fix);
  }
  if (!index.executable.has(row.oid)) return;
  if (own.isCallable)
    outlets.denied(
      outlet,
      'callable; what it may change needs a secret that agent SQL does not have',
    );
  else open('The execution login may call it and must not', ...closeExecute(row, facts.executor));
}

type Open = (why: string, fix: readonly string[], keep?: string) => void;

/** What to add to the configuration once a person has reviewed the function. */
function describeReview(row: FunctionRow): string {
  const review = `{ function: '${row.object}', digest: '${digestFunction(row)}', by: 'NAME' }`;
  return `have it read, and add to reviews: ${review}`;
}

/**
 * Judges an application function by its settings, and by its text unless a person has reviewed it.
 */
function judge(context: SurveyContext, row: FunctionRow, route: Route): void {
  const { facts, outlets } = context;
  const outlet = `function ${row.object}`;
  const open: Open = (why, fix, keep) =>
    outlets.open(
      { ...at.function(row), ...(keep !== undefined && { keep }) },
      outlet,
      `${why}; reached through ${route.by}`,
      ...(fix.length > 0 ? fix : closeExecute(row, facts.executor)),
    );
  judgeSettings(row, open);
  const reviewer = reviewerOf(row, facts);
  const openText: Open = (why, fix) => open(why, fix, describeReview(row));
  if (reviewer === undefined) judgeText(context, row, route, openText);
  else outlets.observed(outlet, `read by ${reviewer}, digest ${digestFunction(row)}`);
}

function judgeSettings(row: FunctionRow, open: Open): void {
  const names = (row.config ?? []).map((setting) => setting.split('=')[0] ?? '');
  for (const name of names) {
    if (name !== 'search_path' && !isHarmlessSetting(name))
      open(`It runs with its own ${name}`, [
        `ALTER ROUTINE ${row.object} RESET ${quoteName(name)}`,
      ]);
  }
  if (row.definer && !names.includes('search_path'))
    open('It is SECURITY DEFINER and finds names where the caller says', [
      `ALTER ROUTINE ${row.object} SET search_path = pg_catalog, ${quoteName(row.schema)}, pg_temp`,
    ]);
}

function judgeText(context: SurveyContext, row: FunctionRow, { close }: Route, open: Open): void {
  const hint = `(or have it read and declare its digest ${digestFunction(row)})`;
  const { language } = row;
  if (row.kind === 'a') {
    // Calling an aggregate needs no right on its parts: its owner's rights on them count.
    for (const part of row.parts) {
      const danger = describeUnseen(part) ?? dangerOf(part);
      if (danger !== undefined) open(`It is made of ${part}, which ${danger}`, close);
    }
  } else if (language === 'internal')
    open(`It is a second name for a built-in, with its own volatility ${hint}`, close);
  else if (language !== 'sql' && language !== 'plpgsql')
    open(
      row.trusted
        ? `Its language ${language} is not judged ${hint}`
        : `Its language ${language} is not bound by the database's rules`,
      close,
    );
  else {
    const text = row.sqlBody ?? row.source;
    const ofDefaults = findUnseenAct(row.defaults ?? '') ?? [];
    const unclosed = findUnclosed(context, `${text}\n${row.defaults ?? ''}`);
    const reasons = [judgeBody(text), ofDefaults, unclosed, judgeLocal(context, text)].flat();
    for (const reason of new Set(reasons)) open(`It ${reason} ${hint}`, close);
  }
}
