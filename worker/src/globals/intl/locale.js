// What the Intl constructors share: locale lists, option reading, parts.
(function (native, p, Intl) {
  "use strict";
  const shared = (p.intl = { __proto__: null });
  const push = (list, item) => p.defineProperty(list, list.length, { __proto__: null, value: item, writable: true, enumerable: true, configurable: true });
  const shownValue = (value) => p.slice(typeof value === "symbol" ? "a symbol" : p.text(value), 0, 60);
  shared.push = push;

  // A plain object whose members no setter on Object.prototype can catch.
  shared.object = (members) => {
    const out = {};
    const names = p.ownKeys(members);
    for (let i = 0; i < names.length; i++) {
      if (members[names[i]] !== undefined) p.defineProperty(out, names[i], { __proto__: null, value: members[names[i]], writable: true, enumerable: true, configurable: true });
    }
    return out;
  };

  function canonicalList(locales) {
    const out = p.list();
    const add = (tag) => {
      if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) throw new p.TypeError("A locale must be a string such as \"en-US\"");
      const canonical = native.canonicalTag(p.toWellFormed(p.text(tag)));
      if (canonical === undefined) throw new p.RangeError("Incorrect locale information provided: \"" + shownValue(tag) + "\"");
      for (let i = 0; i < out.length; i++) if (out[i] === canonical) return;
      out[out.length] = canonical;
    };
    if (locales === undefined) return out;
    if (locales === null) throw new p.TypeError("Cannot convert null to a list of locales");
    if (typeof locales === "string" || isLocale(locales)) {
      add(locales);
      return out;
    }
    const list = p.Object(locales);
    const length = p.min(p.max(p.trunc(+list.length || 0), 0), 9007199254740991);
    for (let i = 0; i < length; i++) if (i in list) add(list[i]);
    return out;
  }
  let isLocale = () => false;
  shared.canonicalList = canonicalList;

  function split(tag) {
    const parts = native.splitTag(tag);
    const keys = { __proto__: null };
    for (let i = 1; i < parts.length; i += 2) keys[parts[i]] = parts[i + 1];
    return { __proto__: null, base: parts[0], keys };
  }
  shared.split = split;

  // The first locale of the request that is offered. None is not the default: it is refused,
  // since text in another language than the one asked for would be wrong without a word.
  shared.resolve = (locales) => {
    const list = canonicalList(locales);
    if (list.length === 0) return { __proto__: null, locale: "en-US", base: "en-US", keys: { __proto__: null } };
    for (let i = 0; i < list.length; i++) {
      const { base, keys } = split(list[i]);
      if (native.hasLocale(base)) return { __proto__: null, locale: base, base, keys };
    }
    throw new p.RangeError("The locale \"" + shownValue(list[0]) + "\" is not available here; these are: " + p.text(native.offeredLocales()));
  };

  shared.supportedLocalesOf = (locales, options) => {
    const list = canonicalList(locales);
    if (options !== undefined) shared.option(shared.coerce(options), "localeMatcher", ["lookup", "best fit"], "best fit");
    const out = [];
    for (let i = 0; i < list.length; i++) if (native.hasLocale(split(list[i]).base)) push(out, list[i]);
    return out;
  };

  shared.coerce = (options) => (options === undefined ? { __proto__: null } : p.Object(nonNull(options)));
  shared.getOptions = (options) => {
    if (options === undefined) return { __proto__: null };
    if (typeof options !== "object" && typeof options !== "function" || options === null) throw new p.TypeError("The options must be an object");
    return options;
  };
  function nonNull(value) {
    if (value === null) throw new p.TypeError("Cannot convert null to an object");
    return value;
  }

  shared.option = (options, name, allowed, fallback) => {
    let value = options[name];
    if (value === undefined) return fallback;
    value = p.text(value);
    if (allowed !== undefined) {
      let found = false;
      for (let i = 0; i < allowed.length; i++) found ||= allowed[i] === value;
      if (!found) throw new p.RangeError("Value " + shownValue(value) + " out of range for Intl options property " + p.text(name) + "; it takes " + p.text(p.join(allowed, ", ")));
    }
    return value;
  };
  shared.flag = (options, name, fallback) => (options[name] === undefined ? fallback : !!options[name]);
  shared.number = (value, low, high, fallback, name) => {
    if (value === undefined) return fallback;
    const n = +value;
    if (!(n >= low && n <= high)) throw new p.RangeError(p.text(name) + " value is out of range: it takes " + p.text(low) + " to " + p.text(high));
    return p.trunc(n);
  };
  // A -u- keyword or option that asks for what is not here is refused too.
  shared.only = (what, value, allowed) => {
    if (value === undefined) return;
    for (let i = 0; i < allowed.length; i++) if (allowed[i] === value) return;
    throw new p.RangeError(p.text(what) + " \"" + shownValue(value) + "\" is not available here; " + p.text(p.join(allowed, ", ")) + " is");
  };

  shared.partsArray = (flat) => {
    const out = [];
    for (let i = 0; i < flat.length; i += 2) push(out, shared.object({ __proto__: null, type: flat[i], value: flat[i + 1] }));
    return out;
  };

  // Text of options for the native side.
  const stringify = JSON.stringify;
  shared.json = (members) => stringify(members);

  // Puts a constructor into Intl. `callable` ones work without new, as they always have.
  shared.publish = (name, C, callable) => {
    let exposed = C;
    if (callable) {
      const construct = Reflect.construct;
      exposed = { [name]: function (locales = undefined, options = undefined) {
        return construct(C, [locales, options], new.target === undefined ? exposed : new.target);
      } }[name];
      p.defineProperty(exposed, "length", { __proto__: null, value: 0, configurable: true });
      p.defineProperty(exposed, "prototype", { __proto__: null, value: C.prototype, writable: false });
      p.defineProperty(C.prototype, "constructor", { __proto__: null, value: exposed, writable: true, enumerable: false, configurable: true });
    } else {
      p.defineProperty(C, "length", { __proto__: null, value: 0, configurable: true });
    }
    const { supportedLocalesOf } = { supportedLocalesOf(locales, options = undefined) { return shared.supportedLocalesOf(locales, options); } };
    p.defineProperty(exposed, "supportedLocalesOf", { __proto__: null, value: supportedLocalesOf, writable: true, enumerable: false, configurable: true });
    p.tag(C, "Intl." + p.text(name));
    p.defineProperty(Intl, name, { __proto__: null, value: exposed, writable: true, enumerable: false, configurable: true });
    return exposed;
  };
  shared.method = (target, name, f) => p.defineProperty(target, name, { __proto__: null, value: f, writable: true, enumerable: false, configurable: true });

  const holder = {
    getCanonicalLocales(locales) {
      const list = canonicalList(locales);
      const out = [];
      for (let i = 0; i < list.length; i++) push(out, list[i]);
      return out;
    },
    supportedValuesOf(key) {
      const kind = p.text(key);
      const fixed = { __proto__: null, calendar: ["gregory"], collation: ["default"], numberingSystem: ["latn"] };
      const known = fixed[kind] ?? (kind === "currency" || kind === "unit" || kind === "timeZone" ? native.list(kind) : undefined);
      if (known === undefined) throw new p.RangeError("Invalid key : " + shownValue(kind));
      const out = [];
      for (let i = 0; i < known.length; i++) push(out, known[i]);
      return out;
    },
  };
  shared.method(Intl, "getCanonicalLocales", holder.getCanonicalLocales);
  shared.method(Intl, "supportedValuesOf", holder.supportedValuesOf);

  class Locale {
    #tag;
    #parts;
    constructor(tag, options = undefined) {
      if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) throw new p.TypeError("First argument to Intl.Locale constructor can't be empty or missing");
      const given = shared.getOptions(options);
      const names = ["language", "script", "region", "calendar", "collation", "hourCycle", "caseFirst", "numeric", "numberingSystem"];
      for (let i = 0; i < names.length; i++) {
        if (given[names[i]] !== undefined) throw new p.RangeError("Intl.Locale takes no options here; write them into the tag, as in \"en-US-u-hc-h23\"");
      }
      this.#tag = canonicalList([p.text(tag)])[0];
      this.#parts = split(this.#tag);
    }
    static {
      isLocale = (value) => typeof value === "object" && value !== null && #tag in value;
    }
    #subtag(test) {
      const text = this.#parts.base;
      let from = 0;
      for (let index = 0; from <= text.length; index++) {
        const end = p.indexOf(text, "-", from);
        const part = p.slice(text, from, end < 0 ? text.length : end);
        if (test(part, index)) return part;
        if (end < 0) return undefined;
        from = end + 1;
      }
      return undefined;
    }
    get baseName() { return this.#parts.base; }
    get language() { return this.#subtag((_, i) => i === 0); }
    get script() { return this.#subtag((part, i) => i > 0 && part.length === 4 && p.regexpExec(/^[A-Z]/, part) !== null); }
    get region() { return this.#subtag((part, i) => i > 0 && p.regexpExec(/^(?:[A-Z]{2}|[0-9]{3})$/, part) !== null); }
    get calendar() { return this.#parts.keys.ca; }
    get collation() { return this.#parts.keys.co; }
    get hourCycle() { return this.#parts.keys.hc; }
    get caseFirst() { return this.#parts.keys.kf; }
    get numeric() { return this.#parts.keys.kn === "" || this.#parts.keys.kn === "true"; }
    get numberingSystem() { return this.#parts.keys.nu; }
    toString() { return this.#tag; }
  }
  p.tag(Locale, "Intl.Locale");
  p.defineProperty(Locale, "length", { __proto__: null, value: 1, configurable: true });
  shared.method(Intl, "Locale", Locale);

  p.defineProperty(Intl, p.SymbolToStringTag, { __proto__: null, value: "Intl", configurable: true });
  p.expose("Intl", Intl);
})
