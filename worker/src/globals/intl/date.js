// Intl.DateTimeFormat and Date's toLocale* methods.
(function (native, p, Intl) {
  "use strict";
  const s = p.intl;
  const WIDTHS = ["narrow", "short", "long"];
  const DIGITS = ["2-digit", "numeric"];
  const STYLES = ["full", "long", "medium", "short"];
  const code = { __proto__: null, numeric: "n", "2-digit": "2", long: "l", short: "s", narrow: "n" };
  const monthCode = { __proto__: null, numeric: "n", "2-digit": "2", long: "l", short: "s", narrow: "w" };

  function timeZone(value) {
    if (value === undefined) return native.defaultTimeZone();
    const name = native.canonicalTimeZone(p.toWellFormed(p.text(value)));
    if (name === undefined) throw new p.RangeError("Invalid time zone specified: " + p.slice(p.text(value), 0, 60));
    return name;
  }

  function hourCycle(o, hour12, asked, extension) {
    const known = native.hourCycles(o.tag);
    if (hour12 !== undefined) return hour12 ? known[1] : known[2];
    if (asked !== undefined) return asked;
    if (extension === "h11" || extension === "h12" || extension === "h23" || extension === "h24") return extension;
    return known[0];
  }
  // `required` is "date", "time" or "any": which of them make a request complete;
  // `defaults` what is shown when it is not.
  function resolveDate(locales, given, required, defaults) {
    const { locale, keys } = s.resolve(locales);
    const options = s.coerce(given);
    s.option(options, "localeMatcher", ["lookup", "best fit"], "best fit");
    s.only("The calendar", s.option(options, "calendar", undefined, undefined) ?? keys.ca, ["gregory"]);
    s.only("The numbering system", s.option(options, "numberingSystem", undefined, undefined) ?? keys.nu, ["latn"]);
    const hour12 = options.hour12 === undefined ? undefined : !!options.hour12;
    const asked = s.option(options, "hourCycle", ["h11", "h12", "h23", "h24"], undefined);
    const o = { __proto__: null, tag: locale };
    o.timeZone = timeZone(options.timeZone);
    const weekday = s.option(options, "weekday", WIDTHS, undefined);
    o.era = s.option(options, "era", WIDTHS, undefined);
    const year = s.option(options, "year", DIGITS, undefined);
    const month = s.option(options, "month", ["2-digit", "numeric", "narrow", "short", "long"], undefined);
    const day = s.option(options, "day", DIGITS, undefined);
    const dayPeriod = s.option(options, "dayPeriod", WIDTHS, undefined);
    const hour = s.option(options, "hour", DIGITS, undefined);
    const minute = s.option(options, "minute", DIGITS, undefined);
    const second = s.option(options, "second", DIGITS, undefined);
    o.fraction = s.number(options.fractionalSecondDigits, 1, 3, 0, "fractionalSecondDigits");
    o.timeZoneName = s.option(options, "timeZoneName", ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"], undefined);
    if (o.timeZoneName === "shortGeneric" || o.timeZoneName === "longGeneric") {
      throw new p.RangeError("timeZoneName \"" + p.text(o.timeZoneName) + "\" is not available here; short, long, shortOffset and longOffset are");
    }
    s.option(options, "formatMatcher", ["basic", "best fit"], "best fit");
    o.dateStyle = s.option(options, "dateStyle", STYLES, undefined);
    o.timeStyle = s.option(options, "timeStyle", STYLES, undefined);
    if (dayPeriod !== undefined) throw new p.RangeError("The option dayPeriod is not available here; use hour12");
    o.hourCycle = hourCycle(o, hour12, asked, keys.hc);
    o.weekday = weekday === undefined ? "-" : code[weekday];
    o.year = year === undefined ? "-" : code[year];
    o.month = month === undefined ? "-" : monthCode[month];
    o.day = day === undefined ? "-" : code[day];
    o.hour = hour === undefined ? "-" : code[hour];
    o.minute = minute === undefined ? "-" : code[minute];
    o.second = second === undefined ? "-" : code[second];
    o.widths = { __proto__: null, weekday, month };
    complete(o, required, defaults);
    if (o.timeZoneName !== undefined && o.timeZoneName !== "short" && o.second !== "-" && locale !== "en-US" && locale !== "en") {
      throw new p.RangeError("timeZoneName \"" + p.text(o.timeZoneName) + "\" with seconds is not available here but in en-US; use timeStyle \"full\" or leave one out");
    }
    // Other sets of fields with an era are put together in ways that no table here has.
    if (o.era !== undefined && (o.year === "-" || o.day !== "-" && o.month === "-" || o.weekday !== "-" && o.day === "-")) {
      throw new p.RangeError("The option era is not available here without year, or with a day without its month");
    }
    return o;
  }

  function complete(o, required, defaults) {
    const styled = o.dateStyle !== undefined || o.timeStyle !== undefined;
    const dateAsked = o.weekday !== "-" || o.year !== "-" || o.month !== "-" || o.day !== "-";
    const timeAsked = o.hour !== "-" || o.minute !== "-" || o.second !== "-" || o.fraction !== 0;
    if (styled) {
      if (dateAsked || timeAsked || o.era !== undefined || o.timeZoneName !== undefined) {
        throw new p.TypeError("dateStyle and timeStyle go with neither date or time fields nor timeZoneName");
      }
      if (required === "date" && o.timeStyle !== undefined) throw new p.TypeError("Invalid option : timeStyle");
      if (required === "time" && o.dateStyle !== undefined) throw new p.TypeError("Invalid option : dateStyle");
      return;
    }
    if (required !== "time" && dateAsked || required !== "date" && timeAsked) return;
    if (defaults !== "time") o.year = o.month = o.day = "n";
    if (defaults !== "date") {
      o.hour = "n";
      o.minute = o.second = "n";
    }
  }

  function prepare(locales, options, required, defaults) {
    const o = resolveDate(locales, options, required, defaults);
    const json = s.json(o);
    o.pattern = native.datePattern(json);
    if (o.pattern === undefined) throw new p.RangeError("This combination of date and time options is not available here; format the date and the time one by one");
    return { __proto__: null, o, json };
  }

  function time(value) {
    let at = value === undefined ? p.Date.now() : value;
    if (typeof at === "object" && at !== null) {
      try {
        at = p.dateGetTime(at);
      } catch {
        at = +at;
      }
    } else {
      at = +at;
    }
    if (!(p.abs(at) <= 8.64e15)) throw new p.RangeError("Invalid time value");
    return p.trunc(at) + 0;
  }

  class DateTimeFormat {
    #o;
    #json;
    #format;
    constructor(locales = undefined, options = undefined) {
      const made = prepare(locales, options, "any", "date");
      this.#o = made.o;
      this.#json = made.json;
    }
    get format() {
      this.#format ??= ((json) => (date) => native.formatDate(json, time(date)))(this.#json);
      return this.#format;
    }
    formatToParts(date = undefined) {
      return s.partsArray(native.dateParts(this.#json, time(date)));
    }
    formatRange() {
      this.#json;
      throw new p.RangeError("Intl.DateTimeFormat formatRange is not available here; format the two dates one by one");
    }
    formatRangeToParts() {
      return this.formatRange();
    }
    resolvedOptions() {
      const o = this.#o;
      const has = (field) => p.indexOf(o.pattern, "{" + p.text(field)) >= 0;
      const digits = (one) => (has(p.text(one) + p.text(one) + "}") ? "2-digit" : has(p.text(one) + "}") ? "numeric" : undefined);
      const styled = o.dateStyle !== undefined || o.timeStyle !== undefined;
      const hours = digits("h") ?? digits("H") ?? digits("K") ?? digits("k");
      const cycle = has("h") ? "h12" : has("H") ? "h23" : has("K") ? "h11" : has("k") ? "h24" : undefined;
      const fields = styled ? { __proto__: null } : {
        __proto__: null, weekday: has("E") ? o.widths.weekday : undefined, era: has("G") ? o.era : undefined, year: digits("y"),
        month: has("N") ? o.widths.month : digits("M"), day: digits("d"), hour: hours,
        minute: digits("m"), second: digits("s"), fractionalSecondDigits: o.fraction || undefined, timeZoneName: o.timeZoneName,
      };
      return s.object({
        __proto__: null, locale: o.tag, calendar: "gregory", numberingSystem: "latn", timeZone: o.timeZone,
        hourCycle: cycle, hour12: cycle === undefined ? undefined : cycle === "h12" || cycle === "h11",
        ...fields, dateStyle: o.dateStyle, timeStyle: o.timeStyle,
      });
    }
  }
  s.publish("DateTimeFormat", DateTimeFormat, true);

  const plain = { __proto__: null };
  function show(date, locales, options, required, defaults) {
    const at = p.dateGetTime(date);
    if (at !== at) return "Invalid Date";
    if (locales === undefined && options === undefined) {
      // The zone is the evaluation's and may have been set after this was made.
      const kept = plain[required];
      if (kept !== undefined && kept.o.timeZone === native.defaultTimeZone()) return native.formatDate(kept.json, at);
      plain[required] = prepare(undefined, undefined, required, defaults);
      return native.formatDate(plain[required].json, at);
    }
    return native.formatDate(prepare(locales, options, required, defaults).json, at);
  }
  const methods = {
    toLocaleString(locales = undefined, options = undefined) {
      return show(this, locales, options, "any", "all");
    },
    toLocaleDateString(locales = undefined, options = undefined) {
      return show(this, locales, options, "date", "date");
    },
    toLocaleTimeString(locales = undefined, options = undefined) {
      return show(this, locales, options, "time", "time");
    },
  };
  for (const name of p.keys(methods)) {
    p.defineProperty(methods[name], "length", { __proto__: null, value: 0, configurable: true });
    s.method(p.Date.prototype, name, methods[name]);
  }
})
