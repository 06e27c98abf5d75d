import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import type { UpstreamConfig, UpstreamTool } from '../access/configuration.ts';
import { answerOf, answerOfError, type ToolAnswer } from '../agents/answer.ts';
import type { AgentTool, TakenTool } from '../agents/tools.ts';
import { EffectMatchError } from '../errors.ts';
import type { WantedChange } from '../requests/request.ts';
import type { AgentRequests } from '../requests/requests.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { serverRefusal } from '../upstream/server.ts';
import { Upstream, type UpstreamDefinition } from '../upstream/upstream.ts';
import { PrivateTree } from './private-tree.ts';

/** A tool whose calls are forwarded to the upstream server. */
export interface PassedTool {
  readonly listed: Tool;
  call(input: object, signal: AbortSignal): Promise<PassedAnswer>;
}

/** The upstream's answer, or ours if the upstream could not be called. */
type PassedAnswer =
  | { readonly kind: 'passed'; readonly result: CallToolResult }
  | { readonly kind: 'refused'; readonly answer: ToolAnswer };

/** The tools of an upstream server that an agent may use. */
interface GatewayOffer {
  readonly passed: readonly PassedTool[];
  /** Tools that keep their name and input but run here. */
  readonly taken: readonly TakenTool[];
  /** Tools that the upstream does not have, for submitting the changes in a private copy. */
  readonly own: readonly AgentTool[];
}

/** The upstream servers of a configuration. Only classified tools can be called. */
export class Gateways implements AsyncDisposable {
  readonly #offers = new Map<string, OpenGateway>();

  /** Starts every upstream and compares its tools with their classification. */
  static async open(config: RuntimeConfig): Promise<Gateways> {
    const gateways = new Gateways();
    try {
      for (const [name, upstream] of Object.entries(config.upstreams ?? {})) {
        checkUpstream(name, upstream, config);
        gateways.#offers.set(name, await OpenGateway.open(name, upstream));
      }
      return gateways;
    } catch (error) {
      await gateways[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Why some tools are not offered, for the operator. */
  warnings(): readonly string[] {
    return [...this.#offers.values()].flatMap(({ warnings }) => warnings);
  }

  offer(name: string, agent: string, requests: AgentRequests, run: string): GatewayOffer {
    const gateway = this.#offers.get(name);
    if (gateway === undefined) return { passed: [], taken: [], own: [] };
    return gateway.offer(agent, requests, run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#offers.values()].map((gateway) => gateway.close()));
  }
}

/** The tools of an upstream server, and the digests that classify them. */
export async function describeTools(
  name: string,
  config: UpstreamConfig,
): Promise<readonly { readonly tool: string; readonly digest: string; readonly hint: string }[]> {
  const tree = config.files && new PrivateTree(config.files.root);
  const upstream = new Upstream(name, config, { folder: tree?.folder });
  try {
    const tools = await upstream.tools();
    return [...tools.values()].map(({ tool, digest }) => {
      const hint = tool.annotations?.readOnlyHint === true ? 'it only reads' : 'it may write';
      return { tool: tool.name, digest, hint };
    });
  } finally {
    await upstream.close();
    tree?.remove();
  }
}

class OpenGateway {
  readonly warnings: readonly string[];
  readonly #name: string;
  readonly #config: UpstreamConfig;
  readonly #upstream: Upstream;
  readonly #copies = new Set<PrivateCopy>();
  readonly #tools: readonly UpstreamDefinition[];

  private constructor(name: string, config: UpstreamConfig, upstream: Upstream, listed: Listed) {
    this.#name = name;
    this.#config = config;
    this.#upstream = upstream;
    this.#tools = listed.fitting;
    this.warnings = listed.warnings;
  }

  static async open(name: string, config: UpstreamConfig): Promise<OpenGateway> {
    const copy = config.files && new PrivateTree(config.files.root);
    const upstream = new Upstream(name, config, { folder: copy?.folder });
    try {
      const listed = compare(name, config, await upstream.tools());
      return new OpenGateway(name, config, upstream, listed);
    } finally {
      // Each agent gets its own private copy. This one was only for listing the tools.
      if (copy !== undefined) await upstream.close();
      copy?.remove();
    }
  }

  offer(agent: string, requests: AgentRequests, run: string): GatewayOffer {
    const { files } = this.#config;
    const copy = files && new PrivateCopy(this.#name, this.#config, files);
    if (copy !== undefined) this.#copies.add(copy);
    const passed: PassedTool[] = [];
    const taken: TakenTool[] = [];
    for (const defined of this.#tools) {
      const { tool } = defined;
      const classified = this.#config.tools[tool.name];
      if (classified === undefined || classified === 'refused') continue;
      const want = wantedBy(classified);
      if (want !== undefined) {
        const { name, description = name, inputSchema } = tool;
        taken.push({
          name,
          description,
          inputSchema: inputSchema as TakenTool['inputSchema'],
          want,
        });
      } else passed.push(this.#pass(defined, copy));
    }
    const own = copy === undefined ? [] : copy.tools(agent, requests, run);
    return { passed, taken, own };
  }

  async close(): Promise<void> {
    await this.#upstream.close();
    await Promise.all([...this.#copies].map((copy) => copy.close()));
  }

  #pass({ tool, digest: definition }: UpstreamDefinition, copy?: PrivateCopy): PassedTool {
    return {
      listed: tool,
      call: async (input, signal) => {
        try {
          const upstream = copy === undefined ? this.#upstream : copy.open();
          const called = { tool: tool.name, definition, input };
          return { kind: 'passed', result: await upstream.call(called, signal) };
        } catch (error) {
          if (signal.aborted) throw error;
          return { kind: 'refused', answer: answerOfError(error) };
        }
      },
    };
  }
}

/** One agent's private copy of a protected folder, and the upstream process that works in it. */
class PrivateCopy {
  readonly #name: string;
  readonly #config: UpstreamConfig;
  readonly #files: NonNullable<UpstreamConfig['files']>;
  /** The copy that calls work on now. */
  #held: HeldCopy | undefined;
  /** Includes the copies that are being submitted. */
  readonly #all = new Set<HeldCopy>();

  constructor(name: string, config: UpstreamConfig, files: NonNullable<UpstreamConfig['files']>) {
    this.#name = name;
    this.#config = config;
    this.#files = files;
  }

  /** Creates the copy at the first call, from the folder's current content. */
  open(): Upstream {
    if (this.#held === undefined) {
      const tree = new PrivateTree(this.#files.root);
      const { folder } = tree;
      this.#held = { tree, upstream: new Upstream(this.#name, this.#config, { folder }) };
      this.#all.add(this.#held);
    }
    return this.#held.upstream;
  }

  async discard(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    await this.#drop(held);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((held) => this.#drop(held)));
  }

  async #drop(held: HeldCopy | undefined): Promise<void> {
    if (held === undefined || !this.#all.delete(held)) return;
    await held.upstream.close();
    held.tree.remove();
  }

  tools(agent: string, requests: AgentRequests, run: string): readonly AgentTool[] {
    const inputSchema = { type: 'object', properties: {}, additionalProperties: false } as const;
    const annotations = { readOnlyHint: false, idempotentHint: true, openWorldHint: false };
    const asks = `Asks a person to approve what was changed in the private copy of ${this.#name}.`;
    const drops = `Discards what was changed in the private copy of ${this.#name}.`;
    return [
      {
        name: `${this.#name}_submit`,
        description: asks,
        inputSchema,
        annotations: { ...annotations, destructiveHint: true },
        call: () => this.#submit(requests, run).catch(answerOfError),
      },
      {
        name: `${this.#name}_discard`,
        description: `${drops} (${agent})`,
        inputSchema,
        annotations: { ...annotations, destructiveHint: false },
        call: async () => {
          await this.discard();
          return { status: 'discarded', next: 'The next call starts from the folder as it is.' };
        },
      },
    ];
  }

  /**
   * Stops the program first, so that nothing changes while the copy is read. Calls that arrive in
   * the meantime work on a new copy, so none of their changes are lost.
   */
  async #submit(requests: AgentRequests, run: string): Promise<ToolAnswer> {
    const held = this.#held;
    this.#held = undefined;
    try {
      await held?.upstream.close();
      const operations = held?.tree.operations() ?? [];
      const { adapter } = this.#files;
      const asked = await requests.ask({ run, adapter, action: { operations } });
      await this.#drop(held);
      return answerOf(asked);
    } catch (error) {
      // The agent can submit the copy again, unless a new one has replaced it.
      if (this.#held === undefined) this.#held = held;
      else await this.#drop(held);
      throw error;
    }
  }
}

interface HeldCopy {
  readonly tree: PrivateTree;
  readonly upstream: Upstream;
}

interface Listed {
  readonly fitting: readonly UpstreamDefinition[];
  readonly warnings: readonly string[];
}

function compare(
  name: string,
  { tools }: UpstreamConfig,
  defined: ReadonlyMap<string, UpstreamDefinition>,
): Listed {
  const warnings: string[] = [];
  const fitting = [...defined.values()].filter(({ tool, digest }) => {
    const classified = Object.hasOwn(tools, tool.name) ? tools[tool.name] : undefined;
    if (classified === 'refused') return false;
    if (classified !== undefined && definitionOf(classified) === digest) return true;
    const why = classified === undefined ? 'is not classified' : 'changed since it was classified';
    warnings.push(`${name}: the tool ${tool.name} ${why} and is refused (now ${digest})`);
    return false;
  });
  const missing = Object.keys(tools).filter((tool) => !defined.has(tool));
  warnings.push(...missing.map((tool) => `${name}: there is no tool ${tool}`));
  return { fitting, warnings };
}

function definitionOf(classified: UpstreamTool): string | undefined {
  if (classified === 'refused') return undefined;
  return 'read' in classified ? classified.read : classified.write;
}

/** Turns a call into a request; undefined if calls are forwarded. */
function wantedBy(classified: UpstreamTool): ((input: unknown) => WantedChange) | undefined {
  if (classified === 'refused' || 'read' in classified || 'files' in classified) return undefined;
  if ('operation' in classified) return (input) => ({ operation: classified.operation, input });
  const { adapter, action } = classified;
  return (input) => ({ adapter, action: action(input) });
}

function checkUpstream(name: string, upstream: UpstreamConfig, config: RuntimeConfig): void {
  const refuse = (why: string) =>
    new EffectMatchError('ERR_EM_CONFIG_INVALID', `the configuration: upstream "${name}": ${why}`);
  const { command, url, tools, files } = upstream;
  const unusable = serverRefusal(upstream);
  if (unusable !== undefined) throw refuse(unusable);
  if (typeof tools !== 'object' || tools === null) throw refuse('`tools` must classify its tools');
  if (files !== undefined && url !== undefined) throw refuse('`files` needs `command`');
  if (files !== undefined && !command?.some((word) => word.includes('{folder}')))
    throw refuse('`command` must name `{folder}`, the private copy');
  const known = { ...config.adapters };
  for (const [tool, classified] of Object.entries(tools)) {
    if (classified === 'refused') continue;
    if (!/^sha256:[0-9a-f]{64}$/.test(definitionOf(classified) ?? ''))
      throw refuse(`the tool "${tool}" needs the digest of its definition`);
    if ('read' in classified) continue;
    if ('files' in classified && files === undefined)
      throw refuse(`the tool "${tool}" writes to a private copy, and there is no \`files\``);
    if ('adapter' in classified && !Object.hasOwn(known, classified.adapter))
      throw refuse(`the tool "${tool}" names the adapter "${classified.adapter}"`);
    if ('operation' in classified && config.operations?.[classified.operation] === undefined)
      throw refuse(`the tool "${tool}" names the operation "${classified.operation}"`);
  }
  if (files !== undefined && !Object.hasOwn(known, files.adapter))
    throw refuse(`\`files\` names the adapter "${files.adapter}", which does not exist`);
}
