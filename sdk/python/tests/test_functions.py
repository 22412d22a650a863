"""Declaring host functions: decorators, signatures, and what is sent of them."""

from __future__ import annotations

import functools
import gc
import weakref
from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypedDict

import pydantic
import pytest

import brig
from brig.functions import prepare_functions


def declared(handler: Any, **options: Any) -> dict[str, Any]:
    functions = brig.HostFunctions()
    functions.function("t.f", **options)(handler)
    return prepare_functions(functions).declarations["t"]["f"]


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    def handler(customer: Annotated[str, "Whose."], limit: int = 10, note: Optional[str] = None) -> list[str]:
        """List orders.

        All of them.
        """
        return []

    assert declared(handler, effect="read", timeout_ms=5, examples=[{"input": {"customer": "c"}}]) == {
        "description": "List orders.\n\nAll of them.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "Whose."},
                "limit": {"type": "integer", "default": 10},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["customer"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "array", "items": {"type": "string"}},
        "examples": [{"input": {"customer": "c"}}],
        "timeoutMs": 5,
        "effect": "read",
    }


def test_hints_that_are_text_may_name_what_is_local() -> None:
    @dataclass
    class Local:
        a: int

    class LocalDict(TypedDict):
        b: Local

    def handler(given: LocalDict, context: brig.CallContext) -> Local:
        return given["b"]

    assert declared(handler)["inputSchema"]["properties"]["b"]["properties"] == {"a": {"type": "integer"}}


def test_the_context_is_no_part_of_the_input_and_explicit_schemas_go_as_they_are() -> None:
    def handler(given, context: brig.CallContext):  # type: ignore[no-untyped-def]
        return given

    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert declared(handler, input_schema=schema, output_schema={"type": "object"}) == {
        "inputSchema": schema,
        "outputSchema": {"type": "object"},
    }
    assert declared(lambda: 1)["inputSchema"] == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_class_becomes_a_collection_of_what_it_defines_itself() -> None:
    functions = brig.HostFunctions()

    class Base:
        def inherited(self) -> int:
            return 0

    @functions.collection("store")
    class Store(Base):
        def plain(self) -> int:
            return 1

        @brig.function("listOrders", effect="read", description="List.")
        def list_orders(self) -> int:
            return 2

        @brig.function
        @staticmethod
        def still() -> int:
            return 3

        def _hidden(self) -> int:
            return 4

    assert sorted(functions.collections["store"]) == ["listOrders", "plain", "still"]
    assert functions.collections["store"]["listOrders"].declaration["description"] == "List."
    assert Store().plain() == 1


def test_of_an_object_only_what_is_marked_is_offered() -> None:
    functions = brig.HostFunctions()

    class Service:
        def __init__(self, secret: str) -> None:
            self.secret = secret

        def delete_everything(self) -> None:
            pass

        @brig.function()
        def size(self) -> int:
            return len(self.secret)

    functions.collection("service")(Service("abc"))
    assert list(functions.collections["service"]) == ["size"]
    with pytest.raises(TypeError, match="make an object of it"):
        functions.collection("other")(Service)
    with pytest.raises(ValueError, match="no function"):
        functions.collection("other")(object())


def test_a_collection_is_a_place_for_functions_too() -> None:
    functions = brig.HostFunctions()
    orders = functions.collection("orders")

    @orders.function
    def first() -> int:
        return 1

    @orders.function("second", effect="read")
    def other() -> int:
        return 2

    assert list(functions.collections["orders"]) == ["first", "second"]
    with pytest.raises(ValueError, match="already"):
        orders.function("first")(other)
    with pytest.raises(ValueError, match="collection.function"):
        functions.function("nodot")


def test_partials_methods_and_objects_that_can_be_called_are_handlers() -> None:
    class Called:
        def __call__(self, a: int) -> int:
            return a

    def two(a: int, b: str) -> str:
        return b * a

    assert list(declared(Called())["inputSchema"]["properties"]) == ["a"]
    assert declared(functools.partial(two, a=1))["inputSchema"]["required"] == ["b"]


def bad_bytes(data: bytes) -> None: ...
def bad_untyped(a, b) -> None: ...  # type: ignore[no-untyped-def]
def bad_list(*items: int) -> None: ...
def bad_rest(**rest: int) -> None: ...
def bad_positional(a: int, /) -> None: ...
def bad_default(a: int = pydantic.Field(1, ge=1)) -> None: ...
def bad_name(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def bad_output() -> set[str]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (bad_bytes, r"t\.f input: \$\.data \(bytes\)"),
        (bad_untyped, r"t\.f input: \$\.a .*type hint"),
        (bad_list, r"one object"),
        (bad_rest, r"input_schema or a TypedDict"),
        (bad_positional, r"by name"),
        (bad_default, r"Annotated"),
        (bad_name, r"can not be evaluated: name 'Missing'"),
        (len, r"by name"),
        (bad_output, r"t\.f output: \$ \(set\)"),
    ],
)
def test_a_signature_that_can_not_be_offered_is_an_error_that_says_why(handler: Any, said: str) -> None:
    with pytest.raises(brig.SchemaConversionError, match=said):
        declared(handler)


def test_an_input_is_one_object_and_a_record_is_one_of_callables() -> None:
    with pytest.raises(brig.SchemaConversionError, match="one object"):
        declared(lambda given: given, input_schema={"type": "string"})
    with pytest.raises(TypeError, match="must be callable"):
        prepare_functions({"a": {"b": 1}})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="must be a mapping"):
        prepare_functions([])  # type: ignore[arg-type]


def test_what_was_in_sight_of_a_declaration_is_not_kept() -> None:
    class Large:
        pass

    def declare() -> tuple[brig.HostFunctions, weakref.ref[Large]]:
        large = Large()
        functions = brig.HostFunctions()

        def handler(a: int) -> int:
            return a

        functions.function("t.f")(handler)
        return functions, weakref.ref(large)

    functions, large = declare()
    gc.collect()
    assert large() is None and functions.collections


def test_an_option_that_there_is_not_is_an_error() -> None:
    for use in (brig.function, lambda **options: brig.HostFunctions().function("a.b", **options), lambda **options: brig.HostFunctions().collection("a").function("b", **options)):
        with pytest.raises(TypeError, match="no option 'timeout'; there are description"):
            use(timeout=1)  # type: ignore[call-arg]


def test_declarations_are_typescript_for_a_model() -> None:
    from brig.declarations import declarations

    @dataclass
    class Node:
        name: str
        kids: list[Node]

    functions = brig.HostFunctions()

    @functions.function("a.f")
    def f(tree: Node, size: tuple[int, str] = (1, "a"), odd: dict[str, list[int | None]] | None = None) -> list[Node]:
        """Ends */ nothing."""
        return []

    assert declarations(functions) == (
        "declare const a: {\n"
        "  /** Ends *\\/ nothing. */\n"
        "  f(input: { tree: { name: string; kids: unknown[] }; size?: [number, string]; "
        "odd?: Record<string, (number | null)[]> | null }): Promise<{ name: string; kids: unknown[] }[]>;\n"
        "};"
    )
