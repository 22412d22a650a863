"""Where brigd is, and how to come there again.

Owns the order in which a brigd is looked for and the patience after one went away. Never
sends a request.
"""

from __future__ import annotations

import asyncio
import os

from . import private_server
from .connection import Connection
from .errors import BrigError

#: Where the service listens.
SERVICE_SOCKET = "/run/brig/brig.sock"
#: How long to go on trying after a connection that there was is gone, in seconds.
_PATIENCE_S = 5.0


class Endpoint:
    """A brigd, and connections to it."""

    def __init__(self, socket: str | None, brigd: str | None) -> None:
        """``socket``, else ``BRIG_SOCKET``, else the service, else a private brigd."""
        #: Path of its socket, once it is known.
        self.socket = socket or os.environ.get("BRIG_SOCKET") or None
        self._brigd = brigd
        self._private = False
        self._was_there = False

    async def open(self) -> Connection:
        """Connects, or raises ``connect_failed`` or ``start_failed``."""
        if self.socket is not None and not self._private:
            return await self._again(self.socket)
        if not self._private and self._brigd is None:
            connection = await self._service()
            if connection is not None:
                return connection
        server = await asyncio.to_thread(private_server.running, self._brigd)
        self._private, self.socket = True, server.socket
        return await Connection.open(server.socket)

    async def _service(self) -> Connection | None:
        """The service. That it is not there is no error; that it may not be used is."""
        try:
            connection = await Connection.open(SERVICE_SOCKET)
        except BrigError as fault:
            if isinstance(fault.__cause__, (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)):
                return None
            raise
        self.socket, self._was_there = SERVICE_SOCKET, True
        return connection

    async def _again(self, path: str) -> Connection:
        # One that was there comes back soon, when it was only restarted.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (_PATIENCE_S if self._was_there else 0)
        wait = 0.01
        while True:
            try:
                connection = await Connection.open(path)
            except BrigError:
                if loop.time() + wait > deadline:
                    raise
            else:
                self._was_there = True
                return connection
            await asyncio.sleep(wait)
            wait = min(wait * 2, 0.25)
