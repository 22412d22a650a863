"""What an evaluation gives.

Owns the types of results and how they are read from the wire. Members that this version
does not know are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import BrigError

Outcome = Literal["succeeded", "failed", "timed_out", "cancelled"]
EvaluationState = Literal["running", "ended", "unknown"]
CallState = Literal["refused", "failed", "completed", "unknown"]


@dataclass(frozen=True)
class EvaluationWarning:
    """What the caller would otherwise lose."""

    code: str
    message: str
    #: Where in a value, as ``$.a[0].b``.
    path: str | None = None


@dataclass(frozen=True)
class ApprovalNote:
    """A host call waits for a person, and with it the evaluation's wall clock."""

    evaluation: str
    #: Its number within the evaluation.
    call: int
    #: ``collection.function``.
    function: str
    #: The id by which an approver finds it, ``ap_…``.
    approval: str
    #: How long it is awaited.
    expires_in_ms: int


@dataclass(frozen=True)
class CallRecord:
    """One host call."""

    #: Its number within the evaluation, from 1.
    call: int
    #: ``collection.function``.
    function: str
    #: ``refused``: did not run; ``unknown``: was started, and nobody can say.
    state: CallState
    #: Why not completed.
    code: str | None
    duration_ms: float
    input_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class ErrorCause:
    """One error below another."""

    name: str
    message: str
    code: str | None = None
    data: Any = None
    cause: ErrorCause | None = None


@dataclass(frozen=True)
class EvaluationError:
    """Why an evaluation did not succeed."""

    #: From the protocol's closed table; never from the program.
    code: str
    name: str
    message: str
    #: Whether the same program may succeed when sent again unchanged.
    retryable: bool
    stack: str | None = None
    #: 1-based, in the text as sent.
    line: int | None = None
    column: int | None = None
    #: The line, and a caret under the column.
    excerpt: str | None = None
    cause: ErrorCause | None = None
    errors: tuple[ErrorCause, ...] = ()
    data: Any = None
    #: What to do instead.
    hint: str | None = None
    limit: str | None = None
    limit_value: int | None = None
    #: The setting of brigd that raises the limit.
    setting: str | None = None


@dataclass(frozen=True)
class Usage:
    """What an evaluation cost."""

    wall_ms: float = 0
    cpu_ms: float = 0
    host_ms: float = 0
    approval_ms: float = 0
    peak_memory_bytes: int = 0
    host_calls: int = 0


@dataclass(frozen=True)
class Sandbox:
    """The layers that confined a worker."""

    level: str = "none"
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallError:
    """Why a call gave no value."""

    #: From the protocol's closed table; never from the function.
    code: str
    message: str
    #: What the function's program said of its own failure.
    name: str | None = None
    function_code: str | None = None
    data: Any = None


@dataclass(frozen=True)
class CallResult:
    """How a call without a program ended: ``call.state`` says whether it ran."""

    call: CallRecord
    #: ``None`` for ``null`` and where there is an error.
    value: Any = None
    #: There unless the call completed and gave what it should.
    error: CallError | None = None


@dataclass(frozen=True)
class EvaluateResult:
    """How a program ended."""

    #: Its id, ``ev_…``; empty when it was cancelled before it was sent.
    evaluation: str
    outcome: Outcome
    #: ``None`` for ``null`` and for no value: see ``has_value``.
    value: Any = None
    #: ``False`` when the program gave ``undefined`` or did not succeed.
    has_value: bool = False
    #: There unless the outcome is ``succeeded``.
    error: EvaluationError | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    warnings: tuple[EvaluationWarning, ...] = ()
    #: Every host call, in order.
    calls: tuple[CallRecord, ...] = ()
    usage: Usage = field(default_factory=Usage)
    sandbox: Sandbox = field(default_factory=Sandbox)

    @property
    def succeeded(self) -> bool:
        """Whether the program gave a value, or ended without one and without an error."""
        return self.outcome == "succeeded"


@dataclass(frozen=True)
class EvaluationStatus:
    """How far an evaluation is."""

    #: Its id, ``ev_…``.
    evaluation: str
    #: ``unknown``: brigd ended before it did; ``result`` lists the write calls that are on
    #: record, and it is never run again.
    state: EvaluationState
    #: When it began, in milliseconds since 1970.
    started_ms: int
    #: When it ended; ``None`` while it runs.
    ended_ms: int | None = None
    #: ``None`` while it runs.
    result: EvaluateResult | None = None


@dataclass(frozen=True)
class CheckResult:
    """Whether a program parses."""

    ok: bool
    error: EvaluationError | None = None


@dataclass(frozen=True)
class FunctionTypes:
    """Functions as a model reads them."""

    #: TypeScript declarations.
    declarations: str
    #: What the one tool over them is called.
    tool_name: str
    #: What a model is told of that tool; the declarations are in it.
    tool_description: str


@dataclass(frozen=True)
class ServerInfo:
    """What brigd says of itself and of this client."""

    protocol_version: str
    #: ``{"name": …, "version": …}``.
    server: dict[str, str]
    #: The ceilings of this principal, as the protocol spells them.
    limits: dict[str, int]
    sandbox: Sandbox
    #: ``{"uid": …, "gid": …}``: who the kernel says this process is.
    principal: dict[str, int]


def result_of(answer: Any) -> EvaluateResult:
    """The answer to ``evaluate``, if it is one."""
    if not isinstance(answer, dict) or not isinstance(answer.get("outcome"), str):
        raise BrigError("protocol_error", "the answer to evaluate has no outcome", nothing_ran=False)
    usage = answer.get("usage") or {}
    return EvaluateResult(
        evaluation=str(answer.get("evaluation", "")),
        outcome=answer["outcome"],
        value=answer.get("value"),
        has_value="value" in answer,
        error=error_of(answer.get("error")),
        stdout=str(answer.get("stdout", "")),
        stderr=str(answer.get("stderr", "")),
        stdout_truncated=answer.get("stdoutTruncated") is True,
        stderr_truncated=answer.get("stderrTruncated") is True,
        warnings=tuple(warning_of(warning) for warning in answer.get("warnings", ())),
        calls=tuple(_call_of(call) for call in answer.get("calls", ())),
        usage=Usage(
            wall_ms=usage.get("wallMs", 0),
            cpu_ms=usage.get("cpuMs", 0),
            host_ms=usage.get("hostMs", 0),
            approval_ms=usage.get("approvalMs", 0),
            peak_memory_bytes=usage.get("peakMemoryBytes", 0),
            host_calls=usage.get("hostCalls", 0),
        ),
        sandbox=_sandbox_of(answer.get("sandbox")),
    )


def call_result_of(answer: Any) -> CallResult:
    """The answer to ``functions.call``, if it is one."""
    if not isinstance(answer, dict) or not isinstance(answer.get("call"), dict):
        raise BrigError("protocol_error", "the answer to functions.call has no call", nothing_ran=False)
    told = answer.get("error")
    error = None
    if isinstance(told, dict):
        members = (told.get("name"), told.get("functionCode"), told.get("data"))
        error = CallError(str(told.get("code", "internal")), str(told.get("message", "")), *members)
    return CallResult(_call_of(answer["call"]), answer.get("value"), error)


def status_of(answer: Any) -> EvaluationStatus:
    """How far an evaluation is, if that is what was answered."""
    if not isinstance(answer, dict) or not isinstance(answer.get("state"), str):
        raise BrigError("protocol_error", "the answer does not say how far the evaluation is", nothing_ran=False)
    return EvaluationStatus(
        evaluation=str(answer.get("evaluation", "")),
        state=answer["state"],
        started_ms=answer.get("startedMs", 0),
        ended_ms=answer.get("endedMs"),
        result=result_of(answer["result"]) if "result" in answer else None,
    )


def never_sent() -> EvaluateResult:
    """The result of an evaluation that was cancelled before it was sent."""
    message = "it was cancelled before the program was sent; nothing ran"
    return EvaluateResult("", "cancelled", error=EvaluationError("cancelled", "Cancelled", message, retryable=True))


def check_of(answer: Any) -> CheckResult:
    """The answer to ``check``, if it is one."""
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise BrigError("protocol_error", "the answer to check does not say whether it is ok")
    return CheckResult(answer["ok"], error_of(answer.get("error")))


def types_of(answer: Any) -> FunctionTypes:
    """The answer to ``functions.types``, if it is one."""
    if not isinstance(answer, dict) or not isinstance(answer.get("declarations"), str) or not isinstance(answer.get("tool"), dict):
        raise BrigError("protocol_error", "the answer to functions.types has no declarations")
    tool = answer["tool"]
    return FunctionTypes(answer["declarations"], str(tool.get("name", "")), str(tool.get("description", "")))


def info_of(answer: Any) -> ServerInfo:
    """The answer to ``initialize``, if it is one."""
    if not isinstance(answer, dict) or not isinstance(answer.get("server"), dict):
        raise BrigError("protocol_error", "the answer to initialize does not say who answers")
    return ServerInfo(
        protocol_version=str(answer.get("protocolVersion")),
        server=answer["server"],
        limits=answer.get("limits") or {},
        sandbox=_sandbox_of(answer.get("sandbox")),
        principal=answer.get("principal") or {},
    )


def warning_of(told: Any) -> EvaluationWarning:
    """A warning, as it is told or as a result has it."""
    members = told if isinstance(told, dict) else {}
    return EvaluationWarning(str(members.get("code", "")), str(members.get("message", "")), members.get("path"))


def approval_of(told: dict[str, Any]) -> ApprovalNote:
    """That a call waits for a person, as it is told."""
    return ApprovalNote(
        evaluation=str(told.get("evaluation", "")),
        call=int(told.get("call", 0)),
        function=str(told.get("function", "")),
        approval=str(told.get("approval", "")),
        expires_in_ms=int(told.get("expiresInMs", 0)),
    )


def error_of(told: Any) -> EvaluationError | None:
    """The error of a result."""
    if not isinstance(told, dict):
        return None
    return EvaluationError(
        code=str(told.get("code", "internal")),
        name=str(told.get("name", "Error")),
        message=str(told.get("message", "")),
        retryable=told.get("retryable") is True,
        stack=told.get("stack"),
        line=told.get("line"),
        column=told.get("column"),
        excerpt=told.get("excerpt"),
        cause=_cause_of(told.get("cause")),
        errors=tuple(cause for cause in map(_cause_of, told.get("errors") or ()) if cause is not None),
        data=told.get("data"),
        hint=told.get("hint"),
        limit=told.get("limit"),
        limit_value=told.get("limitValue"),
        setting=told.get("setting"),
    )


def _cause_of(told: Any) -> ErrorCause | None:
    if not isinstance(told, dict):
        return None
    name, message = str(told.get("name", "Error")), str(told.get("message", ""))
    return ErrorCause(name, message, told.get("code"), told.get("data"), _cause_of(told.get("cause")))


def _call_of(told: dict[str, Any]) -> CallRecord:
    return CallRecord(
        call=told["call"],
        function=told["function"],
        state=told["state"],
        code=told.get("code"),
        duration_ms=told.get("durationMs", 0),
        input_bytes=told.get("inputBytes", 0),
        output_bytes=told.get("outputBytes", 0),
    )


def _sandbox_of(told: Any) -> Sandbox:
    members = told if isinstance(told, dict) else {}
    return Sandbox(str(members.get("level", "none")), tuple(members.get("layers", ())))
