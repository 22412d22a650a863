/** What type checks cost: the figures of docs/decisions/010. Run `node build/test/measure.js`. */
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "brig";

const hostFunctions = { a: { f: { inputSchema: { type: "object", properties: { n: { type: "number" } } }, execute: () => 1 } } } as const;
const before = process.memoryUsage().rss;
const client = await connect();
const took: number[] = [];
for (let index = 0; index < 11; index++) {
  const start = performance.now();
  const { ok } = await client.check(`const found${index} = await a.f({ n: ${index} }); found${index}`, { hostFunctions });
  if (!ok) throw new Error("the program has to be right");
  took.push(Math.round(performance.now() - start));
}
await client.close();
const [first, ...further] = took;
const compiler = createRequire(import.meta.url).resolve("typescript");
const { version } = JSON.parse(readFileSync(new URL("../package.json", `file://${compiler}`), "utf8")) as { version: string };
const sizes = { typescript: version, compilerMB: Math.round(statSync(compiler).size / 1e6) };
const memoryMB = Math.round((process.memoryUsage().rss - before) / 1e6);
console.log(JSON.stringify({ ...sizes, memoryMB, firstMs: first, furtherMs: further.sort((a, b) => a - b) }));
