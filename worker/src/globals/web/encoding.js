// TextEncoder and TextDecoder. The bytes are turned into text natively.
(function (native, p, uncloneable) {
  "use strict";
  const bytes = (buffer) => new p.Uint8Array(buffer);

  class TextEncoder {
    get encoding() {
      this.#brand;
      return "utf-8";
    }
    #brand = true;
    encode(input = "") {
      this.#brand;
      return bytes(native.encodeUtf8(p.usv(input)));
    }
    encodeInto(source, destination) {
      this.#brand;
      if (!p.isView(destination) || p.typedArrayTag(destination) !== "Uint8Array") {
        throw new p.TypeError("TextEncoder.encodeInto needs a Uint8Array to write to");
      }
      const out = native.encodeUtf8Into(p.usv(source), p.typedArrayLength(destination));
      p.setBytes(destination, bytes(out[2]));
      return { read: out[0], written: out[1] };
    }
  }

  const nothing = new p.Uint8Array(0);
  class TextDecoder {
    #encoding;
    #fatal;
    #ignoreBOM;
    #pending = nothing;
    #started = false;
    #streaming = false;
    constructor(label = "utf-8", options = undefined) {
      const encoding = native.encodingName(p.usv(label));
      if (encoding === undefined) {
        throw new p.RangeError("TextDecoder knows utf-8, utf-16le, utf-16be and windows-1252 (latin1, ascii), not \"" + p.slice(p.usv(label), 0, 60) + "\"");
      }
      this.#encoding = encoding;
      this.#fatal = options != null && !!options.fatal;
      this.#ignoreBOM = options != null && !!options.ignoreBOM;
    }
    get encoding() {
      return this.#encoding;
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input = undefined, options = undefined) {
      this.#encoding;
      let data = nothing;
      if (input !== undefined) {
        data = p.bytesOf(input);
        if (data === undefined) throw new p.TypeError("TextDecoder.decode needs an ArrayBuffer or a view on one");
      }
      const stream = options != null && !!options.stream;
      if (!this.#streaming) {
        this.#pending = nothing;
        this.#started = false;
      }
      this.#streaming = stream;
      const held = p.typedArrayLength(this.#pending);
      if (held > 0) {
        const joined = new p.Uint8Array(held + p.typedArrayLength(data));
        p.setBytes(joined, this.#pending);
        p.setBytes(joined, data, held);
        data = joined;
      }
      const strip = !this.#ignoreBOM && !this.#started;
      const out = native.decode(this.#encoding, p.toHex(data), stream, this.#fatal, strip);
      if (out === undefined) {
        this.#streaming = false;
        const error = new p.TypeError("The encoded data was not valid for encoding " + p.text(this.#encoding));
        p.defineProperty(error, "code", { __proto__: null, value: "ERR_ENCODING_INVALID_ENCODED_DATA", writable: true, enumerable: true, configurable: true });
        throw error;
      }
      const total = p.typedArrayLength(data);
      const left = out[1];
      // What was seen counts as the start even when it was only the mark that is dropped.
      if (left < total) this.#started = true;
      this.#pending = left === 0 ? nothing : copyTail(data, total - left, left);
      return out[0];
    }
  }
  function copyTail(data, at, length) {
    const tail = new p.Uint8Array(length);
    p.setBytes(tail, new p.Uint8Array(p.viewBuffer(data), p.viewOffset(data) + at, length));
    return tail;
  }

  p.enumerable(TextEncoder.prototype, "encoding", "encode", "encodeInto");
  p.enumerable(TextDecoder.prototype, "encoding", "fatal", "ignoreBOM", "decode");
  p.tag(TextEncoder, "TextEncoder");
  p.tag(TextDecoder, "TextDecoder");
  p.expose("TextEncoder", TextEncoder);
  p.expose("TextDecoder", TextDecoder);
  uncloneable(TextEncoder);
  uncloneable(TextDecoder);
})
