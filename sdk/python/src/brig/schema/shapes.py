"""What a type hint becomes: a JSON Schema, and a reading of JSON.

Owns one class for each kind of hint. Never looks at a hint.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..wire_json import member

#: A JSON Schema as data.
JsonSchema = dict[str, Any]


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a value."""

    #: Where, as ``$.items[0].when``.
    path: str
    message: str


class Mismatch(ValueError):
    """A value is not what a hint says."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__("; ".join(f"{issue.path}: {issue.message}" for issue in issues))
        self.issues = issues


def mismatch(path: str, expected: str, found: object) -> Mismatch:
    """``path: must be …``"""
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object"}
    return Mismatch(Issue(path, f"must be {expected}; it is {kinds.get(type(found), 'null')}"))


class Definitions:
    """What goes to ``$defs``: the classes that hold themselves, and those of Pydantic."""

    def __init__(self) -> None:
        self.found: dict[str, JsonSchema] = {}
        #: The classes that are being written, and the name of each that was met again.
        self.open: dict[int, str | None] = {}

    def taken(self, name: str, schema: JsonSchema) -> bool:
        """Whether the name means something else already."""
        return name in self.open.values() or self.found.get(name, schema) != schema

    def free_name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        taken = {*self.found, *self.open.values()}
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}{number}", number + 1
        return name


class Shape:
    """Anything."""

    def schema(self, defs: Definitions) -> JsonSchema:
        """Its JSON Schema."""
        return {}

    def parse(self, value: Any, path: str) -> Any:
        """What the hint says, of a JSON value. Raises :class:`Mismatch`."""
        return value


@dataclass(frozen=True)
class Scalar(Shape):
    """``str``, ``bool``, ``int``, ``float``, ``None``."""

    type: type

    def schema(self, defs: Definitions) -> JsonSchema:
        names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
        return {"type": names[self.type]}

    def parse(self, value: Any, path: str) -> Any:
        if type(value) is self.type:
            return value
        if self.type is float and type(value) is int:
            return float(value)
        # JSON has one kind of number: 1.0 is whole.
        if self.type is int and type(value) is float and value.is_integer():
            return int(value)
        what = {str: "a string", bool: "a boolean", int: "a whole number", float: "a number", type(None): "null"}
        raise mismatch(path, what[self.type], value)


#: Hints that are text in JSON: format, and how it is read.
_TEXTS: dict[type, tuple[str, Callable[[str], Any]]] = {
    datetime.datetime: ("date-time", lambda text: datetime.datetime.fromisoformat(_with_offset(text))),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", lambda text: datetime.time.fromisoformat(_with_offset(text))),
    uuid.UUID: ("uuid", uuid.UUID),
}


def _with_offset(text: str) -> str:
    """``Z`` as an offset, and fractions of a second as 6 digits, which every Python reads."""
    text = f"{text[:-1]}+00:00" if text[-1:] in ("Z", "z") else text
    head, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return f"{head}.{digits[:6].ljust(6, '0')}{rest[len(digits):]}" if dot else text


@dataclass(frozen=True)
class Text(Shape):
    """What is text in JSON and more than text here."""

    type: type

    @staticmethod
    def knows(hint: object) -> bool:
        """Whether there is a format for it."""
        return isinstance(hint, type) and hint in _TEXTS

    def schema(self, defs: Definitions) -> JsonSchema:
        return {"type": "string", "format": _TEXTS[self.type][0]}

    def parse(self, value: Any, path: str) -> Any:
        name, read = _TEXTS[self.type]
        if not isinstance(value, str):
            raise mismatch(path, f"a string ({name})", value)
        try:
            return read(value)
        except ValueError:
            raise Mismatch(Issue(path, f"must be a {name} in ISO form")) from None


@dataclass(frozen=True)
class Choice(Shape):
    """``Literal`` and enums: JSON values, and what each stands for."""

    choices: Sequence[tuple[Any, Any]]

    def schema(self, defs: Definitions) -> JsonSchema:
        return {"enum": [wire for wire, _ in self.choices]}

    def parse(self, value: Any, path: str) -> Any:
        for wire, meant in self.choices:
            # In Python True == 1; in JSON it is not.
            if wire == value and isinstance(wire, bool) == isinstance(value, bool):
                return meant
        raise Mismatch(Issue(path, f"must be one of {json.dumps([wire for wire, _ in self.choices])}"))


@dataclass(frozen=True)
class Items(Shape):
    """``list``, ``set`` and ``tuple[X, ...]``."""

    item: Shape
    make: Callable[[list[Any]], Any]
    unique: bool = False

    def schema(self, defs: Definitions) -> JsonSchema:
        schema: JsonSchema = {"type": "array", "items": self.item.schema(defs)}
        return {**schema, "uniqueItems": True} if self.unique else schema

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise mismatch(path, "an array", value)
        return self.make([self.item.parse(item, f"{path}[{index}]") for index, item in enumerate(value)])


@dataclass(frozen=True)
class Row(Shape):
    """``tuple[X, Y]``."""

    items: Sequence[Shape]

    def schema(self, defs: Definitions) -> JsonSchema:
        count = len(self.items)
        schema: JsonSchema = {"type": "array", "minItems": count, "maxItems": count}
        return {**schema, "prefixItems": [item.schema(defs) for item in self.items]} if count else schema

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, list) or len(value) != len(self.items):
            raise mismatch(path, f"an array of {len(self.items)} items", value)
        return tuple(shape.parse(item, f"{path}[{index}]") for index, (shape, item) in enumerate(zip(self.items, value)))


@dataclass(frozen=True)
class Entries(Shape):
    """``dict[str, X]``."""

    value: Shape

    def schema(self, defs: Definitions) -> JsonSchema:
        inner = self.value.schema(defs)
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise mismatch(path, "an object", value)
        return {name: self.value.parse(item, member(path, name)) for name, item in value.items()}


@dataclass(frozen=True)
class OneOf(Shape):
    """``Union``: the first that fits."""

    shapes: Sequence[Shape]

    def schema(self, defs: Definitions) -> JsonSchema:
        return {"anyOf": [shape.schema(defs) for shape in self.shapes]}

    def parse(self, value: Any, path: str) -> Any:
        faults: list[Mismatch] = []
        for shape in self.shapes:
            try:
                return shape.parse(value, path)
            except Mismatch as fault:
                faults.append(fault)
        # What went wrong deepest inside is what was meant.
        raise max(faults, key=lambda fault: max(len(issue.path) for issue in fault.issues))


@dataclass(frozen=True)
class Described(Shape):
    """A hint and a sentence about it."""

    shape: Shape
    description: str

    def schema(self, defs: Definitions) -> JsonSchema:
        return {**self.shape.schema(defs), "description": self.description}

    def parse(self, value: Any, path: str) -> Any:
        return self.shape.parse(value, path)


#: No default, or none that JSON can say.
NO_DEFAULT: Any = object()


@dataclass(frozen=True)
class Member:
    """One member of an object."""

    shape: Shape
    required: bool
    default: Any = NO_DEFAULT


class Members(Shape):
    """A dataclass, a ``TypedDict``, or the parameters of a function."""

    def __init__(self, name: str, make: Callable[[dict[str, Any]], Any], closed: bool) -> None:
        """``closed``: whether members that it does not name are refused."""
        self.name = name
        self.members: Mapping[str, Member] = {}
        self.description: str | None = None
        self._make = make
        self._closed = closed

    def schema(self, defs: Definitions) -> JsonSchema:
        if id(self) in defs.open:
            # Met again within itself: a reference, and a name to refer to.
            name = defs.open[id(self)] or defs.free_name(self.name)
            defs.open[id(self)] = name
            return {"$ref": f"#/$defs/{name}"}
        defs.open[id(self)] = None
        body = self._body(defs)
        recursive = defs.open.pop(id(self))
        if recursive is None:
            return body
        defs.found[recursive] = body
        return {"$ref": f"#/$defs/{recursive}"}

    def _body(self, defs: Definitions) -> JsonSchema:
        properties: dict[str, JsonSchema] = {}
        for name, found in self.members.items():
            schema = found.shape.schema(defs)
            properties[name] = schema if found.default is NO_DEFAULT else {**schema, "default": found.default}
        body: JsonSchema = {"type": "object", "properties": properties}
        if self.description is not None:
            body["description"] = self.description
        required = [name for name, found in self.members.items() if found.required]
        if required:
            body["required"] = required
        if self._closed:
            body["additionalProperties"] = False
        return body

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise mismatch(path, "an object", value)
        for name in value:
            if name not in self.members and self._closed:
                raise Mismatch(Issue(member(path, name), "there is no such member"))
        found: dict[str, Any] = {}
        for name, known in self.members.items():
            if name in value:
                found[name] = known.shape.parse(value[name], member(path, name))
            elif known.required:
                raise Mismatch(Issue(member(path, name), "must be given"))
        return self._make(found)
