// The engine's own functions, captured before any guest code runs. Everything else in this
// folder reaches the language only through this object, so a guest that replaces
// `Array.prototype.push` or `Map.prototype.get` cannot change what these classes do.
(function () {
  "use strict";
  const { getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf, defineProperty, keys, freeze } = Object;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const getter = (proto, name) => uncurry(getOwnPropertyDescriptor(proto, name).get);
  const TypedArray = getPrototypeOf(Uint8Array);
  const viewConstructors = { __proto__: null };
  for (const C of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
    BigInt64Array, BigUint64Array, Float32Array, Float64Array, globalThis.Float16Array]) {
    if (C) viewConstructors[C.name] = C;
  }
  const p = {
    __proto__: null,
    Array, ArrayBuffer, BigInt, Boolean, DataView, Date, DOMException, Error, Map, Number, Object, Promise, RangeError,
    RegExp, Set, String, Symbol, SyntaxError, TypeError, Uint8Array, WeakMap, EvalError, ReferenceError, URIError,
    AggregateError, Proxy, WeakSet, WeakRef,
    SymbolIterator: Symbol.iterator, SymbolToStringTag: Symbol.toStringTag,
    viewConstructors, uncurry, getter,
    getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor, defineProperty, keys, freeze,
    ownKeys: Reflect.ownKeys, apply: Reflect.apply,
    hasOwn: Object.hasOwn, isArray: Array.isArray, isInteger: Number.isInteger, isError: Error.isError,
    isView: ArrayBuffer.isView,
    max: Math.max, min: Math.min, trunc: Math.trunc, abs: Math.abs,
    objectToString: uncurry(Object.prototype.toString),
    isPrototypeOf: uncurry(Object.prototype.isPrototypeOf),
    toWellFormed: uncurry(String.prototype.toWellFormed),
    toLowerCase: uncurry(String.prototype.toLowerCase),
    toUpperCase: uncurry(String.prototype.toUpperCase),
    slice: uncurry(String.prototype.slice),
    indexOf: uncurry(String.prototype.indexOf),
    trim: uncurry(String.prototype.trim),
    charCodeAt: uncurry(String.prototype.charCodeAt),
    sort: uncurry(Array.prototype.sort),
    splice: uncurry(Array.prototype.splice),
    join: uncurry(Array.prototype.join),
    mapGet: uncurry(Map.prototype.get), mapSet: uncurry(Map.prototype.set), mapHas: uncurry(Map.prototype.has),
    mapDelete: uncurry(Map.prototype.delete), mapForEach: uncurry(Map.prototype.forEach),
    mapSize: getter(Map.prototype, "size"),
    setAdd: uncurry(Set.prototype.add), setForEach: uncurry(Set.prototype.forEach),
    setSize: getter(Set.prototype, "size"),
    dateGetTime: uncurry(Date.prototype.getTime),
    regexpSource: getter(RegExp.prototype, "source"),
    regexpExec: uncurry(RegExp.prototype.exec),
    regexpFlags: getter(RegExp.prototype, "flags"),
    numberValueOf: uncurry(Number.prototype.valueOf), stringValueOf: uncurry(String.prototype.valueOf),
    booleanValueOf: uncurry(Boolean.prototype.valueOf), bigintValueOf: uncurry(BigInt.prototype.valueOf),
    bigintToString: uncurry(BigInt.prototype.toString),
    typedArrayTag: getter(TypedArray.prototype, Symbol.toStringTag),
    typedArrayLength: getter(TypedArray.prototype, "length"),
    typedArrayValues: uncurry(TypedArray.prototype.values),
    viewBuffer: (v) => typedArrayBuffer(v),
    bufferByteLength: getter(ArrayBuffer.prototype, "byteLength"),
    bufferMaxByteLength: getter(ArrayBuffer.prototype, "maxByteLength"),
    bufferResizable: getter(ArrayBuffer.prototype, "resizable"),
    bufferDetached: getter(ArrayBuffer.prototype, "detached"),
    bufferTransfer: uncurry(ArrayBuffer.prototype.transfer),
    setBytes: uncurry(TypedArray.prototype.set),
    toHex: uncurry(Uint8Array.prototype.toHex),
    then: uncurry(Promise.prototype.then),
    reject: Promise.reject.bind(Promise),
    domName: getter(DOMException.prototype, "name"),
    domMessage: getter(DOMException.prototype, "message"),
    view: { __proto__: null },
  };
  const taBuffer = getter(TypedArray.prototype, "buffer");
  const taOffset = getter(TypedArray.prototype, "byteOffset");
  const taBytes = getter(TypedArray.prototype, "byteLength");
  const dvBuffer = getter(DataView.prototype, "buffer");
  const dvOffset = getter(DataView.prototype, "byteOffset");
  const dvBytes = getter(DataView.prototype, "byteLength");
  const typedArrayBuffer = (v) => (p.typedArrayTag(v) === undefined ? dvBuffer(v) : taBuffer(v));
  p.viewOffset = (v) => (p.typedArrayTag(v) === undefined ? dvOffset(v) : taOffset(v));
  p.viewByteLength = (v) => (p.typedArrayTag(v) === undefined ? dvBytes(v) : taBytes(v));

  // A list that no setter on Array.prototype can see.
  p.list = () => setPrototypeOf([], null);

  // A Uint8Array over the same bytes as a BufferSource (no copy), or undefined.
  p.bytesOf = (source) => {
    if (p.isView(source)) return new p.Uint8Array(p.viewBuffer(source), p.viewOffset(source), p.viewByteLength(source));
    try {
      p.bufferByteLength(source);
    } catch {
      return undefined;
    }
    return new p.Uint8Array(source);
  };
  // ToString. Templates are not used in this folder: the engine builds them by calling
  // String.prototype.concat, which a guest may have replaced.
  p.text = (value) => {
    if (typeof value === "symbol") throw new p.TypeError("Cannot convert a Symbol value to a string");
    return p.String(value);
  };
  p.usv = (value) => p.toWellFormed(p.text(value));

  // Puts a class or an object on globalThis the way Web IDL does.
  p.expose = (name, value) =>
    defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  p.tag = (C, name) =>
    defineProperty(C.prototype, Symbol.toStringTag, { __proto__: null, value: name, configurable: true });
  // Methods and accessors of an interface are enumerable; those of a class are not.
  p.enumerable = (target, ...names) => {
    for (const name of names) defineProperty(target, name, { __proto__: null, enumerable: true });
  };
  return p;
})
