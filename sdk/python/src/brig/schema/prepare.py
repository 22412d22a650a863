"""One schema of a function, ready for both sides.

Owns the choice between the own reading of hints and Pydantic's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import SchemaConversionError
from .hints import NeedsPydantic, Reader, Side
from .models import PydanticShape
from .shapes import Definitions, JsonSchema, Member, Members, Shape

__all__ = ["Prepared", "Side", "given", "members", "prepare", "to_json_schema"]


@dataclass(frozen=True)
class Prepared:
    """A schema, and what is made of values."""

    schema: JsonSchema
    #: From JSON to what the hint says. Raises :class:`Mismatch`.
    parse: Callable[[Any], Any]
    #: From an output to what is encoded, where there is something to do. Raises :class:`Mismatch`.
    dump: Callable[[Any], Any] | None = None


def shape_of(hint: Any, reader: Reader, path: str = "$") -> Shape:
    """The shape of a hint: Pydantic's when anything in it is."""
    try:
        return reader.read(hint, path)
    except NeedsPydantic:
        return PydanticShape(hint, reader.side, path)


def prepare(hint: Any, side: Side, names: Mapping[str, Any] | None = None) -> Prepared:
    """The schema of a type hint."""
    shape = shape_of(hint, Reader(side, names or {}))
    dump = shape.dump if isinstance(shape, PydanticShape) else None
    return Prepared(_whole(shape), lambda value: shape.parse(value, "$"), dump)


def members(found: Mapping[str, Member]) -> Prepared:
    """The schema of an object with these members; it parses to a dict of those given."""
    shape = Members("Input", dict, closed=True)
    shape.members = found
    return Prepared(_whole(shape), lambda value: shape.parse(value, "$"))


def given(schema: JsonSchema) -> Prepared:
    """JSON Schema as data: brigd judges, and nothing is changed."""
    return Prepared(schema, lambda value: value)


def to_json_schema(hint: Any, side: Side = "input") -> JsonSchema:
    """The JSON Schema of a type hint, as brigd is told.

    Raises :class:`SchemaConversionError` naming the path of what JSON can not carry.
    """
    return prepare(hint, side).schema


def _whole(shape: Shape) -> JsonSchema:
    defs = Definitions()
    schema = shape.schema(defs)
    reference = schema.get("$ref")
    if isinstance(reference, str) and len(schema) == 1:
        # A root that holds itself: said in full, so that it is seen to be an object.
        schema = dict(defs.found[reference.removeprefix("#/$defs/")])
    return {**schema, "$defs": defs.found} if defs.found else schema


def refuse_what_is_no_object(schema: JsonSchema) -> None:
    """A host function takes one object."""
    kind = schema.get("type")
    if kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind):
        return
    raise SchemaConversionError("$", str(kind), "a host function takes one object; use named parameters")
