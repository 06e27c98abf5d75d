// Goal: "nothing was sent" is said only where it is proved, every other ending has one defined
// meaning, and one call is one request whatever comes back. Method: servers that speak bytes and
// misbehave in one way each; what arrived is counted at the socket.
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { type Exchanged, exchange } from '../../src/http/exchange.ts';
import { RawServer } from './raw-server.ts';

const LIMITS = { timeoutMs: 2000, maxBytes: 10_000 };
const BODY = JSON.stringify({ amount: 35 });
const head = (length: number, status = '200 OK') =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${length}\r\n\r\n`;

async function post(
  origin: string,
  limits: Partial<Parameters<typeof exchange>[1]> = {},
): Promise<Exchanged> {
  const url = new URL('/payments', origin);
  return await exchange(
    { method: 'POST', url, headers: { 'x-token': 's3cret' }, body: BODY },
    { ...LIMITS, ...limits },
  );
}

/**
 * Sends one request to a server that answers like this, and says what came of it and how much
 * arrived.
 */
async function meet(
  onRequest: (socket: Socket, text: string) => void,
  limits: Parameters<typeof post>[1] = {},
) {
  await using server = await RawServer.start((socket, text) => {
    if (text.includes('\r\n\r\n') && text.endsWith(BODY)) onRequest(socket, text);
  });
  const exchanged = await post(server.origin, limits);
  return {
    exchanged,
    connections: server.received.length,
    requests: server.received.join('').split('POST ').length - 1,
  };
}

test('a refused connection and a name that does not exist are not sent', async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const refused = await post(`http://127.0.0.1:${port}`);
  assert.deepEqual(refused, {
    kind: 'not-sent',
    why: `no connection to 127.0.0.1:${port}: ECONNREFUSED`,
  });
  const unknown = await post('http://no-such-host.invalid');
  assert.equal(unknown.kind, 'not-sent');
});

test('a TLS handshake that fails is not sent: not a byte of the request arrived', async () => {
  await using server = await RawServer.start((socket) => socket.end('this is not TLS'));
  const exchanged = await post(server.origin.replace('http:', 'https:'));
  assert.equal(exchanged.kind, 'not-sent');
  assert.ok(!server.received.join('').includes('POST'));
});

test('a handshake that never ends is not sent once the time is up', async () => {
  await using server = await RawServer.start(() => {});
  const exchanged = await post(server.origin.replace('http:', 'https:'), { timeoutMs: 100 });
  assert.equal(exchanged.kind, 'not-sent');
});

test('a complete response is a response, whatever its status, and no redirect is followed', async () => {
  for (const status of [
    '200 OK',
    '201 Created',
    '301 Moved',
    '307 Temporary Redirect',
    '404 No',
    '412 No',
    '500 Oh',
    '503 No',
  ]) {
    const location = 'location: http://127.0.0.1:1/elsewhere\r\n';
    const met = await meet((socket) =>
      socket.end(`HTTP/1.1 ${status}\r\n${location}content-length: 2\r\n\r\n{}`),
    );
    assert.equal(
      met.exchanged.kind === 'response' && met.exchanged.status,
      Number(status.slice(0, 3)),
    );
    assert.deepEqual([met.connections, met.requests], [1, 1], status);
  }
});

test('interim responses are passed over, and another protocol is no response', async () => {
  const interim = await meet((socket) =>
    socket.end(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${head(2)}{}`),
  );
  assert.equal(interim.exchanged.kind === 'response' && interim.exchanged.status, 200);
  const switched = await meet((socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  );
  assert.equal(switched.exchanged.kind, 'lost');
  const endless = await meet(
    (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 10);
      socket.on('close', () => clearInterval(timer));
    },
    { timeoutMs: 200 },
  );
  assert.equal(endless.exchanged.kind, 'lost');
});

const LOST: Readonly<
  Record<string, { answer: (socket: Socket) => void; limits?: Partial<typeof LIMITS> }>
> = {
  'closed without an answer': { answer: (socket) => socket.end() },
  'reset without an answer': { answer: (socket) => socket.resetAndDestroy() },
  'no answer in time': { answer: () => {}, limits: { timeoutMs: 100 } },
  'half a status line': { answer: (socket) => socket.end('HTTP/1.1 20') },
  'not HTTP': { answer: (socket) => socket.end('hello\r\n\r\n') },
  'cut off before its length': { answer: (socket) => socket.end(`${head(100)}{"id":`) },
  'reset within the body': {
    answer: (socket) => socket.write(`${head(100)}{"id":`, () => socket.resetAndDestroy()),
  },
  'chunks without an end': {
    answer: (socket) =>
      socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{"id\r\n'),
  },
  'a chunk that is no chunk': {
    answer: (socket) =>
      socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n'),
  },
  'more than may come': { answer: (socket) => socket.end(`${head(50_000)}${'x'.repeat(50_000)}`) },
  'headers without an end': {
    answer: (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`),
  },
  'an encoding that nobody asked for': {
    answer: (socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}'),
  },
  'one byte at a time': {
    answer(socket) {
      socket.write(head(5000));
      const timer = setInterval(() => socket.write('x'), 5);
      socket.on('close', () => clearInterval(timer));
    },
    limits: { timeoutMs: 250 },
  },
};

for (const [name, { answer, limits }] of Object.entries(LOST)) {
  test(`lost, and sent once: ${name}`, async () => {
    const met = await meet(answer, limits);
    assert.equal(met.exchanged.kind, 'lost');
    assert.deepEqual([met.connections, met.requests], [1, 1]);
  });
}

test('a connection that breaks while the request is being written is lost, not "not sent"', async () => {
  await using server = await RawServer.start((socket) => socket.resetAndDestroy());
  const url = new URL('/payments', server.origin);
  const exchanged = await exchange(
    { method: 'POST', url, headers: {}, body: 'x'.repeat(20_000_000) },
    LIMITS,
  );
  assert.equal(exchanged.kind, 'lost');
  assert.equal(server.received.length, 1);
});

test('no ending repeats what was sent', async () => {
  for (const { answer, limits } of Object.values(LOST)) {
    const { exchanged } = await meet(answer, limits);
    assert.ok(!JSON.stringify(exchanged).includes('s3cret'));
  }
});

test('the connection stands before it is announced, and nothing is written before that', async () => {
  await using server = await RawServer.start((socket) => socket.end(`${head(2)}{}`));
  let announced: string[] | undefined;
  const connected = () => {
    announced = [...server.received];
    return undefined;
  };
  await post(server.origin, { connected });
  assert.ok(announced !== undefined && announced.join('') === '');
});

test('what forbids the request when the connection stands is why nothing of it was written', async () => {
  await using server = await RawServer.start(() => {});
  const exchanged = await post(server.origin, { connected: () => 'it is too late' });
  assert.deepEqual(exchanged, { kind: 'not-sent', why: 'it is too late' });
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(server.received.join(''), '');
});

test('who slept until the time was up before the first byte sends nothing', async () => {
  await using server = await RawServer.start(() => {});
  const sleep = () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120);
    return undefined;
  };
  const exchanged = await post(server.origin, { timeoutMs: 100, connected: sleep });
  assert.deepEqual(exchanged, {
    kind: 'not-sent',
    why: 'the time was up before anything was written',
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(server.received.join(''), '');
});
