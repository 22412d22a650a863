"""brig as one LangChain tool, for code that blocks and code that awaits. Needs ``brig[langchain]``.

Owns the tool object. What runs, runs in brigd.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field

from ..declarations import tool_description
from ..shared import evaluate, evaluate_async
from .answers import SOURCE_DESCRIPTION, TOOL_NAME, answer_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import SharedEvaluateOptions


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    source: Annotated[str, Field(description=SOURCE_DESCRIPTION)]


def brig_tool(*, name: str = TOOL_NAME, description: str | None = None, **options: Unpack[SharedEvaluateOptions]) -> StructuredTool:
    """The tool; it answers with JSON text. ``options`` are those of ``brig.evaluate``.

    ``description``: what the model is told; left out, it is made of the host functions.
    """

    def run(source: str) -> str:
        return json.dumps(answer_of(evaluate(source, **options)), ensure_ascii=False)

    async def run_async(source: str) -> str:
        return json.dumps(answer_of(await evaluate_async(source, **options)), ensure_ascii=False)

    return StructuredTool.from_function(
        func=run,
        coroutine=run_async,
        name=name,
        description=description or tool_description(options.get("host_functions")),
        args_schema=_Arguments,
    )
