// Intl.Collator, Intl.ListFormat, Intl.DisplayNames, and the locale methods of String and Array.
(function (native, p, Intl) {
  "use strict";
  const s = p.intl;

  function resolveCollator(locales, given) {
    const { locale, base, keys } = s.resolve(locales);
    const options = s.coerce(given);
    const usage = s.option(options, "usage", ["sort", "search"], "sort");
    if (usage === "search" && p.slice(base, 0, 2) !== "en") throw new p.RangeError("Collator usage \"search\" is available here for English only; use \"sort\"");
    s.option(options, "localeMatcher", ["lookup", "best fit"], "best fit");
    s.only("The collation", s.option(options, "collation", undefined, undefined) ?? keys.co, ["default", "standard"]);
    const extension = keys.kn === undefined ? false : keys.kn === "" || keys.kn === "true";
    const numeric = s.flag(options, "numeric", extension);
    const caseFirst = s.option(options, "caseFirst", ["upper", "lower", "false"], keys.kf ?? "default");
    const sensitivity = s.option(options, "sensitivity", ["base", "accent", "case", "variant"], "variant");
    const ignorePunctuation = s.flag(options, "ignorePunctuation", false);
    return {
      __proto__: null, locale, usage, sensitivity, ignorePunctuation, numeric,
      caseFirst: caseFirst === "default" ? (locale === "da-DK" || locale === "da" ? "upper" : "false") : caseFirst,
      spec: base + "/" + sensitivity + (numeric ? "/1/" : "/0/") + caseFirst + (ignorePunctuation ? "/1" : "/0"),
    };
  }
  const compare = (spec, a, b) => native.compare(spec, p.toWellFormed(a), p.toWellFormed(b));

  class Collator {
    #o;
    #compare;
    constructor(locales = undefined, options = undefined) {
      this.#o = resolveCollator(locales, options);
    }
    get compare() {
      this.#compare ??= ((spec) => (a, b) => compare(spec, p.text(a), p.text(b)))(this.#o.spec);
      return this.#compare;
    }
    resolvedOptions() {
      const { locale, usage, sensitivity, ignorePunctuation, numeric, caseFirst } = this.#o;
      return s.object({ __proto__: null, locale, usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst });
    }
  }
  s.publish("Collator", Collator, true);

  class ListFormat {
    #locale;
    #type;
    #style;
    constructor(locales = undefined, options = undefined) {
      const { locale } = s.resolve(locales);
      const given = s.getOptions(options);
      s.option(given, "localeMatcher", ["lookup", "best fit"], "best fit");
      this.#locale = locale;
      this.#type = s.option(given, "type", ["conjunction", "disjunction", "unit"], "conjunction");
      this.#style = s.option(given, "style", ["long", "short", "narrow"], "long");
    }
    #parts(items) {
      const list = p.list();
      if (items !== undefined) {
        for (const item of items) {
          if (typeof item !== "string") throw new p.TypeError("Iterable yielded a value that is not a string");
          list[list.length] = item;
        }
      }
      const patterns = native.listPatterns(this.#locale, this.#type + " " + this.#style);
      const flat = p.list();
      const put = (type, value) => {
        if (type === "literal" && value === "") return;
        flat[flat.length] = type;
        flat[flat.length] = value;
      };
      for (let i = 0; i < list.length; i++) {
        if (i > 0) put("literal", this.#between(patterns, list, i));
        put("element", list[i]);
      }
      return flat;
    }
    #between(patterns, list, i) {
      const last = i === list.length - 1;
      const glue = list.length === 2 ? patterns[0] : i === 1 ? patterns[1] : last ? patterns[3] : patterns[2];
      return last && p.slice(this.#locale, 0, 2) === "es" ? spanish(glue, list[i]) : glue;
    }
    format(items) {
      const flat = this.#parts(items);
      let text = "";
      for (let i = 1; i < flat.length; i += 2) text += flat[i];
      return text;
    }
    formatToParts(items) {
      return s.partsArray(this.#parts(items));
    }
    resolvedOptions() {
      return s.object({ __proto__: null, locale: this.#locale, type: this.#type, style: this.#style });
    }
  }
  // Spanish says "e" for "y" before an i sound, and "u" for "o" before an o sound.
  function spanish(glue, next) {
    if (glue === " y " && p.regexpExec(/^(?:i|hi(?!a|e))/i, next) !== null) return " e ";
    if (glue === " o " && p.regexpExec(/^(?:o|ho|8|11(?:\D|$|\d{3}(?:\D|$)))/i, next) !== null) return " u ";
    return glue;
  }
  s.publish("ListFormat", ListFormat, false);

  class DisplayNames {
    #locale;
    #type;
    #fallback;
    constructor(locales, options) {
      const { locale } = s.resolve(locales);
      if (options === undefined) throw new p.TypeError("DisplayNames needs options with a type");
      const given = s.getOptions(options);
      s.option(given, "localeMatcher", ["lookup", "best fit"], "best fit");
      const style = s.option(given, "style", ["narrow", "short", "long"], "long");
      const type = s.option(given, "type", ["language", "region", "script", "currency", "calendar", "dateTimeField"], undefined);
      if (type === undefined) throw new p.TypeError("Required option \"type\" must not be undefined");
      s.only("DisplayNames of type", type, ["region", "language", "currency"]);
      s.only("DisplayNames with style", style, ["long"]);
      this.#locale = locale;
      this.#type = type;
      this.#fallback = s.option(given, "fallback", ["code", "none"], "code");
    }
    of(code) {
      let key = p.text(code);
      const shape = this.#type === "region" ? /^(?:[A-Za-z]{2}|\d{3})$/ : this.#type === "currency" ? /^[A-Za-z]{3}$/ : /^[A-Za-z]{2,3}$/;
      if (p.regexpExec(shape, key) === null) {
        const longer = this.#type === "language" && native.canonicalTag(key) !== undefined;
        throw new p.RangeError(longer ? "DisplayNames knows plain languages such as \"fr\" only here" : ("Invalid argument to Intl.DisplayNames.prototype.of: " + p.slice(key, 0, 40)));
      }
      key = this.#type === "language" ? p.toLowerCase(key) : p.toUpperCase(key);
      const name = native.displayName(this.#locale, this.#type, key);
      if (name !== undefined) return name;
      return this.#fallback === "code" ? key : undefined;
    }
    resolvedOptions() {
      return s.object({ __proto__: null, locale: this.#locale, style: "long", type: this.#type, fallback: this.#fallback });
    }
  }
  s.publish("DisplayNames", DisplayNames, false);

  const thisText = (value, name) => {
    if (value === undefined || value === null) throw new p.TypeError("String.prototype." + p.text(name) + " called on null or undefined");
    return p.text(value);
  };
  function mapCase(text, locales, upper) {
    const list = s.canonicalList(locales);
    const language = list.length === 0 ? "en" : s.split(list[0]).base;
    return native.mapCase(text, language, upper);
  }
  let plain;
  const methods = {
    localeCompare(that, locales = undefined, options = undefined) {
      const a = thisText(this, "localeCompare");
      const b = p.text(that);
      plain ??= resolveCollator(undefined, undefined).spec;
      return compare(locales === undefined && options === undefined ? plain : resolveCollator(locales, options).spec, a, b);
    },
    toLocaleUpperCase(locales = undefined) {
      const text = thisText(this, "toLocaleUpperCase");
      if (locales === undefined) return p.toUpperCase(text);
      return lone(text) ? p.toUpperCase(text) : mapCase(text, locales, true);
    },
    toLocaleLowerCase(locales = undefined) {
      const text = thisText(this, "toLocaleLowerCase");
      if (locales === undefined) return p.toLowerCase(text);
      return lone(text) ? p.toLowerCase(text) : mapCase(text, locales, false);
    },
  };
  // The native side takes only well-formed text; half a character has no case anyway.
  const lone = (text) => p.toWellFormed(text) !== text;
  const arity = { __proto__: null, localeCompare: 1, toLocaleUpperCase: 0, toLocaleLowerCase: 0 };
  for (const name of p.keys(methods)) {
    p.defineProperty(methods[name], "length", { __proto__: null, value: arity[name], configurable: true });
    s.method(p.String.prototype, name, methods[name]);
  }

  // The engine's own version forgets to hand locale and options to the elements.
  const joining = p.list();
  function joinElements(list, length, locales, options) {
    for (let i = 0; i < joining.length; i++) if (joining[i] === list) return "";
    joining[joining.length] = list;
    try {
      let text = "";
      for (let i = 0; i < length; i++) {
        if (i > 0) text += ",";
        const element = list[i];
        if (element !== undefined && element !== null) text += p.text(element.toLocaleString(locales, options));
      }
      return text;
    } finally {
      joining.length -= 1;
    }
  }
  const arrays = {
    toLocaleString(locales = undefined, options = undefined) {
      if (this === undefined || this === null) throw new p.TypeError("Array.prototype.toLocaleString needs an array, not " + this);
      const list = p.Object(this);
      return joinElements(list, p.min(p.max(p.trunc(+list.length || 0), 0), 9007199254740991), locales, options);
    },
  };
  const typed = {
    toLocaleString(locales = undefined, options = undefined) {
      // `length` is 0 of an array that its buffer no longer has; this throws then.
      p.typedArrayValues(this);
      return joinElements(this, p.typedArrayLength(this), locales, options);
    },
  };
  for (const f of [arrays.toLocaleString, typed.toLocaleString]) p.defineProperty(f, "length", { __proto__: null, value: 0, configurable: true });
  s.method(p.Array.prototype, "toLocaleString", arrays.toLocaleString);
  s.method(p.getPrototypeOf(p.Uint8Array.prototype), "toLocaleString", typed.toLocaleString);
})
