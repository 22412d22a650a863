// crypto.getRandomValues, randomUUID and subtle.digest.
(function (native, p, uncloneable) {
  "use strict";
  const internal = { __proto__: null };
  const integers = {
    __proto__: null, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 1, Uint16Array: 1, Int32Array: 1,
    Uint32Array: 1, BigInt64Array: 1, BigUint64Array: 1,
  };

  class SubtleCrypto {
    #brand = true;
    constructor(key = undefined) {
      if (key !== internal) throw new p.TypeError("Illegal constructor");
    }
    async digest(algorithm, data) {
      this.#brand;
      if (arguments.length < 2) throw new p.TypeError("crypto.subtle.digest needs an algorithm and data");
      const given = typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm;
      const name = p.toUpperCase(p.text(given));
      const bytes = p.bytesOf(data);
      if (bytes === undefined) throw new p.TypeError("crypto.subtle.digest needs an ArrayBuffer or a view on one; use new TextEncoder().encode(text) for text");
      const out = native.digest(name, p.toHex(bytes));
      if (out === undefined) {
        throw new p.DOMException("crypto.subtle.digest knows SHA-1, SHA-256, SHA-384 and SHA-512, not \"" + p.slice(p.text(given), 0, 60) + "\"", "NotSupportedError");
      }
      return out;
    }
  }

  class Crypto {
    #subtle;
    constructor(key = undefined) {
      if (key !== internal) throw new p.TypeError("Illegal constructor");
      this.#subtle = new SubtleCrypto(internal);
    }
    get subtle() {
      return this.#subtle;
    }
    getRandomValues(array) {
      this.#subtle;
      const tag = p.isView(array) ? p.typedArrayTag(array) : undefined;
      if (tag === undefined || integers[tag] !== 1) {
        throw new p.DOMException("crypto.getRandomValues needs a typed array of integers", "TypeMismatchError");
      }
      const length = p.viewByteLength(array);
      if (length > 65536) {
        throw new p.DOMException("crypto.getRandomValues gives at most 65536 bytes a call, not " + p.text(length), "QuotaExceededError");
      }
      p.setBytes(p.bytesOf(array), new p.Uint8Array(native.randomBytes(length)));
      return array;
    }
    randomUUID() {
      this.#subtle;
      return native.randomUuid();
    }
  }

  p.enumerable(SubtleCrypto.prototype, "digest");
  p.enumerable(Crypto.prototype, "subtle", "getRandomValues", "randomUUID");
  p.tag(SubtleCrypto, "SubtleCrypto");
  p.tag(Crypto, "Crypto");
  p.expose("Crypto", Crypto);
  p.expose("SubtleCrypto", SubtleCrypto);
  p.expose("crypto", new Crypto(internal));
  uncloneable(Crypto);
  uncloneable(SubtleCrypto);
})
