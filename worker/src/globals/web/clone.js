// structuredClone.
(function (native, p) {
  "use strict";
  const fail = (what) => {
    throw new p.DOMException(p.text(what) + " could not be cloned.", "DataCloneError");
  };
  const define = (target, key, value) =>
    p.defineProperty(target, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  // Which prototype a value inherits from says what it may be; the captured getter then
  // proves it, so neither a fake tag nor a fake prototype is believed.
  const kinds = new p.Map();
  const kind = (C, brand, copy) => p.mapSet(kinds, C.prototype, { __proto__: null, brand, copy });
  const never = { __proto__: null, brand: null, copy: null };

  kind(p.Date, p.dateGetTime, (v) => new p.Date(p.dateGetTime(v)));
  kind(p.Number, p.numberValueOf, (v) => new p.Object(p.numberValueOf(v)));
  kind(p.String, p.stringValueOf, (v) => new p.Object(p.stringValueOf(v)));
  kind(p.Boolean, p.booleanValueOf, (v) => new p.Object(p.booleanValueOf(v)));
  kind(p.BigInt, p.bigintValueOf, (v) => p.Object(p.bigintValueOf(v)));
  kind(p.RegExp, p.regexpSource, (v) => new p.RegExp(p.regexpSource(v), p.regexpFlags(v)));
  kind(p.ArrayBuffer, p.bufferByteLength, copyBuffer);
  kind(p.DataView, p.isView, copyView);
  kind(p.getPrototypeOf(p.Uint8Array), p.isView, copyView);
  kind(p.Map, p.mapSize, (v, seen) => {
    const out = new p.Map();
    p.mapSet(seen, v, out);
    const entries = p.list();
    p.mapForEach(v, (value, key) => {
      entries[entries.length] = key;
      entries[entries.length] = value;
    });
    for (let i = 0; i < entries.length; i += 2) p.mapSet(out, clone(entries[i], seen), clone(entries[i + 1], seen));
    return out;
  });
  kind(p.Set, p.setSize, (v, seen) => {
    const out = new p.Set();
    p.mapSet(seen, v, out);
    const members = p.list();
    p.setForEach(v, (member) => {
      members[members.length] = member;
    });
    for (let i = 0; i < members.length; i++) p.setAdd(out, clone(members[i], seen));
    return out;
  });
  kind(p.DOMException, p.domName, (v) => new p.DOMException(p.domMessage(v), p.domName(v)));
  kind(p.Error, (v) => p.isError(v) || fail(describe(v)), copyError);
  for (const C of [p.Promise, p.WeakMap, p.WeakSet, p.WeakRef, p.Symbol]) p.mapSet(kinds, C.prototype, never);

  function describe(value) {
    if (typeof value === "symbol") return p.String(value);
    if (typeof value === "function") return "The function " + p.text(value.name || "(anonymous)");
    return "#<" + p.text(p.slice(p.objectToString(value), 8, -1)) + ">";
  }

  function copyBytes(source, target) {
    p.setBytes(new p.Uint8Array(target), new p.Uint8Array(source));
    return target;
  }

  function copyBuffer(v) {
    if (p.bufferDetached(v)) fail("An ArrayBuffer that is detached");
    const length = p.bufferByteLength(v);
    if (!p.bufferResizable(v)) return copyBytes(v, new p.ArrayBuffer(length));
    return copyBytes(v, new p.ArrayBuffer(length, { __proto__: null, maxByteLength: p.bufferMaxByteLength(v) }));
  }

  function copyView(v, seen) {
    const tag = p.typedArrayTag(v);
    const buffer = clone(p.viewBuffer(v), seen);
    if (tag === undefined) return new p.DataView(buffer, p.viewOffset(v), p.viewByteLength(v));
    return new p.viewConstructors[tag](buffer, p.viewOffset(v), p.typedArrayLength(v));
  }

  const errorNames = {
    __proto__: null, EvalError: p.EvalError, RangeError: p.RangeError, ReferenceError: p.ReferenceError,
    SyntaxError: p.SyntaxError, TypeError: p.TypeError, URIError: p.URIError,
  };
  function copyError(v, seen) {
    const C = errorNames[p.String(v.name)] ?? p.Error;
    const own = (key) => {
      const d = p.getOwnPropertyDescriptor(v, key);
      return d !== undefined && p.hasOwn(d, "value") ? d : undefined;
    };
    const message = own("message");
    const out = message === undefined ? new C() : new C(p.String(message.value));
    p.mapSet(seen, v, out);
    const hidden = (key, value) =>
      p.defineProperty(out, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
    const stack = v.stack;
    if (typeof stack === "string") hidden("stack", stack);
    if (p.hasOwn(v, "cause")) hidden("cause", clone(v.cause, seen));
    return out;
  }

  function copyProperties(v, out, seen) {
    p.mapSet(seen, v, out);
    const names = p.keys(v);
    for (let i = 0; i < names.length; i++) {
      if (p.hasOwn(v, names[i])) define(out, names[i], clone(v[names[i]], seen));
    }
    return out;
  }

  function clone(v, seen) {
    if (typeof v === "symbol" || typeof v === "function") fail(describe(v));
    if (typeof v !== "object" || v === null) return v;
    if (p.mapHas(seen, v)) return p.mapGet(seen, v);
    if (native.isProxy(v)) fail("A Proxy");
    if (p.isArray(v)) {
      const out = [];
      out.length = v.length;
      return copyProperties(v, out, seen);
    }
    for (let proto = p.getPrototypeOf(v); proto !== null; proto = p.getPrototypeOf(proto)) {
      const k = p.mapGet(kinds, proto);
      if (k === undefined) continue;
      if (k === never) fail(describe(v));
      try {
        k.brand(v);
      } catch {
        break;
      }
      const out = k.copy(v, seen);
      p.mapSet(seen, v, out);
      return out;
    }
    return copyProperties(v, {}, seen);
  }

  const holder = {
    structuredClone(value, options = undefined) {
      if (arguments.length === 0) throw new p.TypeError("structuredClone needs a value to clone");
      const seen = new p.Map();
      const transfer = p.list();
      const wanted = options == null ? undefined : options.transfer;
      if (wanted !== undefined) for (const buffer of wanted) transfer[transfer.length] = buffer;
      for (let i = 0; i < transfer.length; i++) {
        let detached = true;
        try {
          detached = p.bufferDetached(transfer[i]);
        } catch {
          fail("A value in transfer that is not an ArrayBuffer");
        }
        if (detached) fail("An ArrayBuffer that is detached");
        if (p.mapHas(seen, transfer[i])) fail("An ArrayBuffer that is named twice in transfer");
        p.mapSet(seen, transfer[i], copyBuffer(transfer[i]));
      }
      const out = clone(value, seen);
      // Only after everything was cloned: a failed call must leave the originals usable.
      for (let i = 0; i < transfer.length; i++) p.bufferTransfer(transfer[i], 0);
      return out;
    },
  };
  p.expose("structuredClone", holder.structuredClone);
  return (C) => p.mapSet(kinds, C.prototype, never);
})
