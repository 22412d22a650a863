"""What is said on the wire, against a server that does as the test tells it."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pydantic
import pytest
from fake_brigd import PATIENCE_S, FakeBrigd, Peer, succeeded

import brig

Server = Callable[[FakeBrigd], Any]


def talk(server: Server, client: Callable[[brig.AsyncClient], Coroutine[Any, Any, Any]]) -> tuple[Any, Any]:
    """Runs both; gives what each gave."""

    async def both(fake: FakeBrigd) -> tuple[Any, Any]:
        told = asyncio.get_running_loop().run_in_executor(None, server, fake)
        one = brig.AsyncClient(socket=fake.socket)
        try:
            said = await asyncio.wait_for(client(one), PATIENCE_S)
        finally:
            await one.close()
        return await told, said

    with FakeBrigd() as fake:
        return asyncio.run(both(fake))


def test_options_are_sent_as_the_protocol_spells_them_and_handlers_are_kept_here() -> None:
    def server(fake: FakeBrigd) -> dict[str, Any]:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        peer.answer(asked["id"], succeeded(1))
        return asked["params"]

    async def client(one: brig.AsyncClient) -> Any:
        return await one.evaluate(
            "1",
            form="body",
            language="javascript",
            inputs={"a": {"ä": 1}},
            host_functions={"a": {"f": lambda: 1}},
            collections=["b"],
            permissions={"host_function": {"default": "deny", "rules": [{"mode": "allow", "patterns": ["a.*"]}]}},
            timeout_ms=5,
            limits={"host_calls_in_flight": 2, "cpu_ms": 3},
            output={"capture": "stderr"},
            on_stdout=print,
            time_zone="Europe/Berlin",
            idempotency_key="k",
            trace="t",
        )

    params, result = talk(server, client)
    assert result.value == 1 and result.succeeded
    assert params == {
        "source": "1",
        "form": "body",
        "language": "javascript",
        "inputs": {"a": {"ä": 1}},
        "hostFunctions": {"a": {"f": {"inputSchema": {"type": "object", "properties": {}, "additionalProperties": False}}}},
        "collections": ["b"],
        "permissions": {"hostFunction": {"default": "deny", "rules": [{"mode": "allow", "patterns": ["a.*"]}]}},
        "timeoutMs": 5,
        "limits": {"hostCallsInFlight": 2, "cpuMs": 3},
        "output": {"capture": "stderr", "stream": True},
        "timeZone": "Europe/Berlin",
        "idempotencyKey": "k",
        "trace": "t",
    }


def calls(handlers: dict[str, Any], asked: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """The answers to these calls."""

    def server(fake: FakeBrigd) -> list[dict[str, Any]]:
        peer = fake.accept()
        evaluate = peer.expect("evaluate")
        answers = []
        for number, (name, given) in enumerate(asked, 1):
            peer.call(f"c{number}", "ev_1", name, given, number)
            answers.append(peer.next())
        peer.answer(evaluate["id"], succeeded(None))
        return answers

    answers, _ = talk(server, lambda one: one.evaluate("1", host_functions={"t": handlers}))
    return answers


class RateLimitError(Exception):
    code = "rate_limited"
    data = {"retryAfter": 2}


def test_of_an_error_cross_class_name_message_code_and_data_and_never_the_traceback() -> None:
    def fails() -> None:
        raise RateLimitError("slow down") from ValueError("secret cause")

    async def fails_async() -> None:
        raise brig.HostFunctionError("no", "refused", {"order": 1})

    def fails_odd() -> None:
        fault = KeyError()
        fault.code, fault.data = 7, object()  # type: ignore[attr-defined]
        raise fault

    def leaves() -> None:
        raise SystemExit(3)

    found = calls({"a": fails, "b": fails_async, "c": fails_odd, "d": leaves}, [("t.a", {}), ("t.b", {}), ("t.c", {}), ("t.d", {}), ("t.e", {}), ("toString", {})])
    assert [answer["error"] for answer in found] == [
        {"code": -32000, "message": "slow down", "data": {"name": "RateLimitError", "code": "rate_limited", "data": {"retryAfter": 2}}},
        {"code": -32000, "message": "no", "data": {"code": "refused", "data": {"order": 1}}},
        {"code": -32000, "message": "the function failed and gave no reason", "data": {"name": "KeyError", "code": "7"}},
        {"code": -32000, "message": "3", "data": {"name": "SystemExit", "code": "3"}},
        {"code": -32000, "message": "t.e is not offered here", "data": {"code": "unknown_function"}},
        {"code": -32000, "message": "toString is not offered here", "data": {"code": "unknown_function"}},
    ]


def test_an_output_without_json_form_is_an_error_with_its_path() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 0
    for _ in range(600):
        deep = [deep]
    outputs = [float("nan"), {"a": [b"x"]}, {1, 2}, cycle, deep, {(1, 2): 3}, object(), ValueError("x")]
    handlers = {f"f{number}": (lambda output: lambda: output)(output) for number, output in enumerate(outputs)}
    found = calls(handlers, [(f"t.f{number}", {}) for number in range(len(outputs))])
    said = [answer["error"]["message"].removeprefix("the function's output has no JSON form: ") for answer in found]
    assert {answer["error"]["data"]["code"] for answer in found} == {"invalid_output"}
    for message, start in zip(said, ["$ is nan", "$.a[0] is bytes", "$ is a set", "$[0] is a reference back", "$ is nested", "$ is a dict with a key", "$ is an object of class object", "$ is an exception"]):
        assert message.startswith(start), said


def test_an_answer_larger_than_a_line_may_be_becomes_a_failure() -> None:
    [answer] = calls({"f": lambda: "x" * (16 * 1024 * 1024)}, [("t.f", {})])
    assert answer["error"]["data"] == {"code": "output_too_large"}


def test_a_lone_surrogate_crosses_as_an_escape() -> None:
    [answer] = calls({"f": _same}, [("t.f", {"text": "\ud800ä"})])
    assert answer["result"] == "\ud800ä"


def _same(text: str) -> str:
    return text


def test_a_handler_is_told_of_its_call() -> None:
    seen: list[brig.CallContext] = []

    def handler(a: int, context: brig.CallContext) -> int:
        seen.append(context)
        return a

    [answer] = calls({"f": handler}, [("t.f", {"a": 1.0})])
    assert answer["result"] == 1
    [context] = seen
    assert (context.function, context.evaluation, context.call, context.idempotency_key) == ("t.f", "ev_1", 1, "ev_1:1")
    assert context.deadline.tzinfo is not None and not context.cancelled.is_set()


def test_many_evaluations_share_one_connection_and_each_call_reaches_the_handlers_of_its_own() -> None:
    def server(fake: FakeBrigd) -> list[Any]:
        peer = fake.accept()
        asked = [peer.expect("evaluate") for _ in range(3)]
        announced = [message["params"].get("announce") for message in asked]
        for message in reversed(asked):
            if message["params"].get("announce"):
                peer.send(method="evaluation.started", params={"id": message["id"], "evaluation": f"ev_{message['id']}"})
        answers = []
        for message in asked:
            peer.call(f"c{message['id']}", f"ev_{message['id']}", "t.me", {})
            answers.append(peer.next()["result"])
        for message in asked:
            peer.answer(message["id"], succeeded(message["params"]["source"], f"ev_{message['id']}"))
        return [announced, answers]

    async def client(one: brig.AsyncClient) -> Any:
        async def evaluate(number: int) -> Any:
            return (await one.evaluate(str(number), host_functions={"t": {"me": lambda: number}})).value

        return await asyncio.gather(*map(evaluate, range(3)))

    (announced, answers), values = talk(server, client)
    assert (announced, answers, values) == ([None, True, True], [0, 1, 2], ["0", "1", "2"])


def test_cancelling_the_task_cancels_the_evaluation_and_its_calls() -> None:
    ended = threading.Event()
    blocked: list[brig.CallContext] = []

    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        peer.call("c1", "ev_1", "t.waits", {}, 1)
        peer.call("c2", "ev_1", "t.blocks", {}, 2)
        cancel = peer.expect("cancel")
        peer.send(method="host.cancel", params={"id": "c1", "evaluation": "ev_1", "call": 1, "reason": "cancelled"})
        peer.answer(asked["id"], {**succeeded(None), "outcome": "cancelled", "error": {"code": "cancelled"}})
        peer.answer(peer.expect("check")["id"], {"ok": True})
        return cancel["params"]["id"] == asked["id"]

    async def client(one: brig.AsyncClient) -> Any:
        running: list[Any] = []
        started = asyncio.Event()

        async def waits() -> None:
            running.append(1)
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        loop = asyncio.get_running_loop()
        blocking = asyncio.Event()

        def blocks(context: brig.CallContext) -> bool:
            blocked.append(context)
            loop.call_soon_threadsafe(blocking.set)
            return context.cancelled.wait(PATIENCE_S)

        task = asyncio.create_task(one.evaluate("1", host_functions={"t": {"waits": waits, "blocks": blocks}}))
        await started.wait()
        await blocking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The connection goes on.
        return (await one.check("1")).ok

    assert talk(server, client) == (True, True)
    assert ended.is_set() and blocked[0].cancelled.is_set()


def test_a_cancellation_gives_the_result_and_one_made_before_sends_nothing() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        peer.send(method="evaluation.output", params={"evaluation": "ev_1", "stream": "stdout", "text": "x"})
        peer.expect("cancel")
        peer.answer(asked["id"], {**succeeded(None), "outcome": "cancelled", "error": {"code": "cancelled"}})

    async def client(one: brig.AsyncClient) -> Any:
        cancellation = brig.Cancellation()
        result = await one.evaluate("1", cancellation=cancellation, on_stdout=lambda text: cancellation.cancel())
        never = await one.evaluate("1", cancellation=cancellation)
        return result.outcome, result.error.code, never.outcome, never.evaluation

    assert talk(server, client)[1] == ("cancelled", "cancelled", "cancelled", "")


def test_output_and_warnings_are_told_and_a_listener_that_raises_ends_nothing() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        for stream in ("stdout", "stderr"):
            peer.send(method="evaluation.output", params={"evaluation": "ev_1", "stream": stream, "text": stream})
        peer.send(method="evaluation.warning", params={"evaluation": "ev_1", "warning": {"code": "c", "message": "m", "path": "$"}})
        note = {"evaluation": "ev_1", "call": 2, "function": "a.b", "approval": "ap_1", "expiresInMs": 5}
        peer.send(method="evaluation.approval", params=note)
        peer.send(method="evaluation.newer", params={})
        peer.answer(asked["id"], succeeded(1))

    async def client(one: brig.AsyncClient) -> Any:
        told: list[Any] = []
        faults: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))

        def raises(text: str) -> None:
            raise ValueError(text)

        await one.evaluate("1", on_stdout=told.append, on_stderr=raises, on_warning=told.append, on_approval=told.append)
        return told, [str(fault) for fault in faults]

    noted = brig.ApprovalNote("ev_1", 2, "a.b", "ap_1", 5)
    assert talk(server, client)[1] == (["stdout", brig.EvaluationWarning("c", "m", "$"), noted], ["stderr"])


def test_a_refusal_is_raised_with_all_that_brigd_says() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.refuse(peer.next()["id"], "overloaded", retryable=True, retryAfterMs=20, hint="wait", limit="l", setting="s")

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1")
        return fault.value

    _, fault = talk(server, client)
    assert (fault.code, fault.retryable, fault.retry_after_ms, fault.hint, fault.limit, fault.setting, fault.nothing_ran) == (
        "overloaded", True, 20, "wait", "l", "s", True,
    )  # fmt: skip
    assert str(fault) == "refused: overloaded (wait)"


def test_a_lost_connection_is_told_as_such_and_the_next_request_makes_a_new_one() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.expect("evaluate")
        fake.stop()
        fake.listen()
        again = fake.accept()
        again.answer(again.expect("evaluate")["id"], succeeded(2))

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1")
        return fault.value.code, fault.value.nothing_ran, (await one.evaluate("2")).value

    assert talk(server, client)[1] == ("connection_lost", False, 2)


@pytest.mark.parametrize("said", [b"nonsense\n", b"[1]\n", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}\n', b"\xff\n"])
def test_what_is_not_the_protocol_ends_the_connection_and_says_so(said: bytes) -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.next()
        peer.raw(said)

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1")
        return fault.value.code, fault.value.nothing_ran

    assert talk(server, client)[1] == ("protocol_error", False)


def test_a_client_that_is_sent_away_hears_why() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.next()
        peer.refuse(None, "quota_exceeded", retryable=True)

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1")
        return fault.value.code

    assert talk(server, client)[1] == "quota_exceeded"


def test_lines_come_in_any_pieces_and_requests_of_brigd_that_are_unknown_are_refused() -> None:
    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        number = peer.next()["id"]
        peer.send(id="x", method="host.dance", params={})
        refused = peer.next()
        text = json.dumps({"jsonrpc": "2.0", "id": number, "result": succeeded("ä€")}, ensure_ascii=False).encode() + b"\r\n\n"
        for at in range(0, len(text), 7):
            peer.raw(text[at : at + 7])
        return refused["error"]["code"]

    async def client(one: brig.AsyncClient) -> Any:
        return (await one.evaluate("1")).value

    assert talk(server, client) == (-32601, "ä€")


def test_a_number_with_more_digits_than_python_reads_ends_nothing() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        text = json.dumps({"jsonrpc": "2.0", "id": peer.next()["id"], "result": succeeded("N")})
        peer.raw(text.replace('"N"', "9" * 6000).encode() + b"\n")

    async def client(one: brig.AsyncClient) -> Any:
        return (await one.evaluate("1")).value

    assert talk(server, client)[1] == float("inf")


def test_a_line_without_an_end_is_not_kept_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brig.connection.ANSWER_LINE_BYTES", 1 << 20)

    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.next()
        try:
            while True:
                peer.raw(b"x" * 65536)
        except OSError:
            pass

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError, match="more than 1048576 bytes") as fault:
            await one.evaluate("1")
        return fault.value.code

    assert talk(server, client)[1] == "protocol_error"


def test_what_can_not_be_sent_is_refused_before_anything_is() -> None:
    async def client(one: brig.AsyncClient) -> None:
        with pytest.raises(TypeError, match="no option 'timeout'"):
            await one.evaluate("1", timeout=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="limits has no member 'cpu'"):
            await one.evaluate("1", limits={"cpu": 1})  # type: ignore[typeddict-unknown-key]
        with pytest.raises(TypeError, match=r"evaluate: inputs\.a is bytes"):
            await one.evaluate("1", inputs={"a": b""})
        with pytest.raises(TypeError, match="source must be a str"):
            await one.evaluate(1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="nested more than"):
            deep: Any = 0
            for _ in range(600):
                deep = {"a": deep}
            await one.evaluate("1", inputs=deep)

    talk(lambda fake: None, client)


def test_a_request_larger_than_a_line_may_be_is_refused_here() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.answer(peer.expect("check")["id"], {"ok": True})

    async def client(one: brig.AsyncClient) -> Any:
        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1", inputs={"a": "x" * (17 << 20)})
        return fault.value.code, fault.value.nothing_ran, (await one.check("1")).ok

    assert talk(server, client)[1] == ("line_too_long", True, True)


def test_a_vm_keeps_its_handlers_and_defaults_and_is_disposed_of_by_name() -> None:
    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        made = peer.expect("vm.create")
        peer.answer(made["id"], {"vm": "vm_1", "idleTimeoutMs": 1, "lifetimeMs": 2})
        asked = peer.expect("evaluate")
        peer.send(method="evaluation.started", params={"id": asked["id"], "evaluation": "ev_1"})
        peer.call("c", "ev_1", "t.f", {}, vm="vm_1")
        answer = peer.next()
        peer.answer(asked["id"], succeeded(answer["result"]))
        by_option = peer.expect("evaluate")
        peer.answer(by_option["id"], succeeded(by_option["params"]["vm"]))
        gone = peer.expect("vm.dispose")
        peer.answer(gone["id"], {})
        return sorted(made["params"]), asked["params"], gone["params"]

    async def client(one: brig.AsyncClient) -> Any:
        async with one.create_vm(host_functions={"t": {"f": lambda: 5}}, timeout_ms=7, time_zone="UTC") as vm:
            return (await vm.evaluate("1")).value, (await one.evaluate("2", vm=vm)).value

    (made, asked, gone), values = talk(server, client)
    assert made == ["hostFunctions", "timeZone"]
    assert asked == {"source": "1", "timeoutMs": 7, "vm": "vm_1", "announce": True}
    assert gone == {"vm": "vm_1"} and values == (5, "vm_1")


def test_a_call_of_somebody_elses_evaluation_in_a_vm_made_here_is_not_taken_for_one_of_ours() -> None:
    def server(fake: FakeBrigd) -> list[Any]:
        peer = fake.accept()
        peer.answer(peer.expect("vm.create")["id"], {"vm": "vm_1", "idleTimeoutMs": 1, "lifetimeMs": 2})
        own = peer.expect("evaluate")
        peer.call("c1", "ev_other", "t.f", {}, vm="vm_1")
        said = [peer.next()["result"]]
        peer.call("c2", "ev_other", "t.g", {}, 2, vm="vm_1")
        said.append(peer.next()["error"]["data"]["code"])
        peer.call("c5", "ev_other", "t.f", {}, 2, vm="vm_2")
        said.append(peer.next()["error"]["data"]["code"])
        peer.send(method="evaluation.started", params={"id": own["id"], "evaluation": "ev_own"})
        peer.call("c3", "ev_own", "t.f", {})
        said.append(peer.next()["result"])
        peer.answer(own["id"], succeeded(1))
        peer.answer(peer.expect("vm.dispose")["id"], {})
        peer.answer(peer.expect("vm.list")["id"], {"vms": []})
        peer.call("c4", "ev_other", "t.f", {}, 3, vm="vm_1")
        return [*said, peer.next()["error"]["data"]["code"]]

    async def client(one: brig.AsyncClient) -> Any:
        async with one.create_vm(host_functions={"t": {"f": lambda: "vm"}}):
            await one.evaluate("1", host_functions={"t": {"f": lambda: "own"}})
        await one.list_vms()
        await asyncio.get_running_loop().run_in_executor(None, told.wait, PATIENCE_S)

    told = threading.Event()

    def told_server(fake: FakeBrigd) -> list[Any]:
        try:
            return server(fake)
        finally:
            told.set()

    assert talk(told_server, client)[0] == ["vm", "unknown_function", "cancelled", "own", "cancelled"]


def test_a_vms_functions_answer_from_the_line_that_makes_it_and_beside_an_evaluation_that_began_before() -> None:
    began = threading.Event()

    def server(fake: FakeBrigd) -> list[Any]:
        peer = fake.accept()
        own = peer.expect("evaluate")
        assert "announce" not in own["params"]
        began.set()
        peer.answer(peer.expect("vm.create")["id"], {"vm": "vm_1", "idleTimeoutMs": 1, "lifetimeMs": 2})
        peer.call("c1", "ev_other", "t.f", {}, vm="vm_1")
        peer.call("c2", "ev_own", "t.f", {})
        said = {answer["id"]: answer["result"] for answer in (peer.next(), peer.next())}
        peer.answer(own["id"], succeeded(1))
        return [said["c1"], said["c2"]]

    async def client(one: brig.AsyncClient) -> Any:
        running = asyncio.ensure_future(one.evaluate("1", host_functions={"t": {"f": lambda: "own"}}))
        await asyncio.get_running_loop().run_in_executor(None, began.wait, PATIENCE_S)
        await one.create_vm(host_functions={"t": {"f": lambda: "vm"}})
        await running

    assert talk(server, client)[0] == ["vm", "own"]


def test_a_call_without_a_program_tells_when_it_waits_for_a_person_and_is_cancelled() -> None:
    told: list[str] = []
    cancellation = brig.Cancellation()

    def server(fake: FakeBrigd) -> list[Any]:
        peer = fake.accept()
        both = [peer.expect("functions.call"), peer.expect("functions.call")]
        charge, listing = sorted(both, key=lambda one: str(one["params"]["function"]))
        note = {"evaluation": "fc_1", "call": 1, "function": "billing.charge", "approval": "ap_1", "expiresInMs": 5000}
        peer.send(method="evaluation.approval", params=note)
        call = {"call": 1, "function": "billing.list", "state": "completed", "durationMs": 1, "inputBytes": 2, "outputBytes": 2}
        peer.answer(listing["id"], {"call": call, "value": [1]})
        ended = peer.expect("cancel")
        error = {"code": "function_failed", "message": "no", "name": "N", "functionCode": "f", "data": [2]}
        peer.answer(charge["id"], {"call": {**call, "state": "failed", "code": "function_failed"}, "error": error})
        return [charge["params"], listing["params"], ended["params"]["id"] == charge["id"]]

    async def client(one: brig.AsyncClient) -> Any:
        options = {"timeout_ms": 7, "idempotency_key": "k", "cancellation": cancellation}
        calling = asyncio.ensure_future(
            one.call("billing.charge", {"amount": 5}, on_approval=lambda note: told.append(f"charge {note.approval}"), **options)
        )
        listed = await one.call("billing.list", on_approval=lambda note: told.append("list"))
        cancellation.cancel()
        charged = await calling
        with pytest.raises(brig.BrigError, match="nothing ran"):
            await one.call("billing.list", cancellation=cancellation)
        with pytest.raises(TypeError, match="call has no option 'on_stdout'"):
            await one.call("billing.list", on_stdout=print)  # type: ignore[call-arg]
        return listed, charged

    said, (listed, charged) = talk(server, client)
    assert said == [{"function": "billing.charge", "input": {"amount": 5}, "timeoutMs": 7, "idempotencyKey": "k"}, {"function": "billing.list"}, True]
    assert listed.value == [1] and listed.error is None and listed.call.state == "completed"
    assert charged.error == brig.CallError("function_failed", "no", "N", "f", [2]) and charged.call.state == "failed"
    assert told == ["charge ap_1"]


def test_a_vm_that_nobody_waited_for_is_disposed_of() -> None:
    asked = threading.Event()

    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        made = peer.expect("vm.create")
        asked.set()
        listing = peer.expect("vm.list")
        peer.answer(made["id"], {"vm": "vm_1", "idleTimeoutMs": 1, "lifetimeMs": 2})
        peer.answer(listing["id"], {"vms": []})
        gone = peer.expect("vm.dispose")
        peer.answer(peer.expect("vm.list")["id"], {"vms": []})
        return gone

    async def client(one: brig.AsyncClient) -> None:
        making = asyncio.ensure_future(_made(one))
        await asyncio.get_running_loop().run_in_executor(None, asked.wait, PATIENCE_S)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        await one.list_vms()
        await one.list_vms()

    async def _made(one: brig.AsyncClient) -> brig.AsyncVm:
        return await one.create_vm()

    gone = talk(server, client)[0]
    assert gone["params"] == {"vm": "vm_1"} and "id" not in gone


def test_an_approval_of_a_call_without_a_program_is_not_taken_for_one_of_an_evaluation() -> None:
    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        own, call = peer.expect("evaluate"), peer.expect("functions.call")
        note = {"evaluation": "fc_1", "call": 1, "function": "billing.charge", "approval": "ap_1", "expiresInMs": 5000}
        peer.send(method="evaluation.approval", params=note)
        peer.call("c1", "ev_own", "t.f", {})
        answer = peer.next()
        peer.answer(call["id"], {"ok": True})
        peer.answer(own["id"], succeeded(1))
        return answer.get("result")

    told: list[brig.ApprovalNote] = []

    async def client(one: brig.AsyncClient) -> Any:
        running = asyncio.create_task(one.evaluate("1", host_functions={"t": {"f": lambda: "own"}}, on_approval=told.append))
        # Once around the loop for each: the evaluation is sent first.
        await one._connect()
        await asyncio.sleep(0)
        called = await one.request("functions.call", {"function": "billing.charge"})
        return (await running).value, called

    assert talk(server, client) == ("own", (1, {"ok": True})) and told == []


def test_a_closed_client_refuses_and_what_was_in_flight_is_rejected() -> None:
    def server(fake: FakeBrigd) -> Peer:
        peer = fake.accept()
        peer.next()
        peer.send(method="evaluation.output", params={"evaluation": "ev_1", "stream": "stdout", "text": "x"})
        return peer

    async def client(one: brig.AsyncClient) -> Any:
        runs = asyncio.Event()
        task = asyncio.create_task(one.evaluate("1", on_stdout=lambda _: runs.set()))
        await runs.wait()
        await one.close()
        with pytest.raises(brig.BrigError) as flying:
            await task
        with pytest.raises(brig.BrigError) as later:
            await one.evaluate("2")
        return flying.value.code, flying.value.nothing_ran, later.value.code, later.value.nothing_ran

    assert talk(server, client)[1] == ("closed", False, "closed", True)


def test_connect_fails_when_nobody_answers(tmp_path: Any) -> None:
    with pytest.raises(brig.BrigError) as fault:
        brig.connect(socket=str(tmp_path / "none"))
    assert fault.value.code == "connect_failed" and fault.value.retryable


def test_an_async_client_belongs_to_one_loop() -> None:
    with FakeBrigd() as fake:
        one = brig.AsyncClient(socket=fake.socket)
        asyncio.run(_enter(one))
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(_enter(one))


async def _enter(one: brig.AsyncClient) -> None:
    await one._connect()
    assert one._connection is not None
    one._connection.close()


def failure_of(handler: Callable[..., Any], **options: Any) -> Any:
    """What is answered to a call of this handler, which fails; the program goes on."""

    def server(fake: FakeBrigd) -> Any:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        peer.call("c", "ev_1", "t.f", {})
        answer = peer.next()
        peer.answer(asked["id"], succeeded(1))
        return answer["error"]

    async def client(one: brig.AsyncClient) -> Any:
        return await one.evaluate("1", host_functions={"t": {"f": brig.host_function(handler, name="t.f", **options)}})

    failure, result = talk(server, client)
    assert result.outcome == "succeeded"
    return failure


def test_an_output_that_does_not_match_is_told_by_its_places_and_nothing_of_it_crosses() -> None:
    class Answer(pydantic.BaseModel):
        n: int

    def secretive() -> Any:
        return {"n": "hunter2"}

    failure = failure_of(secretive, output_schema=Answer)
    assert failure["data"] == {"name": "InvalidOutput", "code": "invalid_output"}
    assert "$.n" in failure["message"] and "hunter2" not in json.dumps(failure), failure


def test_a_handler_that_ends_itself_is_a_failed_call_and_ends_nothing_else() -> None:
    def leaves() -> None:
        raise SystemExit("enough")

    async def leaves_the_loop() -> None:
        raise SystemExit("enough")

    async def gives_up() -> None:
        raise asyncio.CancelledError

    assert failure_of(leaves)["message"] == failure_of(leaves_the_loop)["message"] == "enough"
    assert failure_of(gives_up)["data"] == {"code": "cancelled"}


def test_a_listener_that_raises_is_told_to_the_loop_and_the_connection_goes_on() -> None:
    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        asked = peer.expect("evaluate")
        peer.send(method="evaluation.output", params={"evaluation": "ev_1", "stream": "stdout", "text": "a\n"})
        peer.answer(asked["id"], succeeded(1))

    async def client(one: brig.AsyncClient) -> Any:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: told.append(about["exception"]))

        def listener(_: str) -> None:
            raise KeyError("of the listener")

        return (await one.evaluate("1", on_stdout=listener)).outcome, told

    outcome, told = talk(server, client)[1]
    assert outcome == "succeeded" and [str(fault) for fault in told] == ["'of the listener'"]


def test_a_handler_is_cancelled_when_the_connection_is_lost() -> None:
    began = threading.Event()

    def server(fake: FakeBrigd) -> None:
        peer = fake.accept()
        peer.expect("evaluate")
        peer.call("c", "ev_1", "t.f", {})
        assert began.wait(PATIENCE_S)
        peer.drop()

    async def client(one: brig.AsyncClient) -> bool:
        over = asyncio.Event()

        async def never() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                over.set()

        with pytest.raises(brig.BrigError) as fault:
            await one.evaluate("1", host_functions={"t": {"f": never}})
        assert fault.value.code == "connection_lost" and not fault.value.nothing_ran
        return await asyncio.wait_for(over.wait(), PATIENCE_S)

    assert talk(server, client)[1] is True
