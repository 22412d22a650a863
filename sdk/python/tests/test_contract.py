"""The behaviours of tests/contract, by this SDK, through a real brigd."""

import asyncio
import json
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from conftest import PACKAGE
from contract import Told, contains, functions_of, has, holds, is_refusal, wire

import brig

LIST = PACKAGE.parent.parent / "tests/contract/behaviours.json"
BEHAVIOURS: list[dict[str, Any]] = json.loads(LIST.read_text().replace("{sdk}", "python"))
HERE = [one for one in BEHAVIOURS if "python" in one.get("sdks", ["python"])]

_OPTIONS = {"form": "form", "language": "language", "inputs": "inputs", "collections": "collections", "permissions": "permissions"}
_OPTIONS |= {"timeoutMs": "timeout_ms", "output": "output", "timeZone": "time_zone", "idempotencyKey": "idempotency_key", "trace": "trace"}
_LIMITS = {"timeoutMs": "timeout_ms", "cpuMs": "cpu_ms", "heapBytes": "heap_bytes", "hostCalls": "host_calls", "resultBytes": "result_bytes"}
_LIMITS |= {"consoleBytes": "console_bytes", "inputBytes": "input_bytes", "outputBytes": "output_bytes"}

#: Names of the behaviours that were run to their end.
_ran: set[str] = set()


@pytest.fixture(scope="module")
def keeper(brigd: str) -> Iterator[brig.Client]:
    """A client that keeps one brigd for all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("BRIG_SOCKET", raising=False)
        with brig.connect() as client:
            yield client


def spelled(options: dict[str, Any]) -> dict[str, Any]:
    """Options of the list by their names here; fails for one that there is not."""
    said = {_OPTIONS[name]: value for name, value in options.items() if name != "limits"}
    if "limits" in options:
        said["limits"] = {_LIMITS[name]: value for name, value in options["limits"].items()}
    if "permissions" in said:
        said["permissions"] = {"host_function": said["permissions"]["hostFunction"]}
    return said


def options_of(step: dict[str, Any], told: Told) -> dict[str, Any]:
    options = dict(step.get("options", {}))
    listens, cancel_on = options.pop("listen", False), options.pop("cancelOn", None)
    assert cancel_on in (None, "output"), f"cancelOn {cancel_on!r} has no implementation here"

    def tells(stream: str, text: str) -> None:
        told.streams[stream] += text
        if cancel_on == "output":
            told.cancellation.cancel()

    def warns(warning: brig.EvaluationWarning) -> None:
        if warning.code != "limit_near":
            told.warnings.append(warning.code)

    said = {**spelled(options), "cancellation": told.cancellation}
    assert listens in (False, True, "warnings"), f"listen {listens!r} has no implementation here"
    if listens == "warnings":
        said["on_warning"] = warns
    elif listens or cancel_on:
        said |= {"on_stdout": lambda text: tells("stdout", text), "on_stderr": lambda text: tells("stderr", text), "on_warning": warns}
    if "functions" in step:
        said["host_functions"] = functions_of(step["functions"], told)
    return said


async def refused(asked: Awaitable[Any], expected: dict[str, Any]) -> None:
    with pytest.raises(brig.BrigError) as fault:
        await asked
    is_refusal(fault.value, expected)


class Run:
    """The steps of one behaviour."""

    def __init__(self, one: brig.AsyncClient, another: brig.AsyncClient) -> None:
        self.one, self.another = one, another
        self.vms: dict[str, brig.AsyncVm] = {}
        self.detached: str | None = None
        self.ids: list[str | None] = []

    def client(self, step: dict[str, Any]) -> brig.AsyncClient:
        return self.another if step.get("by") == "another" else self.one

    async def take(self, step: dict[str, Any]) -> str | None:
        """Does what the step says; fails when nobody knows how."""
        [(kind, given)] = [(name, value) for name, value in step.items() if name not in ("by", "in", "options", "functions", "expect")]
        does = getattr(self, f"do_{kind}", None)
        assert does is not None, f"the step {kind!r} has no implementation here"
        done: str | None = await does(step, given)
        return done

    async def do_evaluate(self, step: dict[str, Any], source: str) -> str | None:
        told = Told()
        options = options_of(step, told)
        vm = self.vms.get(step.get("in", "vm"))
        where = self.client(step) if vm is None or "by" in step else vm
        if vm is not None and "by" in step:
            options["vm"] = vm.id
        if "refused" in step["expect"]:
            return await refused(where.evaluate(source, **options), step["expect"]["refused"])
        result = await where.evaluate(source, **options)
        await holds(result, told, self.ids, step["expect"])
        return result.evaluation

    async def do_together(self, step: dict[str, Any], steps: list[dict[str, Any]]) -> None:
        await asyncio.gather(*map(self.take, steps))

    async def do_check(self, step: dict[str, Any], source: str) -> None:
        has(wire(await self.client(step).check(source, **spelled(step.get("options", {})))), step["expect"], "check")

    async def do_types(self, step: dict[str, Any], _: bool) -> None:
        types = await self.client(step).types(functions_of(step.get("functions", {}), Told()))
        assert set(step["expect"]) == {"declarations", "tool", "toolName"}
        contains(types.declarations, step["expect"]["declarations"])
        contains(types.tool_description, step["expect"]["tool"])
        assert types.tool_name == step["expect"]["toolName"]

    async def do_detach(self, step: dict[str, Any], source: str) -> str | None:
        begun = await self.status_is(self.client(step).detach(source, **spelled(step.get("options", {}))), step["expect"])
        self.detached = begun.evaluation if begun else None
        return self.detached

    async def do_wait(self, step: dict[str, Any], given: dict[str, Any]) -> None:
        assert set(given) <= {"timeoutMs"} and self.detached is not None
        await self.status_is(self.client(step).wait_evaluation(self.detached, timeout_ms=given.get("timeoutMs")), step["expect"])

    async def do_get(self, step: dict[str, Any], given: dict[str, Any]) -> None:
        await self.status_is(self.client(step).get_evaluation(given.get("evaluation", self.detached)), step["expect"])

    async def do_cancel(self, step: dict[str, Any], _: bool) -> None:
        await self.client(step).request("cancel", {"evaluation": self.detached})

    async def do_vms(self, step: dict[str, Any], _: bool) -> None:
        has({"own": self.vms["vm"].id in [vm["vm"] for vm in await self.client(step).list_vms()]}, step["expect"], "vms")

    async def do_dispose(self, _: dict[str, Any], __: bool) -> None:
        await self.vms["vm"].dispose()

    async def status_is(self, asked: Awaitable[brig.EvaluationStatus], expected: dict[str, Any]) -> brig.EvaluationStatus | None:
        if "refused" in expected:
            return await refused(asked, expected["refused"])
        status = await asked
        assert set(expected) <= {"state", "result", "sameAs"}, "expectations without an implementation here"
        assert status.state in expected["state"], status
        assert (status.result is None) == (status.state == "running")
        if "result" in expected:
            assert status.result is not None
            await holds(status.result, Told(), [], expected["result"])
        if "sameAs" in expected:
            assert status.evaluation == self.ids[expected["sameAs"]]
        assert status.started_ms > 0 and (status.ended_ms or status.started_ms) >= status.started_ms
        return status


async def runs(behaviour: dict[str, Any], socket: str | None) -> None:
    assert set(behaviour) <= {"name", "steps", "vm", "other", "sdks", "why"}, "members without an implementation here"
    async with brig.AsyncClient(socket=socket) as one, brig.AsyncClient(socket=socket) as another:
        run = Run(one, another)
        for which in {"vm", "other"} & set(behaviour):
            options = dict(behaviour[which])
            functions = functions_of(options.pop("functions", {}), Told())
            run.vms[which] = await one.create_vm(**spelled(options), host_functions=functions)
        for index, step in enumerate(behaviour["steps"]):
            try:
                run.ids.append(await run.take(step))
            except Exception as fault:
                raise AssertionError(f"step {index} ({str(step)[:300]}): {fault!r}") from fault


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=[one["name"] for one in BEHAVIOURS])
def test_it_does_what_every_sdk_does(behaviour: dict[str, Any], keeper: brig.Client) -> None:
    if behaviour not in HERE:
        pytest.skip(behaviour["why"])
    asyncio.run(asyncio.wait_for(runs(behaviour, keeper.socket), 120))
    _ran.add(behaviour["name"])


def test_every_behaviour_of_the_list_was_run(request: pytest.FixtureRequest) -> None:
    if len([item for item in request.session.items if "does_what_every_sdk_does" in item.name]) < len(BEHAVIOURS):
        pytest.skip("not all were asked for")
    assert _ran == {one["name"] for one in HERE}
