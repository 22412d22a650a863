// idea: the string of the n8n expression escape: this, constructor, constructor
// stops: fresh realm, no host objects
// expect: value "undefined"
return (function () { return this.constructor.constructor("return typeof process")(); }).call({});
