"""From the signature of a handler to the schema of its input, and from an input to a call.

Owns which parameter takes what. Never calls a handler.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .calls import CallContext
from .errors import SchemaConversionError
from .schema import JsonSchema, Prepared, given, members, prepare
from .schema.hints import Reader, is_pydantic, is_typed_dict, json_default
from .schema.prepare import refuse_what_is_no_object, shape_of
from .schema.shapes import NO_DEFAULT, Member

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Binding:
    """The schema of an input, and how it becomes arguments."""

    schema: JsonSchema
    #: Raises :class:`Mismatch`.
    bind: Callable[[Any, CallContext], _Arguments]


@dataclass(frozen=True)
class _Signature:
    #: Parameters for the input, with their hints (``inspect.Parameter.empty`` for none).
    taken: tuple[inspect.Parameter, ...]
    #: Name of the parameter that is told of the call.
    told: str | None
    returned: Any
    reader: Reader


def bind_input(execute: Callable[..., Any], schema: Any, names: Mapping[str, Any]) -> Binding:
    """The schema of what a handler takes.

    One parameter whose hint is a Pydantic model, a dataclass, a ``TypedDict`` or a ``dict``
    takes the whole input; else each parameter takes the member of its name.
    """
    signature = _read(execute, names)
    whole = _takes_whole(signature, schema is not None)
    if schema is not None:
        prepared = given(dict(schema)) if isinstance(schema, Mapping) else prepare(schema, "input", names)
    elif whole:
        prepared = prepare(signature.taken[0].annotation, "input", signature.reader.names)
    else:
        prepared = members({parameter.name: _member(parameter, signature.reader) for parameter in signature.taken})
    refuse_what_is_no_object(prepared.schema)
    return Binding(prepared.schema, _binder(prepared, whole, signature.taken, signature.told))


def _binder(prepared: Prepared, whole: bool, taken: tuple[inspect.Parameter, ...], told: str | None) -> Callable[[Any, CallContext], _Arguments]:
    """Keeps nothing of the names that were in sight where the function was declared."""
    positional = whole and taken[0].kind is not inspect.Parameter.KEYWORD_ONLY
    known = None if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken) else {parameter.name for parameter in taken}

    def bind(value: Any, call: CallContext) -> _Arguments:
        context = {} if told is None else {told: call}
        parsed = prepared.parse(value)
        if positional:
            return (parsed,), context
        if whole:
            return (), {taken[0].name: parsed, **context}
        return (), {**_as_members(parsed, known), **context}

    return bind


def bind_output(execute: Callable[..., Any], schema: Any, names: Mapping[str, Any]) -> Prepared | None:
    """The schema of what a handler gives, if anything is said about it."""
    if schema is False:
        return None
    if isinstance(schema, Mapping):
        return given(dict(schema))
    if schema is not None:
        return prepare(schema, "output", names)
    signature = _read(execute, names)
    if signature.returned in (inspect.Signature.empty, None, type(None), Any, object):
        return None
    return prepare(signature.returned, "output", signature.reader.names)


def _as_members(parsed: Any, known: set[str] | None) -> dict[str, Any]:
    """The arguments for an input that a schema of its own describes."""
    if not isinstance(parsed, Mapping):
        parsed = {name: getattr(parsed, name) for name in _names_of(type(parsed))}
    return {name: value for name, value in parsed.items() if known is None or name in known}


def _names_of(owner: Any) -> list[str]:
    if dataclasses.is_dataclass(owner):
        return [field.name for field in dataclasses.fields(owner)]
    return list(getattr(owner, "model_fields", {}))


def _read(execute: Callable[..., Any], names: Mapping[str, Any]) -> _Signature:
    reader = Reader("input", names)
    signature = inspect.signature(execute)
    hints = reader.hints_of(_annotated(execute), "$")
    taken: list[inspect.Parameter] = []
    told = None
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if hint is CallContext or CallContext in typing.get_args(hint):
            told = parameter.name
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise SchemaConversionError("$", f"*{parameter.name}", "a program gives one object, and no list of arguments")
        else:
            taken.append(parameter.replace(annotation=hint))
    returned = hints.get("return", inspect.Signature.empty)
    return _Signature(tuple(taken), told, returned, reader)


def _annotated(execute: Any) -> Any:
    """What has the hints of a callable."""
    while isinstance(execute, functools.partial):
        execute = execute.func
    if inspect.isfunction(execute) or inspect.ismethod(execute):
        return inspect.unwrap(execute)
    return getattr(execute, "__init__" if isinstance(execute, type) else "__call__", execute)


def _takes_whole(signature: _Signature, has_schema: bool) -> bool:
    if len(signature.taken) != 1:
        return False
    parameter = signature.taken[0]
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return False
    hint = parameter.annotation
    if hint is inspect.Parameter.empty or hint is Any or hint is object:
        # Without a schema, that an input is anything must be said.
        return has_schema
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        hint = typing.get_args(hint)[0]
        origin = typing.get_origin(hint)
    if (origin or hint) in (dict, collections.abc.Mapping, collections.abc.MutableMapping):
        return True
    return isinstance(hint, type) and (_is_model(hint) or dataclasses.is_dataclass(hint) or is_typed_dict(hint))


def _is_model(hint: type) -> bool:
    return is_pydantic(hint) and hasattr(hint, "model_fields")


def _member(parameter: inspect.Parameter, reader: Reader) -> Member:
    path = f"$.{parameter.name}"
    hint, default = parameter.annotation, parameter.default
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise SchemaConversionError(path, "parameter", "members are given by name; it must not be positional only")
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        raise SchemaConversionError(path, f"**{parameter.name}", "say what it takes, with input_schema or a TypedDict")
    if hint is inspect.Parameter.empty:
        raise SchemaConversionError(path, "parameter", "it needs a type hint, or the function an input_schema")
    if type(default).__name__ == "FieldInfo":
        raise SchemaConversionError(path, "Field", "as a default it would reach the handler; use Annotated[…, Field(…)]")
    required = default is inspect.Parameter.empty
    return Member(shape_of(hint, reader, path), required, NO_DEFAULT if required else json_default(default))
