//! Owns what is told about lossy conversions: which kind, at which path, how often. It
//! keeps a few paths of each kind, so that an array of a million dates is one line.

/// Paths that are named for each kind; the rest are counted.
const NAMED: usize = 3;

/// A kind of loss on the way between guest values and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Date,
    InvalidDate,
    BigInt,
    Map,
    MapEntries,
    Set,
    TypedArray,
    ArrayBuffer,
    Error,
    RegExp,
    Opaque,
    Hidden,
    NotANumber,
    Function,
    Symbol,
    Undefined,
    AwaitedPromise,
    PendingPromise,
    RejectedPromise,
    PromiseText,
    LoneSurrogate,
    BigNumber,
}

impl Loss {
    const fn says(self) -> &'static str {
        match self {
            Self::Date => "a Date became its ISO text",
            Self::InvalidDate => "an invalid Date became null",
            Self::BigInt => "a BigInt became its decimal digits, as a string",
            Self::Map => "a Map became an object",
            Self::MapEntries => "a Map with keys that are not all strings became an array of entries",
            Self::Set => "a Set became an array",
            Self::TypedArray => "a typed array became an array of numbers",
            Self::ArrayBuffer => "an ArrayBuffer has no JSON form and became {}; pass a Uint8Array of it",
            Self::Error => "an Error became an object with its name and message",
            Self::RegExp => "a RegExp became its text",
            Self::Opaque => "a WeakMap, WeakSet or WeakRef has no JSON form and became {}",
            Self::Hidden => {
                "an object whose class keeps what it holds to itself (an iterator, a generator, URLSearchParams, private fields) became {}; \
                 take its values out first, as in [...it] or Object.fromEntries(it)"
            }
            Self::NotANumber => "NaN or Infinity became null",
            Self::Function => "a function has no JSON form and was left out",
            Self::Symbol => "a symbol has no JSON form and was left out",
            Self::Undefined => "undefined has no JSON form and was left out (null inside an array)",
            Self::AwaitedPromise => {
                "a Promise was not awaited; the value it had settled to was used (use await, or await Promise.all([...]))"
            }
            Self::PendingPromise => {
                "a Promise was not awaited and had not settled; it became null (use await, or await Promise.all([...]))"
            }
            Self::RejectedPromise => "a Promise was not awaited and had rejected; it became null (use await, or await Promise.all([...]))",
            Self::PromiseText => {
                "the text [object Promise] is that of a promise that was made into text before it was awaited (write ${await …})"
            }
            Self::LoneSurrogate => "half of a surrogate pair in a string has no UTF-8 form and became U+FFFD",
            Self::BigNumber => "a whole number beyond 2^53 lost digits in JavaScript; ask the host for it as a string",
        }
    }
}

/// What was lost so far.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    kinds: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    loss: Loss,
    paths: Vec<String>,
    count: u64,
}

impl Notes {
    /// Records a loss; the path is only built while it will be named.
    pub(crate) fn add(&mut self, loss: Loss, path: impl FnOnce() -> String) {
        let note = match self.kinds.iter_mut().position(|note| note.loss == loss) {
            Some(at) => self.kinds.get_mut(at),
            None => {
                self.kinds.push(Note { loss, paths: Vec::new(), count: 0 });
                self.kinds.last_mut()
            }
        };
        let Some(note) = note else { return };
        note.count += 1;
        if note.paths.len() < NAMED {
            note.paths.push(path());
        }
    }

    /// One line for each kind: where, and what happened.
    pub(crate) fn lines(&self) -> impl Iterator<Item = NoteLine> + '_ {
        self.kinds.iter().map(|note| {
            let named = u64::try_from(note.paths.len()).unwrap_or(0);
            let more = note.count.saturating_sub(named);
            let mut places = note.paths.join(", ");
            if more > 0 {
                places.push_str(&format!(" and {more} more"));
            }
            NoteLine { path: note.paths.first().cloned().unwrap_or_default(), text: format!("{places}: {}", note.loss.says()) }
        })
    }
}

/// One kind of loss, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoteLine {
    /// The first place.
    pub(crate) path: String,
    /// All places and what happened there.
    pub(crate) text: String,
}
