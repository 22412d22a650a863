"""From options to the params of a request.

Owns which options there are and how they are spelled on the wire. Never sends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

from .errors import JsonFault
from .functions import PreparedFunctions
from .wire_json import NESTING_LEVELS, encode

#: Levels that params add around a value.
_ENVELOPE_LEVELS = 4

#: How the program text is to be read.
Form = Literal["auto", "expression", "body", "module"]
#: In which language the program is; ``auto`` strips types when there are any.
Language = Literal["auto", "javascript", "typescript"]


class Limits(TypedDict, total=False):
    """Lowers the ceilings of brigd; can not raise one."""

    #: Wall-clock time, approvals excepted, in milliseconds.
    timeout_ms: int
    #: CPU time of the worker, in milliseconds.
    cpu_ms: int
    heap_bytes: int
    host_calls: int
    host_calls_in_flight: int
    #: JSON text of the value.
    result_bytes: int
    #: Console text of each stream.
    console_bytes: int
    #: JSON text of one host call's input.
    input_bytes: int
    #: JSON text of one host call's output.
    output_bytes: int
    #: How long issued host calls may go on once the value is ready, in milliseconds.
    drain_ms: int
    #: Time for one host call, in milliseconds.
    function_timeout_ms: int


class OutputOptions(TypedDict, total=False):
    """What happens to console output."""

    #: What the result carries; ``all`` when left out.
    capture: Literal["none", "stderr", "all"]
    #: Whether it is also told while it runs; set by ``on_stdout`` and its like.
    stream: bool


class _Rule(TypedDict):
    mode: Literal["allow", "deny", "ask"]
    patterns: Sequence[str]


class PermissionRule(_Rule, total=False):
    """One rule of a scope. ``patterns``: ``collection.function``; ``*`` within a segment, ``**`` across."""

    operations: Sequence[Literal["invoke", "list"]]
    #: JSON Schema on the input: the rule holds only where it is valid.
    when: Any
    #: A sentence that refusals show.
    why: str


class _Rules(TypedDict):
    rules: Sequence[PermissionRule]


class PermissionRules(_Rules, total=False):
    """Rules of which the last that matches wins; ``default`` (``deny``) when none does."""

    default: Literal["allow", "deny"]


class Permissions(TypedDict, total=False):
    """Narrows what policy grants; never widens it."""

    host_function: Union[Literal["allow", "deny"], PermissionRules]


class Cancellation:
    """Cancels evaluations from anywhere, any thread: their outcome is ``cancelled``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancels every evaluation that was given this, and those that will be."""
        with self._lock:
            self._cancelled = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls ``listener`` once, at once if it is cancelled already; gives what undoes that."""
        with self._lock:
            late = self._cancelled
            if not late:
                self._listeners.append(listener)
        if late:
            listener()

        def undo() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return undo


_LIMITS = {name: name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:]) for name in Limits.__annotations__}
_PERMISSIONS = {"host_function": "hostFunction"}
_OUTPUT = {"capture": "capture", "stream": "stream"}


def evaluate_params(source: str, functions: PreparedFunctions, told: Mapping[str, Any], listens: bool, detach: bool = False) -> str:
    """Params of ``evaluate``, as JSON text. ``told``: options by their names here, ``None`` for none."""
    output = _spelled(told.get("output"), "output", _OUTPUT)
    if listens:
        output = {**(output or {}), "stream": True}
    return text(
        "evaluate",
        {
            "source": _source(source),
            "form": told.get("form"),
            "language": told.get("language"),
            "inputs": told.get("inputs"),
            "hostFunctions": functions.declarations or None,
            "collections": told.get("collections"),
            "permissions": _spelled(told.get("permissions"), "permissions", _PERMISSIONS),
            "timeoutMs": told.get("timeout_ms"),
            "limits": _spelled(told.get("limits"), "limits", _LIMITS),
            "output": output,
            "timeZone": told.get("time_zone"),
            "vm": told.get("vm"),
            "idempotencyKey": told.get("idempotency_key"),
            "trace": told.get("trace"),
            "detach": True if detach else None,
        },
    )


def check_params(source: str, form: Form | None, language: Language | None) -> str:
    """Params of ``check``, as JSON text."""
    return text("check", {"source": _source(source), "form": form, "language": language})


def call_params(name: str, given: Any, told: Mapping[str, Any]) -> str:
    """Params of ``functions.call``, as JSON text."""
    members = {"function": name, "input": given, "timeoutMs": told.get("timeout_ms"), "idempotencyKey": told.get("idempotency_key")}
    return text("call", members)


def types_params(functions: PreparedFunctions, patterns: Sequence[str] | None) -> str:
    """Params of ``functions.types``, as JSON text."""
    told = None if patterns is None else list(patterns)
    return text("types", {"functions": told, "hostFunctions": functions.declarations or None})


def vm_params(functions: PreparedFunctions, limits: Limits | None, time_zone: str | None) -> str:
    """Params of ``vm.create``, as JSON text."""
    spelled = _spelled(limits, "limits", _LIMITS)
    return text("create_vm", {"hostFunctions": functions.declarations or None, "limits": spelled, "timeZone": time_zone})


def text(what: str, params: Mapping[str, Any]) -> str:
    """Params of any method, as JSON text; members that are ``None`` are left out."""
    try:
        return encode({name: value for name, value in params.items() if value is not None}, NESTING_LEVELS + _ENVELOPE_LEVELS)
    except JsonFault as fault:
        raise TypeError(f"{what}: {str(fault).removeprefix('$').removeprefix('.')}") from fault


def _source(source: object) -> str:
    if isinstance(source, str):
        return source
    raise TypeError(f"source must be a str; it is {type(source).__name__}")


def _spelled(given: Any, what: str, names: Mapping[str, str]) -> dict[str, Any] | None:
    """The same members as the protocol spells them, which may be given so as well."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping; it is {type(given).__name__}")
    spelled: dict[str, Any] = {}
    for name, value in given.items():
        if name not in names and name not in names.values():
            raise TypeError(f"{what} has no member {name!r}; there are {', '.join(names)}")
        spelled[names.get(name, name)] = value
    return spelled
