//! A type as text.
//!
//! Owns layout: what fits on a line stays on one. Never drops or changes a type.

use super::ast::{Member, Object, Type, union};
use super::words;

/// Longest object that stays on one line, in bytes.
const LINE_BYTES: usize = 100;

/// Where a text goes.
#[derive(Clone, Copy)]
enum Layout {
    /// On one line, whatever its length: whoever asks sees whether it fits. Each object is
    /// tried so once for every one around it, never twice at each level.
    Line,
    /// To a place that is indented by so many levels.
    At(usize),
}

/// A type as text, for a place that is indented by so many levels.
pub(super) fn text(kind: &Type, level: usize) -> String {
    laid_out(kind, Layout::At(level))
}

fn laid_out(kind: &Type, level: Layout) -> String {
    match kind {
        Type::Word(word) => (*word).to_owned(),
        Type::Literal(text, _) | Type::Named(text) => text.clone(),
        Type::Object(object) => object_text(object, level),
        Type::List(item) => format!("{}[]", bracketed(item, level)),
        Type::Tuple { items, rest } => tuple(items, rest.as_deref(), level),
        Type::Union(parts) => joined(parts, " | ", level),
        Type::All(parts) => joined(parts, " & ", level),
        Type::Noted(kind, note) => format!("{} /* {note} */", laid_out(kind, level)),
    }
}

fn joined(parts: &[Type], between: &str, level: Layout) -> String {
    parts.iter().map(|part| bracketed(part, level)).collect::<Vec<_>>().join(between)
}

/// A type that something follows.
fn bracketed(kind: &Type, level: Layout) -> String {
    match kind {
        Type::Union(_) | Type::All(_) | Type::Noted(..) => format!("({})", laid_out(kind, level)),
        _ => laid_out(kind, level),
    }
}

fn tuple(items: &[(Type, bool)], rest: Option<&Type>, level: Layout) -> String {
    let item = |(kind, optional): &(Type, bool)| if *optional { format!("{}?", bracketed(kind, level)) } else { laid_out(kind, level) };
    let all = items.iter().map(item).chain(rest.map(|rest| format!("...{}[]", bracketed(rest, level))));
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

fn object_text(object: &Object, layout: Layout) -> String {
    let line = on_a_line(object);
    let level = match (layout, line) {
        (_, Some(line)) => return line,
        (Layout::At(level), None) => level,
        // What is around it does not fit either.
        (Layout::Line, None) => return "\n".to_owned(),
    };
    let pad = "  ".repeat(level + 1);
    let mut out = String::from("{\n");
    let docs = object.members.iter().map(|member| member.doc.as_slice()).chain(std::iter::repeat(&[][..]));
    for (part, doc) in parts(object, Layout::At(level + 1)).zip(docs) {
        out.push_str(&comment(doc, level + 1));
        out.push_str(&format!("{pad}{part};\n"));
    }
    out.push_str(&"  ".repeat(level));
    out.push('}');
    out
}

/// An object on one line, if it fits there.
fn on_a_line(object: &Object) -> Option<String> {
    if object.members.iter().any(|member| !member.doc.is_empty()) {
        return None;
    }
    let mut line = String::from("{");
    for part in parts(object, Layout::Line) {
        line.push_str(if line.len() == 1 { " " } else { "; " });
        line.push_str(&part);
        if line.len() > LINE_BYTES || part.contains('\n') {
            return None;
        }
    }
    line.push_str(if line.len() == 1 { "}" } else { " }" });
    (line.len() <= LINE_BYTES).then_some(line)
}

fn parts(object: &Object, level: Layout) -> impl Iterator<Item = String> {
    let members = object.members.iter().map(move |member| {
        let readonly = if member.readonly { "readonly " } else { "" };
        let mark = if member.required { "" } else { "?" };
        format!("{readonly}{}{mark}: {}", words::member_name(&member.name), laid_out(&member.value, level))
    });
    members.chain(index(object, level))
}

/// Members that are not listed. An index signature holds for the listed ones too, so its
/// type has to take them.
fn index(object: &Object, level: Layout) -> Option<String> {
    let others = object.others.as_deref()?;
    if let (Some(keys), true) = (&object.keys, object.members.is_empty()) {
        return Some(format!("[name in {}]?: {}", laid_out(keys, level), laid_out(others, level)));
    }
    let note = object.keys_note.as_ref().map(|note| format!(" /* {note} */")).unwrap_or_default();
    let is_simple = |member: &Member| matches!(member.value, Type::Word(_) | Type::Literal(..) | Type::Named(_) | Type::List(_));
    let few = object.members.len() <= 4 && object.members.iter().all(is_simple);
    let kind = if object.members.is_empty() || others.is_anything() {
        others.clone()
    } else if few {
        let absent = object.members.iter().any(|member| !member.required).then_some(Type::Word("undefined"));
        union(std::iter::once(others.clone()).chain(object.members.iter().map(|member| member.value.clone())).chain(absent))
    } else {
        Type::Word("any")
    };
    Some(format!("[name: string]: {}{note}", laid_out(&kind, level)))
}

/// A comment as text, with its line end; nothing without lines.
pub(super) fn comment(lines: &[String], level: usize) -> String {
    let pad = "  ".repeat(level);
    match lines {
        [] => String::new(),
        [line] => format!("{pad}/** {line} */\n"),
        lines => {
            let body: String = lines.iter().map(|line| format!("{pad} * {line}").trim_end().to_owned() + "\n").collect();
            format!("{pad}/**\n{body}{pad} */\n")
        }
    }
}
