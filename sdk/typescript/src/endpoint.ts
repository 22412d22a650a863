/**
 * Where brigd is, and how to come there again.
 *
 * Owns the order in which a brigd is looked for and the patience after one went away.
 * Never sends a request.
 */

import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "./connection.js";
import { BrigError } from "./errors.js";
import { PrivateServer } from "./private-server.js";
import type { ConnectOptions } from "./types.js";

/** Where the service listens. */
export const SERVICE_SOCKET = "/run/brig/brig.sock";
/** How long to go on trying after a connection that there was is gone, in milliseconds. */
const PATIENCE_MS = 5_000;

/** A brigd, and connections to it. */
export interface Endpoint {
  /** Path of its socket, once it is known. */
  readonly socket: string | undefined;
  open(): Promise<Connection>;
  /** Ends what this process started. */
  dispose(): Promise<void>;
}

/** The endpoint that these options, and the environment, name. */
export function endpointOf(options: ConnectOptions): Endpoint {
  const named = options.socket ?? (process.env["BRIG_SOCKET"] || undefined);
  if (named !== undefined) return new SocketEndpoint(named);
  return new FoundEndpoint(options.brigd);
}

/** A brigd that somebody else runs. */
class SocketEndpoint implements Endpoint {
  #wasThere = false;

  constructor(readonly socket: string) {}

  async open(): Promise<Connection> {
    // One that was there comes back soon, when it was only restarted.
    const deadline = this.#wasThere ? Date.now() + PATIENCE_MS : 0;
    for (let wait = 10; ; wait = Math.min(wait * 2, 250)) {
      try {
        const connection = await Connection.open(this.socket);
        this.#wasThere = true;
        return connection;
      } catch (fault) {
        if (Date.now() + wait > deadline) throw fault;
      }
      await pause(wait);
    }
  }

  async dispose(): Promise<void> {}
}

/** The service when it answers, else a private brigd. */
class FoundEndpoint implements Endpoint {
  #service: SocketEndpoint | undefined;
  #server: PrivateServer | undefined;

  constructor(readonly brigd: string | undefined) {}

  get socket(): string | undefined {
    return this.#service?.socket ?? this.#server?.socket;
  }

  async open(): Promise<Connection> {
    if (this.#service !== undefined) return this.#service.open();
    if (this.#server === undefined && this.brigd === undefined) {
      const service = new SocketEndpoint(SERVICE_SOCKET);
      const connection = await service.open().catch(unlessAbsent);
      if (connection !== undefined) {
        this.#service = service;
        return connection;
      }
    }
    const known = this.#server;
    if (known?.alive === true) {
      const connection = await answering(known.socket);
      if (connection !== undefined) return connection;
    }
    await known?.stop();
    this.#server = await PrivateServer.start(this.brigd);
    return Connection.open(this.#server.socket);
  }

  async dispose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.stop();
  }
}

/**
 * A connection on which brigd has answered. A process that was killed may not have been
 * missed yet, and its socket takes connections until the kernel has closed it: only an
 * answer shows that somebody is there.
 */
async function answering(socket: string): Promise<Connection | undefined> {
  try {
    const connection = await Connection.open(socket);
    await connection.request("initialize", "{}").answer;
    return connection;
  } catch {
    return undefined;
  }
}

/** A service that is not there is no error; one that this user may not use is. */
function unlessAbsent(fault: unknown): undefined {
  const code = fault instanceof BrigError ? (fault.cause as NodeJS.ErrnoException | undefined)?.code : undefined;
  if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ECONNRESET" || code === "ENOTDIR") return undefined;
  throw fault;
}
