//! Stand-in with the signature of the program normaliser.

pub use brig_protocol::client::{Form, Language};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub code: String,
    pub mode: Mode,
    pub map: PositionMap,
    pub globals: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Script,
    Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    pub kind: SourceErrorKind,
    pub message: String,
    pub line: u32,
    pub column: u32,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceErrorKind {
    Syntax,
    Import,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionMap {
    shift: u32,
}

impl PositionMap {
    pub fn original(&self, line: u32, column: u32) -> (u32, u32) {
        (line, if line == 1 { column.saturating_sub(self.shift).max(1) } else { column })
    }
}

const HEAD: &str = "(async () => { ";

pub fn prepare(text: &str, _form: Form, _language: Language, _kept_vm: bool) -> Result<Program, SourceError> {
    let body = text.contains("return");
    let code = if body { format!("{HEAD}{text}\n}})()") } else { text.to_owned() };
    let mode = if body { Mode::Body } else { Mode::Script };
    let shift = if body { u32::try_from(HEAD.len()).unwrap_or(0) } else { 0 };
    Ok(Program { code, mode, map: PositionMap { shift }, globals: Vec::new() })
}
