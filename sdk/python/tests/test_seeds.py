"""The programs of the seed documents run as they stand, with functions of the same names in Python."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE

import brig

#: Where the seed documents may lie; their programs are taken out of them where they do.
SEEDS = Path(os.environ.get("BRIG_SEEDS") or PACKAGE.parent.parent / "../shared/seeds")
here = pytest.mark.skipif(not SEEDS.exists(), reason="no seed documents here")


def document(name: str) -> str:
    return (SEEDS / name).read_text()


def template(text: str, before: str) -> str:
    """The template literal that follows ``before``."""
    found = re.search(re.escape(before) + r"\s*`([^`]*)`", text)
    assert found, f"no program follows {before!r}"
    return found.group(1)


def options_of(text: str) -> dict[str, Any]:
    """The options of the document's call that are no functions, by their names here."""
    customer, timeout, capture = (
        re.search(pattern, text) for pattern in (r'inputs: \{ customer: "(\w+)" \}', r"timeoutMs: ([\d_]+)", r'capture: "(\w+)"')
    )
    assert customer and timeout and capture
    return {"inputs": {"customer": customer[1]}, "timeout_ms": int(timeout[1]), "output": {"capture": capture[1]}}


@here
def test_the_program_of_the_document_on_host_functions_gives_what_it_says(private: str) -> None:
    text = document("host-functions.md")

    def orders(customer: str) -> list[dict[str, Any]]:
        """List a customer's orders."""
        return [{"customer": customer, "amount": 40}, {"customer": customer, "amount": 2}]

    result = brig.evaluate(template(text, "const generated ="), host_functions={"orders": {"list": orders}}, **options_of(text))
    [said] = re.findall(r"console\.log\(.*\); // (\d+)$", text, re.MULTILINE)
    assert result.succeeded and result.value == int(said), result


@here
def test_the_program_of_the_document_on_code_mode_gives_what_it_says(private: str) -> None:
    text = document("code-mode.md")
    refunded: list[str] = []

    def list_orders(customer: str) -> list[dict[str, Any]]:
        """List a customer's orders."""
        shipped = {"id": "o_1", "customer": customer, "total": 40, "status": "shipped"}
        return [shipped, {"id": "o_2", "customer": customer, "total": 2, "status": "pending"}]

    def refund(orderId: str) -> dict[str, Any]:
        """Refund one order."""
        refunded.append(orderId)
        return {"orderId": orderId, "refunded": True}

    wrapped = template(text, "await evaluate<{ refunded: number; total: number }>(")
    program = wrapped.replace("${generated}", template(text, "const generated ="))
    store = {"listOrders": list_orders, "refund": refund}
    result = brig.evaluate(program, host_functions={"store": store}, **options_of(text))
    [said] = re.findall(r"^// (\{ refunded.*\})$", text, re.MULTILINE)
    assert result.succeeded and result.value == json.loads(re.sub(r"(\w+):", r'"\1":', said)), result
    assert refunded == ["o_2"]
