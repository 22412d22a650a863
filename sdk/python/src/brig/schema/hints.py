"""Reading type hints.

Owns which hints there are. What only Pydantic can judge is left to it: see ``models``.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from ..errors import JsonFault, SchemaConversionError
from ..wire_json import encode, member
from .shapes import (
    NO_DEFAULT,
    Choice,
    Described,
    Entries,
    Items,
    Member,
    Members,
    OneOf,
    Row,
    Scalar,
    Shape,
    Text,
)

Side = Literal["input", "output"]

_SCALARS: tuple[object, ...] = (str, bool, int, float, type(None))
_LISTS: tuple[object, ...] = (
    list,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.abc.MutableSequence,
)
_SETS: dict[object, Any] = {set: set, frozenset: frozenset, collections.abc.Set: frozenset, collections.abc.MutableSet: set}
_DICTS: tuple[object, ...] = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

_INSTEAD = {
    "bytes": "JSON has no bytes; use str, in base64",
    "bytearray": "JSON has no bytes; use str, in base64",
    "Decimal": "JSON numbers lose digits; use str, or float",
    "timedelta": "JSON has no durations; use float, in seconds",
    "complex": "JSON has no complex numbers; use tuple[float, float]",
    "CallContext": "it is told to handlers and is no part of an input",
}


class NeedsPydantic(Exception):
    """Somewhere in the hint is what only Pydantic can judge."""


class Reader:
    """Reads the hints of one function."""

    def __init__(self, side: Side, names: Mapping[str, Any]) -> None:
        """``names``: what hints that are text may refer to, beside their module's names."""
        self.side = side
        self.names = dict(names)
        self._classes: dict[type, Members] = {}

    def read(self, hint: Any, path: str) -> Shape:
        """The shape of a hint. Raises :class:`SchemaConversionError` with the path."""
        hint = _unwrap(hint)
        if hint is None or hint in _SCALARS:
            return Scalar(type(None) if hint is None else hint)
        if hint is Any or hint is object:
            return Shape()
        if Text.knows(hint):
            return Text(hint)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self._annotated(args, path)
        if origin is Literal:
            return Choice([(_json_choice(value, path), value) for value in args])
        if origin is typing.Union or isinstance(hint, types.UnionType):
            return OneOf([self.read(arg, path) for arg in args])
        container = self._container(origin or hint, args, path)
        if container is not None:
            return container
        if isinstance(hint, type):
            return self._class(hint, path)
        raise _refusal(hint, path)

    def _annotated(self, args: tuple[Any, ...], path: str) -> Shape:
        hint, *notes = args
        if any(not isinstance(note, str) for note in notes):
            raise NeedsPydantic
        return Described(self.read(hint, path), " ".join(notes))

    def _container(self, origin: Any, args: tuple[Any, ...], path: str) -> Shape | None:
        if origin is tuple:
            if not args:
                return Items(Shape(), tuple)
            if len(args) == 2 and args[1] is Ellipsis:
                return Items(self.read(args[0], f"{path}[]"), tuple)
            if args == ((),):
                return Row([])
            return Row([self.read(arg, f"{path}[{index}]") for index, arg in enumerate(args)])
        if origin in _LISTS:
            return Items(self.read(args[0], f"{path}[]") if args else Shape(), list)
        if origin in _SETS:
            if self.side == "output":
                raise SchemaConversionError(path, "set", "a set has no order, and is not sent; use list")
            return Items(self.read(args[0], f"{path}[]") if args else Shape(), _SETS[origin], unique=True)
        if origin in _DICTS:
            if args and _unwrap(args[0]) not in (str, Any):
                raise SchemaConversionError(path, "dict", "JSON has text as keys only; use dict[str, …]")
            return Entries(self.read(args[1], f"{path}[*]") if args else Shape())
        return None

    def _class(self, hint: type, path: str) -> Shape:
        if is_pydantic(hint):
            raise NeedsPydantic
        if issubclass(hint, enum.Enum):
            return Choice([(_json_choice(choice.value, path), choice) for choice in hint])
        if hint in self._classes:
            return self._classes[hint]
        if dataclasses.is_dataclass(hint):
            return self._dataclass(hint, path)
        if is_typed_dict(hint):
            return self._typed_dict(hint, path)
        raise _refusal(hint, path)

    def _dataclass(self, hint: Any, path: str) -> Shape:
        shape = Members(hint.__name__, lambda found: hint(**found), closed=self.side == "input")
        self._classes[hint] = shape
        hints = self.hints_of(hint, path)
        members: dict[str, Member] = {}
        for field in dataclasses.fields(hint):
            if not field.init and self.side == "input":
                continue
            default = field.default if field.default is not dataclasses.MISSING else NO_DEFAULT
            may_lack = default is not NO_DEFAULT or field.default_factory is not dataclasses.MISSING
            read = self.read(hints[field.name], member(path, field.name))
            required = self.side == "output" or not may_lack
            members[field.name] = Member(read, required, json_default(default))
        shape.members = members
        # What @dataclass itself writes is no description.
        doc = hint.__doc__ or ""
        shape.description = None if doc.startswith(f"{hint.__name__}(") else inspect.cleandoc(doc) or None
        return shape

    def _typed_dict(self, hint: Any, path: str) -> Shape:
        shape = Members(hint.__name__, dict, closed=self.side == "input")
        self._classes[hint] = shape
        members: dict[str, Member] = {}
        for name, found in self.hints_of(hint, path).items():
            # Of hints that are text, the class itself does not see what they say.
            said = getattr(typing.get_origin(found), "_name", None)
            required = said == "Required" if said in ("Required", "NotRequired") else name in hint.__required_keys__
            members[name] = Member(self.read(found, member(path, name)), required)
        shape.members = members
        shape.description = inspect.cleandoc(hint.__doc__ or "") or None
        return shape

    def hints_of(self, owner: Any, path: str) -> dict[str, Any]:
        """The hints of a class or function, evaluated where they are text."""
        if not isinstance(owner, type) and not getattr(owner, "__annotations__", None):
            # What is built in can not even be asked.
            return {}
        try:
            hints = typing.get_type_hints(owner, localns=self.names, include_extras=True)
            if sys.version_info >= (3, 11):
                return hints
            scope = getattr(owner, "__globals__", None) or vars(sys.modules[owner.__module__])
            return {name: _evaluated(hint, scope, self.names) for name, hint in hints.items()}
        except (NameError, TypeError) as fault:
            name = getattr(owner, "__name__", "it")
            raise SchemaConversionError(path, name, f"its type hints can not be evaluated: {fault}") from None


def _evaluated(hint: Any, scope: dict[str, Any], names: dict[str, Any]) -> Any:
    """Text within a hint, as in ``list["Tree"]``, which Python 3.10 leaves as it is."""
    if isinstance(hint, str):
        return eval(hint, scope, names)
    if isinstance(hint, types.GenericAlias):
        args = tuple(_evaluated(arg, scope, names) for arg in hint.__args__)
        origin: Any = hint.__origin__
        return hint if args == hint.__args__ else origin[args]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.Union[tuple(_evaluated(arg, scope, names) for arg in typing.get_args(hint))]
    return hint


def _unwrap(hint: Any) -> Any:
    """What a ``NewType``, a ``type`` alias, ``Required`` and ``NotRequired`` stand for."""
    while True:
        origin = typing.get_origin(hint)
        if getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint


def is_pydantic(hint: type) -> bool:
    """Whether Pydantic knows the class, and nobody else does."""
    return any(hasattr(hint, name) for name in ("__pydantic_core_schema__", "__get_pydantic_core_schema__"))


def is_typed_dict(hint: Any) -> bool:
    """Whether it is a ``TypedDict``, of any module that makes them."""
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")


def json_default(default: Any) -> Any:
    """A default as the schema says it, if JSON can."""
    if default is NO_DEFAULT:
        return NO_DEFAULT
    try:
        return json.loads(encode(default))
    except JsonFault:
        return NO_DEFAULT


def _json_choice(value: Any, path: str) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise SchemaConversionError(path, type(value).__name__, "a choice must be a string, a number, a boolean or None")


def _refusal(hint: Any, path: str) -> SchemaConversionError:
    kind = getattr(hint, "__name__", None) or str(hint)
    return SchemaConversionError(path, kind, _INSTEAD.get(kind, "JSON Schema has nothing like it; use a dataclass, a TypedDict or a Pydantic model"))
