// Goal: docs/api.md lists the endpoints as they are. Method: the list is made again and compared.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { withEndpoints } from '../../scripts/http-api.mjs';

test('docs/api.md has every endpoint; `node scripts/http-api.mjs` writes them', () => {
  const page = readFileSync('docs/api.md', 'utf8');
  assert.equal(page, withEndpoints(page));
});
