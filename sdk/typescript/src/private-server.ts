/**
 * A private brigd: found, started, awaited and ended by the process that needs it.
 *
 * Owns the search for the binary and the life of the process. It can not outlive this
 * process: its standard input is a pipe that only this process holds, and it ends when
 * that closes. Never touches a brigd that somebody else started.
 */

import { type ChildProcess, execFileSync, spawn, type SpawnOptions } from "node:child_process";
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync, statSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "./connection.js";
import { BrigError } from "./errors.js";

/** Longest path that a Unix socket can have, in bytes. */
const SOCKET_PATH_BYTES = 107;
/** How long brigd may take until it answers, in milliseconds. */
const READY_MS = 20_000;
/** How long brigd may take to end in good order, in milliseconds. */
const STOP_MS = 5_000;
/** How much of what brigd said last is kept, in characters. */
const LOG_CHARS = 8 * 1024;
/** What is this process's own affair with its service manager. */
const NOT_INHERITED = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"];

/** A brigd of this process. */
export class PrivateServer {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #atExit = (): void => this.#kill();
  /** The end of brigd's standard input that only this process holds. */
  readonly #held: number;
  #holding = true;
  #log = "";
  #ended: string | undefined;

  private constructor(
    readonly binary: string,
    folder: string,
  ) {
    this.#folder = folder;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.includes(name)));
    const [theirs, ours] = makePipe(folder);
    this.#held = ours;
    // A process group of its own: a Ctrl-C is for this process, which cancels and still
    // wants the answers.
    const options = { stdio: [theirs, "ignore", "pipe"], detached: true, env } satisfies SpawnOptions;
    const child = spawn(binary, ["--socket", this.socket, "--exit-on-stdin-close"], options);
    closeSync(theirs);
    this.#child = child;
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#log = (this.#log + text).slice(-LOG_CHARS)));
    child.once("error", (fault) => this.#over(`can not be started: ${fault.message}`));
    child.once("exit", (code, signal) => this.#over(signal === null ? `exit status ${code}` : `signal ${signal}`));
    process.once("exit", this.#atExit);
  }

  /**
   * Starts one and waits until it answers.
   *
   * @throws {BrigError} `start_failed` with what brigd said.
   */
  static async start(named: string | undefined): Promise<PrivateServer> {
    const binary = findBrigd(named);
    const folder = makeFolder();
    let server: PrivateServer;
    try {
      server = new PrivateServer(binary, folder);
    } catch (fault) {
      rmSync(folder, { recursive: true, force: true });
      throw new BrigError("start_failed", `${binary} can not be started: ${String(fault)}`, { cause: fault });
    }
    try {
      await server.#ready();
    } catch (fault) {
      server.#kill();
      throw fault;
    }
    server.#unref();
    return server;
  }

  /** Path of its socket, in a folder that only this user can enter. */
  get socket(): string {
    return join(this.#folder, "brig.sock");
  }

  /** Whether it runs. */
  get alive(): boolean {
    return this.#ended === undefined;
  }

  /** Ends it in good order, or by force when that takes too long. */
  async stop(): Promise<void> {
    process.off("exit", this.#atExit);
    if (this.alive) {
      this.#child.ref();
      const exited = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
      this.#letGo();
      await exited;
      clearTimeout(timer);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + READY_MS;
    for (let wait = 1; ; wait = Math.min(wait * 1.5, 20)) {
      if (this.#ended !== undefined) throw await this.#failed(`ended before it was ready (${this.#ended})`);
      try {
        (await Connection.open(this.socket)).close();
        return;
      } catch (fault) {
        if (Date.now() > deadline) throw await this.#failed(`was not ready within ${READY_MS} ms`, fault);
      }
      await pause(wait);
    }
  }

  async #failed(how: string, cause?: unknown): Promise<BrigError> {
    const { stderr } = this.#child;
    // What it said last may still be on its way.
    if (!this.alive && stderr !== null && !stderr.closed) {
      await Promise.race([new Promise((resolve) => stderr.once("close", resolve)), pause(500, undefined, { ref: false })]);
    }
    const said = this.#log.trim() === "" ? "" : `; it said:\n  ${this.#log.trim()}`;
    return new BrigError("start_failed", `${this.binary} was started, but ${how}${said}`, { cause });
  }

  /** Lets this process end while brigd runs. */
  #unref(): void {
    this.#child.unref();
    (this.#child.stderr as { unref?: () => void } | null)?.unref?.();
  }

  /** Closes brigd's standard input, which ends it in good order. */
  #letGo(): void {
    if (this.#holding) closeSync(this.#held);
    this.#holding = false;
  }

  #over(how: string): void {
    this.#ended ??= how;
    this.#letGo();
  }

  #kill(): void {
    process.off("exit", this.#atExit);
    if (this.alive) this.#child.kill("SIGTERM");
    this.#letGo();
    this.#unref();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/**
 * Both ends of a pipe, brigd's first. What `stdio: "pipe"` makes is a socket, whose end
 * brigd does not watch; a named pipe that loses its name at once is a pipe.
 */
function makePipe(folder: string): [theirs: number, ours: number] {
  const path = join(folder, "held");
  execFileSync("mkfifo", ["-m", "600", path], { stdio: "ignore" });
  const theirs = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const ours = openSync(path, constants.O_WRONLY);
  unlinkSync(path);
  return [theirs, ours];
}

/** A new folder for a socket whose path is short enough. */
function makeFolder(): string {
  const fits = (place: string): boolean => Buffer.byteLength(join(place, "brig-XXXXXX", "brig.sock")) <= SOCKET_PATH_BYTES;
  return mkdtempSync(join(fits(tmpdir()) ? tmpdir() : "/tmp", "brig-"));
}

/**
 * The binary that is named here or in `BRIGD`, else the first `brigd` on `PATH`.
 *
 * @throws {BrigError} `start_failed` saying where it was looked for.
 */
function findBrigd(named: string | undefined): string {
  const wanted = named ?? (process.env["BRIGD"] || undefined);
  if (wanted !== undefined) {
    if (isExecutable(wanted)) return wanted;
    const by = named === undefined ? "BRIGD names" : "the option brigd names";
    throw new BrigError("start_failed", `${by} ${wanted}, which is not an executable file`);
  }
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const found = folders.map((folder) => join(folder, "brigd")).find(isExecutable);
  if (found !== undefined) return found;
  throw new BrigError("start_failed", "there is no brigd to connect to and none to start", {
    hint: "start the service, name its socket with BRIG_SOCKET, put brigd on PATH, or name it with BRIGD",
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
