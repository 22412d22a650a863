// idea: write an import so that a filter of the source does not see it: spread, comments, escapes, templates, built code (SES and vm2)
// stops: no module loader
// expect: value true
const forms = [
  "import('fs')", "[...import('fs')]", "(() => import('fs'))()", "import/**/('fs')", "import(`${'f'}s`)", "(async () => await import('node:fs'))()",
  "import('fs', { with: { type: 'json' } })", "`${import('fs')}`", "import('data:text/javascript,1')", "import('file:///etc/passwd')", "import('process')",
  "import('inspector/promises')", "import('bjson')", "import('qjs:os')", "import({ toString() { return 'std'; } })", "<!-- x\nimport('fs')", "import(Symbol())",
];
const ends = [];
for (const form of forms) {
  for (const run of [(text) => (0, eval)(text), (text) => new Function(`return ${text}`)(), (text) => (async () => {}).constructor(`return await ${text}`)()]) {
    try {
      const got = await run(form);
      ends.push(typeof got === "string" || (Array.isArray(got) && got.length === 0) || got === undefined ? "nothing" : "loaded");
    } catch { ends.push("refused"); }
  }
}
return ends.every((end) => end !== "loaded") && ends.filter((end) => end === "refused").length > 30;
