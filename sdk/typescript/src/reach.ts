/**
 * Coming to brigd's socket when many do at once.
 *
 * Owns the wait for a place in the socket's queue. Never tries again after anything but a
 * full queue.
 */

import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** How long to wait for a place in the queue, in milliseconds. */
export const QUEUE_MS = 20_000;
/** What the system says of a full queue. */
export const FULL = "EAGAIN";
/** First and longest pause between two attempts, in milliseconds. */
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 50;

/**
 * A connected socket. Linux does not let a connection that does not block wait in a full
 * queue, and no event tells when there is room: so it is tried again. Of a queue that is
 * full for `withinMs`, the message of the error says so.
 */
export async function reach(path: string, withinMs: number): Promise<Socket> {
  const begun = performance.now();
  for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 1.5, LONGEST_PAUSE_MS)) {
    try {
      return await attempt(path);
    } catch (cause) {
      const fault = cause as NodeJS.ErrnoException;
      if (fault.code !== FULL) throw fault;
      const waited = performance.now() - begun;
      if (waited >= withinMs) throw stayedFull(waited, fault);
      await pause(Math.min(wait, withinMs - waited));
    }
  }
}

function attempt(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

function stayedFull(waitedMs: number, cause: NodeJS.ErrnoException): NodeJS.ErrnoException {
  const waited = (waitedMs / 1000).toFixed(1);
  const why = `brigd's queue of connections was full for ${waited} s: more connect than it takes, or it stands still; try again later`;
  return Object.assign(new Error(why, { cause }), { code: FULL });
}
