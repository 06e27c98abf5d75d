import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../contract/clock.ts';
import { given } from '../contract/options.ts';
import { demandPlace, isPostgresAddress } from '../contract/store-place.ts';
import type { Approver, SignOptions } from '../crypto/approver.ts';
import { digestRecord, occurrenceId } from '../crypto/digest.ts';
import { parseDuration } from '../crypto/duration.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { verifyDecline } from '../crypto/signed-decision.ts';
import { EffectMatchError, errorsOf, isFault } from '../errors.ts';
import { declineRecord, type SignedDecline } from '../protocol/decline.ts';
import { licenseRecord, type Proposal, type SignedLicense } from '../protocol/license.ts';
import { isName, type OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Refusal } from '../runtime/attempt.ts';
import type { Draft } from '../runtime/draft.ts';
import type { Executed } from '../runtime/promotable.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import type { Task, TaskOptions } from '../runtime/task.ts';
import { findUnfit } from './fit.ts';
import {
  type ApprovalRequest,
  type Ask,
  type AskedRecord,
  type DraftAsk,
  isFinal,
  type RequestEvent,
  type RequestMessage,
  type RequestQuery,
  type RequestState,
  type RunMode,
  type WantedChange,
} from './request.ts';
import { openSqliteRequests } from './sqlite-store.ts';
import type { RequestChange, RequestStore, StoredRequest, TokenStore } from './store.ts';
import {
  actionFor,
  isForTask,
  type Proposer,
  proposeWanted,
  readAsk,
  requestId,
} from './wanted.ts';
import { keepDelivering, showDelivery, type Webhook, type WebhookDelivery } from './webhook.ts';

/** An approver that signs automatically, within the limits configured for its issuer. */
export interface ApprovalRule {
  readonly approver: Approver;
  /** The operations that it signs. Requests beyond its limits wait for a person. */
  readonly operations: readonly string[];
  readonly expiresIn: SignOptions['expiresIn'];
}

type HostMode = Exclude<RunMode, 'on-task'>;

/** Options for {@link openRequests}. */
export interface RequestsOptions {
  readonly runtime: Runtime;
  /** The operations in the runtime's configuration. */
  readonly operations?: RuntimeConfig['operations'];
  /** The issuers in the runtime's configuration. They verify signed declines. */
  readonly issuers?: RuntimeConfig['issuers'];
  /** The path of an SQLite file, the address of a ledger (`postgres://…`), or a store. */
  readonly store: string | RequestStore;
  /** The URL at which a person can answer. `{id}` is replaced by the request's id. */
  readonly link?: string;
  /** How long a request waits for an answer. Defaults to one day. */
  readonly expiresIn?: string | number;
  /** When an approved request is executed. By default, the host executes it at once. */
  readonly run?: HostMode | Readonly<Record<string, HostMode>>;
  /** Approvers that sign automatically. None by default. */
  readonly rules?: readonly ApprovalRule[];
  readonly webhooks?: readonly Webhook[];
  readonly clock?: Clock;
}

/** What an agent may do. It can only access its own requests. */
export interface AgentRequests {
  ask(ask: WantedChange & Omit<DraftAsk, 'by'>): Promise<ApprovalRequest>;
  /** Ends a draft and asks for the changes that it recorded. */
  submit(draft: Draft, ask: Omit<DraftAsk, 'by'>): Promise<ApprovalRequest>;
  get(id: string): Promise<ApprovalRequest>;
  wait(id: string, options?: WaitOptions): Promise<ApprovalRequest>;
  /** Replies to an approver's question. */
  reply(id: string, text: string): Promise<ApprovalRequest>;
  withdraw(id: string): Promise<ApprovalRequest>;
  /** Opens the task of an approved request. If there is none to open, returns the request. */
  open(id: string, options?: TaskOptions): Promise<Task | ApprovalRequest>;
}

/** How long to wait, and for what. */
export interface WaitOptions {
  /** Defaults to one minute. */
  readonly waitMs?: number;
  /** Wait until the request is no longer pending. By default, wait until its state is final. */
  readonly until?: 'answered';
  readonly signal?: AbortSignal | undefined;
}

/** A page of requests, and where the next page starts if there may be more. */
export interface RequestPage {
  readonly requests: readonly ApprovalRequest[];
  readonly next?: string;
}

/** A request that was proposed again, and what changed. */
export interface Renewed {
  readonly request: ApprovalRequest;
  /**
   * Lines of the two renderings: `-` only in the earlier one, `+` only in the new one. `~` reports
   * changes that the renderings do not show.
   */
  readonly difference: readonly string[];
}

/** Rejections before a claim that make a request stale. Proposing it again helps. */
const STALE: ReadonlySet<string> = new Set([
  ...['stale-state', 'precondition-broken', 'plan-superseded'],
  ...['adapter-changed', 'policy-changed', 'frame-changed', 'registration-mismatch'],
]);
const MAX_DAYS_MS = 30 * 86_400_000;
const POLL_MS = 500;
const WAIT_MS = 60_000;
const PAGE = 50;
const MAX_PAGE = 500;
const MAX_MESSAGE = 4000;
const MAX_MESSAGES = 50;
const AMEND_TRIES = 5;
const OPEN: readonly RequestState[] = ['pending'];
const RENEWABLE: readonly RequestState[] = ['pending', 'stale', 'expired'];

/** Opens the list of requests. */
export async function openRequests(options: RequestsOptions): Promise<Requests> {
  const { store } = options;
  return new Requests(options, typeof store === 'string' ? await openRequestStore(store) : store);
}

/**
 * Opens the store at a path or address. The PostgreSQL driver is an optional package, so it is
 * loaded only if needed.
 */
export async function openRequestStore(place: string): Promise<RequestStore> {
  demandPlace('requests.store', place);
  if (!isPostgresAddress(place)) return await openSqliteRequests(place);
  const { openPostgresRequests } = await import('./postgres.ts').catch((cause) => {
    const what = 'requests in PostgreSQL need the package pg; run `npm install pg`';
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', what, { cause });
  });
  return await openPostgresRequests(place);
}

/**
 * What agents ask for, how people answer, and how it ends. Requests carry no authority: the runtime
 * checks the license, and the journal records how an execution ended.
 */
export class Requests implements AsyncDisposable {
  readonly #options: RequestsOptions;
  readonly #store: RequestStore;
  readonly #proposer: Proposer;
  readonly #clock: Clock;
  readonly #lifetimeMs: number;
  readonly #executing = new Map<string, Promise<StoredRequest>>();
  readonly #watching = new Set<() => void>();
  readonly #stopping = new AbortController();
  #working: Promise<unknown> | undefined;

  constructor(options: RequestsOptions, store: RequestStore) {
    const { runtime, operations = {}, clock = systemClock, expiresIn = '24h' } = options;
    this.#options = options;
    this.#store = store;
    this.#proposer = { runtime, operations };
    this.#clock = clock;
    this.#lifetimeMs = parseDuration(expiresIn, MAX_DAYS_MS);
  }

  /** The methods that one agent may call, for its own requests. */
  forAgent(by: string): AgentRequests {
    const own = async (id: string) => {
      const found = await this.#find(id);
      if (found.by !== by) throw notFound(id);
      return found;
    };
    return {
      ask: (ask) => this.ask({ ...ask, by } as Ask),
      submit: (draft, ask) => this.submit(draft, { ...ask, by }),
      get: async (id) => await this.#view(await own(id)),
      wait: async (id, options) => await this.wait((await own(id)).id, options),
      reply: async (id, text) =>
        await this.#addMessage((await own(id)).id, { from: 'agent', by, text }),
      withdraw: async (id) => await this.withdraw((await own(id)).id),
      open: async (id, options) => await this.open((await own(id)).id, options),
    };
  }

  /**
   * Proposes a change. If it was asked for before, returns that request instead. If the request is
   * approved and runs on the agent's call, executes it.
   */
  async ask(ask: Ask): Promise<ApprovalRequest> {
    return await this.#meet(await this.#record(ask));
  }

  /**
   * Ends a draft and asks for the changes that it recorded. The recorded calls are rehearsed, and
   * run again after the approval; both must have the same effects. Nothing is locked in the
   * meantime.
   */
  async submit(draft: Draft, ask: DraftAsk): Promise<ApprovalRequest> {
    const { adapter, set } = draft;
    const action = await draft.end();
    return await this.ask({ ...ask, adapter, action, ...(set && { set }) });
  }

  /** Like {@link ask}, without executing anything. Shows what a person would be asked. */
  async show(ask: Ask): Promise<ApprovalRequest> {
    return await this.#view(await this.#record(ask));
  }

  async #record(ask: Ask): Promise<StoredRequest> {
    const wanted = readAsk(ask);
    const id = requestId(ask, wanted);
    const known = await this.#store.find(id);
    if (known !== undefined) return known;
    const { by, run, reason } = ask;
    const plan = { task: id, planRevision: 1, requestedBy: by, ...(reason && { reason }) };
    const proposal = await proposeWanted(this.#proposer, wanted, plan);
    if (proposal.approved.effects.length === 0)
      throw invalid('it would change nothing, so there is nothing to approve');
    const now = this.#clock.now();
    const operation = 'operation' in wanted ? wanted.operation : null;
    const asked: AskedRecord = { wanted, proposal, ...(reason && { reason }) };
    const stored = await this.#store.insert({
      id,
      by,
      run,
      operation,
      generation: 1,
      state: 'pending',
      askedMs: now,
      adapter: proposal.draft.adapter,
      mode: isForTask(wanted) ? 'on-task' : this.#modeOf(operation),
      expiresMs: now + this.#lifetimeMs,
      asked: JSON.stringify(asked),
      license: null,
      occurrence: null,
      answeredBy: null,
      decline: null,
      detail: null,
      results: null,
    });
    this.#tell();
    await this.#applyRules(stored);
    return await this.#find(id);
  }

  async get(id: string): Promise<ApprovalRequest> {
    return await this.#view(await this.#find(id));
  }

  /** How many requests wait for a person. Stops counting at a thousand. */
  async countWaiting(): Promise<number> {
    return await this.#store.count('pending');
  }

  /** Finds the only request whose id starts with this text, so that people can abbreviate ids. */
  async findId(beginning: string): Promise<string> {
    const found = /^req_[0-9a-f]{4,40}$/.test(beginning) ? await this.#store.search(beginning) : [];
    const [id, another] = found;
    if (id === undefined) throw notFound(beginning);
    if (another === undefined) return id;
    throw invalid(`several requests begin with ${beginning}`);
  }

  /**
   * Checks whether the state that the request was proposed for still exists. If not, the request
   * becomes stale.
   */
  async recheck(id: string): Promise<ApprovalRequest> {
    const stored = await this.#find(id);
    const { state } = await this.#truth(stored);
    if (state !== 'pending') return await this.#view(stored);
    const { wanted, proposal } = readAsked(stored);
    const action = await actionFor(this.#proposer, wanted);
    const refusal = await this.#options.runtime.check({ proposal }, action);
    if (refusal !== undefined) await this.#markStale(stored, refusal);
    return await this.get(id);
  }

  /** Whether this was asked before. */
  async isKnown(ask: Ask): Promise<boolean> {
    return (await this.#store.find(requestId(ask, readAsk(ask)))) !== undefined;
  }

  /** Newest first, a page at a time. */
  async list(query: RequestQuery = {}): Promise<readonly ApprovalRequest[]> {
    return (await this.page(query)).requests;
  }

  /** Like {@link list}, with a cursor for the next page. A page may be short before the end. */
  async page(query: RequestQuery = {}): Promise<RequestPage> {
    const { olderThanMs, limit = PAGE, ...rest } = query;
    const stored = await this.#store.list({
      ...rest,
      ...(olderThanMs !== undefined && { askedBeforeMs: this.#clock.now() - olderThanMs }),
      limit: Math.min(limit, MAX_PAGE),
    });
    const found = await Promise.all(stored.map((request) => this.#view(request)));
    // Overdue requests turn out to be expired only when they are read.
    const { state: wanted } = query;
    const requests = found.filter(({ state }) => wanted === undefined || state === wanted);
    const isLast = stored.length < Math.min(limit, MAX_PAGE);
    const next = isLast ? undefined : stored.at(-1)?.id;
    return { requests, ...given({ next }) };
  }

  /**
   * Answers a request with a license that fits it. Only the first license counts. If it needs a
   * second signature, the request keeps it and stays open until it returns with one.
   */
  async answer(id: string, license: unknown): Promise<ApprovalRequest> {
    const signed = parseSignedLicense(license);
    const stored = await this.#demandOpen(id);
    const { wanted, proposal } = readAsked(stored);
    demandFit(proposal, signed);
    demandOthers(stored, signed);
    const action = await actionFor(this.#proposer, wanted);
    const refusal = await this.#options.runtime.check({ license: signed }, action);
    if (refusal?.reason === 'second-missing') return await this.#keepFirst(stored, signed);
    if (refusal !== undefined) {
      const isStale = await this.#markStale(stored, refusal);
      const now = isStale
        ? 'it is stale: propose it again and sign that'
        : 'the request is still open';
      throw refused(`the license cannot be used (${refusal.reason}): ${refusal.detail}; ${now}`);
    }
    const answered = await this.#close(stored, {
      state: 'approved',
      license: JSON.stringify(signed),
      occurrence: occurrenceOf(signed),
      answeredBy: signersOf(signed),
    });
    if (stored.mode === 'on-approval' && this.#working !== undefined) void this.#executeQuietly(id);
    return answered;
  }

  /** Keeps a license until a second person has signed it. */
  async #keepFirst(stored: StoredRequest, signed: SignedLicense): Promise<ApprovalRequest> {
    const change = { state: 'pending', license: JSON.stringify(signed) } as const;
    const isKept = await this.#change(stored, OPEN, change, { unsigned: true });
    const request = await this.get(stored.id);
    if (isKept) return request;
    if (request.first === undefined) throw closed(request);
    throw refused(`${signersOf(request.first)} signed this already; countersign that license`);
  }

  /** Declines a request. The agent sees the reason. */
  async decline(id: string, { by, reason }: { by: string; reason: string }) {
    if (typeof reason !== 'string' || reason.trim() === '') throw invalid('say why it is declined');
    const stored = await this.#demandOpen(id);
    const detail = reason.slice(0, 4000).toWellFormed();
    return await this.#close(stored, { state: 'declined', answeredBy: by, detail });
  }

  /** Sends the agent a question. The request stays open. */
  async askBack(id: string, { by, text }: { by: string; text: string }): Promise<ApprovalRequest> {
    return await this.#addMessage(id, { from: 'approver', by, text });
  }

  /** Assigns a request to another approver. Others who may approve it still can. */
  async assign(id: string, to: string): Promise<ApprovalRequest> {
    if (!isName(to)) throw invalid('say whom it is for');
    return await this.#amend(id, (asked) => ({ ...asked, assignedTo: to }));
  }

  async #addMessage(
    id: string,
    said: Pick<RequestMessage, 'from' | 'by' | 'text'>,
  ): Promise<ApprovalRequest> {
    const text = String(said.text).trim().slice(0, MAX_MESSAGE).toWellFormed();
    if (text === '') throw invalid('the message is empty');
    const at = new Date(this.#clock.now()).toISOString();
    return await this.#amend(id, (asked) => {
      const { messages = [] } = asked;
      if (messages.length >= MAX_MESSAGES)
        throw invalid(`a request has at most ${MAX_MESSAGES} messages`);
      return { ...asked, messages: [...messages, { ...said, text, at }] };
    });
  }

  /** Changes the content of an open request. Tries again if it changed in the meantime. */
  async #amend(id: string, work: (asked: AskedRecord) => AskedRecord): Promise<ApprovalRequest> {
    for (let tries = 0; tries < AMEND_TRIES; tries += 1) {
      const stored = await this.#demandOpen(id);
      const { asked } = stored;
      const change = { state: 'pending', asked: JSON.stringify(work(readAsked(stored))) } as const;
      if (await this.#change(stored, OPEN, change, { asked })) return await this.get(id);
    }
    const message = `${id} is being changed by someone else; try again`;
    throw new EffectMatchError('ERR_EM_STORE_BUSY', message);
  }

  /** Declines a request with an approver's signature over the proposal and the reason. */
  async declineSigned(id: string, decline: unknown): Promise<ApprovalRequest> {
    const signed = declineRecord.parse(decline);
    const { issuer, reason } = signed;
    const stored = await this.#demandOpen(id);
    const { draft } = readAsked(stored).proposal;
    const isFor = signed.request === id && signed.generation === stored.generation;
    if (!isFor || signed.approved !== draft.approved)
      throw refusedDecline('it was signed for something else');
    const { issuers = {} } = this.#options;
    const keys = Object.hasOwn(issuers, issuer) ? [issuers[issuer]?.key ?? []].flat() : [];
    if (!verifyDecline(keys, signed))
      throw refusedDecline(`it is not signed with a key of an issuer named "${issuer}"`);
    return await this.#close(stored, {
      state: 'declined',
      answeredBy: issuer,
      detail: reason,
      decline: JSON.stringify(signed),
    });
  }

  /** Withdraws a request on behalf of its agent. */
  async withdraw(id: string): Promise<ApprovalRequest> {
    return await this.#close(await this.#demandOpen(id), { state: 'withdrawn' });
  }

  /**
   * Proposes the change again from the current state, as a later plan revision of the same task.
   * Licenses for the earlier revision are refused from then on. Fails if one was already claimed.
   */
  async renew(id: string): Promise<Renewed> {
    const stored = await this.#find(id);
    await this.#demandRenewable(stored);
    const { proposal: earlier, ...said } = readAsked(stored);
    const { wanted, reason } = said;
    const { by, generation } = stored;
    const plan = {
      task: id,
      planRevision: generation + 1,
      requestedBy: by,
      ...(reason && { reason }),
    };
    const proposal = await proposeWanted(this.#proposer, wanted, plan);
    // No license for the earlier revision can be claimed from here on, but one may have been
    // claimed just before.
    await this.#demandRenewable(stored);
    const asked: AskedRecord = { ...said, proposal };
    const now = this.#clock.now();
    const renewed = { asked: JSON.stringify(asked), expiresMs: now + this.#lifetimeMs };
    const isRenewed = await this.#store.renew(id, { from: RENEWABLE, generation }, renewed, now);
    this.#tell();
    const request = await this.get(id);
    if (!isRenewed) throw closed(request);
    return { request, difference: differenceOf(earlier, proposal) };
  }

  /** Executes an approved request, or returns its verdict. Never executes it twice. */
  async execute(id: string): Promise<ApprovalRequest> {
    return await this.#view(await this.#execute(await this.#find(id)));
  }

  /**
   * Opens the task of an approved request that has no action. If there is no task to open, returns
   * the request.
   */
  async open(id: string, options: TaskOptions = {}): Promise<Task | ApprovalRequest> {
    const stored = await this.#find(id);
    const { license, mode } = stored;
    const { state } = await this.#truth(stored);
    if (state !== 'approved' || mode !== 'on-task' || license === null)
      return await this.#view(stored);
    const task = await this.#options.runtime.open(license, options);
    if (task.kind !== 'open') {
      await this.#note(stored, task);
      return await this.get(id);
    }
    task.ended.then((executed) => this.#note(stored, executed)).catch(() => {});
    return task;
  }

  /** Waits for a final state, or for an answer if `until` says so. Returns the request. */
  async wait(id: string, options: WaitOptions = {}): Promise<ApprovalRequest> {
    const { waitMs = WAIT_MS, until: wish, signal } = options;
    const until = performance.now() + waitMs;
    for (;;) {
      const request = await this.get(id);
      const left = until - performance.now();
      const { state } = request;
      const isOver = wish === 'answered' ? state !== 'pending' : isFinal(state);
      if (isOver || left <= 0) return request;
      await sleep(Math.min(left, POLL_MS), undefined, { signal });
    }
  }

  /** The events after this one, oldest first. */
  events(afterSeq = 0, limit = PAGE): Promise<readonly RequestEvent[]> {
    return this.#store.events(afterSeq, Math.min(limit, MAX_PAGE));
  }

  /**
   * Calls back whenever this process may have added an event. Returns a function that stops it.
   * Other processes add events too, so callers must also poll.
   */
  watch(tell: () => void): () => void {
    this.#watching.add(tell);
    return () => void this.#watching.delete(tell);
  }

  /** The log of webhook deliveries after this entry, oldest first. */
  async deliveries(after = 0, limit = PAGE): Promise<readonly WebhookDelivery[]> {
    const logged = await this.#store.deliveries(after, Math.min(limit, MAX_PAGE));
    return logged.map(showDelivery);
  }

  /** The stored tokens of agents and operators, as digests. */
  get tokens(): TokenStore {
    return this.#store;
  }

  /**
   * Executes approved requests and delivers events to webhooks, until it is closed. Several
   * processes may do this at once. Overdue requests become `expired` when they are next read.
   */
  start(): void {
    const { webhooks = [] } = this.#options;
    const context = {
      store: this.#store,
      clock: this.#clock,
      signal: this.#stopping.signal,
      linkTo: (id: string) => this.#linkTo(id),
    };
    // A receiver that does not respond must not delay executions or other receivers.
    const deliver = () => webhooks.map((webhook) => keepDelivering(context, webhook));
    this.#working ??= Promise.all([this.#work(), ...deliver()]);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    await Promise.allSettled(this.#executing.values());
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#workOnce().catch(() => {});
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #workOnce(): Promise<void> {
    // Read every page: requests that wait for their agent's call must not hide those that are due.
    for (let after: string | undefined, isLast = false; !isLast; ) {
      const approved = await this.#store.list({
        state: 'approved',
        limit: PAGE,
        ...given({ after }),
      });
      const due = approved.filter(({ mode }) => mode === 'on-approval');
      await Promise.all(due.map(({ id }) => this.#executeQuietly(id)));
      after = approved.at(-1)?.id;
      isLast = approved.length < PAGE;
    }
  }

  /** Ignores errors, because they say nothing about the outcome. The next round tries again. */
  async #executeQuietly(id: string): Promise<void> {
    await this.execute(id).catch(() => {});
  }

  /** Concurrent calls share one execution. */
  async #execute(stored: StoredRequest): Promise<StoredRequest> {
    const { id, license, state, mode } = stored;
    if (license === null || state === 'pending' || isFinal(state)) return stored;
    if (mode === 'on-task') return stored;
    const running = this.#executing.get(id) ?? this.#ensure(stored, license);
    this.#executing.set(id, running);
    try {
      return await running;
    } finally {
      this.#executing.delete(id);
    }
  }

  async #ensure(stored: StoredRequest, license: string): Promise<StoredRequest> {
    const { wanted } = readAsked(stored);
    const action = await actionFor(this.#proposer, wanted);
    await this.#note(stored, await this.#options.runtime.ensure(license, action));
    return await this.#find(stored.id);
  }

  /** Stores how an execution ended. If the journal differs, the journal counts. */
  async #note(stored: StoredRequest, executed: Executed): Promise<void> {
    const { proposal } = readAsked(stored);
    const isPlain = proposal.approved.registration.values === 'plain';
    const results = isPlain ? executed.results : undefined;
    await this.#change(stored, ['approved'], {
      state: stateAfter(executed),
      detail: detailOf(executed),
      ...(results && { results: JSON.stringify(results) }),
    });
  }

  async #applyRules(stored: StoredRequest): Promise<void> {
    const { rules = [] } = this.#options;
    if (stored.state !== 'pending' || stored.operation === null) return;
    const { proposal } = readAsked(stored);
    for (const { approver, operations, expiresIn } of rules) {
      if (!operations.includes(stored.operation)) continue;
      const license = approver.sign(proposal, { expiresIn });
      const answered = await this.answer(stored.id, license).catch(asRefused);
      if (answered !== undefined) return;
    }
  }

  /** Returns a request. Executes it first if it is approved and runs on the agent's call. */
  async #meet(stored: StoredRequest): Promise<ApprovalRequest> {
    const isDue = stored.state === 'approved' && stored.mode === 'on-call';
    return await this.#view(isDue ? await this.#execute(stored) : stored);
  }

  async #view(stored: StoredRequest): Promise<ApprovalRequest> {
    const { proposal, reason, messages, assignedTo } = readAsked(stored);
    const { state, terminal } = await this.#truth(stored);
    const { id, by, run, adapter, operation, mode, generation, answeredBy } = stored;
    const { license, occurrence } = stored;
    const detail = terminal === undefined ? stored.detail : detailOf(terminal);
    return {
      id,
      state,
      by,
      run,
      adapter,
      mode,
      generation,
      proposal,
      askedAt: new Date(stored.askedMs).toISOString(),
      expiresAt: new Date(stored.expiresMs).toISOString(),
      rendering: proposal.rendering,
      ...given({ operation, reason, messages, assignedTo, answeredBy, detail, terminal }),
      ...given({
        link: this.#linkTo(id),
        first: state === 'pending' && license !== null ? readSigned(license) : undefined,
        occurrence: occurrence as OccurrenceId | null,
        decline: JSON.parse(stored.decline ?? 'null') as SignedDecline | null,
        results: JSON.parse(stored.results ?? 'null'),
      }),
    };
  }

  /** The journal takes precedence, then the clock, then the stored state. */
  async #truth(stored: StoredRequest): Promise<{ state: RequestState; terminal?: Terminal }> {
    const { occurrence, state } = stored;
    if (occurrence !== null) {
      const { ledgers } = this.#options.runtime;
      const holder = await ledgers.holder(occurrence as OccurrenceId);
      const terminal = holder && (await ledgers.terminal(occurrence as OccurrenceId));
      if (terminal !== undefined) return { state: terminal.kind, terminal };
      if (holder !== undefined) return { state: 'running' };
    }
    const isLate = this.#clock.now() >= this.#deadlineOf(stored);
    if (!isLate || (state !== 'pending' && state !== 'approved')) return { state };
    await this.#change(stored, [state], { state: 'expired' });
    return { state: 'expired' };
  }

  #deadlineOf({ license, expiresMs }: StoredRequest): number {
    if (license === null) return expiresMs;
    return Date.parse(readSigned(license).license.expiresAt);
  }

  async #demandOpen(id: string): Promise<StoredRequest> {
    const stored = await this.#find(id);
    const { state } = await this.#truth(stored);
    if (state !== 'pending') throw closed(await this.get(id));
    return stored;
  }

  async #demandRenewable(stored: StoredRequest): Promise<void> {
    const { state } = await this.#truth(stored);
    if (!RENEWABLE.includes(state)) throw closed(await this.get(stored.id));
  }

  async #find(id: string): Promise<StoredRequest> {
    const stored = typeof id === 'string' ? await this.#store.find(id) : undefined;
    if (stored === undefined) throw notFound(id);
    return stored;
  }

  /** Changes a request if it still is as it was read. `only` adds conditions. */
  async #change(
    { id, generation }: StoredRequest,
    from: readonly RequestState[],
    change: RequestChange,
    only: { readonly unsigned?: true; readonly asked?: string } = {},
  ): Promise<boolean> {
    const now = this.#clock.now();
    const isChanged = await this.#store.change(id, { from, generation, ...only }, change, now);
    this.#tell();
    return isChanged;
  }

  /** Answers an open request and returns it. Throws if it was answered in the meantime. */
  async #close(stored: StoredRequest, change: RequestChange): Promise<ApprovalRequest> {
    const isChanged = await this.#change(stored, OPEN, change);
    const request = await this.get(stored.id);
    if (!isChanged) throw closed(request);
    return request;
  }

  /** Tells the watchers that there may be a new event. */
  #tell(): void {
    for (const tell of this.#watching) tell();
  }

  /** Marks a request as stale if proposing it again would help. Otherwise changes nothing. */
  async #markStale(stored: StoredRequest, { reason, detail }: Refusal): Promise<boolean> {
    if (!STALE.has(reason)) return false;
    const change = { state: 'stale', detail: `${reason}: ${detail}` } as const;
    return await this.#change(stored, OPEN, change);
  }

  #modeOf(operation: string | null): HostMode {
    const { run = 'on-approval' } = this.#options;
    if (typeof run === 'string') return run;
    return (operation === null ? undefined : run[operation]) ?? 'on-approval';
  }

  #linkTo(id: string): string | undefined {
    return this.#options.link?.replace('{id}', id);
  }
}

function readAsked({ asked }: StoredRequest): AskedRecord {
  return JSON.parse(asked) as AskedRecord;
}

function occurrenceOf({ license }: SignedLicense): OccurrenceId {
  const { issuer, nonce } = license;
  return occurrenceId({ issuer, nonce, license: digestRecord(licenseRecord, license), index: 0 });
}

function readSigned(license: string): SignedLicense {
  return JSON.parse(license) as SignedLicense;
}

/** The names of the signers, in order. */
function signersOf({ license, second }: SignedLicense): string {
  return second === undefined ? license.issuer : `${license.issuer}, ${second.issuer}`;
}

/** An approver cannot approve their own request. */
function demandOthers({ by }: StoredRequest, { license, second }: SignedLicense): void {
  if (license.issuer !== by && second?.issuer !== by) return;
  throw refused(`${by} asked for this and cannot approve it; another approver has to sign`);
}

/** A license for something else must not take the place of one that fits. */
function demandFit(proposal: Proposal, signed: SignedLicense): void {
  const wrong = findUnfit(proposal, signed);
  if (wrong === undefined) return;
  throw refused(
    `the license was not signed for this request: its ${wrong} differs; the request is still open`,
  );
}

const invalid = errorsOf('ERR_EM_INPUT_INVALID');
const refused = errorsOf('ERR_EM_LICENSE_REFUSED');
const refusedDecline = errorsOf(
  'ERR_EM_SIGNATURE_INVALID',
  'the request is still open, because the decline cannot be used: ',
);

/** A rejection before the claim spends nothing. If the state has changed, proposing again helps. */
function stateAfter(executed: Executed): RequestState {
  if (executed.kind !== 'rejected' || executed.claim !== undefined) return executed.kind;
  if (executed.reason === 'expired') return 'expired';
  return STALE.has(executed.reason) ? 'stale' : 'rejected';
}

function detailOf(terminal: Terminal): string | null {
  if (terminal.kind === 'rejected') return `${terminal.reason}: ${terminal.detail}`;
  return terminal.kind === 'indeterminate' ? terminal.gap : null;
}

/** Ignores the plan revision and the action's salted digest, which always differ. */
function differenceOf(earlier: Proposal, later: Proposal): readonly string[] {
  const linesOf = ({ rendering }: Proposal) =>
    rendering
      .replace(/^(For task .*), plan revision \d+;/m, '$1;')
      .replace(/^(Buys .*, of one action only) \([0-9a-f]{16}\)$/m, '$1')
      .split('\n');
  const [before, after] = [linesOf(earlier), linesOf(later)];
  const [earlierLines, laterLines] = [new Set(before), new Set(after)];
  const gone = before.filter((line) => !laterLines.has(line)).map((line) => `- ${line}`);
  const come = after.filter((line) => !earlierLines.has(line)).map((line) => `+ ${line}`);
  const isSame = earlier.draft.taskState === later.draft.taskState;
  return [...gone, ...come, ...(isSame ? [] : ['~ the rows that it depends on have changed'])];
}

function asRefused(error: unknown): undefined {
  if (!isFault(error, 'ERR_EM_LICENSE_REFUSED')) throw error;
}

function notFound(id: unknown): EffectMatchError {
  const message = `request ${String(id).slice(0, 80)} does not exist`;
  return new EffectMatchError('ERR_EM_NOT_FOUND', message);
}

function closed(request: ApprovalRequest): EffectMatchError<'ERR_EM_REQUEST_CLOSED'> {
  const { id, state, answeredBy } = request;
  const who = answeredBy === undefined ? '' : `, answered by ${answeredBy}`;
  return new EffectMatchError('ERR_EM_REQUEST_CLOSED', `${id} is no longer open: ${state}${who}`);
}
