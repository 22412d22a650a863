"""Many clients at once, at a socket whose queue of connections is full."""

import asyncio
import socket
import time
from typing import Any

import pytest
from fake_brigd import PATIENCE_S, FakeBrigd, succeeded

import brig
from brig import private_server
from brig.connection import Connection

BURST = 8


def fill(fake: FakeBrigd) -> list[socket.socket]:
    """Connections that nobody takes, as many as the queue has room for."""
    fake.listener.listen(1)
    queued = []
    while True:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.setblocking(False)
        try:
            one.connect(fake.socket)
        except BlockingIOError:
            one.close()
            return queued
        queued.append(one)


def let_go(queued: list[socket.socket]) -> None:
    for one in queued:
        one.close()


def test_a_burst_that_is_larger_than_the_queue_waits_until_brigd_takes_it() -> None:
    def server(fake: FakeBrigd, queued: int) -> None:
        for _ in range(queued):
            fake.accept()
        for _ in range(BURST):
            peer = fake.accept()
            peer.answer(peer.expect("evaluate")["id"], succeeded(1))

    async def burst(fake: FakeBrigd) -> list[Any]:
        queued = fill(fake)
        clients = [brig.AsyncClient(socket=fake.socket) for _ in range(BURST)]
        asked = [asyncio.create_task(one.evaluate("1")) for one in clients]
        # So that each has met the full queue.
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(task.done() for task in asked), "there was no room"
        served = asyncio.get_running_loop().run_in_executor(None, server, fake, len(queued))
        try:
            return await asyncio.wait_for(asyncio.gather(*asked), PATIENCE_S)
        finally:
            for one in clients:
                await one.close()
            let_go(queued)
            # Wakes a server that waits for a client which never came.
            fake.listener.shutdown(socket.SHUT_RDWR)
            await asyncio.wait([served])

    with FakeBrigd() as fake:
        answers = asyncio.run(burst(fake))
    assert [answer.value for answer in answers] == [1] * BURST


def test_a_queue_that_stays_full_is_told_as_that_at_the_deadline() -> None:
    with FakeBrigd() as fake:
        queued = fill(fake)
        with pytest.raises(brig.BrigError) as fault:
            asyncio.run(asyncio.wait_for(Connection.open(fake.socket, within=0.1), PATIENCE_S))
        let_go(queued)
    assert (fault.value.code, fault.value.retryable, fault.value.nothing_ran) == ("connect_failed", True, True)
    assert f"no brigd answers on {fake.socket}: brigd's queue of connections was full for " in str(fault.value)


def test_what_is_no_full_queue_is_told_at_once() -> None:
    with FakeBrigd() as fake:
        fake.listener.close()
        for path, why in ((fake.socket, ConnectionRefusedError), (f"{fake.folder}/none", FileNotFoundError)):
            with pytest.raises(brig.BrigError) as fault:
                # Less than the time for which a full queue is waited for.
                asyncio.run(asyncio.wait_for(Connection.open(path, within=2 * PATIENCE_S), PATIENCE_S))
            assert fault.value.code == "connect_failed" and isinstance(fault.value.__cause__, why)


def test_a_private_brigd_with_a_full_queue_is_waited_for_before_it_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_server, "_ANSWER_S", 0.2)
    with FakeBrigd() as fake:
        queued = fill(fake)
        began = time.monotonic()
        assert not private_server._answers(fake.socket)
        assert time.monotonic() - began >= 0.2
        let_go(queued)
