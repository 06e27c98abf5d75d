import { randomBytes } from 'node:crypto';
import {
  type Applied,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  refusedPromotion,
  stageFailed,
} from '../../backend/candidate.ts';
import { CALL_SAVEPOINT } from '../../backend/failure.ts';
import { declaredReferences } from '../../backend/foreign-keys.ts';
import { ResultCollector } from '../../backend/results.ts';
import { fingerprint } from '../../backend/setup.ts';
import { refuseValueCount } from '../../contract/action-input.ts';
import type {
  AdapterContext,
  CallAnswer,
  ChannelReport,
  Promotion,
} from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { invariant, messageOf } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { Residue } from '../../protocol/residue.ts';
import { bindValues, type CheckedMysqlAction, isProbe } from './action.ts';
import { type AdmittedTexts, refusalOf } from './admission.ts';
import { errorNumber, type MysqlConnection, type RawRows, textsOf } from './connection.ts';
import { Counters, type Positions, readPositions } from './counters.ts';
import type { Definitions } from './definitions.ts';
import type { MysqlDeployment } from './deployment.ts';
import { describeFailure, explainError } from './failure.ts';
import { type Recorded, readRecords, type TracedRelation } from './observation.ts';
import type { MysqlSettings } from './options.ts';
import { readImages, readState } from './reading.ts';
import { PROBE_RELATION } from './recorders.ts';
import { receiverOf } from './result-rows.ts';
import type { RowImage } from './row-image.ts';
import {
  type ControlAccount,
  type ExecutionSession,
  type ExecutionSessions,
  parseVariables,
  READ_VARIABLES,
  readMs,
  readVariables,
} from './sessions.ts';
import { quoteName, quoteText } from './sql.ts';
import { INNODB_STATUS, readStatus, type UndoCount } from './witness.ts';

/** The channels that must report and agree. */
export const CHANNELS = ['recorder', 'undo', 'rows', 'transaction', 'session'] as const;

/** What a candidate needs. Its session is not shared with other candidates. */
export interface MysqlCandidateTools {
  readonly session: ExecutionSession;
  readonly sessions: Pick<ExecutionSessions, 'giveBack'>;
  readonly control: ControlAccount;
  readonly deployment: MysqlDeployment;
  readonly settings: MysqlSettings;
  readonly admitted: AdmittedTexts;
  readonly definitions: Pick<Definitions, 'relations' | 'foreignKeys' | 'outlets'>;
  readonly reached: AdapterContext['reached'];
}

/**
 * An active XA branch that holds the writes of its actions. The branch name is random and is sent
 * only to the server, because a session that knows it could commit the branch.
 */
export class MysqlCandidate implements Candidate<CheckedMysqlAction> {
  readonly id: string;
  readonly #tools: MysqlCandidateTools;
  readonly #session: MysqlConnection;
  readonly #branch = `'${randomBytes(16).toString('hex')}'`;
  #readings: readonly StateReading[] = [];
  readonly #counters: Counters;
  #positions: Positions = new Map();
  #fromMs = 0;
  #isProbe = false;
  #seen: { readonly evidence: string; readonly standing: string } | undefined;
  #isOpen = false;

  constructor(tools: MysqlCandidateTools) {
    this.id = `mariadb:${tools.deployment.backend}:${randomBytes(16).toString('hex')}`;
    this.#tools = tools;
    this.#session = tools.session.connection;
    this.#counters = new Counters(tools);
  }

  /**
   * Starts the branch and locks the declared state. Returns the marker if one is already durable.
   */
  async begin(
    occurrence: OccurrenceId,
    reads: readonly StateRead[],
  ): Promise<MarkerText['disposition'] | undefined> {
    const { definitions, settings } = this.#tools;
    this.#isOpen = true;
    const token = randomBytes(8).readBigUInt64BE();
    const open = `call ${this.#procedure('open')}(${token}, ${quoteText(occurrence)})`;
    const [positions, [opened]] = await Promise.all([
      this.#counters.read(),
      this.#session.queryAll([`xa start ${this.#branch}`, open]),
    ]);
    this.#positions = positions;
    const row = opened?.[0];
    this.#fromMs = readMs(row?.[0]);
    const { business: database } = settings;
    const place = { connection: this.#session, database, isLocking: true };
    if (reads.length > 0) this.#readings = await readState(place, definitions.relations, reads);
    const disposition = row?.[1]?.toString();
    if (disposition === undefined) return undefined;
    return disposition === 'committed' ? 'committed' : 'void';
  }

  async apply(action: CheckedMysqlAction): Promise<Applied> {
    if (isProbe(action)) this.#isProbe = true;
    return await this.#run(action);
  }

  /**
   * Runs one call in its own savepoint. Agent SQL cannot use savepoints: the parser refuses them.
   */
  async call(action: CheckedMysqlAction): Promise<CallAnswer> {
    await this.#session.query(CALL_SAVEPOINT.open);
    const applied = await this.#run(action);
    if (applied.kind === 'done') return applied;
    try {
      await this.#session.query(CALL_SAVEPOINT.undo);
      return applied;
    } catch {
      // A deadlock rolls back the whole branch.
      return { ...applied, isLost: true };
    }
  }

  /** Has the server's parser check each statement, then prepares and runs it. */
  async #run(action: CheckedMysqlAction): Promise<Applied> {
    const { settings, admitted } = this.#tools;
    const collected = new ResultCollector();
    for (const [index, { sql, values }] of action.statements.entries()) {
      const which = `statement ${index + 1}`;
      const refusal = await refusalOf(sql, which, { session: this.#session, settings, admitted });
      if (refusal !== undefined) return refusal;
      try {
        const ran = await this.#session.execute(sql, bindValues(values), receiverOf(collected));
        if (ran.kind === 'mismatch') {
          const { message } = refuseValueCount(which, ran.takes, values.length);
          return stageFailed('action-failed', message);
        }
      } catch (error) {
        return describeFailure(error, `${which} failed`, settings.values);
      }
    }
    const { results } = collected;
    return results === undefined ? { kind: 'done' } : { kind: 'done', results };
  }

  /** Returns declared state as it was locked before the action. Undeclared state is locked now. */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const { definitions, settings, control } = this.#tools;
    const { relations } = definitions;
    const { business: database } = settings;
    const id = ({ target, key }: StateRead) => fingerprint([target, key]);
    const known = new Map(this.#readings.map((reading) => [id(reading), reading]));
    const found = reads.map((read) => known.get(id(read)));
    if (!found.every((reading) => reading !== undefined)) {
      const locked = { connection: this.#session, database, isLocking: true };
      await readState(locked, relations, reads);
      return await readState(
        { connection: await control.connection(), database },
        relations,
        reads,
      );
    }
    return found.map(({ target, key, row }, index) => {
      const names = reads[index]?.columns ?? Object.keys(row ?? {});
      return { target, key, row: row && Object.fromEntries(names.map((n) => [n, row[n] ?? null])) };
    });
  }

  async observe(): Promise<CandidateEvidence> {
    const { session, control, definitions } = this.#tools;
    const [[rows, variables], [status, stages, counted]] = await Promise.all([
      this.#session.queryAll([`call ${this.#procedure('observe')}()`, READ_VARIABLES]),
      control.ask(INNODB_STATUS, this.#stagesQuestion, this.#counters.question),
    ]);
    const state = parseVariables(variables);
    const undo = this.#readUndo(status);
    const recorded = this.#readRecords(rows ?? []);
    const isRead = typeof recorded !== 'string';
    const ofRecords = isRead
      ? await this.#reportRecords(recorded, undo, await control.connection())
      : silent(['recorder', 'undo', 'rows'], recorded);
    const after = this.#isAmong(stages) ? 'durable' : 'held';
    const residue = this.#counters.compare(this.#positions, readPositions(counted));
    const channels: readonly ChannelReport[] = [
      ...ofRecords,
      { channel: 'transaction', kind: 'stable', before: 'held', after },
      { channel: 'session', kind: 'stable', before: session.variables, after: state.variables },
    ];
    const evidence = fingerprint([isRead ? recorded.evidence : recorded, channels]);
    this.#seen = { evidence, standing: standingOf(undo, state.variables) };
    const assigned = isRead ? recorded.assigned : [];
    return {
      ...{ evidence, channels, residue, unattributed: 0 },
      records: isRead ? recorded.records : [],
      assigned: assigned.map((one) => ({
        ...one,
        ...declaredReferences(definitions.foreignKeys, one),
      })),
      window: { fromMs: this.#fromMs, toMs: state.atMs },
    };
  }

  #readUndo(status: RawRows | undefined): UndoCount {
    const [[, , text = null] = []] = textsOf(status ?? []);
    return readStatus(String(text), this.#session.thread);
  }

  #readRecords(rows: RawRows): Recorded | string {
    const { definitions } = this.#tools;
    const known: ReadonlyMap<string, TracedRelation> = this.#isProbe
      ? new Map([[PROBE_RELATION.target, PROBE_RELATION]])
      : definitions.relations;
    try {
      return readRecords(known, rows);
    } catch (error) {
      return messageOf(error);
    }
  }

  async #reportRecords(
    recorded: Recorded,
    undo: UndoCount,
    control: MysqlConnection,
  ): Promise<readonly ChannelReport[]> {
    const { records, written, contradiction } = recorded;
    // The undo entries to expect: those of the writes, one per recorder row, and one for the stage
    // row.
    const explained = recorded.undo + written + 1;
    return [
      { channel: 'recorder', kind: 'records', count: records.length },
      undo.kind === 'counted'
        ? {
            channel: 'undo',
            kind: 'stable',
            before: `${explained} undo entries`,
            after: `${undo.entries} undo entries`,
            ...(undo.entries > explained && { meaning: this.#explainUnseen() }),
          }
        : { channel: 'undo', kind: 'silent', why: undo.why },
      ...(contradiction === undefined
        ? [await this.#compareRows(recorded, control)]
        : silent(['rows'], contradiction)),
    ];
  }

  /** What undo entries without records mean, and the code that may have written them. */
  #explainUnseen(): string {
    const code = this.#tools.definitions.outlets
      .filter(({ outlet }) => /^(?:trigger|function|procedure) /.test(outlet))
      .map(({ outlet }) => outlet);
    const [first, ...more] = code.slice(0, NAMED_CODE);
    const named = first === undefined ? '' : ` (look at ${[first, ...more].join(', ')})`;
    return (
      'Rows were written that no recorder saw: a trigger, a routine or a cascading foreign key ' +
      `writes to a table that is not registered${named}. Register that table, or remove what writes it.`
    );
  }

  /** Compares the recorded first and last values of each row with the rows themselves. */
  async #compareRows({ histories }: Recorded, control: MysqlConnection): Promise<ChannelReport> {
    const { business, controlDatabase } = this.#tools.settings;
    const database = this.#isProbe ? controlDatabase : business;
    const groups = [...Map.groupBy(histories, ({ relation }) => relation)];
    const wanted = groups.map(([relation, group]) => {
      return { relation, keys: group.map(({ key }) => key) };
    });
    const [before, now] = await Promise.all([
      readImages({ connection: control, database }, wanted),
      readImages({ connection: this.#session, database }, wanted),
    ]);
    const differing = histories.filter(
      ({ id, first, last }) => !isImage(first, before.get(id)) || !isImage(last, now.get(id)),
    );
    const show = (differ: number) => `${histories.length} rows, ${differ} not as recorded`;
    return {
      channel: 'rows',
      kind: 'stable',
      before: show(0),
      after: show(differing.length),
    };
  }

  /**
   * Compares undo entries and session variables with those that were observed. Every write adds an
   * undo entry: if it changes nothing, its record still adds one.
   */
  async recheck(): Promise<string> {
    const seen = this.#seen;
    invariant(seen !== undefined, 'a candidate is rechecked after it was observed');
    const [[status], { variables }] = await Promise.all([
      this.#tools.control.ask(INNODB_STATUS),
      readVariables(this.#session),
    ]);
    const standing = standingOf(this.#readUndo(status), variables);
    return standing === seen.standing ? seen.evidence : fingerprint([seen.evidence, standing]);
  }

  async commit(marker: MarkerText): Promise<Promotion> {
    const { deployment, settings, reached } = this.#tools;
    const { occurrence, text, sealKey, sealMac } = marker;
    const proof = deployment.prove(this.#session.thread, marker);
    const values = [occurrence, text, sealKey, sealMac, proof].map(quoteText).join(', ');
    try {
      const promote = `call ${this.#procedure('promote')}(${values})`;
      await this.#session.queryAll([promote, `xa end ${this.#branch}`]);
      reached('adapter:marker-written');
    } catch (error) {
      // Nothing was committed: without XA COMMIT, the branch ends no later than its session.
      await this.#rollBack();
      const isConflict = errorNumber(error) === DUPLICATE;
      const reason = isConflict ? 'marker-conflict' : 'commit-failed';
      return refusedPromotion(reason, explainError(error, settings.values));
    }
    await this.#session.query(`xa commit ${this.#branch} one phase`);
    this.#isOpen = false;
    reached('adapter:commit-returned');
    return { kind: 'confirmed' };
  }

  async end(how: CandidateEnd): Promise<readonly Residue[] | undefined> {
    if (how === 'discarded' && this.#isOpen) await this.#rollBack();
    const { session, sessions } = this.#tools;
    if (this.#isOpen) this.#session.close();
    else sessions.giveBack(session);
    if (how === 'discarded') await this.#demandNothingDurable();
    const isUnseen = how === 'discarded' && this.#seen === undefined;
    if (!isUnseen || this.#positions.size === 0) return undefined;
    // The candidate has ended, whether or not its residue can be read.
    const now = await this.#counters.read().catch(() => undefined);
    return now && this.#counters.compare(this.#positions, now);
  }

  /** Returns once the server has rolled back: it answered, or the session is gone. */
  async #rollBack(): Promise<void> {
    try {
      // Fails if the branch was already ended. If the session is lost, the rollback fails too.
      await this.#session.query(`xa end ${this.#branch}`).catch(() => {});
      await this.#session.query(`xa rollback ${this.#branch}`);
    } catch {
      this.#session.close();
      await this.#waitUntilGone();
    }
    this.#isOpen = false;
  }

  async #waitUntilGone(): Promise<void> {
    const control = await this.#tools.control.connection();
    const look = `select 1 from information_schema.processlist where id = ${this.#session.thread}`;
    for (let tries = 0; tries < GONE_TRIES; tries += 1) {
      if ((await control.query(look)).length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, GONE_WAIT_MS));
    }
    throw new Error('the session of a discarded candidate does not end');
  }

  /** Refuses to discard changes that were committed without the gate. Recovery reports them. */
  async #demandNothingDurable(): Promise<void> {
    const [stages] = await this.#tools.control.ask(this.#stagesQuestion);
    if (this.#isAmong(stages)) throw new Error('the candidate was committed without a marker');
  }

  /** The sessions whose stage others can see: those that committed without a marker. */
  get #stagesQuestion(): string {
    return `select connection from ${quoteName(this.#tools.settings.controlDatabase)}.stage`;
  }

  #isAmong(stages: RawRows | undefined): boolean {
    invariant(stages !== undefined, 'the server says which stages are durable');
    return textsOf(stages).some(([thread]) => thread === String(this.#session.thread));
  }

  #procedure(name: string): string {
    return `${quoteName(this.#tools.settings.controlDatabase)}.${name}`;
  }
}

const DUPLICATE = 1062;
/** The most triggers and routines that a message names. */
const NAMED_CODE = 5;
const GONE_TRIES = 500;
const GONE_WAIT_MS = 20;

/** Whether a row that was read is the recorded one. Both have the same form, byte by byte. */
function isImage(recorded: RowImage | null, found: Buffer | undefined): boolean {
  if (recorded === null || found === undefined) return recorded === null && found === undefined;
  return recorded.bytes.equals(found);
}

function silent(channels: readonly string[], why: string): readonly ChannelReport[] {
  return channels.map((channel) => ({ channel, kind: 'silent', why }));
}

function standingOf(undo: UndoCount, variables: string): string {
  const counted = undo.kind === 'counted' ? `${undo.transaction} ${undo.entries}` : undo.why;
  return `${counted} ${variables}`;
}
