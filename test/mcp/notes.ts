// A folder of notes behind an MCP server, and the adapter that has its tool called.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type OpaqueMcpOptions, opaqueMcp } from '../../src/adapters/mcp/index.ts';
import {
  approver,
  defineOperation,
  generateApprover,
  generated,
  insert,
  type RuntimeConfig,
} from '../../src/index.ts';
import { describeTools } from '../../src/mcp/gateway.ts';
import type { Row, Value } from '../../src/protocol/value.ts';
import { createRuntime, type Internals } from '../../src/runtime/runtime.ts';

const SERVER = fileURLToPath(new URL('./notes-server.ts', import.meta.url));

export type Definitions = Readonly<Record<'add_note' | 'find_notes', string>>;

/** The program that keeps the notes of a folder. */
export function serverOf(folder: string) {
  return { command: [process.execPath, '--no-warnings', SERVER, folder], timeoutMs: 3000 };
}

/** The digests by which its tools are classified. */
export async function definitionsOf(folder: string): Promise<Definitions> {
  const listed = await describeTools('notes', { ...serverOf(folder), tools: {} });
  const entries = listed.map(({ tool, digest }) => [tool, digest]);
  return Object.fromEntries(entries) as Definitions;
}

export function notesOptions(folder: string, definitions: Definitions): OpaqueMcpOptions {
  const find = { name: 'find_notes', definition: definitions.find_notes };
  return {
    server: serverOf(folder),
    backend: 'notes of the tests',
    targets: { note: { columns: ['id', 'text'], key: ['id'] } },
    operations: {
      add: {
        tool: { name: 'add_note', definition: definitions.add_note },
        input: (untrusted) => {
          const { text, ...more } = untrusted as Row;
          if (typeof text !== 'string' || Object.keys(more).length > 0)
            throw new Error('it takes a text and nothing else');
          return { text };
        },
        keyArgument: 'reference',
        assigns: ['note.id'],
        readBack: {
          reads: { notes: { tool: find, arguments: (_plan, key) => ({ reference: key }) } },
          found: ({ notes }) => {
            const found = notes as readonly { readonly id: Value; readonly text: Value }[];
            const records = found.map(({ id, text }) => {
              return { op: 'insert', target: 'note', key: { id }, before: null, after: { text } };
            });
            return records.length === 0 ? undefined : { records: records as never };
          },
          covers: ['note'],
        },
      },
    },
  };
}

export const approved = (text: string) => [insert('note', { id: generated('id'), text })];
export const adding = (text: string) => ({ operation: 'add', input: { text } });

/** The tool as an operation of the configuration. */
export const addNote = defineOperation({
  name: 'add_note',
  adapter: 'notes',
  input: z.strictObject({ text: z.string() }),
  approve: ({ text }) => ({ effects: approved(text) }),
  action: ({ text }) => adding(text),
});

const key = generateApprover('editor');

/** Notes, and a runtime that may have one added for each license. */
export class NotesDesk implements Disposable {
  readonly folder: string;
  readonly publicKey = key.publicKey;

  constructor(folder = mkdtempSync(join(tmpdir(), 'effectmatch-notes-'))) {
    this.folder = folder;
  }

  get notes(): readonly string[] {
    const file = join(this.folder, 'notes.json');
    if (!existsSync(file)) return [];
    const notes = JSON.parse(readFileSync(file, 'utf8')) as { readonly text: string }[];
    return notes.map(({ text }) => text);
  }

  /** How often the tool that writes was called. */
  get calls(): number {
    const file = join(this.folder, 'calls.log');
    return existsSync(file) ? readFileSync(file, 'utf8').split('add_note ').length - 1 : 0;
  }

  misbehave(how: string): void {
    writeFileSync(join(this.folder, 'fault'), how);
  }

  config(definitions: Definitions, publicKey = key.publicKey): RuntimeConfig {
    return {
      store: join(this.folder, 'ledger.db'),
      keyring: join(this.folder, 'keys.json'),
      issuers: { editor: { key: publicKey, may: ['notes'] } },
      adapters: { notes: opaqueMcp(notesOptions(this.folder, definitions)) },
      recoverAtStart: false,
    };
  }

  async open(definitions: Definitions, internals: Internals = {}) {
    const runtime = await createRuntime(this.config(definitions), internals);
    const approve = async (text: string) => {
      const terms = { adapter: 'notes', task: text, planRevision: 1, effects: approved(text) };
      return approver(key).sign(await runtime.prepare(terms), { expiresIn: '10m' });
    };
    return { runtime, approve, [Symbol.asyncDispose]: () => runtime.close() };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
