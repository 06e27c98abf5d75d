import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { CheckedFilesAction } from '../../../src/adapters/files/action.ts';
import { type FilesOptions, openAdapter } from '../../../src/adapters/files/adapter.ts';
import type { PromotableAdapter, Stage, Staged } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { mintProofs, type Proofs } from '../../../src/testing/proofs.ts';

/** What a site opens. */
export type FilesAdapter = PromotableAdapter<CheckedFilesAction>;

/**
 * A folder of its own for one test, with these files in it, and adapters that are closed with it.
 */
export class Site implements AsyncDisposable {
  readonly home = mkdtempSync(join(tmpdir(), 'effectmatch-files-'));
  readonly root = join(this.home, 'site');
  readonly versions = join(this.home, '.site.effectmatch', 'versions');
  readonly #opened: FilesAdapter[] = [];
  #attempts = 0;

  constructor(files: Readonly<Record<string, string>> = {}) {
    mkdirSync(this.root);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      writeFileSync(join(this.root, path), text);
    }
  }

  async open(
    options: Partial<FilesOptions> = {},
    reached: (step: Step) => void = () => {},
  ): Promise<FilesAdapter> {
    const context = { name: 'site', clock: systemClock, reached };
    const adapter = await openAdapter({ root: this.root, adopt: true, ...options }, context);
    this.#opened.push(adapter);
    return adapter;
  }

  async stage(
    adapter: FilesAdapter,
    ...operations: readonly unknown[]
  ): Promise<{ staged: Staged; proofs: Proofs }> {
    this.#attempts += 1;
    const proofs = mintProofs(adapter, `attempt ${this.#attempts}`);
    const staged = await adapter.stage(
      proofs.claim,
      proofs.certificate,
      adapter.parseAction({ operations }),
    );
    return { staged, proofs };
  }

  async hold(
    adapter: FilesAdapter,
    ...operations: readonly unknown[]
  ): Promise<{ stage: Stage; proofs: Proofs }> {
    const { staged, proofs } = await this.stage(adapter, ...operations);
    assert.ok(staged.kind === 'held', JSON.stringify(staged));
    return { stage: staged.stage, proofs };
  }

  /** Stages, observes and promotes; returns what was observed. */
  async change(adapter: FilesAdapter, ...operations: readonly unknown[]) {
    const { stage, proofs } = await this.hold(adapter, ...operations);
    const evidence = await stage.observe();
    assert.deepEqual(await stage.promote(proofs.permit(evidence)), { kind: 'confirmed' });
    return evidence;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const adapter of this.#opened) await adapter.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}

export const write = (path: string, text: string, mode?: string) => ({
  write: { path, text, ...(mode !== undefined && { mode }) },
});
