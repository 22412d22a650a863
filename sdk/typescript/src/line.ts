/**
 * Lines out of a stream of bytes.
 *
 * Owns the bound on what is kept of a line. Never looks into one.
 */

const LF = 0x0a;

/** A line had more bytes than may be. */
export class LineTooLong extends Error {}

/** Collects chunks into lines. */
export class LineReader {
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(
    /** Longest line, in bytes. */
    readonly most: number,
  ) {}

  /**
   * The lines that `chunk` ends, without their LF.
   *
   * @throws {LineTooLong} as soon as a line has more bytes than may be.
   */
  *feed(chunk: Buffer): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      yield this.#take();
    }
    this.#keep(chunk.subarray(start));
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#length += part.length;
    if (this.#length > this.most) throw new LineTooLong(`a line has more than ${this.most} bytes`);
    this.#chunks.push(part);
  }

  #take(): string {
    const [only] = this.#chunks;
    const line = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#length);
    this.#chunks = [];
    this.#length = 0;
    return line.toString("utf8");
  }
}
