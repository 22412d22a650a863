//! Refunds the pending orders of a customer: one program, two host functions, and the
//! "credentials" (here: the table of orders) stay in this process.
//!
//! `cargo run -p brig --example refund`; needs `brigd` and `brig-worker` beside the
//! other binaries of this workspace, in `BRIGD`, or on `PATH`.

use brig::{Client, Effect, Evaluate, Function, FunctionError, HostFunctions, StartOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the model would write.
const PROGRAM: &str = r#"
    const list = await orders.list({ customer: inputs.customer });
    const pending = list.filter((order) => order.status === "pending");
    await Promise.all(pending.map((order) => orders.refund({ orderId: order.id })));
    return { refunded: pending.length, total: pending.reduce((sum, order) => sum + order.total, 0) };
"#;

#[derive(Clone, Serialize)]
struct Order {
    id: &'static str,
    customer: &'static str,
    total: u32,
    status: &'static str,
}

#[derive(Deserialize)]
struct ListInput {
    customer: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefundInput {
    order_id: String,
}

type Orders = Arc<Mutex<Vec<Order>>>;

fn list(orders: Orders) -> Function {
    Function::new(move |input: ListInput, _call| {
        let orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Order> = orders.iter().filter(|order| order.customer == input.customer).cloned().collect();
        std::future::ready(Ok(found))
    })
    .description("List a customer's orders.")
    .input_schema(json!({"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}))
    .effect(Effect::Read)
}

fn refund(orders: Orders) -> Function {
    Function::new(move |input: RefundInput, _call| {
        let mut orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
        std::future::ready(match orders.iter_mut().find(|order| order.id == input.order_id) {
            Some(order) if order.status == "pending" => {
                order.status = "refunded";
                Ok(json!({"orderId": order.id, "refunded": true}))
            }
            Some(order) => Err(FunctionError::new("not_pending", format!("order {} is {}", order.id, order.status))),
            None => Err(FunctionError::new("not_found", format!("there is no order {}", input.order_id))),
        })
    })
    .description("Refund one pending order.")
    .input_schema(json!({"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}))
    .timeout(Duration::from_secs(5))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders: Orders = Arc::new(Mutex::new(vec![
        Order { id: "o_1", customer: "customer_123", total: 40, status: "shipped" },
        Order { id: "o_2", customer: "customer_123", total: 2, status: "pending" },
    ]));
    let functions =
        HostFunctions::new().collection("orders").add("list", list(Arc::clone(&orders))).add("refund", refund(Arc::clone(&orders)));

    let client = Client::connect_or_start(StartOptions::new()).await?;
    let evaluate =
        Evaluate::new(PROGRAM).inputs(json!({"customer": "customer_123"})).host_functions(functions).timeout(Duration::from_secs(5));
    let result = client.evaluate(evaluate).await?;
    match (&result.value, &result.error) {
        (Some(value), _) => println!("{value}"),
        (None, Some(error)) => eprintln!("{}: {}", error.code, error.message),
        (None, None) => println!("undefined"),
    }
    for call in &result.calls {
        eprintln!("{} {}: {:?} in {:.2} ms", call.call, call.function, call.state, call.duration_ms);
    }
    client.close().await;
    Ok(())
}
