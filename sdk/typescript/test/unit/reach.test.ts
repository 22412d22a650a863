/** Many clients at once, at a socket whose queue of connections is full. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BrigError, connect } from "brig";
import { FakeBrigd } from "../fake-brigd.js";
import { FullQueue } from "../full-queue.js";

const PATIENCE = { timeout: 60_000 };

/** What the package does not give to its users. */
const { Connection } = (await import(new URL("connection.js", import.meta.resolve("brig")).href)) as {
  Connection: { open(path: string, withinMs?: number): Promise<unknown> };
};

async function withFull(run: (queue: FullQueue) => Promise<void>): Promise<void> {
  const queue = new FullQueue();
  try {
    await run(await queue.full());
  } finally {
    await queue[Symbol.asyncDispose]();
  }
}

test("a burst that is larger than the queue waits until brigd takes it", PATIENCE, async () => {
  await withFull(async (queue) => {
    const burst = Promise.all(Array.from({ length: 8 }, () => connect({ socket: queue.path })));
    // Whoever does not wait has been refused before this one.
    const room = await Promise.race([burst, queue.isFull()]);
    assert.equal(room, true);
    queue.take();
    for (const client of await burst) await client.close();
  });
});

test("a queue that stays full is told as that at the deadline", PATIENCE, async () => {
  await withFull(async (queue) => {
    await assert.rejects(Connection.open(queue.path, 100), (fault) => {
      assert.ok(fault instanceof BrigError);
      assert.deepEqual([fault.code, fault.retryable, fault.nothingRan], ["connect_failed", true, true]);
      assert.ok(fault.message.includes(`no brigd answers on ${queue.path}: brigd's queue of connections was full for `), fault.message);
      return true;
    });
  });
});

test("what is no full queue is told at once", PATIENCE, async () => {
  const brigd = await new FakeBrigd().listen();
  await brigd[Symbol.asyncDispose]();
  await assert.rejects(Connection.open(brigd.socket, 2 * PATIENCE.timeout), /ENOENT/);
});
