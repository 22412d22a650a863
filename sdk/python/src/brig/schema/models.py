"""Hints that Pydantic judges.

Owns the only import of Pydantic, which happens when a hint needs it.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from ..errors import SchemaConversionError
from ..wire_json import encode, member
from .hints import Side
from .shapes import Definitions, Issue, JsonSchema, Mismatch, Shape

#: Parts of a pattern that brigd's expressions do not have; Pydantic still judges them.
_LOOKS_AROUND = ("(?=", "(?!", "(?<", "(?P")
#: Members of a schema that hold data and no schemas.
_DATA = ("const", "default", "enum", "examples", "required")


class PydanticShape(Shape):
    """A Pydantic model, or any hint with one in it."""

    def __init__(self, hint: Any, side: Side, path: str) -> None:
        try:
            import pydantic
        except ImportError:
            raise SchemaConversionError(path, str(hint), "it needs Pydantic: install brig[pydantic]") from None
        self._side = side
        try:
            self._adapter = pydantic.TypeAdapter(hint)
            self._write("")
        except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation) as fault:
            where, kind = _locate(hint, path, ())
            reason = str(fault).splitlines()[0]
            raise SchemaConversionError(where, kind, reason) from fault

    def _write(self, prefix: str) -> JsonSchema:
        from pydantic.json_schema import GenerateJsonSchema

        class Untitled(GenerateJsonSchema):
            # A title that repeats the member's name tells a model nothing.
            def field_title_should_be_set(self, schema: Any) -> bool:
                return False

        schema: JsonSchema = self._adapter.json_schema(
            ref_template=f"#/$defs/{prefix}{{model}}",
            mode="validation" if self._side == "input" else "serialization",
            schema_generator=Untitled,
        )
        return _portable(schema)

    def schema(self, defs: Definitions) -> JsonSchema:
        schema = self._write("")
        prefix, number = "", 2
        # Two classes of one name, in different members of one input.
        while any(defs.taken(f"{prefix}{name}", found) for name, found in schema.get("$defs", {}).items()):
            prefix, number = f"{number}_", number + 1
            schema = self._write(prefix)
        for name, found in schema.pop("$defs", {}).items():
            defs.found[f"{prefix}{name}"] = found
        return schema

    def parse(self, value: Any, path: str) -> Any:
        import pydantic

        try:
            # As JSON, so that a strict model takes dates and tuples from it.
            return self._adapter.validate_json(encode(value))
        except pydantic.ValidationError as fault:
            raise Mismatch(*_issues(fault, path)) from None

    def dump(self, value: Any) -> Any:
        """What is sent of an output: only what the hint names."""
        import pydantic

        try:
            return self._adapter.dump_python(self._adapter.validate_python(value), mode="json", by_alias=True)
        except pydantic.ValidationError as fault:
            raise Mismatch(*_issues(fault, "$")) from None


def _issues(fault: Any, path: str) -> list[Issue]:
    found = []
    for error in fault.errors(include_url=False, include_input=False, include_context=False):
        where = path
        for step in error["loc"]:
            where = f"{where}[{step}]" if isinstance(step, int) else member(where, step)
        found.append(Issue(where, error["msg"]))
    return found


def _portable(schema: JsonSchema) -> JsonSchema:
    """The schema without patterns that brigd could not compile."""
    kept: JsonSchema = {}
    for name, value in schema.items():
        if name == "pattern" and isinstance(value, str) and any(part in value for part in _LOOKS_AROUND):
            continue
        kept[name] = value if name in _DATA else _below(value)
    return kept


def _below(value: Any) -> Any:
    if isinstance(value, list):
        return [_below(item) for item in value]
    return _portable(value) if isinstance(value, dict) else value


def _locate(hint: Any, path: str, above: tuple[Any, ...]) -> tuple[str, str]:
    """The deepest place that Pydantic has no JSON Schema for."""
    for below, where in _parts(hint, path):
        if below not in above and not _converts(below):
            return _locate(below, where, (*above, hint))
    return path, getattr(hint, "__name__", None) or str(hint)


def _parts(hint: Any, path: str) -> list[tuple[Any, str]]:
    fields = getattr(hint, "model_fields", None)
    if isinstance(fields, dict):
        return [(field.annotation, member(path, field.alias or name)) for name, field in fields.items()]
    if dataclasses.is_dataclass(hint):
        return [(field.type, member(path, field.name)) for field in dataclasses.fields(hint)]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return [(args[0], path)]
    if origin is dict:
        return [(args[1], f"{path}[*]")] if len(args) == 2 else []
    if origin in (list, set, frozenset, tuple):
        return [(arg, f"{path}[]") for arg in args if arg is not Ellipsis]
    return [(arg, path) for arg in args]


def _converts(hint: Any) -> bool:
    import pydantic

    try:
        pydantic.TypeAdapter(hint).json_schema()
    except Exception:
        return False
    return True
