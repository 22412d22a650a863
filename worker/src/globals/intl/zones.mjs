// Writes data/zones.json (which zone used which meta zone when) and data/zones/<locale>.json
// (their names): node zones.mjs METAZONES TZ-NAMES, the first being supplemental/metaZones.json
// of the npm package cldr-core, the second a file with one zone name a line.
import { readFileSync, writeFileSync, readdirSync, mkdirSync } from "node:fs";
const meta = JSON.parse(readFileSync(process.argv[2], "utf8")).supplemental.metaZones;
const tzNames = readFileSync(process.argv[3], "utf8").trim().split("\n");
const out = new URL("./data/", import.meta.url);
mkdirSync(new URL("zones/", out), { recursive: true });
const locales = readdirSync(out).filter((f) => /^[a-z]{2}-[A-Z]{2}\.json$/.test(f)).map((f) => f.slice(0, -5));

const seconds = (text) => (text === undefined ? undefined : Date.parse(text.replace(" ", "T") + ":00Z") / 1000);
const zones = {};
(function walk(node, path) {
  for (const [name, value] of Object.entries(node)) {
    const id = path ? `${path}/${name}` : name;
    if (!Array.isArray(value)) { walk(value, id); continue; }
    zones[id] = value.map(({ usesMetazone: u }) => [u._mzone, seconds(u._from) ?? null, seconds(u._to) ?? null]);
  }
})(meta.metazoneInfo.timezone, "");

const aliases = {};
for (const name of tzNames) {
  try {
    const canonical = new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone;
    if (canonical !== name && zones[canonical] && !zones[name]) aliases[name] = canonical;
  } catch {}
}

const NOW = Date.UTC(2025, 6, 15) / 1000;
const formats = new Map();
function text(locale, timeZone, timeZoneName, at) {
  const key = `${locale} ${timeZone} ${timeZoneName}`;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(locale, { timeZone, timeZoneName, hour: "numeric" }));
  return formats.get(key).formatToParts(at * 1000).find((p) => p.type === "timeZoneName").value;
}
const offset = (zone, at) => {
  const m = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(text("en-US", zone, "longOffset", at));
  return (m[1] === "-" ? -1 : 1) * (+m[2] * 3600 + +m[3] * 60 + +(m[4] ?? 0));
};
// One instant of standard and one of summer time (or none) at the end of an interval.
function moments(zone, from, to) {
  const end = Math.min(to ?? NOW, NOW) - 86400 * 3;
  const start = Math.max(from ?? 0, end - 86400 * 730);
  const seen = new Map();
  for (let at = start + 86400 * 3; at <= end; at += 86400 * 15) seen.set(offset(zone, at), at);
  const offsets = [...seen.keys()].sort((a, b) => a - b);
  return [seen.get(offsets[0]), offsets.length === 2 ? seen.get(offsets[1]) : undefined];
}
const golden = {};
for (const { mapZone: m } of meta.metazones) if (m._territory === "001") golden[m._other] = m._type;
const metaNames = [...new Set(Object.values(zones).flatMap((v) => v.map((u) => u[0])))].sort();
const where = {};
for (const mz of metaNames) {
  const candidates = [golden[mz], ...Object.keys(zones)].filter((z) => zones[z]);
  let best;
  for (const z of candidates) {
    for (const [name, from, to] of zones[z]) {
      if (name !== mz) continue;
      const [std, dst] = moments(z, from, to);
      if (std === undefined) continue;
      if (z === golden[mz] && to === null) { best = [z, std, dst]; break; }
      if (!best || (dst !== undefined && best[2] === undefined)) best = [z, std, dst];
    }
    if (best && best[0] === golden[mz]) break;
  }
  where[mz] = best;
}
// Summer time that the last years do not show is looked for in all of them.
for (const mz of metaNames) {
  if (!where[mz] || where[mz][2] !== undefined) continue;
  search: for (const z of [golden[mz], ...Object.keys(zones)].filter((z) => zones[z])) {
    for (const [name, from, to] of zones[z]) {
      if (name !== mz) continue;
      for (let at = Math.max(from ?? 0, 0) + 86400; at < Math.min(to ?? NOW, NOW); at += 86400 * 28) {
        if (/Summer|Daylight/.test(text("en-US", z, "long", at))) { where[mz].push(z, at); break search; }
      }
    }
  }
}
const four = (locale, zone, std, dst) => ["long", "short"].flatMap((w) => [std, dst].map((at) => {
  if (at === undefined) return null;
  const value = text(locale, zone, w, at);
  return value === text(locale, zone, `${w}Offset`, at) ? null : value;
}));
const current = Object.fromEntries(Object.entries(zones).map(([z, v]) => [z, v.at(-1)]).filter(([, u]) => u[2] === null));
const overrides = new Set(["UTC"]);
const data = {};
for (const locale of locales) {
  data[locale] = { meta: {}, zone: {} };
  for (const mz of metaNames) if (where[mz]) {
    const [zone, std, dst, summerZone, summer] = where[mz];
    const names = four(locale, zone, std, dst);
    if (summerZone !== undefined) [, names[1], , names[3]] = four(locale, summerZone, undefined, summer);
    data[locale].meta[metaNames.indexOf(mz)] = names;
  }
}
for (const [zone, [mz, from]] of Object.entries(current)) {
  const [std, dst] = moments(zone, from, null);
  for (const locale of locales) {
    const own = four(locale, zone, std, dst), its = data[locale].meta[metaNames.indexOf(mz)];
    if (!own.every((v, i) => v === its?.[i] || (i % 2 === 1 && dst === undefined))) overrides.add(zone);
  }
}
console.log("zones with names of their own:", [...overrides].join(" "));
for (const locale of locales) {
  for (const zone of overrides) {
    const [std, dst] = moments(zone, 0, null);
    data[locale].zone[zone] = four(locale, zone, std, dst);
  }
  writeFileSync(new URL(`zones/${locale}.json`, out), JSON.stringify(data[locale]) + "\n");
}
for (const list of Object.values(zones)) for (const u of list) u[0] = metaNames.indexOf(u[0]);
writeFileSync(new URL("zones.json", out), JSON.stringify({ zones, aliases, metaZones: metaNames.length }) + "\n");
