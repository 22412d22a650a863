"""Through a real brigd and real workers."""

import asyncio
import contextvars
import enum
import json
import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pydantic
import pytest

import brig

pytestmark = pytest.mark.usefixtures("private")

#: How long to wait for what happens by itself.
PATIENCE_S = 60


def test_a_value_and_what_it_cost() -> None:
    result = brig.evaluate("return inputs.a + 1", inputs={"a": 1})
    assert (result.outcome, result.value, result.has_value, result.error) == ("succeeded", 2, True, None)
    assert result.evaluation.startswith("ev_") and result.usage.wall_ms > 0
    assert "seccomp" in result.sandbox.layers


def test_no_value_is_not_null() -> None:
    assert brig.evaluate("undefined").has_value is False
    null = brig.evaluate("null")
    assert null.has_value and null.value is None


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Item:
    name: str
    size: Size = Size.SMALL


class Query(pydantic.BaseModel):
    customer: str = pydantic.Field(min_length=1)
    since: datetime | None = None
    tags: set[str] = set()

    @pydantic.field_validator("customer")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "nobody":
            raise ValueError("there is no such customer")
        return value.upper()


class Answer(pydantic.BaseModel):
    when: datetime | None
    total: float


def test_host_functions_run_here_with_models_dataclasses_enums_and_defaults() -> None:
    seen: list[Any] = []
    functions = brig.HostFunctions()

    @functions.function("a.model")
    def model(query: Query) -> Answer:
        seen.append(query)
        return Answer(when=query.since, total=2)

    @functions.function("a.members")
    async def members(item: Item, pair: tuple[int, str], limit: int = 3) -> list[Item]:
        seen.append((item, pair, limit))
        return [Item("b", Size.LARGE)]

    @functions.function("a.raw", input_schema={"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
    def raw(given):  # type: ignore[no-untyped-def]
        return given

    result = brig.evaluate(
        """return [
          await a.model({customer: 'x', since: new Date(0), tags: ['t', 'u']}),
          await a.members({item: {name: 'n', size: 'l'}, pair: [1, 'p']}),
          await a.raw({id: 7, more: true}),
        ]""",
        host_functions=functions,
    )
    assert result.succeeded, result
    assert result.value == [{"when": "1970-01-01T00:00:00Z", "total": 2}, [{"name": "b", "size": "l"}], {"id": 7, "more": True}]
    assert seen[0].customer == "X" and seen[0].tags == {"t", "u"} and seen[0].since.year == 1970
    assert seen[1] == (Item("n", Size.LARGE), (1, "p"), 3)
    assert [(call.function, call.state) for call in result.calls] == [("a.model", "completed"), ("a.members", "completed"), ("a.raw", "completed")]


INPUTS: list[tuple[str, list[Any], list[Any]]] = [
    ("model", [{"customer": "a"}, {"customer": "a", "since": "2020-01-01T00:00:00Z"}], [{}, {"customer": ""}, {"customer": "nobody"}, {"customer": "a", "since": "x"}]),
    ("members", [{"item": {"name": "a"}}, {"item": {"name": "a", "size": "s"}, "count": 2}], [{}, {"item": {}}, {"item": {"name": "a", "odd": 1}}, {"item": {"name": "a"}, "count": 1.5}, {"item": {"name": "a"}, "odd": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "taken", "refused"), INPUTS)
def test_what_the_types_take_passes_and_what_they_refuse_does_not_run(name: str, taken: list[Any], refused: list[Any]) -> None:
    ran: list[Any] = []

    def model(query: Query) -> str:
        ran.append(query)
        return "ran"

    def members(item: Item, count: int = 1) -> str:
        ran.append(item)
        return "ran"

    result = brig.evaluate(
        """const answers = [];
        for (const input of inputs.all) {
          try { answers.push(await t.f(input)); } catch (error) { answers.push(error.code); }
        }
        return answers;""",
        host_functions={"t": {"f": {"model": model, "members": members}[name]}},
        inputs={"all": [*taken, *refused]},
    )
    assert result.succeeded, result
    assert [answer == "ran" for answer in result.value] == [True] * len(taken) + [False] * len(refused), result.value
    assert len(ran) == len(taken)


def test_the_program_gets_a_handlers_error_with_its_code_and_data_and_without_its_traceback() -> None:
    class RateLimitError(Exception):
        code = "rate_limited"
        data = {"retryAfter": 2}

    def fails() -> None:
        raise RateLimitError("slow down")

    result = brig.evaluate(
        "try { await a.f() } catch (e) { return {...e, name: e.name, message: e.message, stack: String(e.stack)} }",
        host_functions={"a": {"f": fails}},
    )
    said = json.dumps(result.value)
    assert "slow down" in said and "rate_limited" in said and "retryAfter" in said
    assert "Traceback" not in said and ".py" not in said
    assert [(call.state, call.code) for call in result.calls] == [("failed", "function_failed")]


def test_blocking_handlers_run_at_the_same_time() -> None:
    barrier = threading.Barrier(20)

    def meets() -> int:
        barrier.wait(PATIENCE_S)
        return 1

    result = brig.evaluate("(await Promise.all(Array.from({length: 20}, () => a.f()))).length", host_functions={"a": {"f": meets}})
    assert result.value == 20, result


def test_many_evaluations_on_one_connection_keep_to_their_own_functions() -> None:
    async def main() -> list[Any]:
        async def one(number: int) -> Any:
            return (await brig.evaluate_async("return (await a.me()) * 2", host_functions={"a": {"me": lambda: number}})).value

        return await asyncio.gather(*map(one, range(20)))

    assert asyncio.run(main()) == [number * 2 for number in range(20)]


def test_threads_share_one_blocking_client() -> None:
    values: dict[int, Any] = {}
    with brig.Client() as client:

        def one(number: int) -> None:
            values[number] = client.evaluate("return await a.me()", host_functions={"a": {"me": lambda: number}}).value

        threads = [threading.Thread(target=one, args=[number]) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert values == {number: number for number in range(10)}


def test_a_blocking_handler_may_evaluate_and_an_async_one_must_await() -> None:
    def blocking() -> Any:
        return brig.evaluate("40 + 2").value

    async def awaits() -> Any:
        return (await brig.evaluate_async("40 + 2")).value

    async def wrong() -> Any:
        return brig.evaluate("1").value

    result = brig.evaluate(
        "const a = [await t.blocking(), await t.awaits()]; try { await t.wrong() } catch (e) { return [...a, e.message] }",
        host_functions={"t": {"blocking": blocking, "awaits": awaits, "wrong": wrong}},
    )
    assert result.value[:2] == [42, 42] and "must not block" in result.value[2], result


def test_a_program_that_fails_is_a_result_that_says_where() -> None:
    failed = brig.evaluate("const a = 1;\nthrow new RangeError('no')")
    assert failed.outcome == "failed" and failed.error is not None
    assert (failed.error.code, failed.error.name, failed.error.message, failed.error.line) == ("guest_error", "RangeError", "no", 2)
    slow = brig.evaluate("while (true) {}", timeout_ms=200)
    assert slow.outcome == "timed_out" and slow.error is not None and slow.error.code == "timed_out"


def test_console_output_is_kept_as_asked_and_told_as_it_comes() -> None:
    told: list[str] = []
    result = brig.evaluate(
        "console.log('to out'); console.error('to err'); return 1",
        output={"capture": "stderr"},
        on_stdout=lambda text: told.append(f"out {text.strip()}"),
        on_stderr=lambda text: told.append(f"err {text.strip()}"),
    )
    assert (result.stdout, result.stderr) == ("", "to err\n")
    assert told == ["out to out", "err to err"]


def test_a_cancellation_from_another_thread_ends_the_program_and_its_calls() -> None:
    cancellation = brig.Cancellation()
    ended: queue.Queue[bool] = queue.Queue()

    def waits(context: brig.CallContext) -> None:
        threading.Thread(target=cancellation.cancel).start()
        ended.put(context.cancelled.wait(PATIENCE_S))

    result = brig.evaluate("await a.f()", host_functions={"a": {"f": waits}}, cancellation=cancellation)
    assert result.outcome == "cancelled" and len(result.calls) == 1
    assert ended.get(timeout=PATIENCE_S) is True


def test_a_task_that_is_cancelled_takes_its_program_along() -> None:
    async def main() -> str:
        started, ended = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(brig.evaluate_async("await a.f()", host_functions={"a": {"f": waits}}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        return (await brig.evaluate_async("'goes on'")).value

    assert asyncio.run(main()) == "goes on"


def test_an_interrupt_ends_the_wait_and_the_program() -> None:
    told: queue.Queue[bool] = queue.Queue()

    def interrupts(context: brig.CallContext) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        told.put(context.cancelled.wait(PATIENCE_S))

    # Whoever runs these tests in the background has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            brig.evaluate("await a.f()", host_functions={"a": {"f": interrupts}})
    finally:
        signal.signal(signal.SIGINT, before)
    assert told.get(timeout=PATIENCE_S) is True
    assert brig.evaluate("1").value == 1


USER: contextvars.ContextVar[str] = contextvars.ContextVar("USER", default="nobody")


def test_a_handler_sees_the_context_variables_of_its_own_caller() -> None:
    def blocking() -> str:
        return USER.get()

    async def awaits() -> str:
        return USER.get()

    functions = {"who": {"blocking": blocking, "awaits": awaits, "either": lambda: awaits()}}
    program = "[await who.blocking(), await who.awaits(), await who.either()]"

    async def one(name: str) -> Any:
        USER.set(name)
        return (await brig.evaluate_async(program, host_functions=functions)).value

    async def main() -> Any:
        return await asyncio.gather(*(asyncio.create_task(one(name)) for name in "abc"))

    assert asyncio.run(main()) == [["a"] * 3, ["b"] * 3, ["c"] * 3]
    for name in "de":
        assert contextvars.copy_context().run(lambda: (USER.set(name), brig.evaluate(program, host_functions=functions).value)[1]) == [name] * 3


def test_permissions_narrow_what_a_program_may_call() -> None:
    result = brig.evaluate(
        "const x = await a.yes(); try { await a.no() } catch (e) { return [x, e.code] }",
        host_functions={"a": {"yes": lambda: 1, "no": lambda: 2}},
        permissions={"host_function": {"default": "deny", "rules": [{"mode": "allow", "patterns": ["a.yes"]}]}},
    )
    assert result.value == [1, "permission_denied"], result


def test_a_request_that_brigd_refuses_is_raised() -> None:
    with pytest.raises(brig.BrigError) as fault:
        brig.evaluate("1", limits={"heap_bytes": 1})
    assert (fault.value.code, fault.value.limit, fault.value.nothing_ran) == ("invalid_params", "heapBytes", True)


def test_check_parses_and_does_not_run() -> None:
    assert brig.check("return await orders.list({})").ok
    wrong = brig.check("let = ;")
    assert not wrong.ok and wrong.error is not None and wrong.error.code == "syntax_error"
    assert asyncio.run(brig.check_async("1")).ok


def test_a_client_says_whom_it_speaks_to_and_a_private_folder_is_the_users_own() -> None:
    with brig.connect() as client:
        info = client.initialize()
        assert info.server["name"] == "brigd" and info.principal["uid"] == os.getuid()
        assert client.socket is not None
        assert Path(client.socket).parent.stat().st_mode & 0o777 == 0o700
        with brig.connect(socket=client.socket) as other:
            assert other.evaluate("1 + 1").value == 2


def test_the_time_zone_is_the_programs() -> None:
    assert brig.evaluate("new Date(0).toLocaleTimeString('en-GB')", time_zone="Asia/Tokyo").value == "09:00:00"


def test_a_vm_keeps_its_realm_and_its_functions_and_ends_with_its_block() -> None:
    with brig.connect() as client:
        with client.create_vm(host_functions={"a": {"f": lambda: 5}}) as vm:
            vm.evaluate("let count = 1")
            assert vm.evaluate("count += await a.f(); count").value == 6
            assert client.evaluate("count + await b.f()", vm=vm, host_functions={"b": {"f": lambda: 1}}).value == 7
            assert vm.id in [listed["vm"] for listed in client.list_vms()]
        assert vm.id not in [listed["vm"] for listed in client.list_vms()]
        with pytest.raises(brig.BrigError) as fault:
            vm.evaluate("count")
        assert fault.value.code == "vm_not_found"


def test_another_client_may_evaluate_in_a_vm_whose_functions_are_answered_where_it_was_made() -> None:
    with brig.connect() as maker, brig.connect() as other:
        with maker.create_vm(host_functions={"a": {"f": lambda: "made"}}) as vm:
            result = other.evaluate("[await a.f(), await b.f()]", vm=vm.id, host_functions={"b": {"f": lambda: "other"}})
            assert result.value == ["made", "other"], result


def test_an_async_vm_does_so_too() -> None:
    async def main() -> Any:
        async with brig.create_vm_async() as vm:
            await vm.evaluate("let count = 1")
            return (await vm.evaluate("count + 1")).value

    assert asyncio.run(main()) == 2


def pid_of(socket: str) -> int | None:
    """The process that was started with this socket."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and socket in (entry / "cmdline").read_text().split("\0"):
                return int(entry.name)
        except OSError:
            continue
    return None


def gone(socket: str) -> bool:
    """Waits until no process has this socket."""
    pid = pid_of(socket)
    if pid is None:
        return True
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return select.select([watched], [], [], PATIENCE_S)[0] == [watched]
    finally:
        os.close(watched)


def test_a_client_whose_private_brigd_is_killed_starts_another() -> None:
    with brig.Client() as client:
        client.evaluate("1")
        assert client.socket is not None
        pid = pid_of(client.socket)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        try:
            value = client.evaluate("2").value
        except brig.BrigError as fault:
            # Whether the loss was noticed before the request was written is a matter of timing.
            assert fault.code == "connection_lost"
            value = client.evaluate("2").value
        assert value == 2 and pid_of(client.socket) != pid


def script(source: str, brigd: str, **more: Any) -> "subprocess.Popen[str]":
    env = {**os.environ, "BRIG_SOCKET": "", "BRIGD": brigd}
    return subprocess.Popen([sys.executable, "-X", "dev", "-W", "error", "-c", source], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("way", ["blocking", "async", "hanging handler"])
def test_a_script_ends_by_itself_and_takes_its_brigd_along(way: str, private: str) -> None:
    source = {
        "blocking": "import brig; c = brig.Client(); print(c.evaluate('6 * 7').value, c.socket)",
        "async": """
import asyncio, brig
async def main():
    value = (await brig.evaluate_async('6 * 7')).value
    async with brig.AsyncClient() as client:
        print(value, client.socket)
asyncio.run(main())""",
        "hanging handler": """
import brig, threading
client = brig.Client()
result = client.evaluate('await a.f()', host_functions={'a': {'f': lambda: threading.Event().wait()}}, timeout_ms=200)
print(42 if result.outcome == 'timed_out' else result, client.socket)""",
    }[way]
    child = script(source, private)
    out, err = child.communicate(timeout=120)
    # How long one step of the loop took depends on the machine.
    err = re.sub(r"^Executing <.*> took [\d.]+ seconds\n", "", err, flags=re.MULTILINE)
    assert child.returncode == 0 and err == "", err
    value, socket = out.split()
    assert value == "42"
    assert gone(socket) and not Path(socket).parent.exists()


def test_a_brigd_whose_client_was_killed_ends(private: str) -> None:
    child = script("import brig, threading; print(brig.connect().socket, flush=True); threading.Event().wait()", private)
    assert child.stdout is not None
    socket = child.stdout.readline().strip()
    assert pid_of(socket) is not None
    child.kill()
    child.communicate()
    assert gone(socket)
    # Nobody is left to remove it.
    shutil.rmtree(Path(socket).parent, ignore_errors=True)


def test_a_forked_child_neither_stops_nor_uses_what_is_its_parents(private: str) -> None:
    source = """
import os, sys, brig
print(brig.evaluate('1').value, flush=True)
pid = os.fork()
if pid == 0:
    print(brig.evaluate('2').value, flush=True)
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(brig.evaluate('3').value, flush=True)"""
    child = script(source.replace("import os", "import warnings; warnings.simplefilter('ignore'); import os"), private)
    out, err = child.communicate(timeout=120)
    assert out.split() == ["1", "2", "3"], err


def test_without_a_brigd_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIGD")
    monkeypatch.setenv("PATH", str(tmp_path))
    if not Path("/run/brig/brig.sock").exists():
        with pytest.raises(brig.BrigError, match="BRIG_SOCKET") as fault:
            brig.Client().evaluate("1")
        assert fault.value.code == "start_failed" and fault.value.nothing_ran
    false = tmp_path / "brigd"
    false.write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    false.chmod(0o755)
    with pytest.raises(brig.BrigError, match="no luck") as fault:
        brig.Client(brigd=str(false)).evaluate("1")
    assert fault.value.code == "start_failed"


def test_a_detached_program_goes_on_without_its_client_and_another_asks_for_its_answer() -> None:
    with brig.connect() as one:
        begun = one.detach("return inputs.a * 2", inputs={"a": 21})
        # One that does not end by itself is certain to run still.
        long = one.detach("await new Promise((done) => setTimeout(done, 1e6))", timeout_ms=600_000)
        assert (long.state, long.result, long.ended_ms) == ("running", None, None)
        with brig.connect(socket=one.socket) as other:
            assert other.wait_evaluation(long.evaluation, timeout_ms=0).state == "running"
            other.request("cancel", {"evaluation": long.evaluation})
            cancelled = other.wait_evaluation(long.evaluation)
            assert cancelled.result is not None and cancelled.result.outcome == "cancelled"
            ended = other.wait_evaluation(begun.evaluation)
            assert ended.state == "ended" and ended.result is not None and ended.result.value == 42
            assert ended.ended_ms is not None and ended.ended_ms >= ended.started_ms > 0
            assert other.get_evaluation(begun.evaluation) == ended
        with pytest.raises(brig.BrigError) as unknown:
            one.get_evaluation("ev_none")
        assert unknown.value.code == "evaluation_not_found"
        with pytest.raises(TypeError, match="host_functions"):
            one.detach("1", host_functions={})  # type: ignore[call-arg]
