// idea: one allocation far over the limit
// stops: counting allocator
// expect: code memory_limit|guest_error
return new ArrayBuffer(3e9).byteLength;
