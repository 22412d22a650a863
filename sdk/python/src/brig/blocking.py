"""The same surface for code that blocks.

Owns one event loop in a thread, shared by all blocking clients of this process. Everything
else is the async client's.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .client import AsyncClient, connect_async
from .functions import HostFunctionsLike
from .options import CallOptions, DetachOptions, EvaluateOptions, VmEvaluateOptions, VmOptions
from .requests import Form, Language
from .results import CallResult, CheckResult, EvaluateResult, EvaluationStatus, FunctionTypes, ServerInfo
from .vm import AsyncVm

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_T = TypeVar("_T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="brig", daemon=True).start()
        return _loop


def _forget_in_child() -> None:
    """A forked child has the loop and not its thread."""
    global _loop, _lock
    _lock, _loop = threading.Lock(), None


os.register_at_fork(after_in_child=_forget_in_child)


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine on the shared loop and waits for it; what interrupts that cancels it."""
    loop = _running_loop()
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        work.close()
        raise RuntimeError("an async handler must not block its loop: await brig.evaluate_async and its like instead")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


class Client:
    """A client of one brigd. Threads may share it."""

    def __init__(self, *, socket: str | None = None, brigd: str | None = None) -> None:
        """Connects when it is first used; see :class:`AsyncClient`."""
        self._client = AsyncClient(socket=socket, brigd=brigd)

    @property
    def socket(self) -> str | None:
        """Path of the socket, once there is one."""
        return self._client.socket

    def evaluate(self, source: str, **options: Unpack[EvaluateOptions]) -> EvaluateResult:
        """Runs a program. One that fails is a result.

        Raises :class:`BrigError` when there is no result; ``nothing_ran`` says whether that
        is certain. Async handlers run on the loop of the blocking clients, others in a
        thread each.
        """
        return run(self._client.evaluate(source, **options))

    def detach(self, source: str, **options: Unpack[DetachOptions]) -> EvaluationStatus:
        """Runs a program that goes on without this client: gives its id and state once it runs."""
        return run(self._client.detach(source, **options))

    def get_evaluation(self, evaluation: str) -> EvaluationStatus:
        """How far an evaluation of this user is, and its answer once it is over."""
        return run(self._client.get_evaluation(evaluation))

    def wait_evaluation(self, evaluation: str, *, timeout_ms: int | None = None) -> EvaluationStatus:
        """The same, once it is over or the time is: 30 s when left out, 10 minutes at most."""
        return run(self._client.wait_evaluation(evaluation, timeout_ms=timeout_ms))

    def check(self, source: str, *, form: Form | None = None, language: Language | None = None) -> CheckResult:
        """Parses a program without running it."""
        return run(self._client.check(source, form=form, language=language))

    def types(self, host_functions: HostFunctionsLike | None = None, *, functions: Sequence[str] | None = None) -> FunctionTypes:
        """TypeScript declarations of the configured functions and of these, and the tool that offers them to a model.

        ``functions``: patterns that narrow the configured ones; left out: all.
        """
        return run(self._client.types(host_functions, functions=functions))

    def call(self, name: str, given: Any = None, /, **options: Unpack[CallOptions]) -> CallResult:
        """Calls a configured function without a program. A call that was refused or failed is a result."""
        return run(self._client.call(name, given, **options))

    def create_vm(self, **options: Unpack[VmOptions]) -> Vm:
        """Makes a vm, which keeps its realm between evaluations; ``with`` ends it."""

        async def make() -> AsyncVm:
            return await self._client.create_vm(**options)

        return Vm(run(make()))

    def list_vms(self) -> list[dict[str, Any]]:
        """The vms of this principal, as the protocol tells them."""
        return run(self._client.list_vms())

    def initialize(self) -> ServerInfo:
        """What brigd says of itself: version, limits of this principal, active sandbox layers."""
        return run(self._client.initialize())

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any other method of the protocol."""
        return run(self._client.request(method, params))

    def close(self) -> None:
        """Ends the connection. What is in flight is rejected."""
        run(self._client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Vm:
    """A worker that keeps its realm: ``let``, ``const`` and functions stay. One evaluation at a time."""

    def __init__(self, vm: AsyncVm) -> None:
        """Made by ``create_vm``."""
        self._vm = vm
        #: Its id, ``vm_…``.
        self.id = vm.id
        #: Ends when idle for so long, in milliseconds.
        self.idle_timeout_ms = vm.idle_timeout_ms
        #: Ends after so long in any case, in milliseconds.
        self.lifetime_ms = vm.lifetime_ms

    def evaluate(self, source: str, **options: Unpack[VmEvaluateOptions]) -> EvaluateResult:
        """Runs a program in the vm's realm."""
        return run(self._vm.evaluate(source, **options))

    def dispose(self) -> None:
        """Ends it."""
        run(self._vm.dispose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


def connect(*, socket: str | None = None, brigd: str | None = None) -> Client:
    """A client of the brigd that these options name, connected.

    Raises :class:`BrigError`: ``connect_failed`` or ``start_failed``.
    """
    client = Client.__new__(Client)
    client._client = run(connect_async(socket=socket, brigd=brigd))
    return client
