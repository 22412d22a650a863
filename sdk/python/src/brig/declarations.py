"""Host functions as a model reads them: TypeScript declarations, in one line each.

Owns the text of one tool that runs programs. Never judges a value; what a schema says
beyond types is left to brigd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .functions import HostFunctionsLike, prepare_functions

_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/')
_BRACKETS = re.compile(r"[({\[<][^(){}\[\]<>]*[)}\]>]")
#: Deepest nesting that is written out, in levels.
_LEVELS = 6
#: The references that are being written, and ``None`` for each other level.
_Above = tuple["str | None", ...]


def declarations(functions: HostFunctionsLike | None) -> str:
    """``declare const orders: { … }`` for each collection."""
    lines: list[str] = []
    for collection, members in prepare_functions(functions).declarations.items():
        name = collection if _NAME.match(collection) else f"globalThis[{json.dumps(collection)}]"
        lines.append(f"declare const {name}: {{")
        for function, declared in members.items():
            lines.extend(_function(function, declared))
        lines.append("};")
    return "\n".join(lines)


def tool_description(functions: HostFunctionsLike | None) -> str:
    """What a model is told of the tool that runs its programs."""
    said = (
        "Runs a JavaScript or TypeScript program in a sandbox and gives its value: "
        "the last expression, or what it returns. It has no network and no files."
    )
    declared = declarations(functions)
    if not declared:
        return said
    return (
        f"{said} It can call these functions, which are async and take one object; "
        f"make all calls that a task needs in one program:\n\n```ts\n{declared}\n```"
    )


def _function(name: str, declared: Mapping[str, Any]) -> list[str]:
    schema = declared["inputSchema"]
    optional = "" if schema.get("required") else "?"
    given = _type(declared.get("outputSchema", True), declared.get("outputSchema", {}), ())
    lines = []
    if "description" in declared:
        lines.append(f"  /** {_note(declared)} */")
    lines.append(f"  {_key(name)}(input{optional}: {_type(schema, schema, ())}): Promise<{given}>;")
    return lines


def _key(name: str) -> str:
    return name if _NAME.match(name) else json.dumps(name)


def _type(schema: Any, root: Mapping[str, Any], above: _Above) -> str:
    if schema is False:
        return "never"
    if not isinstance(schema, Mapping) or len(above) >= _LEVELS:
        return "unknown"
    if "$ref" in schema:
        reference = str(schema["$ref"])
        # A type that holds itself is written once.
        return "unknown" if reference in above else _type(_resolve(reference, root), root, (*above, reference))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"]) or "never"
    for word, between in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if word in schema:
            return between.join(dict.fromkeys(_grouped(part, root, above) for part in schema[word]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": one}, root, above) for one in kind)
    if kind == "array":
        return _array(schema, root, above)
    if kind == "object" or "properties" in schema:
        return _object(schema, root, above)
    return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}.get(str(kind), "unknown")


def _grouped(schema: Any, root: Mapping[str, Any], above: _Above) -> str:
    said = _type(schema, root, (*above, None))
    return f"({said})" if _is_joined(said) else said


def _is_joined(said: str) -> bool:
    """Whether a union or an intersection stands outside of all brackets and strings."""
    outside = _STRING.sub("", said)
    while (inner := _BRACKETS.sub("", outside)) != outside:
        outside = inner
    return " | " in outside or " & " in outside


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], above: _Above) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(_type(item, root, (*above, None)) for item in schema['prefixItems'])}]"
    return f"{_grouped(schema.get('items', True), root, above)}[]"


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], above: _Above) -> str:
    properties = schema.get("properties", {})
    if not properties:
        if schema.get("additionalProperties") is False:
            return "{}"
        return f"Record<string, {_type(schema.get('additionalProperties', True), root, (*above, None))}>"
    required = schema.get("required", ())
    members = []
    for name, part in properties.items():
        note = f" /* {_note(part)} */" if isinstance(part, Mapping) and part.get("description") else ""
        members.append(f"{_key(name)}{'' if name in required else '?'}: {_type(part, root, (*above, None))}{note}")
    return f"{{ {'; '.join(members)} }}"


def _note(part: Mapping[str, Any]) -> str:
    # What ends a comment must not end this one.
    return " ".join(str(part["description"]).split()).replace("*/", "*\\/")


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if not isinstance(found, Mapping) or (step and step not in found):
            return True
        found = found[step] if step else found
    return found
