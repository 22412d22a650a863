// Writes what the ICU of the Node that runs this answers for many combinations of locale,
// options and value: node goldens.mjs COUNT SEED > testdata/goldens.json
import { readdirSync } from "node:fs";
const [count = "3000", seed = "1", only = ""] = process.argv.slice(2);
let state = BigInt(seed) * 2654435761n + 12345n;
const rnd = (n) => { state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn; return Number((state >> 33n) % BigInt(n)); };
const pick = (list) => list[rnd(list.length)];
const maybe = (p, f) => (rnd(100) < p ? f() : undefined);
const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));
const LOCALES = readdirSync(new URL("./data/", import.meta.url)).filter((f) => f !== "shared.json" && f !== "zones.json").map((f) => f.slice(0, -5));
const locale = () => (only ? only : rnd(3) === 0 ? "en-US" : pick(LOCALES));
const numbers = [0, -0, 1, -1, 2, 5, 0.1, 0.5, 1.5, 2.5, -2.5, 1.005, 0.045, 12.345, 99.995, 999.5, 999.949, 1000, 1234.5, 9999.99, 12345.678, 99999, 123456, 999999, 999950, 1e6, 1.5e6, 1234567.891, 2e6, 5e6, 1e9, 1.25e9, 123456789012, 1e12, 1e15, 1e16,  5e-324, 1e-7, 0.000123, 0.00999, -0.4, -1234.567, -1e6, NaN, Infinity, -Infinity, 42, 100, 11, 21, 22, 101, 3, 4, 7, 8, 80, 1.1, 0.25, 0.7, 86400];
const number = () => (rnd(4) ? pick(numbers) : Number(((rnd(2e9) - 1e9) / 10 ** rnd(9)).toPrecision(1 + rnd(15))));
const currencies = ["USD", "EUR", "GBP", "JPY", "CHF", "INR", "SEK", "BRL", "KWD", "CAD", "AUD", "MXN", "PLN", "CZK", "CNY", "KRW", "RUB", "TRY", "BHD", "CLP", "ZAR", "XAF", "NOK", "DKK", "HUF", "ISK"];
const units = ["kilometer", "mile", "celsius", "fahrenheit", "byte", "kilobyte", "megabyte", "gigabyte", "percent", "second", "minute", "hour", "day", "week", "month", "year", "liter", "kilogram", "pound", "foot", "inch", "meter", "degree", "kilometer-per-hour", "mile-per-hour", "megabit-per-second", "acre", "gallon"];

function numberOptions() {
  const style = pick(["decimal", "decimal", "percent", "currency", "currency", "currency", "unit"]);
  const o = {
    style, currency: style === "currency" ? pick(currencies) : undefined,
    currencyDisplay: maybe(style === "currency" ? 40 : 0, () => pick(["code", "symbol", "narrowSymbol", "name"])),
    currencySign: maybe(style === "currency" ? 25 : 0, () => pick(["standard", "accounting"])),
    unit: style === "unit" ? pick(units) : undefined,
    unitDisplay: maybe(style === "unit" ? 60 : 0, () => pick(["short", "long", "narrow"])),
    notation: maybe(30, () => pick(["standard", "compact", "compact", "scientific", "engineering"])),
    compactDisplay: maybe(20, () => pick(["short", "long"])),
    signDisplay: maybe(20, () => pick(["auto", "always", "never", "exceptZero", "negative"])),
    useGrouping: maybe(15, () => pick([true, false, "min2", "auto", "always"])),
    minimumIntegerDigits: maybe(8, () => 1 + rnd(5)),
    roundingMode: maybe(10, () => pick(["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"])),
    trailingZeroDisplay: maybe(8, () => "stripIfInteger"),
  };
  if (rnd(3) === 0) {
    const a = rnd(5), b = rnd(5);
    o.minimumFractionDigits = maybe(60, () => Math.min(a, b));
    o.maximumFractionDigits = Math.max(a, b);
  } else if (rnd(5) === 0) {
    const a = 1 + rnd(6), b = 1 + rnd(6);
    o.minimumSignificantDigits = maybe(60, () => Math.min(a, b));
    o.maximumSignificantDigits = Math.max(a, b);
  }
  return clean(o);
}
const zones = ["UTC", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo", "Europe/London", "Europe/Berlin", "Europe/Paris", "Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Sydney", "Australia/Lord_Howe", "Africa/Cairo", "America/St_Johns", "Pacific/Apia", "Europe/Moscow", "Asia/Shanghai", "America/Phoenix", "Pacific/Honolulu", "Asia/Dubai", "Europe/Dublin", "Europe/Istanbul", "Asia/Singapore"];
const instants = () => { switch (rnd(12)) { case 0: return 0; case 1: return Date.UTC(1970 + rnd(60), rnd(12), 1 + rnd(28)); case 2: return Date.UTC(2024, 1, 29, 23, 59, 59, 999); case 3: return Date.UTC(1900 + rnd(300), rnd(12), 1 + rnd(28), rnd(24), rnd(60), rnd(60), rnd(1000)); case 4: return Date.UTC(rnd(12000) - 2000, rnd(12), 1 + rnd(28), rnd(24)); default: return Date.UTC(2000 + rnd(30), rnd(12), 1 + rnd(28), rnd(24), rnd(60), rnd(60), rnd(1000)); } };
function dateOptions() {
  const o = { timeZone: maybe(70, () => pick(zones)) };
  const kind = rnd(4);
  if (kind === 0) {
    o.dateStyle = maybe(75, () => pick(["full", "long", "medium", "short"]));
    o.timeStyle = o.dateStyle === undefined || rnd(2) ? pick(only === "zones" ? ["full", "long"] : ["full", "long", "medium", "short"]) : undefined;
  } else if (kind < 3) {
    o.weekday = maybe(30, () => pick(["long", "short", "narrow"]));
    o.era = maybe(4, () => pick(["long", "short", "narrow"]));
    o.year = maybe(65, () => pick(["numeric", "numeric", "2-digit"]));
    o.month = maybe(75, () => pick(["numeric", "2-digit", "long", "short", "narrow"]));
    o.day = maybe(70, () => pick(["numeric", "2-digit"]));
  }
  if (kind === 2 || kind === 3) {
    o.hour = maybe(85, () => pick(["numeric", "2-digit"]));
    o.minute = o.hour ? maybe(85, () => pick(["numeric", "2-digit"])) : pick(["numeric", "2-digit"]);
    o.second = o.minute ? maybe(40, () => pick(["numeric", "2-digit"])) : undefined;
    o.fractionalSecondDigits = o.second ? maybe(15, () => 1 + rnd(3)) : undefined;
    o.timeZoneName = maybe(25, () => pick(["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"]));
  }
  o.hour12 = maybe(15, () => rnd(2) === 1);
  o.hourCycle = maybe(8, () => pick(["h11", "h12", "h23", "h24"]));
  return clean(o);
}
const enc = (v) => (typeof v === "number" && (!Number.isFinite(v) || Object.is(v, -0)) ? `#${Object.is(v, -0) ? "-0" : v}` : v);
const out = [];
const kinds = { n: 38, d: 38, r: 6, p: 6, c: 8, t: 4 };
const bag = Object.entries(kinds).flatMap(([k, n]) => Array(n).fill(k));
const words = ["a", "A", "á", "ä", "b", "B", "z", "Z", "zebra", "Äpfel", "apfel", "Apfel", "résumé", "resume", "Resume", "ñ", "n", "ö", "o", "ø", "å", "Å", "æ", "ae", "ß", "ss", "item2", "item10", "item 2", "Item 10", "10", "9", "2", "", " ", "-", "_", "co-op", "coop", "CO-OP", "l", "ll", "ch", "h", "č", "c", "š", "ž", "я", "а", "б", "ж", "中", "文", "日本", "あ", "ア", "가", "나", "😀", "i", "I", "ı", "İ", "α", "β", "ω", "Ω", "$", "€", "(x)", "x", "č1", "aa", "Aa", "zz"];
let crashed = 0;
while (out.length < +count) {
  const l = locale(), k = pick(bag);
  let c;
  try {
    if (k === "n") { const o = numberOptions(), v = number(); const f = new Intl.NumberFormat(l, o); c = [k, l, o, enc(v), rnd(4) ? f.format(v) : f.formatToParts(v)]; }
    else if (k === "d") { const o = dateOptions(), v = instants(); const f = new Intl.DateTimeFormat(l, { timeZone: "UTC", ...o }); c = [k, l, o, v, rnd(4) ? f.format(v) : f.formatToParts(v)]; }
    else if (k === "r") { const o = clean({ style: maybe(60, () => pick(["long", "short", "narrow"])), numeric: maybe(60, () => pick(["auto", "always"])) }); const v = pick([0, -0, 1, -1, 2, -2, 3, 5, -5, 10, 21, 1.5, -12345, 100]); const u = pick(["second", "minute", "hour", "day", "week", "month", "quarter", "year", "days"]); c = [k, l, o, [enc(v), u], new Intl.RelativeTimeFormat(l, o).format(v, u)]; }
    else if (k === "p") { const o = clean({ type: maybe(50, () => pick(["cardinal", "ordinal"])), minimumFractionDigits: maybe(15, () => 1 + rnd(3)) }); const v = rnd(3) ? rnd(rnd(2) ? 30 : 1300) : pick([0.5, 1.0, 1.5, 2.1, 1e6, 2e6, 1000001, 1e15, -1, 0.1, 3.14, 1.1]); c = [k, l, o, v, new Intl.PluralRules(l, o).select(v)]; }
    else if (k === "c") { const o = clean({ sensitivity: maybe(50, () => pick(["base", "accent", "case", "variant"])), numeric: maybe(30, () => true), caseFirst: maybe(20, () => pick(["upper", "lower", "false"])), ignorePunctuation: maybe(15, () => true) }); const list = [...new Set(Array.from({ length: 12 }, () => pick(words)))]; const f = new Intl.Collator(l, o); const sorted = list.slice().sort((a, b) => f.compare(a, b) || (a < b ? -1 : 1)); c = [k, l, o, list, [sorted, sorted.slice(1).map((w, i) => f.compare(sorted[i], w))]]; }
    else { const o = clean({ type: maybe(70, () => pick(["conjunction", "disjunction", "unit"])), style: maybe(60, () => pick(["long", "short", "narrow"])) }); const v = ["Ana", "iglesia", "oro", "hielo", "x"].slice(0, 0 + rnd(6)); c = [k, l, o, v, new Intl.ListFormat(l, o).format(v)]; }
  } catch { crashed++; continue; }
  out.push(c);
}
console.log("[\n" + out.map((c) => JSON.stringify(c)).join(",\n") + "\n]");
