// Refunds every pending order of one customer. One program instead of a tool call for
// each step; the host functions keep their credentials outside.
const list = await orders.list({ customer: inputs.customer });
const pending = list.filter((order) => order.status === "pending");
await Promise.all(pending.map((order) => orders.refund({ orderId: order.id })));
return { refunded: pending.length, total: pending.reduce((sum, order) => sum + order.total, 0) };
