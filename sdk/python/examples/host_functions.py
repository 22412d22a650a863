"""Host functions: the program asks for orders; the credentials stay here."""

import brig

# What a model would send. Each collection is a global, each function is async.
PROGRAM = """
  const list = await orders.list({ customer: inputs.customer });
  return list.reduce((sum, order) => sum + order.amount, 0);
"""

AMOUNTS = {"customer_123": [40, 2]}

functions = brig.HostFunctions()


@functions.function("orders.list", effect="read")
def list_orders(customer: str) -> list[dict[str, object]]:
    """List a customer's orders."""
    return [{"customer": customer, "amount": amount} for amount in AMOUNTS.get(customer, [])]


total = brig.evaluate(
    PROGRAM,
    host_functions=functions,
    inputs={"customer": "customer_123"},
    timeout_ms=5_000,
    output={"capture": "stderr"},
)

print(total.value if total.succeeded else total.stderr)
