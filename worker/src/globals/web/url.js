// URL and URLSearchParams. Parsing and every setter are native; what is kept here is one
// serialised URL, or one flat list of names and values.
(function (native, p, uncloneable) {
  "use strict";
  let listOf, newParams, refill, syncUrl;

  function flatten(init) {
    const list = p.list();
    const pair = (name, value) => {
      list[list.length] = p.usv(name);
      list[list.length] = p.usv(value);
    };
    if (init === undefined || init === null) return list;
    if (typeof init !== "object" && typeof init !== "function") {
      const text = p.usv(init);
      return asList(native.parseQuery(text[0] === "?" ? p.slice(text, 1) : text));
    }
    const iterator = init[p.SymbolIterator];
    if (iterator !== undefined && iterator !== null) {
      for (const entry of init) {
        const parts = p.list();
        if (entry === null || typeof entry !== "object") throw new p.TypeError("URLSearchParams: each query pair must be a [name, value] tuple");
        for (const part of entry) parts[parts.length] = part;
        if (parts.length !== 2) throw new p.TypeError("URLSearchParams: each query pair must be a [name, value] tuple");
        pair(parts[0], parts[1]);
      }
      return list;
    }
    const names = p.ownKeys(init);
    for (let i = 0; i < names.length; i++) {
      const own = p.getOwnPropertyDescriptor(init, names[i]);
      if (own !== undefined && own.enumerable) pair(names[i], init[names[i]]);
    }
    return list;
  }

  const asList = (array) => p.setPrototypeOf(array, null);
  // The native side takes a plain array of strings and touches only its indices.
  const serialize = (list) => native.formatQuery(list);

  const IteratorPrototype = p.getPrototypeOf(p.getPrototypeOf([][p.SymbolIterator]()));
  class Cursor {
    #list;
    #kind;
    #at = 0;
    constructor(list, kind) {
      this.#list = list;
      this.#kind = kind;
    }
    next() {
      const list = this.#list();
      if (this.#at >= list.length) return { value: undefined, done: true };
      const name = list[this.#at];
      const value = list[this.#at + 1];
      this.#at += 2;
      return { value: this.#kind === 0 ? [name, value] : this.#kind === 1 ? name : value, done: false };
    }
  }
  p.setPrototypeOf(Cursor.prototype, IteratorPrototype);
  p.tag(Cursor, "URLSearchParams Iterator");
  delete Cursor.prototype.constructor;

  class URLSearchParams {
    #list;
    #url = null;
    constructor(init = "") {
      this.#list = flatten(init);
    }
    static {
      listOf = (params) => params.#list;
      newParams = (url, query) => {
        const params = new URLSearchParams();
        params.#url = url;
        params.#list = asList(native.parseQuery(query));
        return params;
      };
      refill = (params, query) => {
        params.#list = asList(native.parseQuery(query));
      };
    }
    #changed() {
      if (this.#url !== null) syncUrl(this.#url, serialize(this.#list));
    }
    get size() {
      return this.#list.length / 2;
    }
    append(name, value) {
      if (arguments.length < 2) throw new p.TypeError("URLSearchParams.append needs a name and a value");
      const list = this.#list;
      const n = p.usv(name);
      const v = p.usv(value);
      list[list.length] = n;
      list[list.length] = v;
      this.#changed();
    }
    delete(name, value = undefined) {
      if (arguments.length < 1) throw new p.TypeError("URLSearchParams.delete needs a name");
      const n = p.usv(name);
      const v = value === undefined ? undefined : p.usv(value);
      const kept = p.list();
      const list = this.#list;
      for (let i = 0; i < list.length; i += 2) {
        if (list[i] === n && (v === undefined || list[i + 1] === v)) continue;
        kept[kept.length] = list[i];
        kept[kept.length] = list[i + 1];
      }
      this.#list = kept;
      this.#changed();
    }
    get(name) {
      if (arguments.length < 1) throw new p.TypeError("URLSearchParams.get needs a name");
      const n = p.usv(name);
      const list = this.#list;
      for (let i = 0; i < list.length; i += 2) if (list[i] === n) return list[i + 1];
      return null;
    }
    getAll(name) {
      if (arguments.length < 1) throw new p.TypeError("URLSearchParams.getAll needs a name");
      const n = p.usv(name);
      const list = this.#list;
      const out = p.list();
      for (let i = 0; i < list.length; i += 2) if (list[i] === n) out[out.length] = list[i + 1];
      return p.setPrototypeOf(out, p.Array.prototype);
    }
    has(name, value = undefined) {
      if (arguments.length < 1) throw new p.TypeError("URLSearchParams.has needs a name");
      const n = p.usv(name);
      const v = value === undefined ? undefined : p.usv(value);
      const list = this.#list;
      for (let i = 0; i < list.length; i += 2) if (list[i] === n && (v === undefined || list[i + 1] === v)) return true;
      return false;
    }
    set(name, value) {
      if (arguments.length < 2) throw new p.TypeError("URLSearchParams.set needs a name and a value");
      const n = p.usv(name);
      const v = p.usv(value);
      const kept = p.list();
      const list = this.#list;
      let done = false;
      for (let i = 0; i < list.length; i += 2) {
        if (list[i] === n && done) continue;
        kept[kept.length] = list[i];
        kept[kept.length] = list[i] === n ? v : list[i + 1];
        done ||= list[i] === n;
      }
      if (!done) {
        kept[kept.length] = n;
        kept[kept.length] = v;
      }
      this.#list = kept;
      this.#changed();
    }
    sort() {
      const list = this.#list;
      const pairs = p.list();
      for (let i = 0; i < list.length; i += 2) pairs[pairs.length] = { __proto__: null, name: list[i], value: list[i + 1] };
      p.sort(pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      const sorted = p.list();
      for (let i = 0; i < pairs.length; i++) {
        sorted[sorted.length] = pairs[i].name;
        sorted[sorted.length] = pairs[i].value;
      }
      this.#list = sorted;
      this.#changed();
    }
    forEach(callback, thisArg = undefined) {
      if (typeof callback !== "function") throw new p.TypeError("URLSearchParams.forEach needs a function");
      for (let i = 0; i < this.#list.length; i += 2) p.apply(callback, thisArg, [this.#list[i + 1], this.#list[i], this]);
    }
    entries() {
      this.#list;
      return new Cursor(() => this.#list, 0);
    }
    keys() {
      this.#list;
      return new Cursor(() => this.#list, 1);
    }
    values() {
      this.#list;
      return new Cursor(() => this.#list, 2);
    }
    toString() {
      return serialize(this.#list);
    }
  }
  p.defineProperty(URLSearchParams.prototype, p.SymbolIterator, {
    __proto__: null, value: URLSearchParams.prototype.entries, writable: true, enumerable: false, configurable: true,
  });

  class URL {
    #href;
    #params = null;
    constructor(url, base = undefined) {
      if (arguments.length === 0) throw new p.TypeError("URL needs a string to parse");
      const href = native.parseUrl(p.usv(url), base === undefined ? undefined : p.usv(base));
      if (href === undefined) throw invalid(url, base);
      this.#href = href;
    }
    static {
      syncUrl = (url, query) => {
        url.#href = native.setUrlPart(url.#href, "search", query);
      };
    }
    static canParse(url, base = undefined) {
      if (arguments.length === 0) throw new p.TypeError("URL.canParse needs a string to parse");
      return native.parseUrl(p.usv(url), base === undefined ? undefined : p.usv(base)) !== undefined;
    }
    static parse(url, base = undefined) {
      if (arguments.length === 0) throw new p.TypeError("URL.parse needs a string to parse");
      return URL.#tryParse(p.usv(url), base === undefined ? undefined : p.usv(base));
    }
    static #tryParse(url, base) {
      return native.parseUrl(url, base) === undefined ? null : new URL(url, base);
    }
    #set(part, value) {
      this.#href = native.setUrlPart(this.#href, part, p.usv(value));
    }
    #get(part) {
      return native.urlPart(this.#href, part);
    }
    #refill() {
      if (this.#params !== null) {
        const search = this.#get("search");
        refill(this.#params, p.slice(search, 1));
      }
    }
    get href() {
      return this.#href;
    }
    set href(value) {
      const href = native.parseUrl(p.usv(value), undefined);
      if (href === undefined) throw invalid(value, undefined);
      this.#href = href;
      this.#refill();
    }
    get origin() {
      return this.#get("origin");
    }
    get protocol() {
      return this.#get("protocol");
    }
    set protocol(value) {
      this.#set("protocol", value);
    }
    get username() {
      return this.#get("username");
    }
    set username(value) {
      this.#set("username", value);
    }
    get password() {
      return this.#get("password");
    }
    set password(value) {
      this.#set("password", value);
    }
    get host() {
      return this.#get("host");
    }
    set host(value) {
      this.#set("host", value);
    }
    get hostname() {
      return this.#get("hostname");
    }
    set hostname(value) {
      this.#set("hostname", value);
    }
    get port() {
      return this.#get("port");
    }
    set port(value) {
      this.#set("port", value);
    }
    get pathname() {
      return this.#get("pathname");
    }
    set pathname(value) {
      this.#set("pathname", value);
    }
    get search() {
      return this.#get("search");
    }
    set search(value) {
      this.#set("search", value);
      this.#refill();
    }
    get searchParams() {
      if (this.#params === null) {
        const search = this.#get("search");
        this.#params = newParams(this, p.slice(search, 1));
      }
      return this.#params;
    }
    get hash() {
      return this.#get("hash");
    }
    set hash(value) {
      this.#set("hash", value);
    }
    toString() {
      return this.#href;
    }
    toJSON() {
      return this.#href;
    }
  }

  function invalid(url, base) {
    const error = new p.TypeError("Invalid URL");
    const note = (key, value) =>
      p.defineProperty(error, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    note("code", "ERR_INVALID_URL");
    note("input", p.usv(url));
    if (base !== undefined) note("base", p.usv(base));
    return error;
  }

  p.enumerable(URLSearchParams.prototype, "size", "append", "delete", "get", "getAll", "has", "set", "sort", "forEach",
    "entries", "keys", "values", "toString");
  p.enumerable(URL.prototype, "href", "origin", "protocol", "username", "password", "host", "hostname", "port",
    "pathname", "search", "searchParams", "hash", "toString", "toJSON");
  p.enumerable(URL, "canParse", "parse");
  p.tag(URL, "URL");
  p.tag(URLSearchParams, "URLSearchParams");
  p.expose("URL", URL);
  p.expose("URLSearchParams", URLSearchParams);
  uncloneable(URL);
  uncloneable(URLSearchParams);
})
