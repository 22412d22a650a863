// performance: a clock that starts with the evaluation, marks and measures.
(function (native, p, uncloneable) {
  "use strict";
  const internal = { __proto__: null };

  class PerformanceEntry {
    #entry;
    constructor(key = undefined, entry = undefined) {
      if (key !== internal) throw new p.TypeError("Illegal constructor");
      this.#entry = entry;
    }
    get name() { return this.#entry.name; }
    get entryType() { return this.#entry.entryType; }
    get startTime() { return this.#entry.startTime; }
    get duration() { return this.#entry.duration; }
    get detail() { return this.#entry.detail; }
    toJSON() {
      const { name, entryType, startTime, duration, detail } = this.#entry;
      return { name, entryType, startTime, duration, detail };
    }
  }

  class Performance {
    #entries = p.list();
    constructor(key = undefined) {
      if (key !== internal) throw new p.TypeError("Illegal constructor");
    }
    #add(name, entryType, startTime, duration, detail) {
      const entry = new PerformanceEntry(internal, { __proto__: null, name, entryType, startTime, duration, detail });
      this.#entries[this.#entries.length] = entry;
      return entry;
    }
    #moment(at, fallback) {
      if (at === undefined) return fallback;
      if (typeof at === "number") return at;
      const name = p.text(at);
      for (let i = this.#entries.length - 1; i >= 0; i--) {
        const entry = this.#entries[i];
        if (entry.entryType === "mark" && entry.name === name) return entry.startTime;
      }
      throw new p.DOMException("The performance mark \"" + p.slice(name, 0, 60) + "\" has not been set", "SyntaxError");
    }
    #select(test) {
      const out = p.list();
      for (let i = 0; i < this.#entries.length; i++) if (test(this.#entries[i])) out[out.length] = this.#entries[i];
      p.sort(out, (a, b) => a.startTime - b.startTime);
      return p.setPrototypeOf(out, p.Array.prototype);
    }
    #drop(entryType, name) {
      const kept = p.list();
      for (let i = 0; i < this.#entries.length; i++) {
        const entry = this.#entries[i];
        if (entry.entryType !== entryType || (name !== undefined && entry.name !== p.text(name))) kept[kept.length] = entry;
      }
      this.#entries = kept;
    }
    get timeOrigin() {
      this.#entries;
      return native.timeOrigin();
    }
    now() {
      this.#entries;
      return native.now();
    }
    mark(name, options = undefined) {
      const start = options != null && options.startTime !== undefined ? +options.startTime : native.now();
      const detail = options != null && options.detail !== undefined ? options.detail : null;
      return this.#add(p.text(name), "mark", start, 0, detail);
    }
    measure(name, from = undefined, to = undefined) {
      const object = typeof from === "object" && from !== null;
      const detail = object && from.detail !== undefined ? from.detail : null;
      let start = this.#moment(object ? from.start : from, undefined);
      let end = this.#moment(object ? from.end : to, undefined);
      if (object && from.duration !== undefined) {
        if (start === undefined && end !== undefined) start = end - from.duration;
        else if (end === undefined) end = (start ?? 0) + +from.duration;
      }
      start ??= 0;
      end ??= native.now();
      return this.#add(p.text(name), "measure", start, end - start, detail);
    }
    getEntries() { return this.#select(() => true); }
    getEntriesByType(type) { return this.#select((e) => e.entryType === p.text(type)); }
    getEntriesByName(name, type = undefined) {
      return this.#select((e) => e.name === p.text(name) && (type === undefined || e.entryType === p.text(type)));
    }
    clearMarks(name = undefined) { this.#drop("mark", name); }
    clearMeasures(name = undefined) { this.#drop("measure", name); }
    toJSON() { return { timeOrigin: this.timeOrigin }; }
  }

  p.enumerable(PerformanceEntry.prototype, "name", "entryType", "startTime", "duration", "detail", "toJSON");
  p.enumerable(Performance.prototype, "timeOrigin", "now", "mark", "measure", "getEntries", "getEntriesByType",
    "getEntriesByName", "clearMarks", "clearMeasures", "toJSON");
  p.tag(Performance, "Performance");
  p.tag(PerformanceEntry, "PerformanceEntry");
  p.expose("performance", new Performance(internal));
  uncloneable(Performance);
  uncloneable(PerformanceEntry);
})
