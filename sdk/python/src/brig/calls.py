"""One call of a host function: run it, and say what crosses.

Owns what a handler is told of its call, the thread that a blocking handler runs in, and
what crosses of an error: class name, message, code and data, never a traceback. Never sees
a socket.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Union

from .errors import HostFunctionError, JsonFault
from .schema import Issue, Mismatch
from .wire_json import encode


@dataclass(frozen=True)
class CallContext:
    """What a handler is told of the call it answers, in the parameter annotated with this."""

    #: ``collection.function``.
    function: str
    #: Until when the answer is awaited.
    deadline: datetime
    #: The evaluation, ``ev_…``.
    evaluation: str
    #: Number of the call within it, from 1.
    call: int
    #: The same for every delivery of this call: pass it on to whoever keeps such keys.
    idempotency_key: str
    #: Set when nobody awaits the answer any more. An async handler is cancelled as well.
    cancelled: threading.Event


@dataclass(frozen=True)
class Output:
    """JSON text of what a call gave."""

    text: str


@dataclass(frozen=True)
class Failure:
    """What crosses of an error."""

    message: str
    data: dict[str, Any]

    def text(self) -> str:
        """JSON text of the ``error`` member of an answer."""
        return json.dumps({"code": -32000, "message": self.message, "data": self.data})


#: Runs one call. Raises nothing but ``CancelledError``.
Handler = Callable[[Any, CallContext], Awaitable["Output | Failure"]]


def refusal(message: str, code: str) -> Failure:
    """A failure that has a code and no name."""
    return Failure(message, {"code": code})


@dataclass(frozen=True)
class Steps:
    """How a call goes: input to arguments, arguments to what is given, that to JSON."""

    #: From JSON to the arguments. Raises :class:`Mismatch`.
    bind: Callable[[Any, CallContext], tuple[tuple[Any, ...], dict[str, Any]]]
    execute: Callable[..., Any]
    #: From what was given to what is encoded. Raises :class:`Mismatch`.
    judge: Callable[[Any], Any] | None


def handler_of(steps: Steps) -> Handler:
    """A handler that runs coroutine functions on the loop, and others in a thread each."""
    is_async = inspect.iscoroutinefunction(steps.execute) or inspect.iscoroutinefunction(
        getattr(steps.execute, "__call__", None)  # noqa: B004 (an object may have an async one)
    )

    async def handle(given: Any, call: CallContext) -> Output | Failure:
        try:
            positional, named = steps.bind(given, call)
        except Mismatch as fault:
            return _invalid_input(fault.issues)
        except Exception as fault:
            return failure_of(fault)
        try:
            if is_async:
                return _answer(steps, await steps.execute(*positional, **named))
            outcome = await _in_thread(lambda: _begin(steps, positional, named), call)
            # A plain function may give what is to be awaited, and that belongs to the loop.
            return _answer(steps, await outcome.awaited) if isinstance(outcome, _Begun) else outcome
        except asyncio.CancelledError:
            if call.cancelled.is_set():
                raise
            # The handler cancelled itself: the program still waits.
            return refusal("the function was cancelled", "cancelled")
        except KeyboardInterrupt:
            raise
        except BaseException as fault:
            return failure_of(fault)

    return handle


@dataclass(frozen=True)
class _Begun:
    awaited: Awaitable[Any]


_Outcome = Union[Output, Failure, _Begun]


def _begin(steps: Steps, positional: tuple[Any, ...], named: dict[str, Any]) -> Output | Failure | _Begun:
    given = steps.execute(*positional, **named)
    return _Begun(given) if inspect.isawaitable(given) else _answer(steps, given)


def _answer(steps: Steps, given: Any) -> Output | Failure:
    try:
        return Output(encode(given if steps.judge is None else steps.judge(given)))
    except Mismatch as fault:
        # Names the places only: a message could quote what must not cross.
        places = ", ".join(dict.fromkeys(issue.path for issue in fault.issues))
        message = f"the function's output does not match its schema at {places}"
        return Failure(message, {"name": "InvalidOutput", "code": "invalid_output"})


async def _in_thread(work: Callable[[], _Outcome], call: CallContext) -> _Outcome:
    """Runs ``work`` in a thread of its own, so that calls never wait for one another.

    A daemon thread and no pool: how many there are is bounded by ``hostCallsInFlight``, and
    one that hangs does not keep the process.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Outcome] = loop.create_future()
    variables = contextvars.copy_context()

    def settle(outcome: _Outcome) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        try:
            outcome: _Outcome = variables.run(work)
        except BaseException as fault:
            outcome = failure_of(fault)
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            # The loop was closed meanwhile: nobody waits any more.
            pass

    threading.Thread(target=run, name=f"brig {call.function}", daemon=True).start()
    return await done


def _invalid_input(issues: tuple[Issue, ...]) -> Failure:
    """brigd judged the JSON Schema; this is what only the type itself can say."""
    told = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
    data = {"issues": [{"path": issue.path, "message": issue.message} for issue in issues]}
    return Failure(told, {"name": "InvalidInput", "code": "invalid_input", "data": data})


def failure_of(fault: BaseException) -> Failure:
    """What crosses of anything that was raised."""
    if isinstance(fault, JsonFault):
        message = f"the function's output has no JSON form: {fault}"
        return Failure(message, {"name": "InvalidOutput", "code": "invalid_output"})
    crossing: dict[str, Any] = {}
    if type(fault) is not HostFunctionError:
        crossing["name"] = type(fault).__name__
    code = _read(fault, "code")
    if isinstance(code, (str, int)) and not isinstance(code, bool) and code != "":
        crossing["code"] = str(code)
    data = _portable(_read(fault, "data"))
    if data is not None:
        crossing["data"] = data
    try:
        message = str(fault)
    except Exception:
        message = ""
    return Failure(message or "the function failed and gave no reason", crossing)


def _read(fault: BaseException, name: str) -> Any:
    try:
        return getattr(fault, name, None)
    except Exception:
        return None


def _portable(data: Any) -> Any:
    """``data`` if JSON can carry it: an error must cross even when its data can not."""
    if data is None or callable(data):
        return None
    try:
        return json.loads(encode(data))
    except Exception:
        return None
