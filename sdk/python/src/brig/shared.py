"""The functions that need no client: they share one for each brigd.

Owns those clients: the blocking ones of this process, and the async ones of each event
loop, which end with it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from . import private_server
from .blocking import Client, Vm
from .client import AsyncClient
from .options import SharedEvaluateOptions, SharedVmOptions
from .requests import Form, Language
from .results import CheckResult, EvaluateResult
from .vm import AsyncVm, VmOpening

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Key = tuple[str, str]

_lock = threading.Lock()
_blocking: dict[_Key, Client] = {}
_async: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients]
_async = weakref.WeakKeyDictionary()


class _LoopClients:
    """The async clients of one loop."""

    def __init__(self) -> None:
        self.clients: dict[_Key, AsyncClient] = {}
        self.guard: AsyncGenerator[None, None] | None = None

    async def watch(self) -> None:
        """Has the loop close the clients when it ends, as it does with async generators."""
        self.guard = self._until_closed()
        await self.guard.__anext__()

    async def _until_closed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        clients, self.clients = list(self.clients.values()), {}
        for client in clients:
            await client.close()


def evaluate(source: str, **options: Unpack[SharedEvaluateOptions]) -> EvaluateResult:
    """Runs a program in a fresh sandbox. One that fails is a result: see ``outcome``.

    Raises :class:`BrigError` when there is no result; ``nothing_ran`` says whether that is
    certain.
    """
    client, rest = _client(options)
    return client.evaluate(source, **rest)


def check(
    source: str,
    *,
    form: Form | None = None,
    language: Language | None = None,
    socket: str | None = None,
    brigd: str | None = None,
) -> CheckResult:
    """Parses a program without running it."""
    client, _ = _client({"socket": socket, "brigd": brigd})
    return client.check(source, form=form, language=language)


def create_vm(**options: Unpack[SharedVmOptions]) -> Vm:
    """Makes a vm, which keeps its realm between evaluations; ``with`` ends it."""
    client, rest = _client(options)
    return client.create_vm(**rest)


async def evaluate_async(source: str, **options: Unpack[SharedEvaluateOptions]) -> EvaluateResult:
    """Runs a program in a fresh sandbox. One that fails is a result: see ``outcome``.

    Raises :class:`BrigError` when there is no result; ``nothing_ran`` says whether that is
    certain. When the awaiting task is cancelled, so is the program.
    """
    client, rest = await _async_client(options)
    return await client.evaluate(source, **rest)


async def check_async(
    source: str,
    *,
    form: Form | None = None,
    language: Language | None = None,
    socket: str | None = None,
    brigd: str | None = None,
) -> CheckResult:
    """Parses a program without running it."""
    client, _ = await _async_client({"socket": socket, "brigd": brigd})
    return await client.check(source, form=form, language=language)


def create_vm_async(**options: Unpack[SharedVmOptions]) -> VmOpening:
    """Makes a vm, which keeps its realm between evaluations: ``async with`` it, or await it."""

    async def make() -> AsyncVm:
        client, rest = await _async_client(options)
        return await client.create_vm(**rest)

    return VmOpening(make)


def shutdown() -> None:
    """Ends what the blocking functions share, and every private brigd. The next call starts anew."""
    with _lock:
        clients = list(_blocking.values())
        _blocking.clear()
    for client in clients:
        client.close()
    private_server.stop_all()


async def shutdown_async() -> None:
    """Ends what the async functions share on this loop. A private brigd goes on for others."""
    clients = _async.pop(asyncio.get_running_loop(), None)
    if clients is not None and clients.guard is not None:
        await clients.guard.aclose()


def _split(options: Any) -> tuple[_Key, dict[str, Any], dict[str, Any]]:
    where = {name: options.get(name) for name in ("socket", "brigd")}
    rest = {name: value for name, value in options.items() if name not in where}
    return (where["socket"] or os.environ.get("BRIG_SOCKET") or "", where["brigd"] or ""), where, rest


def _client(options: Any) -> tuple[Client, dict[str, Any]]:
    key, where, rest = _split(options)
    with _lock:
        client = _blocking.get(key)
        if client is None:
            client = _blocking[key] = Client(**where)
    return client, rest


async def _async_client(options: Any) -> tuple[AsyncClient, dict[str, Any]]:
    key, where, rest = _split(options)
    loop = asyncio.get_running_loop()
    with _lock:
        clients = _async.get(loop)
        fresh = clients is None
        if clients is None:
            clients = _async[loop] = _LoopClients()
    if fresh:
        await clients.watch()
    client = clients.clients.get(key)
    if client is None:
        client = clients.clients[key] = AsyncClient(**where)
    return client, rest


def _forget_in_child() -> None:
    """A forked child must not write to connections that are its parent's."""
    global _lock
    _lock = threading.Lock()
    _blocking.clear()
    _async.clear()


os.register_at_fork(after_in_child=_forget_in_child)
