"""From type hints to JSON Schema, and from JSON to what the hints say."""

import dataclasses
import datetime
import decimal
import enum
import typing
import uuid
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, Union

import pydantic
import pytest

from brig import SchemaConversionError, to_json_schema
from brig.schema import Mismatch, prepare


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    """A place."""

    x: float
    y: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    name: str
    kids: list["Tree"] = dataclasses.field(default_factory=list)


class Movie(TypedDict, total=False):
    title: typing.Required[str] if hasattr(typing, "Required") else str  # type: ignore[misc]
    year: int


class Model(pydantic.BaseModel):
    order_id: str = pydantic.Field(alias="orderId", description="Which order.")
    count: int = pydantic.Field(1, ge=1)


CustomerId = NewType("CustomerId", str)

POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "number"},
        "y": {"type": "number", "default": 0.0},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "description": "A place.",
    "required": ["x"],
    "additionalProperties": False,
}

SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (None, {"type": "null"}),
    (Any, {}),
    (CustomerId, {"type": "string"}),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Color, {"enum": ["red", "blue"]}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (list, {"type": "array", "items": {}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (tuple[int, str], {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (dict, {"type": "object"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (Annotated[str, "Which one."], {"type": "string", "description": "Which one."}),
    (Point, POINT),
    (
        Tree,
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
    (
        Model,
        {
            "type": "object",
            "title": "Model",
            "properties": {
                "orderId": {"type": "string", "description": "Which order."},
                "count": {"type": "integer", "minimum": 1, "default": 1},
            },
            "required": ["orderId"],
        },
    ),
]


@pytest.mark.parametrize(("hint", "schema"), SCHEMAS, ids=lambda value: str(value)[:40])
def test_a_hint_becomes_a_schema(hint: Any, schema: dict[str, Any]) -> None:
    found = to_json_schema(hint)
    defs = found.pop("$defs", {})
    assert found == schema
    assert all(f"#/$defs/{name}" in str(found) for name in defs)


NOON = datetime.datetime(2020, 1, 1, 12, 0, 0, 123000, tzinfo=datetime.timezone.utc)

PARSED: list[tuple[Any, Any, Any]] = [
    (int, 1.0, 1),
    (float, 1, 1.0),
    (Color, "red", Color.RED),
    (list[Color], ["red"], [Color.RED]),
    (set[str], ["a", "b"], {"a", "b"}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (dict[str, Color], {"a": "blue"}, {"a": Color.BLUE}),
    (datetime.datetime, "2020-01-01T12:00:00.123Z", NOON),
    (datetime.datetime, "2020-01-01T12:00:00.123456789+00:00", NOON.replace(microsecond=123456)),
    (datetime.date, "2020-01-01", datetime.date(2020, 1, 1)),
    (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID(int=0x12345678123456781234567812345678)),
    (Point, {"x": 1}, Point(1.0)),
    (Tree, {"name": "a", "kids": [{"name": "b"}]}, Tree("a", [Tree("b")])),
    (Union[Point, Tree, None], {"name": "a"}, Tree("a")),
    (Movie, {"title": "t"}, {"title": "t"}),
    (Literal[1, "1", True], True, True),
    (Model, {"orderId": "o", "count": 2}, Model(orderId="o", count=2)),
    (list[Model], [{"orderId": "o"}], [Model(orderId="o")]),
    (Annotated[int, pydantic.Field(gt=1)], 2, 2),
]


@pytest.mark.parametrize(("hint", "given", "meant"), PARSED, ids=lambda value: str(value)[:40])
def test_json_becomes_what_the_hint_says(hint: Any, given: Any, meant: Any) -> None:
    found = prepare(hint, "input").parse(given)
    assert found == meant and type(found) is type(meant)


REFUSED: list[tuple[Any, Any, str]] = [
    (int, True, "$"),
    (int, 1.5, "$"),
    (bool, 1, "$"),
    (str, None, "$"),
    (list[int], [1, "a"], "$[1]"),
    (dict[str, list[int]], {"a b": [None]}, '$["a b"][0]'),
    (tuple[int, str], [1], "$"),
    (Color, "green", "$"),
    (Literal[1], True, "$"),
    (datetime.datetime, "noon", "$"),
    (Point, {"x": 1, "z": 2}, "$.z"),
    (Point, {"y": 1}, "$.x"),
    (Tree, {"name": "a", "kids": [{"name": 1}]}, "$.kids[0].name"),
    (Union[int, Tree], {"name": 1}, "$.name"),
    (Model, {"orderId": "o", "count": 0}, "$.count"),
    (Annotated[int, pydantic.Field(gt=1)], 1, "$"),
]


@pytest.mark.parametrize(("hint", "given", "path"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_the_hint_does_not_say_is_refused_with_its_path(hint: Any, given: Any, path: str) -> None:
    with pytest.raises(Mismatch) as fault:
        prepare(hint, "input").parse(given)
    assert [issue.path for issue in fault.value.issues] == [path]


@dataclasses.dataclass
class Deep:
    items: list[dict[str, bytes]]


class HoldsObject(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    thing: decimal.Context


class DeepModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    items: list[HoldsObject]


IMPOSSIBLE: list[tuple[Any, str, str]] = [
    (bytes, "$", "base64"),
    (Deep, "$.items[][*]", "base64"),
    (decimal.Decimal, "$", "lose digits"),
    (datetime.timedelta, "$", "seconds"),
    (dict[int, str], "$", "text as keys"),
    (typing.Callable[[], int], "$", "nothing like it"),
    (DeepModel, "$.items[].thing", "Context"),
    (Literal[b"a"], "$", "a choice must be"),
]


@pytest.mark.parametrize(("hint", "path", "reason"), IMPOSSIBLE, ids=lambda value: str(value)[:40])
def test_what_json_can_not_carry_is_an_error_that_names_its_path(hint: Any, path: str, reason: str) -> None:
    with pytest.raises(SchemaConversionError) as fault:
        to_json_schema(hint)
    assert fault.value.path == path
    assert reason in str(fault.value)


def test_a_set_is_no_output_and_members_with_defaults_are_always_sent() -> None:
    with pytest.raises(SchemaConversionError, match="no order"):
        to_json_schema(set[str], "output")
    output = to_json_schema(Point, "output")
    assert output["required"] == ["x", "y", "tags"]
    assert "additionalProperties" not in output


def test_two_models_of_one_name_keep_apart() -> None:
    def make(kind: type) -> type[pydantic.BaseModel]:
        class Inner(pydantic.BaseModel):
            value: kind  # type: ignore[valid-type]

        class Outer(pydantic.BaseModel):
            inner: Inner

        return Outer

    from brig.functions import prepare_functions

    first, second = make(int), make(str)

    def handler(a: first, b: second) -> None:  # type: ignore[valid-type]
        pass

    schema = prepare_functions({"t": {"f": handler}}).declarations["t"]["f"]["inputSchema"]
    kinds = {name: found["properties"]["value"]["type"] for name, found in schema["$defs"].items() if "value" in found["properties"]}
    assert sorted(kinds.values()) == ["integer", "string"]
