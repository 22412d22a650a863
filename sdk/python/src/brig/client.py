"""The client: methods of the protocol as coroutines.

Owns one connection at a time, made again when it is gone. Never sends a request twice:
whether something ran is the caller's to judge.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .connection import Asked, Asking, Connection, Offer
from .endpoint import Endpoint
from .errors import BrigError
from .functions import HostFunctionsLike, prepare_functions
from .keywords import refuse_unknown
from .options import CallOptions, DetachOptions, EvaluateOptions, VmOptions
from .requests import Cancellation, Form, Language, call_params, check_params, evaluate_params, text, types_params, vm_params
from .results import (
    CallResult,
    CheckResult,
    EvaluateResult,
    EvaluationStatus,
    FunctionTypes,
    ServerInfo,
    call_result_of,
    check_of,
    info_of,
    never_sent,
    result_of,
    status_of,
    types_of,
)
from .version import VERSION
from .vm import AsyncVm, VmOpening

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncClient:
    """A client of one brigd, on one event loop. Any number of evaluations can run at once."""

    def __init__(self, *, socket: str | None = None, brigd: str | None = None) -> None:
        """Connects when it is first used; :func:`connect_async` does so at once.

        ``socket``: path of brigd's socket; left out, ``BRIG_SOCKET``, then the service's when
        it answers, then a private brigd of this process, whose binary ``brigd`` names.
        """
        self._endpoint = Endpoint(socket, brigd)
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def socket(self) -> str | None:
        """Path of the socket, once there is one."""
        return self._endpoint.socket

    async def evaluate(self, source: str, **options: Unpack[EvaluateOptions]) -> EvaluateResult:
        """Runs a program. One that fails is a result.

        Raises :class:`BrigError` when there is no result; ``nothing_ran`` says whether that
        is certain. When the awaiting task is cancelled, so is the program.
        """
        refuse_unknown("evaluate", options, EvaluateOptions)
        vm = options.get("vm")
        return await self._run(source, {**options, "vm": vm if vm is None or isinstance(vm, str) else vm.id})

    async def detach(self, source: str, **options: Unpack[DetachOptions]) -> EvaluationStatus:
        """Runs a program that goes on without this client: gives its id and state once it runs.

        Any client of the same user asks for its answer with :meth:`wait_evaluation`.
        Raises :class:`BrigError` when it does not run.
        """
        refuse_unknown("detach", options, DetachOptions)
        return status_of(await self._ask("evaluate", evaluate_params(source, prepare_functions(None), options, False, detach=True)))

    async def get_evaluation(self, evaluation: str) -> EvaluationStatus:
        """How far an evaluation of this user is, and its answer once it is over."""
        return status_of(await self.request("evaluations.get", {"evaluation": evaluation}))

    async def wait_evaluation(self, evaluation: str, *, timeout_ms: int | None = None) -> EvaluationStatus:
        """The same, once it is over or the time is: 30 s when left out, 10 minutes at most."""
        return status_of(await self.request("evaluations.wait", {"evaluation": evaluation, "timeoutMs": timeout_ms}))

    async def check(self, source: str, *, form: Form | None = None, language: Language | None = None) -> CheckResult:
        """Parses a program without running it."""
        return check_of(await self._ask("check", check_params(source, form, language)))

    async def types(self, host_functions: HostFunctionsLike | None = None, *, functions: Sequence[str] | None = None) -> FunctionTypes:
        """TypeScript declarations of the configured functions and of these, and the tool that offers them to a model.

        ``functions``: patterns that narrow the configured ones; left out: all.
        """
        return types_of(await self._ask("functions.types", types_params(prepare_functions(host_functions), functions)))

    async def call(self, name: str, given: Any = None, /, **options: Unpack[CallOptions]) -> CallResult:
        """Calls a configured function without a program. A call that was refused or failed is a result.

        ``name``: ``collection.function``, or its command spelling ``collection:function``;
        ``given``: its input, ``{}`` when left out. Raises :class:`BrigError` when there is no
        result; ``nothing_ran`` says whether that is certain. When the awaiting task is
        cancelled, so is the call.
        """
        refuse_unknown("call", options, CallOptions)
        params = call_params(name, given, options)
        listener = options.get("on_approval")
        asks = None if listener is None else Asking(name, listener, contextvars.copy_context())
        cancellation = options.get("cancellation")
        connection = await self._connect()
        if cancellation is not None and cancellation.cancelled:
            raise BrigError("cancelled", "it was cancelled before the call was sent; nothing ran", retryable=True)
        return call_result_of(await _answer(connection.call(params, asks), cancellation))

    def create_vm(self, **options: Unpack[VmOptions]) -> VmOpening:
        """Makes a vm, which keeps its realm between evaluations: ``async with`` it, or await it."""
        refuse_unknown("create_vm", options, VmOptions)
        return VmOpening(lambda: self._create_vm(options))

    async def list_vms(self) -> list[dict[str, Any]]:
        """The vms of this principal, as the protocol tells them."""
        listed = await self.request("vm.list")
        return list(listed["vms"])

    async def initialize(self) -> ServerInfo:
        """What brigd says of itself: version, limits of this principal, active sandbox layers."""
        params = {"protocolVersion": "1", "client": {"name": "brig-python", "version": VERSION}}
        return info_of(await self.request("initialize", params))

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any other method of the protocol."""
        answer = await self._ask(method, text(method, params or {}))
        if method == "vm.dispose" and self._connection is not None:
            self._connection.let_go(str((params or {}).get("vm")))
        return answer

    async def close(self) -> None:
        """Ends the connection. What is in flight is rejected."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.close()
            # Once around the loop, in which the transport lets go of the socket.
            await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _create_vm(self, options: VmOptions) -> AsyncVm:
        functions = prepare_functions(options.get("host_functions"))
        params = vm_params(functions, options.get("limits"), options.get("time_zone"))
        connection = await self._connect()
        made = await connection.request("vm.create", params, makes=Offer(functions.handlers, contextvars.copy_context())).answer
        defaults = {name: options.get(name) for name in ("permissions", "timeout_ms", "output")}
        return AsyncVm(self._run, self.request, made, defaults)

    async def _run(self, source: str, options: Mapping[str, Any]) -> EvaluateResult:
        functions = prepare_functions(options.get("host_functions"))
        listeners = {name: options.get(name) for name in ("on_stdout", "on_stderr", "on_warning")}
        listens = any(listener is not None for listener in listeners.values())
        params = evaluate_params(source, functions, options, listens)
        # Told without being asked for.
        listeners["on_approval"] = options.get("on_approval")
        listens = listens or listeners["on_approval"] is not None
        # A vm may have functions of this client.
        offers = functions.handlers or listens or options.get("vm") is not None
        offer = Offer(functions.handlers, contextvars.copy_context(), **listeners) if offers else None
        cancellation = options.get("cancellation")
        if cancellation is not None and cancellation.cancelled:
            return never_sent()
        connection = await self._connect()
        if cancellation is not None and cancellation.cancelled:
            return never_sent()
        return result_of(await _answer(connection.request("evaluate", params, offer), cancellation))

    async def _ask(self, method: str, params: str) -> Any:
        connection = await self._connect()
        return await connection.request(method, params).answer

    async def _connect(self) -> Connection:
        """The connection, made anew when there is none."""
        self._stay_on_one_loop()
        if self._connection is not None and self._connection.alive and not self._closed:
            return self._connection
        if self._closed:
            raise BrigError("closed", "the client was closed; nothing was sent")
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
            # Whoever waited may have gone by then; that is no error.
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            # Several may wait for it; that one is cancelled is nothing to the others.
            return await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            if self._closed:
                raise BrigError("closed", "the client was closed; nothing was sent") from None
            raise

    async def _open(self) -> Connection:
        try:
            self._connection = await self._endpoint.open()
            return self._connection
        finally:
            self._opening = None

    def _stay_on_one_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("this AsyncClient belongs to another event loop: make one for each, or use brig.Client")


async def _answer(asked: Asked, cancellation: Cancellation | None) -> Any:
    """What is answered, also when ``cancellation`` asks brigd to end it."""
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        loop.call_soon_threadsafe(asked.cancel)

    undo = None if cancellation is None else cancellation.subscribe(cancel)
    try:
        return await asked.answer
    except asyncio.CancelledError:
        # Nobody waits any more: brigd ends what runs and tells its calls.
        asked.cancel()
        raise
    finally:
        if undo is not None:
            undo()


async def connect_async(*, socket: str | None = None, brigd: str | None = None) -> AsyncClient:
    """A client of the brigd that these options name, connected.

    Raises :class:`BrigError`: ``connect_failed`` or ``start_failed``.
    """
    client = AsyncClient(socket=socket, brigd=brigd)
    try:
        await client.initialize()
    except BaseException:
        await client.close()
        raise
    return client
