"""Kept workers.

Owns what holds for each evaluation of a vm unless it says otherwise. Never keeps a vm alive:
brigd ends it when it is idle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from .keywords import refuse_unknown
from .options import VmEvaluateOptions
from .results import EvaluateResult

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncVm:
    """A worker that keeps its realm: ``let``, ``const`` and functions stay. One evaluation at a time."""

    def __init__(
        self,
        run: Callable[[str, Mapping[str, Any]], Awaitable[EvaluateResult]],
        request: Callable[[str, Mapping[str, Any]], Awaitable[Any]],
        made: Mapping[str, Any],
        defaults: Mapping[str, Any],
    ) -> None:
        """Made by ``create_vm``."""
        self._run = run
        self._request = request
        self._defaults = defaults
        #: Its id, ``vm_…``.
        self.id: str = made["vm"]
        #: Ends when idle for so long, in milliseconds.
        self.idle_timeout_ms: int = made["idleTimeoutMs"]
        #: Ends after so long in any case, in milliseconds.
        self.lifetime_ms: int = made["lifetimeMs"]

    async def evaluate(self, source: str, **options: Unpack[VmEvaluateOptions]) -> EvaluateResult:
        """Runs a program in the vm's realm."""
        refuse_unknown("evaluate", options, VmEvaluateOptions)
        return await self._run(source, {**self._defaults, **options, "vm": self.id})

    async def dispose(self) -> None:
        """Ends it."""
        await self._request("vm.dispose", {"vm": self.id})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispose()


class VmOpening:
    """A vm that is being made: await it, or ``async with`` it."""

    def __init__(self, make: Callable[[], Awaitable[AsyncVm]]) -> None:
        self._make = make
        self._vm: AsyncVm | None = None

    def __await__(self) -> Generator[Any, None, AsyncVm]:
        return self._make().__await__()

    async def __aenter__(self) -> AsyncVm:
        self._vm = await self._make()
        return self._vm

    async def __aexit__(self, *_: object) -> None:
        if self._vm is not None:
            await self._vm.dispose()
