/** What is published, and that it works where nothing else is. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brigd } from "../brigd.js";

const run = promisify(execFile);
const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "../../..");

test("the package has its modules, types, README and licence and no other file, needs no other package, and runs where it is installed alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brig-pack-"));
  try {
    const packed = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { cwd: PACKAGE });
    const [told] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
    const odd = told.files.map(({ path }) => path).filter((path) => !/^(package\.json|README\.md|LICENSE|dist\/[\w/-]+\.(js|d\.ts))$/.test(path));
    assert.deepEqual(odd, []);
    for (const path of ["LICENSE", "README.md", "dist/index.js", "dist/index.d.ts", "dist/adapters/vercel.js", "dist/adapters/vercel.d.ts"]) assert.ok(told.files.some((file) => file.path === path), path);
    const manifest = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as Record<string, unknown>;
    assert.equal(manifest["dependencies"], undefined);
    const peers = Object.keys(manifest["peerDependencies"] as object);
    assert.deepEqual(manifest["peerDependenciesMeta"], Object.fromEntries(peers.map((name) => [name, { optional: true }])), "no peer has to be there");

    writeFileSync(join(folder, "package.json"), '{"type":"module","private":true}');
    await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--package-lock=false", join(folder, told.filename)], { cwd: folder });
    const script = 'import { evaluate } from "brig"; console.log((await evaluate("1 + 1")).value);';
    writeFileSync(join(folder, "main.js"), script);
    const { stdout } = await run(process.execPath, ["main.js"], { cwd: folder, env: { ...process.env, BRIG_SOCKET: "", BRIGD: brigd() } });
    assert.equal(stdout.trim(), "2");
    // Its types need nothing but the compiler and the language that Node 20 has.
    writeFileSync(join(folder, "typed.ts"), 'import { connect } from "brig";\nconst client = await connect();\nconst n: string = client.socket ?? "";\nexport { n };\n');
    const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
    const strictly = ["--strict", "--module", "nodenext", "--target", "es2022", "--noEmit", "--skipLibCheck", "false"];
    await run(process.execPath, [compiler, ...strictly, "typed.ts"], { cwd: folder }).catch(({ stdout }) => assert.fail(stdout));
    // What needs a package of the user's own says which.
    const adapter = run(process.execPath, ["--input-type=module", "--eval", 'await import("brig/adapters/vercel")'], { cwd: folder });
    await assert.rejects(adapter, /Cannot find package 'ai'/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the version that is told to brigd is the package's", () => {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string };
  assert.ok(readFileSync(join(PACKAGE, "dist/client.js"), "utf8").includes(`"${version}"`));
});
