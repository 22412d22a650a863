"""The options of an evaluation, as keyword arguments.

Owns their names and types, once for every function that takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Union

from .functions import HostFunctionsLike
from .requests import Cancellation, Form, Language, Limits, OutputOptions, Permissions
from .results import ApprovalNote, EvaluationWarning

if TYPE_CHECKING:
    from .blocking import Vm
    from .vm import AsyncVm


class _ProgramOptions(TypedDict, total=False):
    form: Form | None
    language: Language | None
    #: The frozen global ``inputs``: anything whose JSON form is an object.
    inputs: Any
    #: Narrows the configured collections to these.
    collections: Sequence[str] | None
    permissions: Permissions | None
    #: Wall-clock limit in milliseconds; the same as ``limits["timeout_ms"]``.
    timeout_ms: int | None
    limits: Limits | None
    output: OutputOptions | None
    #: IANA time zone of the program; ``UTC`` when left out.
    time_zone: str | None
    #: Same key, same request: the same answer, nothing run twice.
    idempotency_key: str | None
    #: W3C ``traceparent``.
    trace: str | None


class DetachOptions(_ProgramOptions, total=False):
    """What a detached program gets: nothing of this process, which it may outlive."""


class CallOptions(TypedDict, total=False):
    """What a call without a program is given."""

    #: Ends it after so long, if the function's own time is not over before, in milliseconds.
    timeout_ms: int | None
    #: Same key, same call: the same answer, nothing run twice.
    idempotency_key: str | None
    #: Cancels the call; the answer still says whether it ran.
    cancellation: Cancellation | None
    #: Is told when the call waits for a person: also when another call of the same function on
    #: this client does. The function has to be named as ``collection.function``.
    on_approval: Callable[[ApprovalNote], object] | None


class VmEvaluateOptions(_ProgramOptions, total=False):
    """What a program gets, and what becomes of it."""

    host_functions: HostFunctionsLike | None
    #: Cancels the evaluation: the outcome is ``cancelled``.
    cancellation: Cancellation | None
    #: One or more lines, as they are printed. Called on the event loop: it must not block.
    on_stdout: Callable[[str], object] | None
    on_stderr: Callable[[str], object] | None
    on_warning: Callable[[EvaluationWarning], object] | None
    #: Is told of each host call that waits for a person.
    on_approval: Callable[[ApprovalNote], object] | None


class EvaluateOptions(VmEvaluateOptions, total=False):
    """The same, with a vm."""

    #: A kept worker: see ``create_vm``.
    vm: Union[AsyncVm, Vm, str, None]


class VmOptions(TypedDict, total=False):
    """What a vm is made with."""

    #: Collections for every evaluation in the vm.
    host_functions: HostFunctionsLike | None
    limits: Limits | None
    time_zone: str | None
    #: Unless an evaluation says otherwise.
    permissions: Permissions | None
    #: Unless an evaluation says otherwise, in milliseconds.
    timeout_ms: int | None
    #: Unless an evaluation says otherwise.
    output: OutputOptions | None


class ConnectOptions(TypedDict, total=False):
    """Which brigd."""

    #: Path of its socket. Left out: ``BRIG_SOCKET``, then the service's
    #: ``/run/brig/brig.sock`` when it answers, then a private brigd of this process.
    socket: str | None
    #: Binary of a private brigd: else ``BRIGD``, else the first ``brigd`` on ``PATH``.
    brigd: str | None


class SharedEvaluateOptions(EvaluateOptions, ConnectOptions, total=False):
    """Options of ``brig.evaluate``."""


class SharedVmOptions(VmOptions, ConnectOptions, total=False):
    """Options of ``brig.create_vm``."""
