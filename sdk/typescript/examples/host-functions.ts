// Host functions: the program asks for orders; the credentials stay here.
import { evaluate } from "brig";
import { z } from "zod";

// What a model would send. Each collection is a global, each function is async.
const program = `
  const list = await orders.list({ customer: inputs.customer });
  return list.reduce((sum, order) => sum + order.amount, 0);
`;

const amounts: Record<string, number[]> = { customer_123: [40, 2] };

const total = await evaluate<number>(program, {
  hostFunctions: {
    orders: {
      list: {
        inputSchema: z.object({ customer: z.string() }).describe("List a customer's orders."),
        execute: ({ customer }) => (amounts[customer] ?? []).map((amount) => ({ customer, amount })),
      },
    },
  },
  inputs: { customer: "customer_123" },
  timeoutMs: 5_000,
  output: { capture: "stderr" },
});

console.log(total.outcome === "succeeded" ? total.value : (total.error.message, total.stderr));
