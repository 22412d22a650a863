// Event, EventTarget, CustomEvent, AbortController and AbortSignal.
(function (native, p, uncloneable, schedule) {
  "use strict";
  const internal = { __proto__: null };
  let begin, finish, stopped;

  class Event {
    #type;
    #bubbles;
    #cancelable;
    #composed;
    #prevented = false;
    #stop = false;
    #target = null;
    #phase = 0;
    #passive = false;
    #busy = false;
    #trusted = false;
    #time = native.now();
    constructor(type, options = undefined) {
      if (arguments.length === 0) throw new p.TypeError("Event needs a type");
      this.#type = p.text(type);
      this.#bubbles = options != null && !!options.bubbles;
      this.#cancelable = options != null && !!options.cancelable;
      this.#composed = options != null && !!options.composed;
    }
    static {
      begin = (event, target, trusted) => {
        if (event.#busy) throw new p.DOMException("The event is already being dispatched.", "InvalidStateError");
        event.#busy = true;
        event.#target = target;
        event.#phase = 2;
        event.#trusted = trusted;
      };
      finish = (event) => {
        event.#busy = false;
        event.#phase = 0;
        event.#stop = false;
        return !event.#prevented;
      };
      stopped = (event, passive) => {
        event.#passive = passive;
        return event.#stop;
      };
    }
    get type() { return this.#type; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get composed() { return this.#composed; }
    get defaultPrevented() { return this.#prevented; }
    get target() { return this.#target; }
    get srcElement() { return this.#target; }
    get currentTarget() { return this.#busy ? this.#target : null; }
    get eventPhase() { return this.#phase; }
    get isTrusted() { return this.#trusted; }
    get timeStamp() { return this.#time; }
    get returnValue() { return !this.#prevented; }
    composedPath() { return this.#busy ? [this.#target] : []; }
    preventDefault() { if (this.#cancelable && !this.#passive) this.#prevented = true; }
    stopPropagation() { this.#type; }
    stopImmediatePropagation() { this.#stop = true; }
  }
  for (const [name, value] of [["NONE", 0], ["CAPTURING_PHASE", 1], ["AT_TARGET", 2], ["BUBBLING_PHASE", 3]]) {
    const constant = { __proto__: null, value, enumerable: true };
    p.defineProperty(Event, name, constant);
    p.defineProperty(Event.prototype, name, constant);
  }

  class CustomEvent extends Event {
    #detail;
    constructor(type, options = undefined) {
      super(type, options);
      this.#detail = options != null && options.detail !== undefined ? options.detail : null;
    }
    get detail() { return this.#detail; }
  }

  let dispatch, setHandler, getHandler;
  class EventTarget {
    #listeners = p.list();
    #handlers = { __proto__: null };
    static {
      dispatch = (target, event, trusted) => {
        begin(event, target, trusted);
        const snapshot = p.list();
        for (let i = 0; i < target.#listeners.length; i++) snapshot[i] = target.#listeners[i];
        for (let i = 0; i < snapshot.length; i++) {
          const entry = snapshot[i];
          if (entry.removed || entry.type !== event.type) continue;
          if (entry.once) target.#remove(entry);
          if (stopped(event, entry.passive)) break;
          target.#run(entry, event);
        }
        return finish(event);
      };
      getHandler = (target, type) => target.#handlers[type]?.callback ?? null;
      setHandler = (target, type, value) => {
        const callback = typeof value === "function" || (typeof value === "object" && value !== null) ? value : null;
        const entry = target.#handlers[type];
        if (entry !== undefined && callback !== null) {
          entry.callback = callback;
        } else if (entry !== undefined) {
          target.#remove(entry);
          delete target.#handlers[type];
        } else if (callback !== null) {
          target.#handlers[type] = target.#add({ __proto__: null, type, callback, capture: false, once: false, passive: false, handler: true, removed: false });
        }
      };
    }
    #add(entry) {
      this.#listeners[this.#listeners.length] = entry;
      return entry;
    }
    #remove(entry) {
      entry.removed = true;
      const kept = p.list();
      for (let i = 0; i < this.#listeners.length; i++) {
        if (this.#listeners[i] !== entry) kept[kept.length] = this.#listeners[i];
      }
      this.#listeners = kept;
    }
    #run(entry, event) {
      try {
        const { callback } = entry;
        if (typeof callback === "function") p.apply(callback, this, [event]);
        else if (!entry.handler) p.apply(callback.handleEvent, callback, [event]);
      } catch (error) {
        // A listener that throws does not stop the others and is not the dispatcher's
        // failure: it is reported as what it is, an error that nobody handled.
        p.reject(error);
      }
    }
    #find(type, callback, capture) {
      for (let i = 0; i < this.#listeners.length; i++) {
        const e = this.#listeners[i];
        if (!e.handler && e.type === type && e.callback === callback && e.capture === capture) return e;
      }
      return undefined;
    }
    addEventListener(type, callback, options = undefined) {
      if (arguments.length < 2) throw new p.TypeError("addEventListener needs a type and a listener");
      const name = p.text(type);
      const object = options !== null && typeof options === "object";
      const capture = object ? !!options.capture : !!options;
      const signal = object ? options.signal : undefined;
      if (signal !== undefined && !isSignal(signal)) throw new p.TypeError("The signal option must be an AbortSignal");
      if (callback === null || callback === undefined) return;
      if (typeof callback !== "function" && typeof callback !== "object") throw new p.TypeError("The listener must be a function or an object");
      if (signal !== undefined && isAborted(signal)) return;
      if (this.#find(name, callback, capture) !== undefined) return;
      const entry = this.#add({ __proto__: null, type: name, callback, capture, once: object && !!options.once, passive: object && !!options.passive, handler: false, removed: false });
      if (signal !== undefined) onAbort(signal, () => this.#remove(entry));
    }
    removeEventListener(type, callback, options = undefined) {
      if (arguments.length < 2) throw new p.TypeError("removeEventListener needs a type and a listener");
      const capture = options !== null && typeof options === "object" ? !!options.capture : !!options;
      const entry = this.#find(p.text(type), callback, capture);
      if (entry !== undefined) this.#remove(entry);
    }
    dispatchEvent(event) {
      if (!(event !== null && typeof event === "object" && p.isPrototypeOf(Event.prototype, event))) {
        throw new p.TypeError("dispatchEvent needs an Event");
      }
      return dispatch(this, event, false);
    }
  }

  let newSignal, abort, isSignal, isAborted, onAbort;
  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason = undefined;
    #steps = p.list();
    #followers = p.list();
    constructor(key = undefined) {
      if (key !== internal) throw new p.TypeError("AbortSignal is made by AbortController, AbortSignal.abort(), AbortSignal.timeout() or AbortSignal.any()");
      super();
    }
    static {
      newSignal = () => new AbortSignal(internal);
      isSignal = (value) => typeof value === "object" && value !== null && #aborted in value;
      isAborted = (signal) => signal.#aborted;
      onAbort = (signal, step) => {
        signal.#steps[signal.#steps.length] = step;
      };
      // All signals that follow are aborted before anyone is told of the first.
      abort = (signal, reason) => {
        if (signal.#aborted) return;
        const told = p.list();
        told[0] = signal;
        signal.#aborted = true;
        signal.#reason = reason === undefined ? new p.DOMException("This operation was aborted", "AbortError") : reason;
        for (let i = 0; i < told.length; i++) {
          const followers = told[i].#followers;
          told[i].#followers = p.list();
          for (let j = 0; j < followers.length; j++) {
            if (followers[j].#aborted) continue;
            followers[j].#aborted = true;
            followers[j].#reason = signal.#reason;
            told[told.length] = followers[j];
          }
        }
        for (let i = 0; i < told.length; i++) {
          const steps = told[i].#steps;
          told[i].#steps = p.list();
          for (let j = 0; j < steps.length; j++) steps[j]();
          dispatch(told[i], new Event("abort"), true);
        }
      };
    }
    static abort(reason = undefined) {
      const signal = newSignal();
      abort(signal, reason);
      return signal;
    }
    static timeout(milliseconds) {
      if (arguments.length === 0) throw new p.TypeError("AbortSignal.timeout needs a number of milliseconds");
      const delay = p.trunc(+milliseconds);
      if (!(delay >= 0 && delay <= 9007199254740991)) throw new p.RangeError("AbortSignal.timeout needs a number of milliseconds from 0 to 2^53-1");
      const signal = newSignal();
      schedule(() => abort(signal, new p.DOMException("The operation was aborted due to timeout", "TimeoutError")), delay);
      return signal;
    }
    static any(signals) {
      if (arguments.length === 0) throw new p.TypeError("AbortSignal.any needs a list of signals");
      const sources = p.list();
      for (const source of signals) {
        if (!isSignal(source)) throw new p.TypeError("AbortSignal.any needs a list of AbortSignals");
        sources[sources.length] = source;
      }
      const signal = newSignal();
      for (let i = 0; i < sources.length; i++) {
        if (isAborted(sources[i])) {
          signal.#aborted = true;
          signal.#reason = sources[i].#reason;
          return signal;
        }
      }
      for (let i = 0; i < sources.length; i++) sources[i].#followers[sources[i].#followers.length] = signal;
      return signal;
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    get onabort() { this.#aborted; return getHandler(this, "abort"); }
    set onabort(value) { this.#aborted; setHandler(this, "abort", value); }
  }

  class AbortController {
    #signal = newSignal();
    get signal() { return this.#signal; }
    abort(reason = undefined) { abort(this.#signal, reason); }
  }

  p.enumerable(Event.prototype, "type", "bubbles", "cancelable", "composed", "defaultPrevented", "target", "srcElement",
    "currentTarget", "eventPhase", "isTrusted", "timeStamp", "returnValue", "composedPath", "preventDefault",
    "stopPropagation", "stopImmediatePropagation");
  p.enumerable(CustomEvent.prototype, "detail");
  p.enumerable(EventTarget.prototype, "addEventListener", "removeEventListener", "dispatchEvent");
  p.enumerable(AbortSignal.prototype, "aborted", "reason", "throwIfAborted", "onabort");
  p.enumerable(AbortSignal, "abort", "timeout", "any");
  p.enumerable(AbortController.prototype, "signal", "abort");
  const classes = { __proto__: null, Event, CustomEvent, EventTarget, AbortSignal, AbortController };
  for (const name of p.keys(classes)) {
    p.tag(classes[name], name);
    p.expose(name, classes[name]);
    uncloneable(classes[name]);
  }
})
