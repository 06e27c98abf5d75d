// Goal: an option that an adapter does not know is refused by name: what a misspelt one should
// restrict is not left open. Method: every adapter is opened with one option too many, or with a
// list where its options should be.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files } from '../../src/adapters/files/index.ts';
import { github } from '../../src/adapters/github/index.ts';
import { draftHttp, mediatedHttp, opaqueHttp } from '../../src/adapters/http/index.ts';
import { postgres } from '../../src/adapters/postgres/index.ts';
import { snapshot } from '../../src/adapters/snapshot/index.ts';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';

// biome-ignore lint/suspicious/noExplicitAny: what is tested is what a program without types may hand over.
const ADAPTERS: Readonly<Record<string, (options: any) => AdapterFactory<any>>> = {
  ...{ sqlite, postgres, files, snapshot, mediatedHttp, opaqueHttp, draftHttp, github },
};
const context = { name: 'books', clock: systemClock, reached: unobserved };

for (const [name, make] of Object.entries(ADAPTERS)) {
  test(`${name} refuses an option that it does not know, and options that are none`, async () => {
    const refusal = (message: RegExp) => ({ code: 'ERR_EM_ADAPTER_REFUSED', message });
    await assert.rejects(
      async () => await make({ value: 'digest' }).open(context),
      refusal(/unknown option "value" \(did you mean "values"\?\); there are /),
    );
    for (const none of [undefined, null, 'books.db']) {
      await assert.rejects(
        async () => await make(none).open(context),
        refusal(/must be an object/),
      );
    }
    await assert.rejects(
      async () => await make({}).open(context),
      refusal(/ must be | are the two names/),
    );
  });
}

test('so does a relation, a collection, the sessions and the service', async () => {
  const cases: readonly (readonly [AdapterFactory<never>, RegExp])[] = [
    [
      postgres({
        control: '',
        execution: '',
        relations: [{ name: 'invoice', volatil: ['at'] } as { name: string }],
      }),
      /relation "invoice": unknown option "volatil"/,
    ],
    [
      postgres({
        control: '',
        execution: '',
        relations: ['invoice'],
        sessions: { reused: false } as object,
      }),
      /sessions: unknown option "reused"/,
    ],
    [
      snapshot({
        file: 'state.db',
        collections: {
          orders: { path: '/orders', key: 'id', volatil: ['at'] } as { path: string; key: string },
        },
        tools: 'tools.js',
      }),
      /collection "orders": unknown option "volatil"/,
    ],
    [
      snapshot({ file: 'state.db', collections: {} } as never),
      /tools must be the path or the URL of the module/,
    ],
    [
      mediatedHttp({
        service: { url: 'https://bank', cas: 'PEM' } as never,
        targets: {},
        operations: {},
      }),
      /service: unknown option "cas" \(did you mean "ca"\?\)/,
    ],
  ] as never;
  for (const [factory, message] of cases) {
    await assert.rejects(async () => await factory.open(context), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message,
    });
  }
});
