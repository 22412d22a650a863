"""Calls of configured functions without a program, through a real brigd that asks a person for some."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import brig

OWN = os.getuid()


def _configured(folder: Path) -> Path:
    user = 'user = "nobody"\n' if OWN == 0 else ""

    def one(name: str, args: str) -> str:
        command = f'program = "/usr/bin/printf"\nargs = {args}\noutput = "text"\n{user}'
        return f'[functions.{name}]\neffect = "read"\n[functions.{name}.command]\n{command}'

    (folder / "functions.d").mkdir()
    functions = one("open", '["%s", "open"]') + one("count", '["%s", "{call.idempotency_key}"]')
    (folder / "functions.d/till.toml").write_text(functions)
    asks = '{ mode = "ask", patterns = ["till.open"], ask = { approvers = ["uid:20002"], wait_seconds = 1 } }'
    rules = f'{{ mode = "allow", patterns = ["**"] }}, {asks}'
    config = folder / "brig.toml"
    config.write_text(f'[admin]\napprovers = ["uid:20002"]\n[principals."uid:{OWN}"]\nhost_function = {{ rules = [{rules}] }}\n')
    return config


@pytest.fixture
def client(brigd: str, tmp_path: Path) -> Iterator[brig.Client]:
    socket = tmp_path / "brig.sock"
    sockets = ["--socket", str(socket), "--admin-socket", str(tmp_path / "admin.sock"), "--state", str(tmp_path / "state")]
    child = subprocess.Popen([brigd, "--log", "warn", "--config", str(_configured(tmp_path)), *sockets])
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                with brig.connect(socket=str(socket)) as client:
                    yield client
                return
            except brig.BrigError as fault:
                if fault.code != "connect_failed" or child.poll() is not None or time.monotonic() > deadline:
                    raise
    finally:
        child.terminate()
        child.wait(60)


def test_a_configured_function_is_called_without_a_program_and_tells_that_it_waits_for_a_person(client: brig.Client) -> None:
    first = client.call("till.count", idempotency_key="k")
    assert first.call.state == "completed" and first.error is None
    assert client.call("till:count", {}).call.state == "completed"
    assert client.call("till.count", idempotency_key="k").value == first.value, "the same answer for the same key"
    told: list[brig.ApprovalNote] = []
    asked = client.call("till.open", {}, on_approval=told.append)
    assert asked.error is not None and (asked.call.state, asked.error.code) == ("refused", "approval_expired")
    assert [(note.function, note.call) for note in told] == [("till.open", 1)] and told[0].approval.startswith("ap_")
    with pytest.raises(brig.BrigError, match="no configured function") as fault:
        client.call("till.opne")
    assert fault.value.hint is not None and "till.open" in fault.value.hint
