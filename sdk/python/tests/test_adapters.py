"""One tool for each framework, against the frameworks themselves."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import brig
from brig.adapters import langchain, pydantic_ai

pytestmark = pytest.mark.usefixtures("private")

functions = brig.HostFunctions()


@functions.function("orders.list", effect="read")
def list_orders(customer: str) -> list[dict[str, int]]:
    """List a customer's orders."""
    return [{"amount": 40}, {"amount": 2}]


PROGRAM = "const list = await orders.list({customer: 'c'}); return list.reduce((sum, order) => sum + order.amount, 0)"


def test_a_pydantic_ai_agent_runs_programs_with_one_tool() -> None:
    told: list[AgentInfo] = []
    answers: list[Any] = []
    programs = [PROGRAM, "throw new Error('no')"]

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info)
        answers.extend(part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart))
        if programs:
            return ModelResponse(parts=[ToolCallPart("execute", {"source": programs.pop(0)})])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(model), tools=[pydantic_ai.brig_tool(host_functions=functions, timeout_ms=5_000)])
    assert agent.run_sync("go").output == "done"
    [tool] = told[0].function_tools
    assert tool.name == "execute" and list(tool.parameters_json_schema["properties"]) == ["source"]
    assert "list(input: { customer: string }): Promise<Record<string, number>[]>;" in (tool.description or "")
    assert answers[0] == {"outcome": "succeeded", "value": 42}
    assert answers[1]["outcome"] == "failed" and answers[1]["error"]["message"] == "no"


def test_a_langchain_tool_runs_programs_for_code_that_blocks_and_code_that_awaits() -> None:
    tool = langchain.brig_tool(host_functions=functions, timeout_ms=5_000)
    assert tool.name == "execute" and list(tool.args) == ["source"] and "List a customer's orders." in tool.description
    assert json.loads(tool.invoke({"source": PROGRAM})) == {"outcome": "succeeded", "value": 42}
    called = asyncio.run(tool.ainvoke({"type": "tool_call", "id": "1", "name": "execute", "args": {"source": "console.log('x')"}}))
    assert isinstance(called, ToolMessage)
    assert json.loads(str(called.content)) == {"outcome": "succeeded", "stdout": "x\n"}
