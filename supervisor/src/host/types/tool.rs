//! The one tool that a model is offered.
//!
//! Owns the words. Never longer than it must be: every model reads it at every turn.

use brig_protocol::client::ToolText;

/// Its name.
const NAME: &str = "execute";

/// How to write a program; the declarations follow.
pub(crate) const HOW: &str = "\
Run one JavaScript or TypeScript program and get its value. Do the whole task in one program: \
await the functions declared below, combine and filter their results in code, and give back only what is needed.

- The value is that of the last expression, or of `return`. It has to be JSON; console output comes back too.
- Top-level await works. `Promise.all` makes calls at the same time.
- A function takes one object and gives a promise. A call that is refused or fails throws a `HostError` with `code`, `message` and `data`.
- There are the standard library, console, timers, URL, TextEncoder, crypto and Intl. There is no network, no file, no process, \
no import or require: the functions are the only way out.
- Nothing is kept from one program to the next. If one fails, the calls that it made are listed and are not undone.
";

/// The tool over these declarations.
pub(crate) fn text(declarations: &str) -> ToolText {
    ToolText { name: NAME.to_owned(), description: format!("{HOW}\n```ts\n{declarations}```\n") }
}
