"""brig as one tool of a Pydantic AI agent. Needs ``brig[pydantic-ai]``.

Owns the tool object. What runs, runs in brigd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

from ..declarations import tool_description
from ..shared import evaluate_async
from .answers import SOURCE_DESCRIPTION, TOOL_NAME, answer_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import SharedEvaluateOptions


def brig_tool(*, name: str = TOOL_NAME, description: str | None = None, **options: Unpack[SharedEvaluateOptions]) -> Tool[Any]:
    """The tool. ``options`` are those of ``brig.evaluate`` and hold for every program.

    ``description``: what the model is told; left out, it is made of the host functions.
    """

    async def execute(source: str) -> dict[str, Any]:
        return answer_of(await evaluate_async(source, **options))

    schema = {
        "type": "object",
        "properties": {"source": {"type": "string", "description": SOURCE_DESCRIPTION}},
        "required": ["source"],
        "additionalProperties": False,
    }
    text = description or tool_description(options.get("host_functions"))
    tool: Tool[Any] = Tool.from_schema(execute, name=name, description=text, json_schema=schema)
    return tool
