//! The server side of the Model Context Protocol.
//!
//! Owns which tools there are, what their arguments must be, and that a program that waits
//! is its session's own. What there is to call is the same for every session: [`Link`]'s.

use super::catalogue::Catalogue;
use super::execute::{self, Program, Settings};
use super::link::{Link, Now};
use super::report;
use super::waiting::{Heard, Kept, Running};
use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The tools. Cheap to clone.
#[derive(Clone)]
pub(super) struct Server {
    link: Arc<Link>,
    settings: Arc<Settings>,
    /// What waits for this session, and ends with it.
    kept: Arc<Kept>,
    /// What waits for requests that belong to no session, as newer clients send them over
    /// HTTP: who knows its id may ask for it.
    unbound: Arc<Kept>,
}

/// The header by which a request over HTTP says its session.
const SESSION_HEADER: &str = "mcp-session-id";

/// Least wait for a person before room is looked for again.
const FULL: Duration = Duration::from_secs(1);

impl Server {
    /// Over this connection.
    pub(super) fn new(link: Arc<Link>, settings: Settings) -> Self {
        Self { link, settings: Arc::new(settings), kept: Arc::default(), unbound: Arc::default() }
    }

    /// The same, for another session.
    pub(super) fn for_session(&self) -> Self {
        Self { kept: Arc::default(), ..self.clone() }
    }

    /// The programs that a request may ask for.
    fn kept(&self, context: &RequestContext<RoleServer>) -> &Kept {
        match context.extensions.get::<Parts>() {
            Some(request) if !request.headers.contains_key(SESSION_HEADER) => &self.unbound,
            _ => &self.kept,
        }
    }

    async fn execute(&self, now: &Now, arguments: JsonObject, context: &RequestContext<RoleServer>) -> CallToolResult {
        let running = match asked(arguments) {
            Ok(Asked::Program(program)) => {
                let sources = self.link.sources();
                let may = (sources.declared(), sources.permissions(&now.catalogue));
                Box::new(execute::begin(&now.client, may, &self.settings, program, context))
            }
            Ok(Asked::Evaluation(id)) => match self.kept(context).take(&id) {
                Some(running) => running,
                None => return report::not_kept(&id),
            },
            Err(why) => return report::wrong(&why),
        };
        self.heard(running, context).await
    }

    /// The end of a program, or that it waits for a person.
    async fn heard(&self, mut running: Box<Running>, context: &RequestContext<RoleServer>) -> CallToolResult {
        let mut patience = self.settings.pending_after;
        loop {
            running = match running.wait(patience, context).await {
                Heard::Ended(answer) => return answer.map_or_else(|error| report::failure(&error), |result| report::result(&result)),
                Heard::Waits(running) => {
                    let asked = running.asked().to_vec();
                    match self.kept(context).keep(running) {
                        Ok(id) => return report::pending(&id, &asked),
                        // There is no room to keep it: the model waits on, and not in a spin.
                        Err(running) => {
                            patience = patience.max(FULL);
                            running
                        }
                    }
                }
            }
        }
    }

    async fn describe(&self, now: &Now, arguments: &JsonObject) -> CallToolResult {
        let wanted = match strings(arguments, "functions") {
            Ok(wanted) => wanted,
            Err(why) => return report::wrong(&why),
        };
        let entries = match now.catalogue.named(&wanted) {
            Ok(entries) => entries,
            Err(why) => return report::wrong(&why),
        };
        match self.link.sources().describe(&now.client, &entries).await {
            Ok(text) => text_result(text),
            Err(error) => report::failure(&error),
        }
    }
}

fn search(catalogue: &Catalogue, arguments: &JsonObject) -> CallToolResult {
    match arguments.get("query").and_then(Value::as_str) {
        None => report::wrong("search takes {\"query\": \"words for what you need\"}"),
        Some(query) => match catalogue.search(query).as_slice() {
            [] => text_result(format!("nothing fits {query:?}; use other words")),
            found => text_result(found.join("\n")),
        },
    }
}

fn text_result(text: String) -> CallToolResult {
    CallToolResult::success(vec![rmcp::model::ContentBlock::text(text)])
}

/// What `execute` is asked.
enum Asked {
    /// To run this.
    Program(Program),
    /// How the program went on that was waiting for a person.
    Evaluation(String),
}

fn asked(mut arguments: JsonObject) -> Result<Asked, String> {
    let form = "execute takes {\"code\": \"the program\", \"inputs\": {…}}; inputs may be left out";
    let later = "{\"evaluation\": \"ev_…\"} alone asks for a program that waits for approval";
    if let Some(evaluation) = arguments.remove("evaluation").filter(|evaluation| !evaluation.is_null()) {
        return match evaluation {
            Value::String(id) if arguments.values().all(Value::is_null) => Ok(Asked::Evaluation(id)),
            _ => Err(format!("\"evaluation\" must be a string, and nothing may be beside it. {form}; {later}")),
        };
    }
    let code = match arguments.remove("code") {
        Some(Value::String(code)) => code,
        Some(_) => return Err(format!("\"code\" must be a string. {form}")),
        None => return Err(format!("there is no \"code\". {form}; {later}")),
    };
    let inputs = match arguments.remove("inputs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(inputs)) => Some(inputs),
        Some(_) => return Err(format!("\"inputs\" must be an object. {form}")),
    };
    match arguments.keys().next() {
        Some(odd) => Err(format!("there is no argument {odd:?}. {form}; {later}")),
        None => Ok(Asked::Program(Program { code, inputs })),
    }
}

fn strings(arguments: &JsonObject, name: &str) -> Result<Vec<String>, String> {
    let form = || format!("describe takes {{\"{name}\": [\"collection.function\", …]}}");
    let list = arguments.get(name).and_then(Value::as_array).ok_or_else(form)?;
    list.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(form)).collect()
}

/// The tools over a catalogue.
fn tools(catalogue: &Catalogue) -> Vec<Tool> {
    let code = json!({"type": "string", "description": "The program."});
    let inputs =
        json!({"type": "object", "description": "The global `inputs` of the program: pass data here instead of writing it into the code."});
    let evaluation = json!({"type": "string", "description": "Instead of code: the id of a program that waits for approval."});
    let execute = schema(json!({"code": code, "inputs": inputs, "evaluation": evaluation}), &[]);
    let mut tools = vec![
        Tool::new("execute", catalogue.text.clone(), execute)
            .with_title("Run a program")
            .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)),
    ];
    if !catalogue.full {
        let looks = || ToolAnnotations::new().read_only(true).open_world(false);
        let query = json!({"query": {"type": "string", "description": "Words for what is needed, such as \"refund an order\"."}});
        let names = json!({"functions": {"type": "array", "items": {"type": "string"}, "description": "Names, such as \"orders.list\" or \"orders.*\"."}});
        tools.push(
            Tool::new(
                "search",
                "Find functions for `execute` by words; gives names with a line on each, best first.",
                schema(query, &["query"]),
            )
            .with_title("Find functions")
            .with_annotations(looks()),
        );
        tools.push(
            Tool::new(
                "describe",
                "TypeScript declarations of functions, to be read before a program calls them.",
                schema(names, &["functions"]),
            )
            .with_title("Read declarations")
            .with_annotations(looks()),
        );
    }
    tools
}

fn schema(properties: Value, required: &[&str]) -> JsonObject {
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if let Value::Object(schema) = schema { schema } else { JsonObject::new() }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("brig", env!("CARGO_PKG_VERSION")))
            .with_instructions("One tool, execute, runs a program that calls functions; write one program for a whole task.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let now = self.link.newest().await.map_err(|fault| ErrorData::internal_error(crate::cli::render::client_error(&fault), None))?;
        Ok(ListToolsResult::with_all_items(tools(&now.catalogue)))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let now = match self.link.now().await {
            Ok(now) => now,
            Err(fault) => return Ok(report::failure(&fault).into()),
        };
        let arguments = request.arguments.unwrap_or_default();
        let result = match (request.name.as_ref(), now.catalogue.full) {
            ("execute", _) => self.execute(&now, arguments, &context).await,
            ("search", false) => search(&now.catalogue, &arguments),
            ("describe", false) => self.describe(&now, &arguments).await,
            (name, _) => {
                let names: Vec<String> = tools(&now.catalogue).iter().map(|tool| tool.name.to_string()).collect();
                let name = brig::protocol::escape::escaped(name, 100);
                return Err(ErrorData::invalid_params(format!("there is no tool {name:?}; there are {}", names.join(", ")), None));
            }
        };
        Ok(result.into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.link.remember(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let wanted = SubscriptionFilter::builder();
        Some(if requested.tools_list_changed == Some(true) { wanted.tools_list_changed().build() } else { wanted.build() })
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.link.changes();
        let mut before = Arc::clone(&changes.borrow_and_update().catalogue);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            let now = Arc::clone(&changes.borrow_and_update().catalogue);
            if *now != *before {
                // A session that is gone does not need to know.
                context.sink().notify_tool_list_changed().await.ok();
                before = now;
            }
        }
    }
}
