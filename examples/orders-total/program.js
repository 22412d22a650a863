// Adds up the orders of one customer.
const list = await orders.list({ customer: inputs.customer });
return list.reduce((sum, order) => sum + order.amount, 0);
