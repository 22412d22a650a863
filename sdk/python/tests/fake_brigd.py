"""A server that speaks the protocol as a test tells it to. Blocking: for a thread of a test."""

import json
import os
import shutil
import socket
import tempfile
from typing import Any

PATIENCE_S = 60


class Peer:
    """One accepted connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        self.connection = connection
        self.lines = connection.makefile("rb")

    def next(self) -> dict[str, Any]:
        line = self.lines.readline()
        if not line:
            raise EOFError("the client hung up")
        return json.loads(line)

    def expect(self, method: str) -> dict[str, Any]:
        message = self.next()
        assert message.get("method") == method, message
        return message

    def send(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(self, number: Any, result: Any) -> None:
        self.send(id=number, result=result)

    def refuse(self, number: Any, code: str, **more: Any) -> None:
        self.send(id=number, error={"code": -32000, "message": f"refused: {code}", "data": {"code": code, **more}})

    def call(self, number: Any, evaluation: str, name: str, given: Any, count: int = 1, vm: str | None = None) -> None:
        params = {
            "evaluation": evaluation,
            "call": count,
            "function": name,
            "input": given,
            "deadlineMs": 5000,
            "idempotencyKey": f"{evaluation}:{count}",
            **({} if vm is None else {"vm": vm}),
        }
        self.send(id=number, method="host.call", params=params)

    def drop(self) -> None:
        self.lines.close()
        self.connection.close()


class FakeBrigd:
    """A listening socket in a folder of its own."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="brig-fake-")
        self.socket = os.path.join(self.folder, "s")
        self.peers: list[Peer] = []
        self.listen()

    def listen(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.settimeout(PATIENCE_S)
        self.listener.bind(self.socket)
        self.listener.listen()

    def accept(self) -> Peer:
        connection, _ = self.listener.accept()
        self.peers.append(Peer(connection))
        return self.peers[-1]

    def stop(self) -> None:
        """Stops listening and hangs up."""
        self.listener.close()
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        for peer in self.peers:
            peer.drop()
        self.peers.clear()

    def __enter__(self) -> "FakeBrigd":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def succeeded(value: Any, evaluation: str = "ev_1") -> dict[str, Any]:
    """A result as brigd gives one."""
    return {
        "evaluation": evaluation,
        "outcome": "succeeded",
        "value": value,
        "stdout": "",
        "stderr": "",
        "stdoutTruncated": False,
        "stderrTruncated": False,
        "warnings": [],
        "calls": [],
        "usage": {"wallMs": 1, "cpuMs": 1, "hostMs": 0, "approvalMs": 0, "peakMemoryBytes": 0, "hostCalls": 0},
        "sandbox": {"level": "full", "layers": []},
    }
