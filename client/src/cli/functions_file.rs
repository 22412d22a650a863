//! `functions.json`: host functions whose handlers are commands or fixed values.
//!
//! Owns the shape of the file. Never runs anything: [`super::command_handler`] does.
//!
//! ```json
//! {"orders": {"list": {
//!     "description": "List a customer's orders.",
//!     "inputSchema": {"type": "object", "required": ["customer"]},
//!     "effect": "read",
//!     "command": ["./list-orders.sh", "--json"]
//! }}}
//! ```

use super::Fault;
use super::command_handler::Handler;
use super::read;
use brig::protocol::client::FunctionMap;
use brig::protocol::escape::ShowPath as _;
use brig::protocol::{limits, names};
use brig::{Effect, Function, HostCall, HostFunctions};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One function of the file: its members as they stand.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FunctionText {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    output_schema: Option<Box<RawValue>>,
    #[serde(default)]
    examples: Vec<ExampleText>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    effect: Option<Effect>,
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    r#static: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleText {
    #[serde(default)]
    description: String,
    input: Box<RawValue>,
    #[serde(default)]
    output: Option<Box<RawValue>>,
}

/// Who answers.
#[derive(Clone, Debug)]
enum Answer {
    /// A command with its arguments.
    Command(Vec<String>),
    /// Always the same value, for demonstrations.
    Static(Box<RawValue>),
}

/// `null` is a value like any other.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl FunctionText {
    /// Who answers, or what is wrong with the function.
    fn take_answer(&mut self) -> Result<Answer, String> {
        if self.timeout_ms.is_some_and(|time| time == 0 || time > limits::FUNCTION_TIMEOUT_MAX_MS) {
            return Err(format!("\"timeoutMs\" must be between 1 and {}", limits::FUNCTION_TIMEOUT_MAX_MS));
        }
        match (self.command.take(), self.r#static.take()) {
            (Some(command), None) if command.first().is_none_or(String::is_empty) => {
                Err("\"command\" must name a program: [\"./handler.sh\", \"argument\"]".to_owned())
            }
            (Some(command), None) => Ok(Answer::Command(command)),
            (None, Some(value)) => Ok(Answer::Static(value)),
            (None, None) => Err("a function needs a \"command\" (a program with its arguments) or a \"static\" value".to_owned()),
            (Some(_), Some(_)) => Err("a function has a \"command\" or a \"static\" value, not both".to_owned()),
        }
    }
}

/// Reads the files and makes host functions of them. A function that two files declare
/// is a mistake.
pub(crate) fn load(paths: &[PathBuf]) -> Result<HostFunctions, Fault> {
    let mut functions = HostFunctions::new();
    for path in paths {
        functions = load_one(path, functions)?;
    }
    Ok(functions)
}

fn load_one(path: &Path, mut functions: HostFunctions) -> Result<HostFunctions, Fault> {
    let text = read::text(path, "functions", limits::REQUEST_LINE_BYTES)?;
    let FunctionMap(collections) = read::json::<FunctionMap<FunctionMap<&RawValue>>>(&text)?;
    let folder = folder_of(path)?;
    let declared: std::collections::HashSet<String> = functions.names().collect();
    for (collection, FunctionMap(entries)) in collections {
        let named = |why: String| Fault::usage(format!("{}: {why}", text.name));
        names::check_collection(&collection).map_err(|fault| named(format!("collection {collection:?}: {fault}")))?;
        let mut open = functions.collection(collection.clone());
        for (name, raw) in entries {
            let full_name = format!("{collection}.{name}");
            let wrong = |why: &str| read::wrong(&text, raw.get(), &format!("function {full_name:?}: {why}"));
            names::check_function(&name).map_err(|fault| wrong(&fault.to_string()))?;
            if declared.contains(&full_name) {
                return Err(wrong("another file declares it already"));
            }
            let mut entry: FunctionText = read::part(&text, raw.get())?;
            let answer = entry.take_answer().map_err(|why| wrong(&why))?;
            open = open.add(name, function(entry, answer, &folder));
        }
        functions = open.finish();
    }
    Ok(functions)
}

/// The directory in which a file's commands run.
fn folder_of(path: &Path) -> Result<PathBuf, Fault> {
    let file = if path.as_os_str() == "-" { PathBuf::from(".") } else { path.parent().unwrap_or(Path::new(".")).to_owned() };
    let folder = if file.as_os_str().is_empty() { PathBuf::from(".") } else { file };
    std::fs::canonicalize(&folder).map_err(|fault| Fault::usage(format!("the directory of {} can not be found: {fault}", path.shown())))
}

fn function(text: FunctionText, answer: Answer, folder: &Path) -> Function {
    let mut function = match answer {
        Answer::Static(value) => {
            let value: Arc<RawValue> = value.into();
            Function::new(move |_: Box<RawValue>, _| std::future::ready(Ok(Arc::clone(&value))))
        }
        Answer::Command(command) => {
            let handler = Arc::new(Handler::new(command, folder.to_owned()));
            Function::new(move |input: Box<RawValue>, call: HostCall| {
                let handler = Arc::clone(&handler);
                async move { handler.answer(&input, &call).await }
            })
        }
    };
    if let Some(description) = text.description {
        function = function.description(description);
    }
    if let Some(schema) = text.input_schema {
        function = function.input_schema(schema);
    }
    if let Some(schema) = text.output_schema {
        function = function.output_schema(schema);
    }
    for example in text.examples {
        function = match example.output {
            Some(output) => function.example_with_output(example.description, example.input, output),
            None => function.example(example.description, example.input),
        };
    }
    if let Some(time) = text.timeout_ms {
        function = function.timeout(Duration::from_millis(time));
    }
    if let Some(effect) = text.effect {
        function = function.effect(effect);
    }
    function
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn loaded(text: &str) -> Result<HostFunctions, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions.json");
        std::fs::write(&path, text).unwrap();
        load(&[path])
    }

    fn told(text: &str) -> String {
        loaded(text).unwrap_err().message
    }

    #[test]
    fn functions_are_read_with_all_their_members() {
        let text = r#"{"orders": {"list": {"description": "x", "inputSchema": {}, "outputSchema": {}, "timeoutMs": 5,
            "effect": "read", "examples": [{"description": "one", "input": {}, "output": []}], "command": ["./a"]}},
            "fixed": {"nothing": {"static": null}}}"#;
        let names: Vec<String> = loaded(text).unwrap().names().collect();
        assert_eq!(names, ["orders.list", "fixed.nothing"]);
    }

    #[test]
    fn a_function_without_a_handler_or_with_two_is_refused_with_its_line() {
        let none = told("{\"a\": {\n \"b\": {}\n}}");
        assert!(none.contains(":2:7:") && none.contains("a.b") && none.contains("\"command\""), "{none}");
        let two = told(r#"{"a": {"b": {"command": ["x"], "static": 1}}}"#);
        assert!(two.contains("not both"), "{two}");
        let empty = told(r#"{"a": {"b": {"command": []}}}"#);
        assert!(empty.contains("must name a program"), "{empty}");
    }

    #[test]
    fn misspelt_members_wrong_names_and_doubles_are_refused() {
        assert!(told(r#"{"a": {"b": {"comand": ["x"]}}}"#).contains("comand"));
        assert!(told(r#"{"a b": {"b": {"static": 1}}}"#).contains("can not be part of a name"));
        assert!(told(r#"{"a": {"b": {"static": 1}, "b": {"static": 2}}}"#).contains("comes twice"));
        assert!(told(r#"{"a": {"b": {"static": 1, "timeoutMs": 0}}}"#).contains("timeoutMs"));
        assert!(told(r#"{"a": {"b": {"static": 1, "effect": "none"}}}"#).contains("none"));
    }

    #[test]
    fn two_files_can_share_a_collection_but_not_a_function() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let one = file("one", r#"{"a": {"x": {"static": 1}}}"#);
        let two = file("two", r#"{"a": {"y": {"static": 1}}}"#);
        assert_eq!(load(&[one.clone(), two]).unwrap().names().count(), 2);
        assert!(load(&[one.clone(), one]).unwrap_err().message.contains("another file declares"));
    }
}
