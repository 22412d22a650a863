//! A TypeScript type as a tree, and what two of them are together.
//!
//! Owns the forms a schema can become and the simplifications that lose nothing a
//! value could need. Never knows JSON Schema and never writes text.

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// A keyword: `string`, `number`, `boolean`, `null`, `unknown`, `any`, `never`.
    Word(&'static str),
    /// A literal, as it is written, and the keyword it belongs to.
    Literal(String, &'static str),
    /// The name of an alias.
    Named(String),
    /// An object.
    Object(Object),
    /// An array.
    List(Box<Type>),
    /// An array by position.
    Tuple {
        /// Each with whether it may be left out.
        items: Vec<(Type, bool)>,
        /// What follows.
        rest: Option<Box<Type>>,
    },
    /// One of them.
    Union(Vec<Type>),
    /// All of them.
    All(Vec<Type>),
    /// A type with a comment that says what it leaves out.
    Noted(Box<Type>, String),
}

/// An object type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object {
    /// Its members, in order.
    pub(super) members: Vec<Member>,
    /// What members that are not listed may be; nothing is said of them otherwise.
    pub(super) others: Option<Box<Type>>,
    /// The names that other members may have.
    pub(super) keys: Option<Box<Type>>,
    /// A comment on the names of other members.
    pub(super) keys_note: Option<String>,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// Its name, as in JSON.
    pub(super) name: String,
    /// Its type.
    pub(super) value: Type,
    /// Whether it must be there.
    pub(super) required: bool,
    /// Whether it is only ever given back.
    pub(super) readonly: bool,
    /// Lines of its comment.
    pub(super) doc: Vec<String>,
}

impl Type {
    /// Takes every value.
    pub(super) fn is_anything(&self) -> bool {
        matches!(self, Self::Word("unknown" | "any"))
    }

    /// Takes no value.
    pub(super) fn is_never(&self) -> bool {
        matches!(self, Self::Word("never"))
    }

    /// An object of which nothing is known.
    fn is_open_object(&self) -> bool {
        matches!(self, Self::Object(object) if object.members.is_empty() && object.keys.is_none()
            && object.others.as_deref().is_some_and(Self::is_anything))
    }

    /// The keyword whose values it has, if it has values of one only.
    const fn keyword(&self) -> Option<&'static str> {
        match self {
            Self::Word(word) | Self::Literal(_, word) => Some(word),
            Self::Object(_) => Some("object"),
            Self::List(_) | Self::Tuple { .. } => Some("array"),
            _ => None,
        }
    }
}

/// One of several.
pub(super) fn union(types: impl IntoIterator<Item = Type>) -> Type {
    let mut all: Vec<Type> = Vec::new();
    for one in types {
        let parts = if let Type::Union(parts) = one { parts } else { vec![one] };
        for part in parts {
            if part.is_anything() {
                return part;
            }
            if !part.is_never() && !all.contains(&part) {
                all.push(part);
            }
        }
    }
    // `string | "a"` is `string`.
    let words: Vec<&'static str> = all.iter().filter_map(|one| if let Type::Word(word) = one { Some(*word) } else { None }).collect();
    all.retain(|one| !matches!(one, Type::Literal(_, word) if words.contains(word)));
    match all.len() {
        0 => Type::Word("never"),
        1 => all.swap_remove(0),
        _ => Type::Union(all),
    }
}

/// Several at once.
pub(super) fn all(types: impl IntoIterator<Item = Type>, anything: &'static str) -> Type {
    types.into_iter().fold(Type::Word(anything), both)
}

/// Two at once.
fn both(one: Type, other: Type) -> Type {
    if one.is_anything() || one == other {
        return other;
    }
    if other.is_anything() || one.is_never() {
        return one;
    }
    if let (Some(left), Some(right)) = (one.keyword(), other.keyword())
        && left != right
    {
        return Type::Word("never");
    }
    match (one, other) {
        (_, Type::Word("never")) => Type::Word("never"),
        (one, other) if one.is_open_object() => within_object(other),
        (one, other) if other.is_open_object() => within_object(one),
        (Type::Object(one), Type::Object(other)) => Type::Object(merged(one, other)),
        (Type::Word(_), literal @ Type::Literal(..)) | (literal @ Type::Literal(..), Type::Word(_)) => literal,
        (Type::Literal(..), Type::Literal(..)) => Type::Word("never"),
        (Type::Union(parts), narrow) | (narrow, Type::Union(parts)) if matches!(narrow, Type::Word(_) | Type::Literal(..)) => {
            union(parts.into_iter().map(|part| both(part, narrow.clone())))
        }
        (one, other) => {
            let flat = |part| if let Type::All(parts) = part { parts } else { vec![part] };
            let mut parts = flat(one);
            for part in flat(other) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            merge_objects(parts)
        }
    }
}

/// `kind` where only objects are: what an open object next to it leaves of it.
fn within_object(kind: Type) -> Type {
    match kind {
        Type::Union(parts) => union(parts.into_iter().filter(|part| part.keyword().is_none_or(|word| word == "object"))),
        other => other,
    }
}

/// Object types that stand side by side become one.
fn merge_objects(parts: Vec<Type>) -> Type {
    let mut base: Option<Object> = None;
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Type::Object(object) => base = Some(base.map_or_else(|| object.clone(), |base| merged(base, object.clone()))),
            other => rest.push(other),
        }
    }
    rest.splice(0..0, base.map(Type::Object));
    if rest.len() == 1 { rest.swap_remove(0) } else { Type::All(rest) }
}

/// Two objects at once.
pub(super) fn merged(mut one: Object, other: Object) -> Object {
    for member in other.members {
        match one.members.iter_mut().find(|existing| existing.name == member.name) {
            Some(existing) => {
                existing.required |= member.required;
                existing.readonly |= member.readonly;
                let was = std::mem::replace(&mut existing.value, Type::Word("never"));
                existing.value = both(was, member.value);
                if existing.doc.is_empty() {
                    existing.doc = member.doc;
                }
            }
            None => one.members.push(member),
        }
    }
    one.others = match (one.others.take(), other.others) {
        (Some(left), Some(right)) => Some(Box::new(both(*left, *right))),
        (left, right) => left.or(right),
    };
    one.keys = one.keys.or(other.keys);
    one.keys_note = one.keys_note.or(other.keys_note);
    one
}
