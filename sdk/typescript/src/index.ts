/**
 * brig: evaluate untrusted JavaScript next to trusted credentials.
 *
 * Owns what this package offers; everything else is internal.
 */

export { Client, connect } from "./client.js";
export { BrigError, type BrigErrorDetails, HostFunctionError, SchemaConversionError } from "./errors.js";
export { type Example, type HostCall, type HostFunction, hostFunction, type HostFunctions } from "./functions.js";
export { JsonFault, type JsonObject, type JsonValue } from "./json.js";
export { type Issue, toJsonSchema } from "./schema/index.js";
export type { JsonSchema, SchemaLike } from "./schema/infer.js";
export { check, createVm, evaluate, shutdown } from "./shared.js";
export type {
  ApprovalNote,
  CallError,
  CallOptions,
  CallRecord,
  CallResult,
  CheckOptions,
  CheckResult,
  ConnectOptions,
  DetachOptions,
  ErrorCause,
  EvaluateOptions,
  EvaluateResult,
  EvaluationError,
  EvaluationStatus,
  Form,
  FunctionTypes,
  Language,
  Limits,
  Outcome,
  OutputOptions,
  PermissionRule,
  Permissions,
  PermissionScope,
  ServerInfo,
  Succeeded,
  TypeFault,
  Unsuccessful,
  VmInfo,
  VmOptions,
  Warning,
} from "./types.js";
export type { Vm } from "./vm.js";
