"""From type hints to JSON Schema, and from JSON to what the hints say.

Owns which hints there are and what becomes of them. Never sees a function or a socket.
"""

from .prepare import Prepared, Side, given, members, prepare, to_json_schema
from .shapes import Issue, JsonSchema, Mismatch

__all__ = ["Issue", "JsonSchema", "Mismatch", "Prepared", "Side", "given", "members", "prepare", "to_json_schema"]
