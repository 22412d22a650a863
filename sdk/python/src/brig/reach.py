"""Coming to brigd's socket when many do at once.

Owns the wait for a place in the socket's queue. Never tries again after anything but a
full queue.
"""

from __future__ import annotations

import asyncio
import socket

#: How long to wait for a place in the queue, in seconds.
QUEUE_S = 20.0
#: First and longest pause between two attempts, in seconds.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05


async def reach(path: str, within: float) -> socket.socket:
    """A connected socket that does not block.

    Linux does not let a connection that does not block wait in a full queue, and no event
    tells when there is room: so it is tried again. The event loop would take the refusal
    for a connection that is on its way, and this one for made.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    pause = _FIRST_PAUSE_S
    reaching = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        reaching.setblocking(False)
        while not _connects(reaching, path):
            waited = loop.time() - begun
            if waited >= within:
                raise BlockingIOError(
                    f"brigd's queue of connections was full for {waited:.1f} s: "
                    "more connect than it takes, or it stands still; try again later"
                )
            await asyncio.sleep(min(pause, within - waited))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
    except BaseException:
        reaching.close()
        raise
    return reaching


def _connects(reaching: socket.socket, path: str) -> bool:
    """Whether there was room."""
    try:
        reaching.connect(path)
    except BlockingIOError:
        return False
    return True
