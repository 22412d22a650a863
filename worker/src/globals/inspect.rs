//! Owns how a guest value looks in console output. It never runs guest code: no getter,
//! no proxy trap, no `toString`, no `toJSON`; so a hostile value can be ugly, not harmful.

use rquickjs::{Atom, Object, Value, promise::PromiseState};

use super::layout::{float_text, hole_text, joined, key_shown, more, quoted};
use super::slots::{atom, named};
pub(crate) use super::slots::{class_name, class_names, data_text, error_head, inherited_text};
use crate::engine::{
    Intrinsics,
    raw::{self, Keys, Shape, Slot},
};

/// How far a value is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Levels of nesting; what is deeper shows as `[Object]`.
    pub(crate) depth: usize,
    /// Bytes of text that one value may take before the rest is left out.
    pub(crate) bytes: usize,
}

impl Default for Reach {
    fn default() -> Self {
        Self { depth: 8, bytes: 64 * 1024 }
    }
}

/// Elements of an array, map or set that are shown.
pub(super) const ELEMENTS: usize = 100;
/// Properties of an object that are shown.
const PROPERTIES: usize = 200;

/// A value as text. Strings at the top stand bare.
pub(crate) fn shown(intrinsics: &Intrinsics, value: &Value<'_>, reach: Reach) -> String {
    if value.is_string() {
        return raw::text_of(value).unwrap_or_default();
    }
    nested(intrinsics, value, reach)
}

/// A value as text, with strings quoted.
pub(crate) fn nested(intrinsics: &Intrinsics, value: &Value<'_>, reach: Reach) -> String {
    let mut look = Look { intrinsics, reach, left: reach.bytes, open: Vec::new(), circular: Vec::new() };
    look.value(value, 0)
}

struct Look<'a, 'js> {
    intrinsics: &'a Intrinsics,
    reach: Reach,
    left: usize,
    open: Vec<Value<'js>>,
    circular: Vec<Value<'js>>,
}

impl<'js> Look<'_, 'js> {
    /// Charges text against what one value may take.
    fn spend(&mut self, text: String) -> String {
        self.left = self.left.saturating_sub(text.len());
        text
    }

    fn value(&mut self, value: &Value<'js>, indent: usize) -> String {
        if self.left == 0 {
            return "…".to_owned();
        }
        let text = match raw::shape(value) {
            Shape::Object => return self.object(value, indent),
            Shape::String => quoted(&raw::text_of(value).unwrap_or_default()),
            Shape::Symbol => self.intrinsics.symbol_text(value).unwrap_or_else(|_| "Symbol()".to_owned()),
            Shape::BigInt => format!("{}n", raw::text_of(value).unwrap_or_default()),
            Shape::Int(int) => int.to_string(),
            Shape::Float(float) => float_text(float),
            Shape::Bool(truth) => truth.to_string(),
            Shape::Null => "null".to_owned(),
            Shape::Undefined => "undefined".to_owned(),
            Shape::Other => "<empty>".to_owned(),
        };
        self.spend(text)
    }

    fn object(&mut self, value: &Value<'js>, indent: usize) -> String {
        if value.is_proxy() {
            return self.behind_proxy(value, indent);
        }
        if self.open.contains(value) {
            if !self.circular.contains(value) {
                self.circular.push(value.clone());
            }
            let index = self.circular.iter().position(|seen| seen == value).unwrap_or(0) + 1;
            return self.spend(format!("[Circular *{index}]"));
        }
        let Some(object) = value.as_object() else { return String::new() };
        self.open.push(value.clone());
        let text = self.by_class(value, object, indent);
        self.open.pop();
        match self.circular.iter().position(|seen| seen == value) {
            Some(index) => format!("<ref *{}> {text}", index + 1),
            None => text,
        }
    }

    fn behind_proxy(&mut self, value: &Value<'js>, indent: usize) -> String {
        let target = value.as_object().and_then(|object| object.as_proxy()).and_then(|proxy| proxy.target().ok());
        match target {
            // Each level of proxies counts as one of nesting, so that a tower of them ends.
            Some(target) if self.open.len() <= self.reach.depth => {
                self.open.push(value.clone());
                let text = self.value(target.as_value(), indent);
                self.open.pop();
                text
            }
            _ => {
                drop(value.ctx().catch());
                self.spend("[Proxy]".to_owned())
            }
        }
    }

    fn by_class(&mut self, value: &Value<'js>, object: &Object<'js>, indent: usize) -> String {
        let class = raw::class_of(value);
        let classes = self.intrinsics.classes;
        let deep = self.open.len() > self.reach.depth + 1;
        if value.is_function() {
            return self.function(object, indent);
        }
        if class == classes.error || class == classes.dom_exception {
            return self.error(object, indent, deep);
        }
        if class == classes.date {
            let text = self.intrinsics.date_text(value).ok().flatten();
            return self.spend(text.unwrap_or_else(|| "Invalid Date".to_owned()));
        }
        if class == classes.regexp {
            let text = self.intrinsics.regexp_text(value).unwrap_or_else(|_| "/(?:)/".to_owned());
            return self.spend(text);
        }
        if let Some(primitive) = self.intrinsics.primitive_of(class, value) {
            let text = format!("[{}: {}]", class_name(object).unwrap_or_default(), self.value(&primitive, indent));
            return self.spend(text);
        }
        if deep {
            let name = class_name(object).unwrap_or_else(|| "Object: null prototype".to_owned());
            return self.spend(format!("[{name}]"));
        }
        if class == classes.array {
            return self.array(object, indent);
        }
        self.container(value, object, class, indent)
    }

    fn container(&mut self, value: &Value<'js>, object: &Object<'js>, class: raw::ClassId, indent: usize) -> String {
        let classes = self.intrinsics.classes;
        if class == classes.map {
            let entries = self.intrinsics.map_entries(value).unwrap_or_default();
            let size = entries.len();
            let mut parts = Vec::new();
            for (key, member) in entries.iter().take(ELEMENTS) {
                parts.push(format!("{} => {}", self.value(key, indent + 2), self.value(member, indent + 2)));
            }
            parts.extend(more(size));
            return joined(&format!("{}({size}) {{", named(object, "Map")), parts, "}", indent, false);
        }
        if class == classes.set {
            let members = self.intrinsics.set_members(value).unwrap_or_default();
            let size = members.len();
            let mut parts: Vec<String> = members.iter().take(ELEMENTS).map(|member| self.value(member, indent + 2)).collect();
            parts.extend(more(size));
            return joined(&format!("{}({size}) {{", named(object, "Set")), parts, "}", indent, false);
        }
        if let Some(name) = classes.typed_name(class) {
            return self.typed(value, object, name, indent);
        }
        if value.is_promise() {
            return self.promise(value, indent);
        }
        if class == classes.array_buffer {
            let bytes = self.intrinsics.buffer_length(value).unwrap_or(0.0);
            return self.spend(format!("ArrayBuffer {{ byteLength: {bytes} }}"));
        }
        if [classes.weak_map, classes.weak_set, classes.weak_ref].contains(&class) {
            return self.spend(format!("{} {{ <items unknown> }}", named(object, "WeakRef")));
        }
        let name = class_name(object);
        if let Some((label, shown)) = name.as_ref().and_then(|name| self.intrinsics.web_shown(name, value)) {
            let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
            let part = format!("{label}{}", self.value(&shown, indent + 2));
            return joined(&format!("{} {{", name.unwrap_or_default()), vec![part], "}", indent, false);
        }
        let prefix = match name {
            Some(name) if name == "Object" => String::new(),
            Some(name) => format!("{name} "),
            None => "[Object: null prototype] ".to_owned(),
        };
        let parts = self.properties(object, indent, &[]);
        joined(&format!("{prefix}{{"), parts, "}", indent, false)
    }

    fn typed(&mut self, value: &Value<'js>, object: &Object<'js>, name: &str, indent: usize) -> String {
        let length = self.intrinsics.typed_length(value).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an array length")]
        let length = length as usize;
        let mut parts = Vec::new();
        for index in 0..length.min(ELEMENTS) {
            let element = object.get::<_, Value>(u32::try_from(index).unwrap_or(0));
            parts.push(element.map_or_else(|_| String::new(), |element| self.value(&element, indent + 2)));
        }
        parts.extend(more(length));
        joined(&format!("{name}({length}) ["), parts, "]", indent, true)
    }

    fn promise(&mut self, value: &Value<'js>, indent: usize) -> String {
        let Some(promise) = value.as_promise() else { return String::new() };
        match promise.state() {
            PromiseState::Pending => self.spend("Promise { <pending> }".to_owned()),
            PromiseState::Resolved => {
                let inner = promise.result::<Value>().and_then(Result::ok);
                let text = inner.map_or_else(String::new, |inner| self.value(&inner, indent + 2));
                format!("Promise {{ {text} }}")
            }
            PromiseState::Rejected => {
                drop(promise.result::<Value>());
                let reason = value.ctx().catch();
                format!("Promise {{ <rejected> {} }}", self.value(&reason, indent + 2))
            }
        }
    }

    fn function(&mut self, object: &Object<'js>, indent: usize) -> String {
        let name = data_text(object, "name").filter(|name| !name.is_empty());
        let kind = class_name(object).unwrap_or_else(|| "Function".to_owned());
        let is_class = object.as_value().is_constructor()
            // `prototype` of a class can not be written; that of a function can.
            && raw::is_read_only(object, "prototype");
        let head = match (is_class, name) {
            (true, Some(name)) => format!("[class {name}]"),
            (true, None) => "[class (anonymous)]".to_owned(),
            (false, Some(name)) => format!("[{kind}: {name}]"),
            (false, None) => format!("[{kind} (anonymous)]"),
        };
        let parts = if self.open.len() > self.reach.depth { Vec::new() } else { self.properties(object, indent, &[]) };
        if parts.is_empty() { self.spend(head) } else { joined(&format!("{head} {{"), parts, "}", indent, false) }
    }

    fn error(&mut self, object: &Object<'js>, indent: usize, deep: bool) -> String {
        let head = self
            .intrinsics
            .dom_exception_text(object.as_value())
            .map_or_else(|| error_head(object), |(name, message)| format!("{name}: {message}"));
        let stack = self.intrinsics.error_stack(object).map(|stack| crate::failure::frames::shown(&stack)).unwrap_or_default();
        let mut text = head;
        for frame in stack {
            text.push_str("\n    at ");
            text.push_str(&frame);
        }
        if deep {
            return self.spend(format!("[{}]", text.lines().next().unwrap_or_default()));
        }
        let text = self.spend(text).replace('\n', &format!("\n{}", " ".repeat(indent)));
        let mut parts = Vec::new();
        for hidden in ["cause", "errors"] {
            let slot = atom(object, hidden).and_then(|key| raw::own_slot(object, &key));
            if let Some(Slot::Data(inner)) = slot {
                parts.push(format!("[{hidden}]: {}", self.value(&inner, indent + 2)));
            }
        }
        parts.extend(self.properties(object, indent, &["name", "message", "stack", "cause", "errors"]));
        if parts.is_empty() { text } else { joined(&format!("{text} {{"), parts, "}", indent, false) }
    }

    fn array(&mut self, object: &Object<'js>, indent: usize) -> String {
        let length = raw::array_length(object);
        let mut parts = Vec::new();
        let mut holes = 0;
        for index in 0..length.min(ELEMENTS) {
            let key = Atom::from_u32(object.ctx().clone(), u32::try_from(index).unwrap_or(0)).ok();
            match key.and_then(|key| raw::own_slot(object, &key)) {
                None => holes += 1,
                Some(slot) => {
                    parts.extend(hole_text(std::mem::take(&mut holes)));
                    parts.push(self.slot(&slot, indent));
                }
            }
        }
        parts.extend(hole_text(holes));
        parts.extend(more(length));
        parts.extend(self.named_properties_of_array(object, indent));
        let prefix = match class_name(object) {
            Some(name) if name == "Array" => String::new(),
            Some(name) => format!("{name}({length}) "),
            None => format!("[Array({length}): null prototype] "),
        };
        joined(&format!("{prefix}["), parts, "]", indent, true)
    }

    /// What an array has besides its elements; an array with very many elements is not searched.
    fn named_properties_of_array(&mut self, object: &Object<'js>, indent: usize) -> Vec<String> {
        if raw::array_length(object) > ELEMENTS {
            return Vec::new();
        }
        let (slots, _) = raw::own_slots(object, Keys::Strings, PROPERTIES + ELEMENTS);
        let named = slots.into_iter().filter(|(name, _)| name.parse::<u32>().is_err());
        named.map(|(name, slot)| format!("{}: {}", key_shown(&name), self.slot(&slot, indent))).collect()
    }

    fn properties(&mut self, object: &Object<'js>, indent: usize, hidden: &[&str]) -> Vec<String> {
        let (strings, total) = raw::own_slots(object, Keys::Strings, PROPERTIES);
        let (symbols, _) = raw::own_slots(object, Keys::Symbols, PROPERTIES);
        let mut left_out = total.saturating_sub(PROPERTIES);
        let strings = strings.into_iter().filter(|(name, _)| !hidden.contains(&name.as_str()));
        let strings = strings.map(|(name, slot)| (key_shown(&name), slot));
        let symbols = symbols.into_iter().map(|(name, slot)| (format!("[Symbol({name})]"), slot));
        let mut parts = Vec::new();
        for (name, slot) in strings.chain(symbols) {
            if self.left == 0 {
                left_out += 1;
                continue;
            }
            self.left = self.left.saturating_sub(name.len());
            parts.push(format!("{name}: {}", self.slot(&slot, indent)));
        }
        if left_out > 0 {
            parts.push(format!("... {left_out} more properties"));
        }
        parts
    }

    fn slot(&mut self, slot: &Slot<'js>, indent: usize) -> String {
        match slot {
            Slot::Data(value) => self.value(value, indent + 2),
            Slot::Accessor { get: true, set: true } => self.spend("[Getter/Setter]".to_owned()),
            Slot::Accessor { get: true, .. } => self.spend("[Getter]".to_owned()),
            Slot::Accessor { .. } => self.spend("[Setter]".to_owned()),
        }
    }
}
