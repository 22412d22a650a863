// Intl.NumberFormat, Intl.PluralRules, Intl.RelativeTimeFormat and Number's toLocaleString.
(function (native, p, Intl) {
  "use strict";
  const s = p.intl;
  const NUMERIC = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

  // A value as exact decimal text (ToIntlMathematicalValue).
  function numericText(value) {
    if (typeof value === "object" && value !== null || typeof value === "function") {
      const hook = value[p.Symbol.toPrimitive];
      value = hook === undefined || hook === null ? primitive(value) : p.apply(hook, value, ["number"]);
    }
    if (typeof value === "bigint") return p.bigintToString(value);
    if (typeof value === "string") {
      const text = p.trim(value);
      if (text.length > 0 && p.regexpExec(NUMERIC, text) !== null) return text;
    }
    const number = +value;
    return number === 0 && 1 / number < 0 ? "-0" : p.text(number);
  }
  function primitive(object) {
    const value = object.valueOf();
    return typeof value === "object" && value !== null || typeof value === "function" ? p.text(object) : value;
  }

  const modes = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];
  const increments = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];

  // SetNumberFormatDigitOptions.
  function digitOptions(o, options, least, most, compact) {
    const mnid = s.number(options.minimumIntegerDigits, 1, 21, 1, "minimumIntegerDigits");
    let mnfd = options.minimumFractionDigits;
    let mxfd = options.maximumFractionDigits;
    let mnsd = options.minimumSignificantDigits;
    let mxsd = options.maximumSignificantDigits;
    o.minimumIntegerDigits = mnid;
    const increment = s.number(options.roundingIncrement, 1, 5000, 1, "roundingIncrement");
    let known = false;
    for (let i = 0; i < increments.length; i++) known ||= increments[i] === increment;
    if (!known) throw new p.RangeError("roundingIncrement value is out of range.");
    const mode = s.option(options, "roundingMode", modes, "halfExpand");
    const priority = s.option(options, "roundingPriority", ["auto", "morePrecision", "lessPrecision"], "auto");
    const zeros = s.option(options, "trailingZeroDisplay", ["auto", "stripIfInteger"], "auto");
    if (increment !== 1) most = least;
    o.roundingIncrement = increment;
    o.roundingMode = mode;
    o.trailingZeroDisplay = zeros;
    const hasSd = mnsd !== undefined || mxsd !== undefined;
    const hasFd = mnfd !== undefined || mxfd !== undefined;
    let needSd = true;
    let needFd = true;
    if (priority === "auto") {
      needSd = hasSd;
      if (needSd || (!hasFd && compact)) needFd = false;
    }
    o.minimumFractionDigits = 0;
    o.maximumFractionDigits = 0;
    o.minimumSignificantDigits = 1;
    o.maximumSignificantDigits = 21;
    if (needSd && hasSd) {
      o.minimumSignificantDigits = mnsd = s.number(mnsd, 1, 21, 1, "minimumSignificantDigits");
      o.maximumSignificantDigits = s.number(mxsd, mnsd, 21, 21, "maximumSignificantDigits");
    }
    if (needFd) {
      if (hasFd) {
        mnfd = s.number(mnfd, 0, 100, undefined, "minimumFractionDigits");
        mxfd = s.number(mxfd, 0, 100, undefined, "maximumFractionDigits");
        if (mnfd === undefined) mnfd = p.min(least, mxfd);
        else if (mxfd === undefined) mxfd = p.max(most, mnfd);
        else if (mnfd > mxfd) throw new p.RangeError("maximumFractionDigits value is out of range: it is less than minimumFractionDigits");
        o.minimumFractionDigits = mnfd;
        o.maximumFractionDigits = mxfd;
      } else {
        o.minimumFractionDigits = least;
        o.maximumFractionDigits = most;
      }
    }
    if (!needSd && !needFd) {
      o.maximumSignificantDigits = 2;
      o.roundingType = "morePrecision";
      o.roundingPriority = "morePrecision";
    } else if (priority !== "auto") {
      o.roundingType = priority;
      o.roundingPriority = priority;
    } else {
      o.roundingType = hasSd ? "significantDigits" : "fractionDigits";
      o.roundingPriority = "auto";
    }
    if (increment !== 1) {
      if (o.roundingType !== "fractionDigits") throw new p.TypeError("roundingIncrement value is out of range.");
      if (o.maximumFractionDigits !== o.minimumFractionDigits) throw new p.RangeError("roundingIncrement value is out of range.");
    }
  }

  function resolveNumber(locales, given) {
    const { locale, keys } = s.resolve(locales);
    const options = s.coerce(given);
    s.option(options, "localeMatcher", ["lookup", "best fit"], "best fit");
    const digits = s.option(options, "numberingSystem", undefined, undefined);
    s.only("The numbering system", digits ?? keys.nu, ["latn"]);
    const o = { __proto__: null, tag: locale };
    o.style = s.option(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
    styleOptions(o, options);
    o.notation = s.option(options, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
    const compact = o.notation === "compact";
    const money = o.style === "currency";
    const least = money ? native.currencyDigits(o.currency) : 0;
    const most = money ? least : o.style === "percent" ? 0 : 3;
    digitOptions(o, options, least, most, compact);
    const display = s.option(options, "compactDisplay", ["short", "long"], "short");
    if (compact) o.compactDisplay = display;
    o.useGrouping = grouping(options.useGrouping, compact ? "min2" : "auto");
    o.signDisplay = s.option(options, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto");
    refuse(o, locale, compact);
    return o;
  }

  // What ICU puts together from more than the tables here hold, or puts together wrongly.
  function refuse(o, locale, compact) {
    const english = p.slice(locale, 0, 2) === "en";
    const words = o.currencyDisplay === "name" || o.style === "unit" || o.style === "percent";
    if (compact && words && !english) throw new p.RangeError("notation \"compact\" with percent, units or currency names is not available here but in English");
    if ((o.notation === "scientific" || o.notation === "engineering") && (o.currencyDisplay === "name" || o.unitDisplay === "long") && !english) {
      throw new p.RangeError("notation \"" + o.notation + "\" with units or currency names is not available here but in English");
    }
    if (compact && o.currencySign === "accounting") throw new p.RangeError("currencySign \"accounting\" with notation \"compact\" is not available here");
    if (o.currencyDisplay === "name" && locale === "tr-TR") throw new p.RangeError("currencyDisplay \"name\" is not available here in tr-TR; use \"code\" or \"symbol\"");
  }

  function styleOptions(o, options) {
    const currency = s.option(options, "currency", undefined, undefined);
    if (currency !== undefined && p.regexpExec(/^[A-Za-z]{3}$/, currency) === null) throw new p.RangeError("Invalid currency code : " + p.slice(currency, 0, 20));
    const currencyDisplay = s.option(options, "currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
    const currencySign = s.option(options, "currencySign", ["standard", "accounting"], "standard");
    const unit = s.option(options, "unit", undefined, undefined);
    const unitDisplay = s.option(options, "unitDisplay", ["short", "narrow", "long"], "short");
    if (o.style === "currency") {
      if (currency === undefined) throw new p.TypeError("Currency code is required with currency style.");
      o.currency = p.toUpperCase(currency);
      if (!native.hasCurrency(o.currency)) throw new p.RangeError("The currency " + p.text(o.currency) + " is not available here; Intl.supportedValuesOf(\"currency\") lists those that are");
      o.currencyDisplay = currencyDisplay;
      o.currencySign = currencySign;
    }
    if (unit !== undefined && !native.hasUnit(unit)) throw new p.RangeError("The unit \"" + p.slice(unit, 0, 60) + "\" is not available here; Intl.supportedValuesOf(\"unit\") lists those that are, and some like \"kilometer-per-hour\"");
    if (o.style === "unit") {
      if (unit === undefined) throw new p.TypeError("Unit is required with unit style.");
      o.unit = unit;
      o.unitDisplay = unitDisplay;
    }
  }

  function grouping(value, fallback) {
    if (value === undefined) return fallback;
    if (value === true) return "always";
    if (value === false || value === null || !value) return "false";
    const text = p.text(value);
    if (text === "true" || text === "false") return fallback;
    return s.option({ __proto__: null, useGrouping: text }, "useGrouping", ["min2", "auto", "always"], fallback);
  }

  const usesFraction = (o) => o.roundingType !== "significantDigits";
  const usesSignificant = (o) => o.roundingType !== "fractionDigits";
  function digitMembers(o) {
    return {
      __proto__: null,
      minimumIntegerDigits: o.minimumIntegerDigits,
      minimumFractionDigits: usesFraction(o) ? o.minimumFractionDigits : undefined,
      maximumFractionDigits: usesFraction(o) ? o.maximumFractionDigits : undefined,
      minimumSignificantDigits: usesSignificant(o) ? o.minimumSignificantDigits : undefined,
      maximumSignificantDigits: usesSignificant(o) ? o.maximumSignificantDigits : undefined,
    };
  }

  class NumberFormat {
    #o;
    #json;
    #format;
    constructor(locales = undefined, options = undefined) {
      this.#o = resolveNumber(locales, options);
      this.#json = s.json(this.#o);
    }
    get format() {
      this.#format ??= ((json) => (value) => native.formatNumber(json, numericText(value)))(this.#json);
      return this.#format;
    }
    formatToParts(value) {
      return s.partsArray(native.numberParts(this.#json, numericText(value)));
    }
    formatRange() {
      this.#json;
      throw new p.RangeError("Intl.NumberFormat formatRange is not available here; format the two numbers one by one");
    }
    formatRangeToParts() {
      return this.formatRange();
    }
    resolvedOptions() {
      const o = this.#o;
      return s.object({
        __proto__: null, locale: o.tag, numberingSystem: "latn", style: o.style, currency: o.currency,
        currencyDisplay: o.currencyDisplay, currencySign: o.currencySign, unit: o.unit, unitDisplay: o.unitDisplay,
        ...digitMembers(o), useGrouping: o.useGrouping === "false" ? false : o.useGrouping, notation: o.notation,
        compactDisplay: o.compactDisplay, signDisplay: o.signDisplay, roundingIncrement: o.roundingIncrement,
        roundingMode: o.roundingMode, roundingPriority: o.roundingPriority, trailingZeroDisplay: o.trailingZeroDisplay,
      });
    }
  }
  s.publish("NumberFormat", NumberFormat, true);

  const plainRules = (tag) => ({
    __proto__: null, tag, style: "decimal", notation: "standard", signDisplay: "auto", useGrouping: "auto",
  });

  class PluralRules {
    #o;
    #json;
    #ordinal;
    constructor(locales = undefined, options = undefined) {
      const { locale } = s.resolve(locales);
      const given = s.coerce(options);
      s.option(given, "localeMatcher", ["lookup", "best fit"], "best fit");
      const type = s.option(given, "type", ["cardinal", "ordinal"], "cardinal");
      this.#ordinal = type === "ordinal";
      this.#o = plainRules(locale);
      digitOptions(this.#o, given, 0, 3, false);
      this.#json = s.json(this.#o);
    }
    select(value) {
      return native.plural(this.#json, numericText(+value), this.#ordinal);
    }
    resolvedOptions() {
      const o = this.#o;
      const pluralCategories = [];
      const known = native.pluralCategories(o.tag, this.#ordinal);
      for (let i = 0; i < known.length; i++) s.push(pluralCategories, known[i]);
      return s.object({
        __proto__: null, locale: o.tag, type: this.#ordinal ? "ordinal" : "cardinal", ...digitMembers(o), pluralCategories,
        roundingIncrement: o.roundingIncrement, roundingMode: o.roundingMode, roundingPriority: o.roundingPriority,
        trailingZeroDisplay: o.trailingZeroDisplay,
      });
    }
  }
  s.publish("PluralRules", PluralRules, false);

  const units = { __proto__: null };
  for (const unit of ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]) {
    units[unit] = unit;
    units[unit + "s"] = unit;
  }

  class RelativeTimeFormat {
    #locale;
    #style;
    #numeric;
    #number;
    constructor(locales = undefined, options = undefined) {
      const { locale, keys } = s.resolve(locales);
      const given = s.coerce(options);
      s.option(given, "localeMatcher", ["lookup", "best fit"], "best fit");
      s.only("The numbering system", s.option(given, "numberingSystem", undefined, undefined) ?? keys.nu, ["latn"]);
      this.#locale = locale;
      this.#style = s.option(given, "style", ["long", "short", "narrow"], "long");
      this.#numeric = s.option(given, "numeric", ["always", "auto"], "always");
      const o = plainRules(locale);
      digitOptions(o, { __proto__: null }, 0, 3, false);
      this.#number = s.json(o);
    }
    #parts(value, unit) {
      const number = +value;
      const name = units[p.text(unit)];
      if (name === undefined) throw new p.RangeError("Invalid unit argument for format() '" + p.slice(p.text(unit), 0, 40) + "'; it takes second, minute, hour, day, week, month, quarter, year");
      if (!(p.abs(number) < 1 / 0)) throw new p.RangeError("The value for RelativeTimeFormat must be a finite number");
      const options = s.json({ __proto__: null, tag: this.#locale, unit: name, style: this.#style, auto: this.#numeric === "auto" });
      return native.relativeParts(options, this.#number, numericText(number));
    }
    format(value, unit) {
      const parts = this.#parts(value, unit);
      let text = "";
      for (let i = 1; i < parts.length; i += 3) text += parts[i];
      return text;
    }
    formatToParts(value, unit) {
      const parts = this.#parts(value, unit);
      const out = [];
      for (let i = 0; i < parts.length; i += 3) {
        s.push(out, s.object({ __proto__: null, type: parts[i], value: parts[i + 1], unit: parts[i + 2] === "" ? undefined : parts[i + 2] }));
      }
      return out;
    }
    resolvedOptions() {
      return s.object({ __proto__: null, locale: this.#locale, style: this.#style, numeric: this.#numeric, numberingSystem: "latn" });
    }
  }
  s.publish("RelativeTimeFormat", RelativeTimeFormat, false);

  // Without locale and options the answer is always the same formatter's.
  let plain;
  function show(text, locales, options) {
    if (locales === undefined && options === undefined) {
      plain ??= s.json(resolveNumber(undefined, undefined));
      return native.formatNumber(plain, text);
    }
    return native.formatNumber(s.json(resolveNumber(locales, options)), text);
  }
  const number = {
    toLocaleString(locales = undefined, options = undefined) {
      return show(numericText(p.numberValueOf(this)), locales, options);
    },
  };
  const bigint = {
    toLocaleString(locales = undefined, options = undefined) {
      return show(p.bigintToString(p.bigintValueOf(this)), locales, options);
    },
  };
  s.method(p.Number.prototype, "toLocaleString", number.toLocaleString);
  s.method(p.BigInt.prototype, "toLocaleString", bigint.toLocaleString);
  for (const f of [number.toLocaleString, bigint.toLocaleString]) p.defineProperty(f, "length", { __proto__: null, value: 0, configurable: true });
})
