"""Everything that is raised.

Owns the error classes. A program that ran and failed is none of these: that is a result
with an ``error`` in it.
"""

from __future__ import annotations

from typing import Any


class BrigError(Exception):
    """There is no result.

    ``code`` is one of the protocol's request codes (``invalid_params``, ``overloaded``, …:
    brigd refused, nothing ran), or one of the client's own:

    - ``connect_failed``: nothing answers on the socket; nothing was sent.
    - ``start_failed``: no private brigd could be started; nothing was sent.
    - ``connection_lost``: it ended before the answer came; see ``nothing_ran``.
    - ``protocol_error``: what came is not the protocol.
    - ``closed``: the client was closed.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_ms: float | None = None,
        hint: str | None = None,
        limit: str | None = None,
        setting: str | None = None,
        nothing_ran: bool = True,
    ) -> None:
        super().__init__(message)
        #: Which error.
        self.code = code
        self.message = message
        #: Whether the same request may succeed when sent again.
        self.retryable = retryable
        #: When to try again, in milliseconds.
        self.retry_after_ms = retry_after_ms
        #: What to do instead.
        self.hint = hint
        #: The limit that was hit, as the protocol spells it.
        self.limit = limit
        #: The setting of brigd that raises it.
        self.setting = setting
        #: ``False`` only when the request was under way and nobody can say what it did.
        self.nothing_ran = nothing_ran

    def __str__(self) -> str:
        hint = "" if self.hint is None else f" ({self.hint})"
        return f"{self.message}{hint}"

    @classmethod
    def from_wire(cls, error: object) -> BrigError:
        """From the ``error`` member of an answer."""
        members = error if isinstance(error, dict) else {}
        data = members.get("data")
        said: dict[str, Any] = data if isinstance(data, dict) else {}
        message = members.get("message")
        after = said.get("retryAfterMs")
        return cls(
            _text(said.get("code")) or "internal",
            message if isinstance(message, str) else "brigd refused the request and gave no reason",
            retryable=said.get("retryable") is True,
            retry_after_ms=after if isinstance(after, (int, float)) else None,
            hint=_text(said.get("hint")),
            limit=_text(said.get("limit")),
            setting=_text(said.get("setting")),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class SchemaConversionError(TypeError):
    """A type hint says something that JSON Schema can not carry. Nothing was sent."""

    def __init__(self, path: str, kind: str, reason: str, schema: str | None = None) -> None:
        whose = "" if schema is None else f"{schema}: "
        super().__init__(f"{whose}{path} ({kind}): {reason}")
        #: Where in the schema, as ``$.items[].when``.
        self.path = path
        #: The kind of type there, as ``bytes``.
        self.kind = kind
        #: Why not, and what would do.
        self.reason = reason
        #: ``orders.list input``, once it is known whose schema it is.
        self.schema = schema

    def of(self, schema: str) -> SchemaConversionError:
        """The same, saying whose schema it is."""
        return SchemaConversionError(self.path, self.kind, self.reason, schema)


class HostFunctionError(Exception):
    """An error for handlers to raise: the program gets its message, ``code`` and ``data``.

    Any other exception does as well, with its class name; a traceback never crosses.
    """

    def __init__(self, message: str, code: str | None = None, data: object = None) -> None:
        super().__init__(message)
        #: The function's own code, for the program to look at.
        self.code = code
        #: Anything that JSON can carry.
        self.data = data


class JsonFault(TypeError):
    """A value that has no JSON form."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(f"{path} is {found}")
        #: Where, as ``$.rows[0].when``.
        self.path = path
        #: What is there.
        self.found = found
