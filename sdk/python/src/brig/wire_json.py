"""JSON on its way out and in.

Owns turning a value into JSON text without losing anything in silence: what JSON has no
form for is an error with its path. Never judges a value against a schema.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
import uuid
from typing import Any

from .errors import JsonFault

#: Deepest nesting that brigd takes in a value, in levels.
NESTING_LEVELS = 512

#: Digits of an integer that are read as such; Python itself refuses more than 4300.
_INTEGER_DIGITS = 1000

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)


def member(path: str, name: str) -> str:
    """``.name``, or ``["odd name"]`` when it is no identifier."""
    return f"{path}.{name}" if _NAME.match(name) else f"{path}[{json.dumps(name)}]"


def encode(value: object, most: int = NESTING_LEVELS) -> str:
    """JSON text of ``value``.

    Pydantic models, dataclasses, enums, dates, times and UUIDs go in their JSON form.
    Raises :class:`JsonFault` for a cycle, bytes, a set, NaN and their like.
    """
    try:
        text = json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise JsonFault("$", f"nested more than {most} levels deep") from None
    except (TypeError, ValueError, JsonFault):
        _locate(value, "$", ())
        raise JsonFault("$", "an object that can not be read") from None
    if _levels(text) > most:
        raise JsonFault("$", f"nested more than {most} levels deep")
    return text


def line(text: str) -> bytes:
    """One line of UTF-8. A lone surrogate, which UTF-8 has no form for, is escaped."""
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # They stand in strings only, where an escape means the same.
        escaped = re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found.group()):04x}", text)
        return escaped.encode() + b"\n"


def decode(text: bytes) -> Any:
    """The value of JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer with more digits than Python reads. It must not end what all share.
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _INTEGER_DIGITS else float(digits))


def plain(value: object) -> Any:
    """The next simpler form of what JSON itself does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json", by_alias=True)
    raise JsonFault("$", _describe(value))


def _describe(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes; send them as base64 or as a list of numbers"
    if isinstance(value, (set, frozenset)):
        return "a set, which has no order; send a list"
    if isinstance(value, BaseException):
        return "an exception; raise it, or send its message"
    if hasattr(value, "__await__"):
        return "an awaitable that was not awaited"
    return f"an object of class {type(value).__name__}, which JSON has no form for"


def _locate(value: object, path: str, above: tuple[int, ...]) -> None:
    """Raises at the first place that JSON has no form for. Only runs once something failed."""
    if len(above) > NESTING_LEVELS:
        raise JsonFault("$", f"nested more than {NESTING_LEVELS} levels deep")
    if id(value) in above:
        raise JsonFault(path, "a reference back to something that holds it; JSON has no cycles")
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, (str, int, float, bool, type(None))):
                raise JsonFault(path, f"a dict with a key of class {type(name).__name__}; JSON has text only")
            _locate(item, member(path, str(name)), (*above, id(value)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _locate(item, f"{path}[{index}]", (*above, id(value)))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise JsonFault(path, f"{value}; JSON has no such number")
    elif value is not None and not isinstance(value, (str, int)):
        try:
            simpler = plain(value)
        except JsonFault as fault:
            raise JsonFault(path, fault.found) from None
        except Exception:
            raise JsonFault(path, f"an object of class {type(value).__name__} that can not be read") from None
        _locate(simpler, path, (*above, id(value)))


def _levels(text: str) -> int:
    """How deeply JSON text is nested."""
    if text.count("[") + text.count("{") <= NESTING_LEVELS:
        # That few can not be deeper than the limit.
        return 0
    depth = deepest = 0
    for token in _TOKENS.finditer(text):
        if token.group(1):
            depth += 1
            deepest = max(deepest, depth)
        elif token.group(2):
            depth -= 1
    return deepest
