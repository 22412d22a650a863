"""One connection to brigd: lines out, lines in, who waits for what.

Owns the socket, the requests in flight and the calls that handlers are answering. Lives on
one event loop. Never connects again: that is the client's.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from .calls import CallContext, Failure, Handler, Output, refusal
from .errors import BrigError
from .lines import LineReader
from .reach import QUEUE_S, reach
from .results import ApprovalNote, EvaluationWarning, approval_of, warning_of
from .wire_json import decode, line

#: Longest line that brigd takes, in bytes.
REQUEST_LINE_BYTES = 16 * 1024 * 1024
#: Longest line taken from brigd: a value and two console streams at their highest limits.
ANSWER_LINE_BYTES = 256 * 1024 * 1024
#: Refusals that brigd sends without an id, because it sends this client away.
_SENT_AWAY = ("not_permitted", "overloaded", "quota_exceeded", "shutting_down")

#: How the id begins of a call without a program: ``functions.call``.
_CALL_PREFIX = "fc_"


@dataclass(frozen=True)
class Offer:
    """What a request offers to its evaluation while that runs."""

    handlers: Mapping[str, Handler]
    #: That of whoever asked: the socket's own is that of whoever happened to connect.
    context: contextvars.Context
    on_stdout: Callable[[str], object] | None = None
    on_stderr: Callable[[str], object] | None = None
    on_warning: Callable[[EvaluationWarning], object] | None = None
    on_approval: Callable[[ApprovalNote], object] | None = None


@dataclass(frozen=True)
class Asking:
    """Who is told that a call without a program waits for a person."""

    function: str
    on_approval: Callable[[ApprovalNote], object]
    context: contextvars.Context


@dataclass
class _Pending:
    answer: asyncio.Future[Any]
    offer: Offer | None
    #: Whether brigd was asked to say which evaluation it becomes.
    announced: bool
    #: What it offers as functions of the vm that it makes.
    makes: Offer | None = None
    asks: Asking | None = None
    evaluation: str | None = None

    @property
    def unnamed(self) -> bool:
        return self.offer is not None and not self.announced and self.evaluation is None


@dataclass(frozen=True)
class _Answering:
    evaluation: str
    cancelled: threading.Event
    task: asyncio.Task[None]


@dataclass(frozen=True)
class Asked:
    """A request in flight."""

    answer: asyncio.Future[Any]
    #: Asks brigd to end it; the answer still comes.
    cancel: Callable[[], None]


class Connection(asyncio.Protocol):
    """One connection, made by :meth:`open`."""

    def __init__(self) -> None:
        self._reader = LineReader(ANSWER_LINE_BYTES)
        self._requests: dict[int, _Pending] = {}
        self._evaluations: dict[str, int] = {}
        self._calls: dict[int | str, _Answering] = {}
        #: Of the vms that were made here; another connection may evaluate in them.
        self._kept: dict[str, Offer] = {}
        self._makes_vms = False
        self._last_id = 0
        self._lost: BrigError | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, path: str, within: float = QUEUE_S) -> Connection:
        """Connects to the socket at ``path``, or raises ``connect_failed``.

        A place in a full queue of connections is waited for, ``within`` so many seconds.
        """
        try:
            reached = await reach(path, within)
            _, connection = await asyncio.get_running_loop().create_unix_connection(cls, sock=reached)
        except (OSError, ValueError) as fault:
            raise BrigError("connect_failed", f"no brigd answers on {path}: {fault}", retryable=True) from fault
        return connection

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return self._lost is None

    def request(self, method: str, params: str, offer: Offer | None = None, *, makes: Offer | None = None) -> Asked:
        """Sends a request. ``params`` is JSON text of an object.

        ``makes``: what answers for the functions of the vm that it makes, whoever evaluates in that.
        """
        self._last_id += 1
        number = self._last_id
        self._makes_vms = self._makes_vms or makes is not None
        ambiguous = self._makes_vms or any(pending.unnamed for pending in self._requests.values())
        announced = offer is not None and ambiguous
        said = _with_member(params, '"announce":true') if announced else params
        sent = line(f'{{"jsonrpc":"2.0","id":{number},"method":{json.dumps(method)},"params":{said}}}')
        if self._lost is not None:
            raise self._lost
        _refuse_long(sent)
        answer: asyncio.Future[Any] = self._loop.create_future()
        # Whoever asked may have gone by then; that is no error.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._requests[number] = _Pending(answer, offer, announced, makes)
        self._write(sent)
        return Asked(answer, lambda: self._cancel(number))

    def call(self, params: str, asks: Asking | None) -> Asked:
        """Sends a call without a program. Its id is told to nobody, so approvals go by its function."""
        asked = self.request("functions.call", params)
        self._requests[self._last_id].asks = asks
        return asked

    def let_go(self, vm: str) -> None:
        """The vm is no more."""
        self._kept.pop(vm, None)

    def close(self, reason: BrigError | None = None) -> None:
        """Ends it. What is in flight is rejected."""
        self._lose(reason or BrigError("closed", "the client was closed", nothing_ran=False))

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for received in self._reader.feed(data):
                if received.strip():
                    self._take(decode(received))
        except Exception as fault:
            message = f"brigd sent something that is not the protocol: {fault}"
            error = BrigError("protocol_error", message, nothing_ran=False)
            error.__cause__ = fault
            self._lose(error)

    def connection_lost(self, exc: Exception | None) -> None:
        why = "brigd closed it" if exc is None else str(exc)
        message = f"the connection to brigd was lost before the answer came: {why}. Whether anything ran is unknown"
        self._lose(BrigError("connection_lost", message, nothing_ran=False))

    # Requests.

    def _cancel(self, number: int) -> None:
        if number in self._requests:
            self._write(line(f'{{"jsonrpc":"2.0","method":"cancel","params":{{"id":{number}}}}}'))

    def _write(self, sent: bytes) -> None:
        if self._lost is None and self._transport is not None:
            self._transport.write(sent)

    def _take(self, message: Any) -> None:
        if self._lost is not None:
            return
        if not isinstance(message, dict):
            raise ValueError("a message is not an object")
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is not None and number is None:
            return self._told(method, params)
        if method == "host.call" and isinstance(number, (int, str)):
            return self._host_call(number, params)
        if method is not None:
            return self._refuse(number, str(method))
        if isinstance(number, int):
            return self._answered(number, message)
        if message.get("error") is not None:
            self._sent_away(BrigError.from_wire(message["error"]))

    def _answered(self, number: int, message: dict[str, Any]) -> None:
        pending = self._requests.pop(number, None)
        if pending is None:
            return
        self._forget(pending)
        if pending.makes is not None and message.get("error") is None:
            self._made(pending, pending.makes, message["result"]["vm"])
        if pending.answer.done():
            return
        if message.get("error") is None:
            pending.answer.set_result(message.get("result"))
        else:
            pending.answer.set_exception(BrigError.from_wire(message["error"]))

    def _made(self, pending: _Pending, made: Offer, vm: str) -> None:
        """There is a vm: the next line may be a call of its functions."""
        if pending.answer.done():
            # Whoever asked has gone, and nobody else knows of it.
            return self._write(line(f'{{"jsonrpc":"2.0","method":"vm.dispose","params":{{"vm":{json.dumps(vm)}}}}}'))
        self._kept[vm] = made

    def _forget(self, pending: _Pending) -> None:
        """An evaluation is over: nobody awaits what its handlers still do."""
        if pending.evaluation is None:
            return
        self._evaluations.pop(pending.evaluation, None)
        for number, call in list(self._calls.items()):
            if call.evaluation == pending.evaluation:
                self._abort(number)

    def _sent_away(self, fault: BrigError) -> None:
        """An error without an id: brigd sends this client away, or could not read a line of it."""
        if fault.code in _SENT_AWAY:
            return self._lose(fault)
        self._lose(BrigError("protocol_error", f"brigd could not read a request: {fault}", nothing_ran=False))

    def _told(self, method: str, params: dict[str, Any]) -> None:
        evaluation = str(params.get("evaluation"))
        if method == "host.cancel":
            self._abort(params["id"])
        elif method == "evaluation.started":
            self._name(params["id"], evaluation)
        elif method == "evaluation.output":
            offer = self._offer(evaluation)
            if offer is not None:
                listener = offer.on_stderr if params.get("stream") == "stderr" else offer.on_stdout
                self._listen(offer, listener, str(params.get("text")))
        elif method == "evaluation.warning":
            offer = self._offer(evaluation)
            if offer is not None:
                self._listen(offer, offer.on_warning, warning_of(params.get("warning")))
        elif method == "evaluation.approval":
            self._parked(evaluation, approval_of(params))
        # A newer brigd may tell more.

    def _parked(self, evaluation: str, note: ApprovalNote) -> None:
        if not evaluation.startswith(_CALL_PREFIX):
            offer = self._offer(evaluation)
            if offer is not None:
                self._listen(offer, offer.on_approval, note)
            return
        for asks in [pending.asks for pending in self._requests.values()]:
            if asks is not None and asks.function == note.function:
                self._listen(asks, asks.on_approval, note)

    def _listen(self, offer: Offer | Asking, listener: Callable[[Any], object] | None, told: object) -> None:
        """A listener's error is its own: it must not end what everyone shares, nor be lost."""
        if listener is None:
            return
        try:
            offer.context.run(listener, told)
        except Exception as fault:
            self._loop.call_exception_handler({"message": "a listener of brig raised", "exception": fault})

    def _name(self, number: int, evaluation: str) -> None:
        pending = self._requests.get(number)
        if pending is not None:
            pending.evaluation = evaluation
            self._evaluations[evaluation] = number

    def _offer(self, evaluation: str) -> Offer | None:
        """The offer of an evaluation.

        One that was not announced belongs to the only request that did not ask for it:
        there is never more than one such.
        """
        known = self._evaluations.get(evaluation)
        if known is not None:
            pending = self._requests.get(known)
            return None if pending is None else pending.offer
        unnamed = [number for number, pending in self._requests.items() if pending.unnamed]
        if len(unnamed) != 1:
            return None
        self._name(unnamed[0], evaluation)
        return self._requests[unnamed[0]].offer

    def _offered(self, evaluation: str, vm: Any) -> tuple[Mapping[str, Handler], contextvars.Context] | None:
        """What answers a call, and in which context.

        A function of a vm is that of the vm, whoever evaluates in it; the context is that of
        the evaluation, where that is of this client.
        """
        if vm is None:
            offer = self._offer(evaluation)
            return None if offer is None else (offer.handlers, offer.context)
        kept = self._kept.get(str(vm))
        if kept is None:
            return None
        pending = self._requests.get(self._evaluations.get(evaluation, 0))
        own = kept if pending is None or pending.offer is None else pending.offer
        return kept.handlers, own.context

    # Host calls.

    def _host_call(self, number: int | str, params: dict[str, Any]) -> None:
        evaluation, name = str(params["evaluation"]), str(params["function"])
        offered = self._offered(evaluation, params.get("vm"))
        if offered is None:
            return self._answer(number, refusal("this client runs no such evaluation", "cancelled"))
        handlers, context = offered
        handler = handlers.get(name)
        if handler is None:
            return self._answer(number, refusal(f"{name} is not offered here", "unknown_function"))
        cancelled = threading.Event()
        call = CallContext(
            function=name,
            deadline=datetime.now(timezone.utc) + timedelta(milliseconds=float(params["deadlineMs"])),
            evaluation=evaluation,
            call=int(params["call"]),
            idempotency_key=str(params["idempotencyKey"]),
            cancelled=cancelled,
        )
        task = context.run(self._loop.create_task, self._run(number, handler, params.get("input"), call))
        self._calls[number] = _Answering(evaluation, cancelled, task)

    async def _run(self, number: int | str, handler: Handler, given: Any, call: CallContext) -> None:
        outcome = await handler(given, call)
        # Nobody awaits the answer of a call that was cancelled.
        if self._calls.pop(number, None) is not None:
            self._answer(number, outcome)

    def _abort(self, number: int | str) -> None:
        call = self._calls.pop(number, None)
        if call is not None:
            call.cancelled.set()
            call.task.cancel()

    def _answer(self, number: int | str, outcome: Output | Failure) -> None:
        start = f'{{"jsonrpc":"2.0","id":{json.dumps(number)},'
        if isinstance(outcome, Output):
            sent = line(f'{start}"result":{outcome.text}}}')
        else:
            sent = line(f'{start}"error":{outcome.text()}}}')
        if len(sent) - 1 > REQUEST_LINE_BYTES:
            most = f"the function's answer is larger than one line may be ({REQUEST_LINE_BYTES} bytes)"
            sent = line(f'{start}"error":{refusal(most, "output_too_large").text()}}}')
        self._write(sent)

    def _refuse(self, number: Any, method: str) -> None:
        message = f"a client answers host.call only, not {method[:100]!r}"
        error = {"code": -32601, "message": message}
        self._write(line(json.dumps({"jsonrpc": "2.0", "id": number, "error": error})))

    def _lose(self, reason: BrigError) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        waiting = list(self._requests.values())
        self._requests.clear()
        self._evaluations.clear()
        if self._loop.is_closed():
            return
        if self._transport is not None:
            self._transport.abort()
        for number in list(self._calls):
            self._abort(number)
        for pending in waiting:
            if not pending.answer.done():
                pending.answer.set_exception(reason)


def _with_member(params: str, added: str) -> str:
    return f"{{{added}}}" if params == "{}" else f"{params[:-1]},{added}}}"


def _refuse_long(sent: bytes) -> None:
    length = len(sent) - 1
    if length > REQUEST_LINE_BYTES:
        message = f"the request has {length} bytes; one line has at most {REQUEST_LINE_BYTES}. Nothing was sent"
        raise BrigError("line_too_long", message)
