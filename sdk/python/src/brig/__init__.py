"""brig: evaluate untrusted JavaScript next to trusted credentials.

Owns what this package offers; everything else is internal.
"""

from .blocking import Client, Vm, connect
from .calls import CallContext
from .client import AsyncClient, connect_async
from .errors import BrigError, HostFunctionError, JsonFault, SchemaConversionError
from .functions import Collection, FunctionOptions, HostFunction, HostFunctions, HostFunctionsLike, function, host_function
from .options import CallOptions, ConnectOptions, DetachOptions, EvaluateOptions, VmEvaluateOptions, VmOptions
from .requests import (
    Cancellation,
    Form,
    Language,
    Limits,
    OutputOptions,
    PermissionRule,
    PermissionRules,
    Permissions,
)
from .results import (
    ApprovalNote,
    CallError,
    CallRecord,
    CallResult,
    CheckResult,
    ErrorCause,
    EvaluateResult,
    EvaluationError,
    EvaluationStatus,
    EvaluationWarning,
    FunctionTypes,
    Outcome,
    Sandbox,
    ServerInfo,
    Usage,
)
from .schema import JsonSchema, to_json_schema
from .shared import check, check_async, create_vm, create_vm_async, evaluate, evaluate_async, shutdown, shutdown_async
from .version import VERSION as __version__
from .vm import AsyncVm

__all__ = [
    "ApprovalNote",
    "AsyncClient",
    "AsyncVm",
    "BrigError",
    "CallContext",
    "CallError",
    "CallOptions",
    "CallRecord",
    "CallResult",
    "Cancellation",
    "CheckResult",
    "Client",
    "Collection",
    "ConnectOptions",
    "DetachOptions",
    "ErrorCause",
    "EvaluateOptions",
    "EvaluateResult",
    "EvaluationError",
    "EvaluationStatus",
    "EvaluationWarning",
    "Form",
    "FunctionOptions",
    "FunctionTypes",
    "HostFunction",
    "HostFunctionError",
    "HostFunctions",
    "HostFunctionsLike",
    "JsonFault",
    "JsonSchema",
    "Language",
    "Limits",
    "Outcome",
    "OutputOptions",
    "PermissionRule",
    "PermissionRules",
    "Permissions",
    "Sandbox",
    "SchemaConversionError",
    "ServerInfo",
    "Usage",
    "Vm",
    "VmEvaluateOptions",
    "VmOptions",
    "__version__",
    "check",
    "check_async",
    "connect",
    "connect_async",
    "create_vm",
    "create_vm_async",
    "evaluate",
    "evaluate_async",
    "function",
    "host_function",
    "shutdown",
    "shutdown_async",
    "to_json_schema",
]
