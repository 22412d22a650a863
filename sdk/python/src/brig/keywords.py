"""Options that are keyword arguments.

Owns the refusal of those that there are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse_unknown(what: str, options: Mapping[str, Any], known: type) -> None:
    """An option that there is not is an error that names those there are."""
    odd = next((name for name in options if name not in known.__annotations__), None)
    if odd is not None:
        raise TypeError(f"{what} has no option {odd!r}; there are {', '.join(known.__annotations__)}")
