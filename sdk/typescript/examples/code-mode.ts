// Code Mode: the model writes one program instead of many tool calls.
import { evaluate, hostFunction } from "brig";
import { z } from "zod";

const store = {
  listOrders: hostFunction({
    inputSchema: z.object({ customer: z.string() }).describe("List a customer's orders."),
    outputSchema: z.array(z.object({ id: z.string(), total: z.number(), status: z.enum(["shipped", "pending"]) })),
    effect: "read",
    execute: ({ customer }) =>
      customer === "customer_123"
        ? [
            { id: "o_1", total: 40, status: "shipped" as const },
            { id: "o_2", total: 2, status: "pending" as const },
          ]
        : [],
  }),
  refund: hostFunction({
    inputSchema: z.object({ orderId: z.string() }).describe("Refund one order."),
    // The same key at every delivery: a payment provider pays once.
    execute: ({ orderId }, { idempotencyKey }) => ({ orderId, refunded: idempotencyKey !== "" }),
  }),
};

const generated = `
  const orders = await store.listOrders({ customer: inputs.customer });
  const pending = orders.filter((order) => order.status === "pending");
  for (const order of pending) await store.refund({ orderId: order.id });
  return { refunded: pending.length, total: pending.reduce((sum, order) => sum + order.total, 0) };
`;

const result = await evaluate<{ refunded: number; total: number }>(generated, {
  hostFunctions: { store },
  inputs: { customer: "customer_123" },
  permissions: { hostFunction: "allow" },
  timeoutMs: 5_000,
});

console.log(result.outcome === "succeeded" ? JSON.stringify(result.value) : result.error.message);
