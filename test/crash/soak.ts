import { parseArgs } from 'node:util';
import { killServer } from '../mysql/server-kills.ts';
import { chooseSeed, type Random, randomOf } from '../random.ts';
import { OPERATION_KINDS, WORLD_KINDS } from './backends/backend.ts';
import { SOAKED } from './backends/index.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { Pool } from './pool.ts';
import { runKillCase, runStartCase, runStreamCase } from './scenario.ts';
import type { CaseResult } from './scene.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS } from './steps.ts';
import { runZombies } from './zombie.ts';

const LANES = 3;
/** Not a backend: MariaDB's server dies, and its clients live. */
const SERVER = 'mysql-server';
const USAGE =
  'usage: npm run soak -- [--kills 1000] [--seed text] [--adapter sqlite] [--only case]';

/** What a soak was asked to do. `only` repeats one case of a seed. */
interface Asked {
  readonly kills: number;
  readonly seed: string;
  readonly adapter: string;
  readonly only: number | undefined;
}

function readArguments(): Asked {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '1000' },
      seed: { type: 'string' },
      adapter: { type: 'string', default: 'sqlite' },
      only: { type: 'string' },
    },
  });
  const kills = Number(values.kills);
  const only = values.only === undefined ? undefined : Number(values.only);
  if (
    !Number.isSafeInteger(kills) ||
    kills < 1 ||
    (only !== undefined && !Number.isSafeInteger(only))
  ) {
    throw new Error('--kills and --only take whole numbers');
  }
  return { kills, seed: chooseSeed(values.seed), adapter: values.adapter, only };
}

/**
 * One case, chosen by its own label alone: kills at steps, at random moments and at start, and
 * stopped processes.
 */
async function runCase(
  pool: Pool,
  installation: Installation,
  chance: Random,
): Promise<CaseResult> {
  const list = <T>(most: number, from: readonly T[]) =>
    Array.from({ length: chance.below(most + 1) }, () => chance.pick(from));
  const kind = chance.pick(OPERATION_KINDS);
  const turn = chance.fraction();
  if (turn < 0.2) return runStreamCase(pool, installation, chance);
  if (turn < 0.25) return runStartCase(pool, installation, chance);
  if (turn < 0.35) {
    const stop = chance.pick(EXECUTION_STEPS.filter((step) => step !== 'path:discarded'));
    const order = chance.pick(['recover-first', 'wake-together'] as const);
    return runZombies(pool, installation, [{ kind: 'append', stop, order }]);
  }
  return runKillCase(pool, installation, {
    kind,
    execute: chance.fraction() < 0.1 ? undefined : chance.pick(EXECUTION_STEPS),
    recover: list(3, RECOVERY_STEPS),
    release: list(2, RELEASE_STEPS),
  });
}

/** Runs cases until enough processes have died, then says what happened in one line of JSON. */
class Soak {
  readonly #asked: Asked;
  readonly #pool = new Pool(14);
  readonly #templates: Template[] = [];
  readonly #startedAt = performance.now();
  readonly #wrong: { readonly case: number; readonly violations: readonly string[] }[] = [];
  #kills = 0;
  #cases = 0;
  #next = 0;
  #stopping = false;

  constructor(asked: Asked) {
    this.#asked = asked;
  }

  async run(): Promise<number> {
    const { adapter, seed, only } = this.#asked;
    console.error(`seed ${seed}`);
    const backends = SOAKED.filter(
      (backend) => backend.name === adapter || backend.name.startsWith(`${adapter}-`),
    );
    if (backends.length === 0)
      throw new Error(`no adapter "${adapter}"; there are ${SOAKED.map(({ name }) => name)}`);
    for (const backend of backends)
      this.#templates.push(await createTemplate(backend, WORLD_KINDS));
    const progress = setInterval(() => this.#report(), 2000);
    try {
      if (only === undefined) await Promise.all(Array.from({ length: LANES }, () => this.#lane()));
      else await this.#runNumbered(only);
    } finally {
      clearInterval(progress);
      await this.close();
    }
    console.log(JSON.stringify(this.#summary()));
    for (const { case: at, violations } of this.#wrong) {
      console.error(`case ${at}: ${violations.join('\n  ')}`);
      console.error(
        `repeat it with: npm run soak -- --adapter ${adapter} --seed ${seed} --only ${at}`,
      );
    }
    return this.#wrong.length > 0 ? 1 : 0;
  }

  /** Ends all processes and removes all files; also in the middle of a case. */
  async close(): Promise<void> {
    this.#stopping = true;
    await this.#pool.close();
    for (const template of this.#templates) await template[Symbol.asyncDispose]();
  }

  async #lane(): Promise<void> {
    while (!this.#stopping && this.#wrong.length === 0 && this.#kills < this.#asked.kills) {
      this.#next += 1;
      await this.#runNumbered(this.#next - 1);
    }
  }

  async #runNumbered(at: number): Promise<void> {
    const chance = randomOf(`${this.#asked.seed}/${at}`);
    await using installation = await chance.pick(this.#templates).copy();
    const result = await runCase(this.#pool, installation, chance).catch((error: unknown) => ({
      kills: 0,
      violations: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
    }));
    if (this.#stopping) return;
    this.#cases += 1;
    this.#kills += result.kills;
    if (result.violations.length > 0) this.#wrong.push({ case: at, violations: result.violations });
  }

  #summary() {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    return {
      adapter: this.#asked.adapter,
      seed: this.#asked.seed,
      cases: this.#cases,
      kills: this.#kills,
      violations: this.#wrong.length,
      seconds: Math.round(seconds),
      killsPerSecond: Math.round((this.#kills / seconds) * 10) / 10,
    };
  }

  #report(): void {
    const { kills, cases, killsPerSecond, violations } = this.#summary();
    const line = `${kills} of ${this.#asked.kills} kills, ${cases} cases, ${killsPerSecond} per second, ${violations} violations`;
    process.stderr.write(process.stderr.isTTY ? `\r${line}\u001b[K` : `${line}\n`);
  }
}

/** Kills the server instead of its clients. */
async function soakServer({ seed, kills }: Asked): Promise<void> {
  console.error(`seed ${seed}`);
  const { ends, steps } = await killServer(seed, kills, (done) => {
    if (done % 10 === 0) console.error(`${done} of ${kills} kills`);
  });
  const told = { ends: Object.fromEntries(ends), steps: Object.fromEntries(steps) };
  console.log(JSON.stringify({ adapter: SERVER, seed, kills, violations: 0, ...told }));
}

try {
  const asked = readArguments();
  if (asked.adapter === SERVER) {
    await soakServer(asked);
    process.exit();
  }
  const soak = new Soak(asked);
  process.once('SIGINT', () => {
    console.error('\nstopped; cleaning up');
    soak.close().finally(() => process.exit(130));
  });
  process.exitCode = await soak.run();
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
  process.exitCode = 1;
}
