// Says what in dashboards is not as Grafana's published types have it: a name that does not
// exist, a value of another kind, an option of another panel.
import { basename, join } from 'node:path';
import ts from 'typescript';

const here = new URL('.', import.meta.url).pathname;
const OPTIONS = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  noErrorTruncation: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  types: [],
};

/** What is wrong with each text, as lines; an error where the check itself does not hold. */
export function judge(texts) {
  // A literal is judged strictly, an import of JSON is not.
  const sources = new Map(
    texts.map((text, index) => [
      join(here, `dashboard-${index}.ts`),
      `import type { File } from './shapes.ts';\nexport const dashboard: File = ${JSON.stringify(JSON.parse(text), null, 1)};\n`,
    ]),
  );
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (file) => sources.has(file) || fileExists(file);
  host.readFile = (file) => sources.get(file) ?? readFile(file);
  host.getSourceFile = (file, version) =>
    sources.has(file) ? ts.createSourceFile(file, sources.get(file), version) : getSourceFile(file, version);
  const found = texts.map(() => []);
  for (const one of ts.getPreEmitDiagnostics(ts.createProgram([...sources.keys()], OPTIONS, host))) {
    const message = ts.flattenDiagnosticMessageText(one.messageText, '\n');
    const index = [...sources.keys()].indexOf(one.file?.fileName);
    if (index < 0) throw new Error(`${basename(one.file?.fileName ?? '')}: ${message}`);
    // The first line is ours.
    found[index].push(`line ${one.file.getLineAndCharacterOfPosition(one.start).line}: ${message.slice(0, 400)}`);
  }
  return found;
}
