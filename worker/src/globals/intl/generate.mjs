// Writes data/<locale>.json: everything locale-dependent that the formatters print, taken
// from the ICU of the Node that runs this (node generate.mjs). A pattern is text in which
// {…} stands for a field; names that vary (months, weekdays, day periods) are numbered sets.
import { writeFileSync, mkdirSync } from "node:fs";

const LOCALES = (process.argv[2] ?? "en-US,en-GB,en-CA,en-AU,en-IN,en-NZ,en-IE,en-ZA,en-SG,de-DE,de-AT,fr-FR,fr-CA,fr-CH,fr-BE,es-ES,es-MX,es-US,es-AR,it-IT,pt-BR,pt-PT,nl-NL,nl-BE,sv-SE,da-DK,nb-NO,fi-FI,pl-PL,cs-CZ,tr-TR,ru-RU,uk-UA,ja-JP,zh-CN,zh-TW,ko-KR,id-ID,hu-HU,ro-RO").split(",");
const out = new URL("./data/", import.meta.url);
mkdirSync(out, { recursive: true });
const warn = (...a) => console.error("WARN", ...a);

// ISO 4217, currencies in use.
const CURRENCIES = ("AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG").split(" ");
const UNITS = Intl.supportedValuesOf("unit").concat(["kilometer-per-hour", "mile-per-hour", "meter-per-second", "foot-per-second", "liter-per-kilometer", "mile-per-gallon",
  "bit-per-second", "kilobit-per-second", "megabit-per-second", "gigabit-per-second", "byte-per-second", "kilobyte-per-second", "megabyte-per-second", "gigabyte-per-second"]);
const SAMPLES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 15, 20, 21, 22, 25, 100, 101, 102, 0.5, 1.5, 2.5, 1000000, 2000000, 1100000];

function numberPattern(parts) {
  let text = "";
  for (const { type, value } of parts) {
    switch (type) {
      case "integer": case "group": case "decimal": case "fraction": if (!text.endsWith("{0}")) text += "{0}"; break;
      case "minusSign": text += "{-}"; break;
      case "plusSign": text += "{+}"; break;
      case "percentSign": text += "{%}"; break;
      case "currency": text += "{c}"; break;
      case "compact": text += `{k:${value}}`; break;
      case "unit": text += `{u:${value}}`; break;
      case "literal": text += value; break;
      default: throw new Error("part " + type);
    }
  }
  return text;
}
const np = (loc, opts, v) => numberPattern(new Intl.NumberFormat(loc, opts).formatToParts(v));
const signs = (loc, opts) => [np(loc, opts, 1), np(loc, opts, -1), np(loc, { ...opts, signDisplay: "always" }, 1)];

function byCategory(loc, what, format, samples = SAMPLES) {
  const rules = new Intl.PluralRules(loc);
  const found = {};
  for (const n of samples) {
    const pattern = format(n);
    if (pattern === undefined) continue;
    const cat = n === 1 && !pattern.includes("{0}") && pattern.includes("{k:") ? "=1" : rules.select(n);
    if (found[cat] !== undefined && found[cat] !== pattern) warn(loc, what, cat, n, found[cat], pattern);
    found[cat] ??= pattern;
  }
  const other = found.other ?? Object.values(found)[0];
  for (const cat of Object.keys(found)) if (cat !== "other" && found[cat] === other) delete found[cat];
  found.other = other;
  return Object.keys(found).length === 1 ? found.other : found;
}

function numbers(loc) {
  const data = {};
  const plain = new Intl.NumberFormat(loc).formatToParts(-1234567.5);
  const part = (parts, type) => parts.find((p) => p.type === type)?.value;
  data.decimal = part(plain, "decimal");
  data.group = part(plain, "group");
  data.minus = part(plain, "minusSign");
  data.plus = part(new Intl.NumberFormat(loc, { signDisplay: "always" }).formatToParts(1), "plusSign");
  data.percent = part(new Intl.NumberFormat(loc, { style: "percent" }).formatToParts(1), "percentSign");
  data.exponent = part(new Intl.NumberFormat(loc, { notation: "scientific" }).formatToParts(1e5), "exponentSeparator");
  data.expMinus = part(new Intl.NumberFormat(loc, { notation: "scientific" }).formatToParts(1e-5), "exponentMinusSign");
  data.nan = new Intl.NumberFormat(loc).format(NaN);
  data.infinity = new Intl.NumberFormat(loc).format(Infinity);
  const ints = plain.filter((p) => p.type === "integer").map((p) => p.value.length);
  data.grouping = [ints.at(-1), ints.at(-2)];
  data.minGrouping = new Intl.NumberFormat(loc).formatToParts(1234).some((p) => p.type === "group") ? 1 : 2;
  const cur = new Intl.NumberFormat(loc, { style: "currency", currency: "EUR" }).formatToParts(1234567.5);
  data.curDecimal = part(cur, "decimal");
  data.curGroup = part(cur, "group");
  data.decimalSigns = signs(loc, {});
  data.percentSigns = signs(loc, { style: "percent" });
  data.currency = {};
  for (const currencySign of ["standard", "accounting"]) {
    data.currency[currencySign] = ["narrowSymbol", "code"].map((currencyDisplay) =>
      signs(loc, { style: "currency", currency: "EUR", currencyDisplay, currencySign, maximumFractionDigits: 0 }));
  }
  data.curGrouping = ["standard", "accounting"].map((currencySign) => {
    const runs = new Intl.NumberFormat(loc, { style: "currency", currency: "EUR", currencySign }).formatToParts(1234567).filter((p) => p.type === "integer").map((p) => p.value.length);
    return [runs.at(-1), runs.at(-2)];
  });
  data.currencyNames = {};
  data.currencySymbols = {};
  data.currencyNarrow = {};
  data.currencyName = byCategory(loc, "cur name", (n) => np(loc, { style: "currency", currency: "USD", currencyDisplay: "name", minimumFractionDigits: 0 }, n));
  for (const currency of CURRENCIES) {
    const value = (currencyDisplay, n = 1) => part(new Intl.NumberFormat(loc, { style: "currency", currency, currencyDisplay, minimumFractionDigits: 0, maximumFractionDigits: 3 }).formatToParts(n), "currency");
    if (value("symbol") !== currency) data.currencySymbols[currency] = value("symbol");
    if (value("narrowSymbol") !== value("symbol")) data.currencyNarrow[currency] = value("narrowSymbol");
    data.currencyNames[currency] = byCategory(loc, currency, (n) => value("name", n));
  }
  data.units = {};
  for (const unit of UNITS) {
    data.units[unit] = ["short", "long", "narrow"].map((unitDisplay) => byCategory(loc, unit + unitDisplay, (n) => np(loc, { style: "unit", unit, unitDisplay }, n)));
  }
  data.compact = {};
  const sets = { short: { compactDisplay: "short" }, long: { compactDisplay: "long" } };
  for (const [i, currencyDisplay] of ["narrowSymbol", "code"].entries()) {
    for (const d of ["short", "long"]) sets[`${d}Currency${i}`] = { compactDisplay: d, style: "currency", currency: "EUR", currencyDisplay };
  }
  for (const [name, opts] of Object.entries(sets)) {
    const full = { notation: "compact", maximumFractionDigits: 2, ...opts };
    data.compact[name] = [];
    for (let m = 0; m <= 20; m++) {
      // Twice the power: French writes a lone thousand without a digit.
      const ints = new Intl.NumberFormat(loc, full).formatToParts(2 * 10 ** m).filter((p) => p.type === "integer").map((p) => p.value).join("");
      const shift = m - (ints.length - 1);
      const rows = [1, -1, 0].map((sign) => byCategory(loc, `compact ${name} ${m}`, (d) => {
        if (d === 0 || d >= 10 ** (m - shift + 1) || d < 10 ** (m - shift) || (d * 10) % 1) return undefined;
        const o = sign === 0 ? { ...full, signDisplay: "always" } : full;
        return np(loc, o, (sign === -1 ? -d : d) * 10 ** shift);
      }, [1, 1.1, 1.2, 1.5, 2, 2.1, 3, 4, 5, 6, 7, 9, 10, 11, 12, 15, 20, 21, 22, 25, 30, 50, 99, 100, 101, 102, 105, 111, 121, 200, 500, 10.5, 50.5, 100.5, 250.5, 500.5, 1000, 1001, 1002, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 10 ** (m - shift), 2 * 10 ** (m - shift)]));
      data.compact[name].push(i18nSame(rows, name) ? { shift, p: rows[0] } : { shift, p: rows[0], n: rows[1], s: rows[2] });
    }
  }
  return data;
}
// The sign of a plain compact number stands where decimalSigns puts it; only currencies differ.
const i18nSame = (rows, name) => !name.includes("Currency");

const MONTHS = Array.from({ length: 12 }, (_, m) => Date.UTC(2021, m, 5, 9, 5, 7, 89));
const WEEK = Array.from({ length: 7 }, (_, d) => Date.UTC(2021, 7, 1 + d, 9, 5, 7, 89)); // 1 August 2021 is a Sunday
const HOURS = Array.from({ length: 24 }, (_, h) => Date.UTC(2021, 2, 5, h, 5, 7, 89));

function dates(loc) {
  const data = { monthSets: [], weekdaySets: [], periodSets: [], eras: {}, patterns: [], dateTable: [], timeTable: {}, styles: {}, glue: [] };
  const setIndex = (list, values) => {
    const key = JSON.stringify(values);
    let i = list.findIndex((v) => JSON.stringify(v) === key);
    if (i < 0) i = list.push(values) - 1;
    return i;
  };
  const seen = new Map();
  const patternIndex = (text) => {
    if (!seen.has(text)) seen.set(text, data.patterns.push(text) - 1);
    return seen.get(text);
  };
  const digits = (v) => /^\d+$/.test(v);

  function pattern(opts) {
    const f = new Intl.DateTimeFormat(loc, { timeZone: "UTC", ...opts });
    const base = f.formatToParts(MONTHS[2]);
    let text = "";
    let months, week, hours;
    for (const [i, { type, value }] of base.entries()) {
      const at = (list) => list.map((t) => f.formatToParts(t)[i].value);
      switch (type) {
        case "literal": text += value; break;
        case "day": text += value === "5" ? "{d}" : value === "05" ? "{dd}" : bad(value); break;
        case "year": text += value === "2021" ? "{y}" : value === "21" ? "{yy}" : bad(value); break;
        case "month": text += value === "3" ? "{M}" : value === "03" ? "{MM}" : `{N${setIndex(data.monthSets, at(MONTHS))}}`; break;
        case "weekday": text += `{E${setIndex(data.weekdaySets, at(WEEK))}}`; break;
        case "era": text += "{G}"; break;
        case "hour": {
          const hs = at(HOURS);
          const c = hs[0].endsWith("12") ? "h" : hs[0].endsWith("24") ? "k" : digits(hs[13]) && +hs[13] === 1 ? "K" : "H";
          text += hs[9] === "9" ? `{${c}}` : hs[9] === "09" ? `{${c}${c}}` : bad(hs[9]);
          break;
        }
        case "minute": text += value === "5" ? "{m}" : value === "05" ? "{mm}" : bad(value); break;
        case "second": text += value === "7" ? "{s}" : value === "07" ? "{ss}" : bad(value); break;
        case "fractionalSecond": text += `{S${value.length}}`; break;
        case "dayPeriod": text += `{a${setIndex(data.periodSets, at(HOURS))}}`; break;
        case "timeZoneName": text += "{z}"; break;
        default: bad(type);
      }
    }
    return text;
    function bad(v) { throw new Error(`${loc} ${JSON.stringify(opts)} ${v}`); }
  }

  const W = { "-": undefined, l: "long", s: "short", n: "narrow" };
  // Zone names other than the short one share their patterns.
  const Z = { "-": undefined, s: "short", o: "longOffset" };
  const N = { "-": undefined, n: "numeric", 2: "2-digit" };
  const M = { ...N, l: "long", s: "short", w: "narrow" };
  const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));
  const date = {}, time_ = {};
  for (const g of "-s") for (const w of "-lsn") for (const y of "-n2") for (const m of "-n2lsw") for (const d of "-n2") {
    const key = w + y + m + d + g;
    if (key === "-----") { data.dateTable.push(-1); continue; }
    data.dateTable.push(date[key] = patternIndex(pattern(clean({ weekday: W[w], year: N[y], month: M[m], day: N[d], era: W[g] }))));
  }
  for (const hc of ["none", "h12", "h23", "h11", "h24"]) {
    const table = (data.timeTable[hc] = []);
    time_[hc] = {};
    for (const h of hc === "none" ? "-" : "n2") for (const mi of "-n2") for (const s of "-n2") for (const f of "0123") for (const z of "-so") {
      const key = h + mi + s + f + z;
      if (key === "---0-") { table.push(-1); continue; }
      const o = clean({ hour: N[h], minute: N[mi], second: N[s], fractionalSecondDigits: f === "0" ? undefined : +f, timeZoneName: Z[z], hourCycle: h === "-" ? undefined : hc });
      table.push(time_[hc][key] = patternIndex(h + mi + s + f === "---0" ? "{z}" : pattern(o)));
    }
  }
  const S = { "-": undefined, f: "full", l: "long", m: "medium", s: "short" };
  for (const hc of ["h12", "h23", "h11", "h24"]) {
    data.styles[hc] = {};
    for (const d of "-flms") for (const t of "-flms") {
      if (d + t === "--") continue;
      if (t === "-" && hc !== "h12") continue;
      data.styles[hc][d + t] = patternIndex(pattern(clean({ dateStyle: S[d], timeStyle: S[t], hourCycle: t === "-" ? undefined : hc })));
    }
  }
  const res = (o) => new Intl.DateTimeFormat(loc, o).resolvedOptions();
  const zone = (timeZone, timeZoneName) => new Intl.DateTimeFormat(loc, { timeZone, timeZoneName }).formatToParts(MONTHS[0]).find((p) => p.type === "timeZoneName").value;
  data.offsets = ["shortOffset", "longOffset"].map((n) => [zone("UTC", n), zone("Asia/Tokyo", n), zone("Asia/Kolkata", n), zone("America/Bogota", n)]);
  data.hourCycle = res({ hour: "numeric" }).hourCycle;
  data.hour12 = res({ hour: "numeric", hour12: true }).hourCycle;
  data.hour24 = res({ hour: "numeric", hour12: false }).hourCycle;
  for (const width of ["long", "short", "narrow"]) {
    const f = new Intl.DateTimeFormat(loc, { era: width, timeZone: "UTC" });
    data.eras[width] = [Date.UTC(-100, 1, 1), Date.UTC(2021, 1, 1)].map((t) => f.formatToParts(t).find((p) => p.type === "era").value);
  }

  // How a date and a time are joined depends on the width of the month only; weekday-only
  // and day-only dates may have patterns of their own with a time, so those are whole.
  const at = (k, o) => data.patterns[date[k]];
  const time = data.patterns[time_[data.hourCycle]["n220-"]];
  const glueOf = (key, o) => {
    const whole = pattern({ ...o, hour: "numeric", minute: "2-digit", second: "2-digit", hourCycle: data.hourCycle });
    const day = at(key);
    if (whole.startsWith(day) && whole.endsWith(time)) return whole.slice(day.length, whole.length - time.length);
    warn(loc, "glue", JSON.stringify(whole), JSON.stringify(day), JSON.stringify(time));
    return ", ";
  };
  data.glue = {
    f: glueOf("lnln-", { weekday: "long", year: "numeric", month: "long", day: "numeric" }),
    l: glueOf("-nln-", { year: "numeric", month: "long", day: "numeric" }),
    m: glueOf("-nsn-", { year: "numeric", month: "short", day: "numeric" }),
    s: glueOf("-nnn-", { year: "numeric", month: "numeric", day: "numeric" }),
  };
  const glueClass = (k) => (k[2] === "l" ? (k[0] === "-" ? "l" : "f") : k[2] === "s" ? "m" : "s");
  data.whole = {};
  let off = 0;
  const dateKeys = Object.keys(date).filter((k) => k[4] === "-");
  const times = [["h12", "n-"], ["h23", "n-"], ["h12", "n2"], ["h23", "22"], ["h12", "22"], ["h23", "n2"]];
  const variants = [];
  for (const hc of ["h12", "h23"]) for (const h of "n2") for (const mi of "-n2") for (const s of "-n2") for (const z of "-so") {
    if (mi === "-" && s !== "-") continue;
    variants.push([hc, h + mi + s + "0" + z]);
  }
  for (const k of dateKeys) {
    const few = k[1] + k[2] + k[3] === "---" ? variants : variants.filter((_, i) => i % 3 === 0);
    for (const [hc, t] of few) {
      const o = clean({ weekday: W[k[0]], year: N[k[1]], month: M[k[2]], day: N[k[3]], hour: N[t[0]], minute: N[t[1]], second: N[t[2]], timeZoneName: Z[t[4]], hourCycle: hc });
      const real = pattern(o);
      const made = at(k) + data.glue[glueClass(k)] + data.patterns[time_[hc][t]];
      if (real !== made) {
        data.whole[k.slice(0, 4) + t + hc] = patternIndex(real);
        if (off++ < 4) warn(loc, "whole", k, t, hc, JSON.stringify(real), JSON.stringify(made));
      }
    }
  }
  if (off) warn(loc, "wholes", off);
  return data;
}

function relative(loc) {
  const data = {};
  const pat = (parts) => parts.map((p) => (p.type === "literal" ? p.value : "")).length && parts.reduce((t, p) => (p.type === "literal" ? t + p.value : t.endsWith("{0}") ? t : t + "{0}"), "");
  for (const unit of ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]) {
    data[unit] = {};
    for (const style of ["long", "short", "narrow"]) {
      const always = new Intl.RelativeTimeFormat(loc, { style, numeric: "always" });
      const auto = new Intl.RelativeTimeFormat(loc, { style, numeric: "auto" });
      const auto3 = {};
      for (const n of [-2, -1, 0, 1, 2]) {
        const words = auto.formatToParts(n, unit);
        if (words.length === 1 && words[0].type === "literal") auto3[n] = words[0].value;
      }
      data[unit][style] = {
        past: byCategory(loc, unit + style, (n) => pat(always.formatToParts(-n, unit))),
        future: byCategory(loc, unit + style, (n) => pat(always.formatToParts(n, unit))),
        auto: auto3,
      };
    }
  }
  return data;
}

function lists(loc) {
  const data = {};
  for (const type of ["conjunction", "disjunction", "unit"]) for (const style of ["long", "short", "narrow"]) {
    const f = new Intl.ListFormat(loc, { type, style });
    const lits = (n) => f.formatToParts(["A", "B", "C", "D"].slice(0, n)).filter((p) => p.type === "literal").map((p) => p.value);
    const two = lits(2), four = lits(4);
    if (two.length !== 1 || four.length !== 3) warn(loc, "list", type, style, two, four);
    data[`${type} ${style}`] = [two[0] ?? "", four[0] ?? "", four[1] ?? "", four[2] ?? ""];
  }
  return data;
}

function displayNames(loc) {
  const data = {};
  const codes = (n, alphabet) => (n === 0 ? [""] : codes(n - 1, alphabet).flatMap((c) => [...alphabet].map((a) => c + a)));
  const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const pick = (type, list, style = "long") => {
    const f = new Intl.DisplayNames(loc, { type, style, fallback: "none" });
    const found = {};
    for (const code of list) {
      try { const name = f.of(code); if (name !== undefined) found[code] = name; } catch {}
    }
    return found;
  };
  data.region = pick("region", codes(2, upper).concat(["001", "419", "150", "142", "019", "002", "009"]));
  data.language = pick("language", codes(2, upper.toLowerCase()));
  data.currency = pick("currency", CURRENCIES);
  return data;
}

if (LOCALES.includes("en-US")) {
  const digits = {};
  for (const currency of CURRENCIES) {
    const n = new Intl.NumberFormat("en-US", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;
    if (n !== 2) digits[currency] = n;
  }
  writeFileSync(new URL("shared.json", out), JSON.stringify({ currencies: CURRENCIES, currencyDigits: digits, units: UNITS }) + "\n");
}

for (const loc of LOCALES) {
  const data = { locale: loc, numbers: numbers(loc), dates: dates(loc), relative: relative(loc), lists: lists(loc), names: displayNames(loc),
    plural: [...new Set(Array.from({ length: 1200 }, (_, i) => new Intl.PluralRules(loc).select(i)))] };
  const text = JSON.stringify(data);
  writeFileSync(new URL(`${loc}.json`, out), text + "\n");
  console.log(loc, text.length, Object.entries(data).map(([k, v]) => k + JSON.stringify(v).length).join(" "));
}
