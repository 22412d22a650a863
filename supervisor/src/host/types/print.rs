//! A type as text.
//!
//! Owns layout: what fits on a line stays on one. Never drops or changes a type.

use super::ast::{Member, Object, Type, union};
use super::words;

/// Longest object that stays on one line, in bytes.
const LINE_BYTES: usize = 100;

/// A type as text, for a place that is indented by so many levels.
pub(super) fn text(kind: &Type, level: usize) -> String {
    match kind {
        Type::Word(word) => (*word).to_owned(),
        Type::Literal(text, _) | Type::Named(text) => text.clone(),
        Type::Object(object) => object_text(object, level),
        Type::List(item) => format!("{}[]", bracketed(item, level)),
        Type::Tuple { items, rest } => tuple(items, rest.as_deref(), level),
        Type::Union(parts) => joined(parts, " | ", level),
        Type::All(parts) => joined(parts, " & ", level),
        Type::Noted(kind, note) => format!("{} /* {note} */", text(kind, level)),
    }
}

fn joined(parts: &[Type], between: &str, level: usize) -> String {
    parts.iter().map(|part| bracketed(part, level)).collect::<Vec<_>>().join(between)
}

/// A type that something follows.
fn bracketed(kind: &Type, level: usize) -> String {
    match kind {
        Type::Union(_) | Type::All(_) | Type::Noted(..) => format!("({})", text(kind, level)),
        _ => text(kind, level),
    }
}

fn tuple(items: &[(Type, bool)], rest: Option<&Type>, level: usize) -> String {
    let item = |(kind, optional): &(Type, bool)| if *optional { format!("{}?", bracketed(kind, level)) } else { text(kind, level) };
    let all = items.iter().map(item).chain(rest.map(|rest| format!("...{}[]", bracketed(rest, level))));
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

fn object_text(object: &Object, level: usize) -> String {
    let has_docs = object.members.iter().any(|member| !member.doc.is_empty());
    if !has_docs {
        let parts: Vec<String> = parts(object, level).collect();
        let line = if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join("; ")) };
        if line.len() <= LINE_BYTES && !line.contains('\n') {
            return line;
        }
    }
    let pad = "  ".repeat(level + 1);
    let mut out = String::from("{\n");
    let docs = object.members.iter().map(|member| member.doc.as_slice()).chain(std::iter::repeat(&[][..]));
    for (part, doc) in parts(object, level + 1).zip(docs) {
        out.push_str(&comment(doc, level + 1));
        out.push_str(&format!("{pad}{part};\n"));
    }
    out.push_str(&"  ".repeat(level));
    out.push('}');
    out
}

fn parts(object: &Object, level: usize) -> impl Iterator<Item = String> {
    let members = object.members.iter().map(move |member| {
        let readonly = if member.readonly { "readonly " } else { "" };
        let mark = if member.required { "" } else { "?" };
        format!("{readonly}{}{mark}: {}", words::member_name(&member.name), text(&member.value, level))
    });
    members.chain(index(object, level))
}

/// Members that are not listed. An index signature holds for the listed ones too, so its
/// type has to take them.
fn index(object: &Object, level: usize) -> Option<String> {
    let others = object.others.as_deref()?;
    if let (Some(keys), true) = (&object.keys, object.members.is_empty()) {
        return Some(format!("[name in {}]?: {}", text(keys, level), text(others, level)));
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
    Some(format!("[name: string]: {}{note}", text(&kind, level)))
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
