import type { PostgresSurvey } from './facts.ts';

/**
 * The survey as a report that a database administrator can act on: what is open first, with the
 * statements that close it.
 */
export function renderSurvey(survey: PostgresSurvey): string {
  const { problems, outlets } = survey;
  const head =
    problems.length === 0
      ? `Boundary of ${survey.backend} is closed: ${outlets.length} outlets observed or denied.`
      : `Boundary of ${survey.backend} is open at ${problems.length} of ${outlets.length} outlets. Nothing is staged until they are closed.`;
  const open = problems.map(({ outlet, why, fix, needs }, index) =>
    [
      `${index + 1}. ${outlet}`,
      `   ${why}.`,
      `   Needs: ${needs}`,
      ...fix.map((statement) => `     ${statement};`),
    ].join('\n'),
  );
  const rest = (['observed', 'denied'] as const).map((disposition) => {
    const lines = outlets.filter((outlet) => outlet.disposition === disposition);
    return [
      `${disposition} (${lines.length})`,
      ...lines.map(({ outlet, by }) => `  ${outlet}: ${by}`),
    ].join('\n');
  });
  const declared =
    survey.declared.length === 0
      ? '  nothing: host and network are as open as the machine'
      : survey.declared.map((line) => `  ${line}`).join('\n');
  const digests = [
    `configuration ${survey.configuration}`,
    `credentials   ${survey.credentials}`,
    `enforcement   ${survey.enforcement}`,
  ];
  return [
    head,
    ...open,
    ...rest,
    `declared by the deployment, not visible to the database\n${declared}`,
    digests.join('\n'),
  ].join('\n\n');
}

/** The same for programs. */
export function describeSurvey(survey: PostgresSurvey): Readonly<Record<string, unknown>> {
  const {
    backend,
    executor,
    problems,
    outlets,
    declared,
    configuration,
    credentials,
    enforcement,
  } = survey;
  return {
    backend,
    executor,
    closed: problems.length === 0,
    problems,
    outlets,
    declared,
    configuration,
    credentials,
    enforcement,
  };
}

/**
 * Statements that close everything that is open, in order and without repetition, ready to be
 * reviewed and applied.
 */
export function fixStatements(survey: PostgresSurvey): readonly string[] {
  const once = new Set<string>();
  return survey.problems.flatMap(({ fix }) => {
    const key = fix.join('\n');
    if (once.has(key)) return [];
    once.add(key);
    return fix;
  });
}
