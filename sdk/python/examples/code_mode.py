"""Code Mode: the model writes one program instead of many tool calls."""

import asyncio
import json
from dataclasses import dataclass
from typing import Literal

import brig

functions = brig.HostFunctions()


@dataclass
class Order:
    id: str
    total: float
    status: Literal["shipped", "pending"]


ORDERS = {"customer_123": [Order("o_1", 40, "shipped"), Order("o_2", 2, "pending")]}


@functions.collection("store")
class Store:
    @brig.function("listOrders", effect="read")
    async def list_orders(self, customer: str) -> list[Order]:
        """List a customer's orders."""
        return ORDERS.get(customer, [])

    @brig.function("refund")
    async def refund(self, orderId: str, context: brig.CallContext) -> dict[str, object]:
        """Refund one order."""
        # The same key at every delivery: a payment provider pays once.
        return {"orderId": orderId, "refunded": context.idempotency_key != ""}


GENERATED = """
  const orders = await store.listOrders({ customer: inputs.customer });
  const pending = orders.filter((order) => order.status === "pending");
  for (const order of pending) await store.refund({ orderId: order.id });
  return { refunded: pending.length, total: pending.reduce((sum, order) => sum + order.total, 0) };
"""


async def main() -> None:
    result = await brig.evaluate_async(
        GENERATED,
        host_functions=functions,
        inputs={"customer": "customer_123"},
        permissions={"host_function": "allow"},
        timeout_ms=5_000,
    )
    print(json.dumps(result.value) if result.succeeded else result.error)


asyncio.run(main())
