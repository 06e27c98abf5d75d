import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Approver, approver, generateApprover, type RuntimeConfig } from 'effectmatch';
import { files } from 'effectmatch/adapters/files';

/** A folder with the configuration of a service, and the files that EffectMatch keeps for it. */
export class Deployment {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Creates the protected folder and the approver's keys, of which only the public one stays here.
   */
  setUp(): Approver {
    mkdirSync(this.#at('config'));
    writeFileSync(this.#at('config/app.json'), '{ "pool": 10 }\n');
    writeFileSync(this.#at('config/secrets.env'), 'API_KEY=8f1c\n');
    chmodSync(this.#at('config/app.json'), 0o644);
    chmodSync(this.#at('config/secrets.env'), 0o600);
    const { issuer, publicKey, privateKey } = generateApprover('platform-team');
    writeFileSync(this.#at('platform-team.pub'), publicKey);
    return approver({ issuer, privateKey });
  }

  /** The configuration that every process passes to `createRuntime`. */
  get config(): RuntimeConfig {
    return {
      store: this.#at('effectmatch.db'),
      keyring: this.#at('effectmatch.keys.json'),
      issuers: {
        'platform-team': {
          key: readFileSync(this.#at('platform-team.pub'), 'utf8'),
          may: ['config'],
        },
      },
      adapters: { config: files({ root: this.#at('config'), adopt: true }) },
    };
  }

  /** The content of the folder, file by file, as any program sees it. */
  look(): readonly string[] {
    return readdirSync(this.#at('config'), { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const path = this.#at(`config/${name}`);
        const status = lstatSync(path);
        if (status.isSymbolicLink()) return `${name} -> ${readlinkSync(path)}`;
        const mode = (status.mode & 0o777).toString(8);
        return status.isDirectory()
          ? `${name}/ ${mode}`
          : `${name} ${mode} ${readFileSync(path, 'utf8').trim()}`;
      });
  }

  #at(name: string): string {
    return join(this.#folder, name);
  }
}
