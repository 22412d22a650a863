"""Host functions: what a caller declares, and what brigd is told of it.

Owns decorators, the reading of signatures and the conversion of their schemas. How one
call goes is in ``calls``.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union, overload

from .calls import Handler, Steps, handler_of
from .errors import SchemaConversionError
from .keywords import refuse_unknown
from .schema import Prepared
from .signatures import Binding, bind_input, bind_output

if TYPE_CHECKING:
    from typing_extensions import Unpack

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C")

#: Where ``@function`` leaves what it was told.
_MARK = "__brig_function__"


class FunctionOptions(TypedDict, total=False):
    """What is said of a function beside its signature."""

    #: For the model; the docstring when left out.
    description: str | None
    #: A type, or JSON Schema as data; the signature when left out.
    input_schema: Any
    #: A type, or JSON Schema as data; the return annotation when left out; ``False``: none.
    output_schema: Any
    examples: Sequence[Mapping[str, Any]] | None
    #: Time for one call, in milliseconds.
    timeout_ms: int | None
    #: What it does to the world; ``write`` when left out.
    effect: Literal["read", "write"] | None


@dataclass(frozen=True)
class HostFunction:
    """One host function."""

    execute: Callable[..., Any]
    declaration: dict[str, Any]
    handler: Handler


#: What ``host_functions`` takes: decorated ones, or collections of handlers by name.
HostFunctionsLike = Union["HostFunctions", Mapping[str, Mapping[str, "HostFunction | Callable[..., Any]"]]]


def host_function(execute: Callable[..., Any], *, name: str = "it", **options: Unpack[FunctionOptions]) -> HostFunction:
    """A host function of a handler. ``options`` are those of :class:`FunctionOptions`.

    Raises :class:`SchemaConversionError` for a hint that JSON can not carry.
    """
    return _prepare(name, execute, options, _names_around())


@overload
def function(name: _F, /) -> _F: ...
@overload
def function(name: str | None = None, /, **options: Unpack[FunctionOptions]) -> Callable[[_F], _F]: ...
def function(name: Any = None, /, **options: Unpack[FunctionOptions]) -> Any:
    """Marks a method of a class that becomes a collection; ``name`` is what programs call it."""
    refuse_unknown("function", options, FunctionOptions)

    def mark(method: Any) -> Any:
        # Beneath @staticmethod and @classmethod is the function itself.
        setattr(getattr(method, "__func__", method), _MARK, (name if isinstance(name, str) else None, options))
        return method

    return mark(name) if name is not None and not isinstance(name, str) else mark


class HostFunctions:
    """Collections by name, functions by name."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, HostFunction]] = {}

    @property
    def collections(self) -> dict[str, dict[str, HostFunction]]:
        """What was added, as a copy."""
        return {name: dict(functions) for name, functions in self._collections.items()}

    def collection(self, name: str) -> Collection:
        """The collection of this name: a decorator for a class, and a place for functions."""
        return Collection(self, name)

    def function(self, name: str, **options: Unpack[FunctionOptions]) -> Callable[[_F], _F]:
        """Decorates a handler: ``@functions.function("orders.list", effect="read")``."""
        collection, dot, short = name.partition(".")
        if not dot or not collection or not short:
            raise ValueError(f"a function's name is collection.function, not {name!r}")
        names = _names_around()
        refuse_unknown("function", options, FunctionOptions)

        def add(execute: _F) -> _F:
            self._add(collection, short, execute, options, names)
            return execute

        return add

    def _add(self, collection: str, name: str, execute: Callable[..., Any], told: FunctionOptions, names: Mapping[str, Any]) -> None:
        functions = self._collections.setdefault(collection, {})
        full = f"{collection}.{name}"
        if name in functions:
            raise ValueError(f"there is a host function {full} already")
        functions[name] = _prepare(full, execute, told, names)


class Collection:
    """One collection of a :class:`HostFunctions`."""

    def __init__(self, functions: HostFunctions, name: str) -> None:
        self._functions = functions
        self.name = name

    def __call__(self, owner: _C) -> _C:
        """Adds the methods of a class, or of an object.

        Of a class, an instance is made, and every public method that it defines itself is
        added. Of an object, only the methods that are marked with :func:`function`: what
        else an object can do was not meant for programs.
        """
        names = _names_around()
        instance: Any = _instance(owner) if isinstance(owner, type) else owner
        is_class = instance is not owner
        found = 0
        for attribute, raw in _attributes(type(instance), inherited=not is_class):
            plain = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
            if not inspect.isfunction(plain):
                continue
            mark = getattr(plain, _MARK, None)
            if mark is None and (not is_class or attribute.startswith("_")):
                continue
            name, told = mark if mark is not None else (None, FunctionOptions())
            self._functions._add(self.name, name or attribute, getattr(instance, attribute), told, names)
            found += 1
        if found == 0:
            raise ValueError(f"the collection {self.name} gets no function: mark methods with @brig.function()")
        return owner

    @overload
    def function(self, name: _F, /) -> _F: ...
    @overload
    def function(self, name: str | None = None, /, **options: Unpack[FunctionOptions]) -> Callable[[_F], _F]: ...
    def function(self, name: Any = None, /, **options: Unpack[FunctionOptions]) -> Any:
        """Decorates a handler: ``@orders.function`` or ``@orders.function("list", effect="read")``."""
        names = _names_around()
        refuse_unknown("function", options, FunctionOptions)

        def add(execute: Any) -> Any:
            short = name if isinstance(name, str) else execute.__name__
            self._functions._add(self.name, short, execute, options, names)
            return execute

        return add(name) if callable(name) else add


@dataclass(frozen=True)
class PreparedFunctions:
    """Host functions, ready to be declared and called."""

    declarations: dict[str, dict[str, Any]]
    #: By ``collection.function``.
    handlers: dict[str, Handler]


def prepare_functions(functions: HostFunctionsLike | None) -> PreparedFunctions:
    """Converts all schemas that were not converted yet."""
    if functions is None:
        return PreparedFunctions({}, {})
    prepared = PreparedFunctions({}, {})
    for collection, found in _entries(functions.collections if isinstance(functions, HostFunctions) else functions, "host_functions"):
        declared = prepared.declarations.setdefault(collection, {})
        for name, given in _entries(found, f"host_functions[{collection!r}]"):
            full = f"{collection}.{name}"
            one = given if isinstance(given, HostFunction) else _of_mapping(full, given)
            declared[name] = one.declaration
            prepared.handlers[full] = one.handler
    return prepared


def _of_mapping(full: str, execute: Any) -> HostFunction:
    if not callable(execute):
        raise TypeError(f"host function {full} must be callable; it is {type(execute).__name__}")
    return _prepare(full, execute, FunctionOptions(), {})


def _entries(value: Any, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a mapping or brig.HostFunctions; it is {type(value).__name__}")
    return list(value.items())


def _prepare(full: str, execute: Callable[..., Any], told: FunctionOptions, names: Mapping[str, Any]) -> HostFunction:
    refuse_unknown(f"host function {full}", told, FunctionOptions)
    try:
        taken = bind_input(execute, told.get("input_schema"), names)
    except SchemaConversionError as fault:
        raise fault.of(f"{full} input") from None
    try:
        output = bind_output(execute, told.get("output_schema"), names)
    except SchemaConversionError as fault:
        raise fault.of(f"{full} output") from None
    handler = handler_of(Steps(taken.bind, execute, None if output is None else output.dump))
    return HostFunction(execute, _declaration(execute, told, taken, output), handler)


def _declaration(execute: Callable[..., Any], told: FunctionOptions, taken: Binding, output: Prepared | None) -> dict[str, Any]:
    examples = told.get("examples")
    described = told.get("description") or inspect.cleandoc(getattr(execute, "__doc__", None) or "")
    members: dict[str, Any] = {
        "description": described or taken.schema.get("description"),
        "inputSchema": taken.schema,
        "outputSchema": None if output is None else output.schema,
        "examples": None if examples is None else [dict(example) for example in examples],
        "timeoutMs": told.get("timeout_ms"),
        "effect": told.get("effect"),
    }
    return {name: value for name, value in members.items() if value is not None}


def _instance(owner: type) -> Any:
    try:
        inspect.signature(owner).bind()
    except TypeError:
        message = f"{owner.__name__} needs arguments: make an object of it and add that, with methods marked @brig.function()"
        raise TypeError(message) from None
    return owner()


def _attributes(owner: type, inherited: bool) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__) if inherited else (owner,):
        found.update(vars(base))
    return list(found.items())


def _names_around() -> dict[str, Any]:
    """The names that can be seen where a decorator stands, for hints that are text."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    names: dict[str, Any] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names
