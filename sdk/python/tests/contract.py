"""Whether what came is what a behaviour of tests/contract expects, and host functions that answer as it scripts them."""

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import brig

#: How long anything may take that happens by itself, in seconds.
PATIENCE_S = 30


def wire(told: Any) -> Any:
    """A result of this SDK as the protocol spells it; what it has of the program stays as it is."""
    if isinstance(told, tuple):
        return [wire(one) for one in told]
    if not dataclasses.is_dataclass(told):
        return told
    members = {field.name: wire(getattr(told, field.name)) for field in dataclasses.fields(told)}
    return {"".join((head, *map(str.title, rest))): value for name, value in members.items() for head, *rest in [name.split("_")]}


class Told:
    """What one evaluation told its client."""

    def __init__(self) -> None:
        self.streams = {"stdout": "", "stderr": ""}
        self.warnings: list[str] = []
        #: The inputs of each handler, by its name.
        self.seen: dict[str, list[Any]] = {}
        self.over: dict[str, asyncio.Event] = {}
        self.cancellation = brig.Cancellation()
        self.waiting: dict[str, list[asyncio.Event]] = {}

    async def waits(self, name: str) -> None:
        """Waits until the call is over, which cancels it."""
        over = self.over.setdefault(name, asyncio.Event())
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    async def meets(self, name: str, count: int) -> int:
        """Waits until so many calls wait here."""
        waiting = self.waiting.setdefault(name, [])
        own = asyncio.Event()
        waiting.append(own)
        if len(waiting) == count:
            for other in waiting:
                other.set()
            waiting.clear()
        await own.wait()
        return count


def _fails(wanted: dict[str, Any]) -> None:
    # The class is what the program knows the error by.
    members = {name: wanted[name] for name in ("code", "data") if name in wanted}
    raise type(wanted.get("name", "Exception"), (Exception,), members)(wanted["message"])


def _facts(context: brig.CallContext) -> dict[str, Any]:
    keyed = context.idempotency_key == f"{context.evaluation}:{context.call}"
    return {"call": context.call, "keyed": keyed, "due": context.deadline > datetime.now(timezone.utc)}


async def _cancels(told: Told, name: str) -> None:
    told.cancellation.cancel()
    await told.waits(name)


#: What a handler does, by the kind of its answer: it may give a coroutine.
ANSWERS: dict[str, Callable[[Told, Any, str, Any, brig.CallContext], Any]] = {
    "value": lambda told, wanted, name, given, context: wanted,
    "echo": lambda told, wanted, name, given, context: given,
    "repeat": lambda told, wanted, name, given, context: wanted[0] * wanted[1],
    "error": lambda told, wanted, name, given, context: _fails(wanted),
    "crash": lambda told, wanted, name, given, context: 1 / 0,
    "facts": lambda told, wanted, name, given, context: _facts(context),
    "meet": lambda told, wanted, name, given, context: told.meets(name, wanted),
    "never": lambda told, wanted, name, given, context: told.waits(name),
    "cancel": lambda told, wanted, name, given, context: _cancels(told, name),
}
_DECLARED = {"description": "description", "inputSchema": "input_schema", "outputSchema": "output_schema", "examples": "examples"}
_DECLARED |= {"timeoutMs": "timeout_ms", "effect": "effect"}


def functions_of(script: Mapping[str, Mapping[str, Any]], told: Told) -> dict[str, dict[str, brig.HostFunction]]:
    """The functions of a script. What happens in them is written to ``told``."""
    collections: dict[str, dict[str, brig.HostFunction]] = {}
    for full, declared in script.items():
        collection, _, name = full.partition(".")
        collections.setdefault(collection, {})[name] = _function(full, declared, told)
    return collections


def _function(full: str, declared: Mapping[str, Any], told: Told) -> brig.HostFunction:
    answers = declared["answers"]
    for answer in answers:
        assert set(answer) <= set(ANSWERS), f"{full}: the answer {answer} has no implementation here"

    async def execute(given: dict[str, Any], context: brig.CallContext) -> Any:
        seen = told.seen.setdefault(full, [])
        seen.append(given)
        [(kind, wanted)] = answers[min(len(seen), len(answers)) - 1].items()
        given = ANSWERS[kind](told, wanted, full, given, context)
        return await given if asyncio.iscoroutine(given) else given

    options = {_DECLARED[member]: value for member, value in declared.items() if member != "answers"}
    return brig.host_function(execute, name=full, **{"input_schema": {}, "output_schema": False, **options})


def has(actual: Any, wanted: Any, where: str) -> None:
    """Fails unless ``actual`` has these members, and what is below them."""
    if isinstance(wanted, list):
        assert isinstance(actual, list) and len(actual) == len(wanted), f"{where} is {actual}, not {wanted}"
        for index, one in enumerate(wanted):
            has(actual[index], one, f"{where}[{index}]")
    elif isinstance(wanted, dict):
        assert isinstance(actual, dict), f"{where} is {actual}, not {wanted}"
        for name, one in wanted.items():
            has(actual.get(name), one, f"{where}.{name}")
    else:
        equal(actual, wanted, where)


def equal(actual: Any, wanted: Any, where: str) -> None:
    """Fails unless both are the same JSON: ``True`` is not 1."""
    text, other = (json.dumps(one, sort_keys=True) for one in (actual, wanted))
    assert actual == wanted and ("true" in text) == ("true" in other), f"{where} is {text[:1000]}, not {other[:1000]}"


def contains(text: str, parts: list[str]) -> None:
    for part in parts:
        assert part in text, f"{part!r} is not in {text}"


def _codes(result: brig.EvaluateResult) -> list[str]:
    # How near a limit of time is depends on the machine.
    return [warning.code for warning in result.warnings if warning.code != "limit_near"]


def _value(result: brig.EvaluateResult, wanted: Any) -> None:
    assert result.has_value, result
    equal(result.value, wanted, "value")


def _told(told: Told, wanted: dict[str, Any]) -> None:
    for name, one in wanted.items():
        equal({**told.streams, "warnings": told.warnings}[name], one, f"told {name}")


def _each(wanted: dict[str, Any], look: Callable[[str, Any], None]) -> None:
    for name, one in wanted.items():
        look(name, one)


_Look = Callable[[brig.EvaluateResult, Told, Any], None]

OF_RESULT: dict[str, _Look] = {
    "outcome": lambda result, told, wanted: has(result.outcome, wanted, f"outcome of {result}"),
    "value": lambda result, told, wanted: _value(result, wanted),
    "noValue": lambda result, told, wanted: has(result.has_value, False, "has_value"),
    "length": lambda result, told, wanted: has(len(result.value), wanted, "length"),
    "error": lambda result, told, wanted: has(wire(result.error), wanted, "error"),
    "errorText": lambda result, told, wanted: contains(str(result.error), wanted),
    "calls": lambda result, told, wanted: has(wire(result.calls), wanted, "calls"),
    "stdout": lambda result, told, wanted: has(result.stdout, wanted, "stdout"),
    "stderr": lambda result, told, wanted: has(result.stderr, wanted, "stderr"),
    "stdoutTruncated": lambda result, told, wanted: has(result.stdout_truncated, wanted, "stdout_truncated"),
    "stderrTruncated": lambda result, told, wanted: has(result.stderr_truncated, wanted, "stderr_truncated"),
    "warnings": lambda result, told, wanted: has(_codes(result), wanted, "warnings"),
    "layers": lambda result, told, wanted: contains(str(result.sandbox.layers), wanted),
    "usage": lambda result, told, wanted: has(wire(result.usage), wanted, "usage"),
    "told": lambda result, told, wanted: _told(told, wanted),
    "ran": lambda result, told, wanted: _each(wanted, lambda name, count: has(len(told.seen.get(name, ())), count, f"runs of {name}")),
    "saw": lambda result, told, wanted: _each(wanted, lambda name, inputs: equal(told.seen.get(name), inputs, f"inputs of {name}")),
}


async def holds(result: brig.EvaluateResult, told: Told, ids: list[str | None], expected: dict[str, Any]) -> None:
    """Fails unless the evaluation went as expected, or when nobody knows how to look."""
    for member, wanted in expected.items():
        if member == "sameAs":
            assert result.evaluation == ids[wanted]
        elif member == "over":
            for name in wanted:
                assert name in told.over, f"{name} never waited"
                await asyncio.wait_for(told.over[name].wait(), PATIENCE_S)
        else:
            assert member in OF_RESULT, f"the expectation {member!r} has no implementation here"
            OF_RESULT[member](result, told, wanted)


def is_refusal(fault: brig.BrigError, expected: dict[str, Any]) -> None:
    """Fails unless the request was refused as expected."""
    said = {"code": fault.code, "limit": fault.limit, "setting": fault.setting, "retryable": fault.retryable, "nothingRan": fault.nothing_ran}
    for member, wanted in expected.items():
        if member == "message":
            contains(f"{fault} {fault.hint}", wanted)
        else:
            assert member in said, f"the expectation refused.{member} has no implementation here"
            assert said[member] == wanted, f"{member} of {fault!r}"
