"""The answer of a tool that runs programs, as a model needs it.

Owns its shape and the name of the tool. Never runs anything.
"""

from __future__ import annotations

from typing import Any

from ..results import EvaluateResult

#: What the tool is called, unless its maker says otherwise.
TOOL_NAME = "execute"
#: What the tool's only parameter is called by.
SOURCE_DESCRIPTION = "The program."


def answer_of(result: EvaluateResult) -> dict[str, Any]:
    """What a model needs of a result; what is empty is left out."""
    answer: dict[str, Any] = {"outcome": result.outcome}
    if result.has_value:
        answer["value"] = result.value
    if result.error is not None:
        said = {name: getattr(result.error, name) for name in ("code", "name", "message", "line", "excerpt", "hint")}
        answer["error"] = {name: value for name, value in said.items() if value is not None}
    for name in ("stdout", "stderr"):
        if getattr(result, name):
            answer[name] = getattr(result, name)
    if result.warnings:
        answer["warnings"] = [warning.message for warning in result.warnings]
    # What was done, when that is not for the value to say.
    if not result.succeeded and result.calls:
        answer["calls"] = [{"function": call.function, "state": call.state} for call in result.calls]
    return answer
