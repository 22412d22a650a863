//! Copies of a text in which its escapes are what they mean, and the way back from them.
//!
//! Owns which escapes there are: `%41` and `%u0041`; behind a backslash those of JSON,
//! JavaScript, C, Python, Perl and shells; `&amp;`, `&quot`, `&#39;` and the like. Never decides what is
//! looked for, and never fails: what is no escape stands for itself.
//!
//! No map is kept of a copy. Where something was found in one, the text is walked again:
//! that is rare, and a map would be several times as long as a hostile text.

use std::rc::Rc;

/// What an escape of each kind begins with.
const MARKS: [u8; 3] = [b'%', b'\\', b'&'];
/// Most times that a text is resolved: JSON in JSON in a URL has three layers.
const LAYERS: usize = 3;

/// The names that HTML has for characters that ASCII has.
const ENTITIES: [(&str, &str); 46] = [
    ("Tab", "\t"),
    ("NewLine", "\n"),
    ("excl", "!"),
    ("quot", "\""),
    ("QUOT", "\""),
    ("num", "#"),
    ("dollar", "$"),
    ("percnt", "%"),
    ("amp", "&"),
    ("AMP", "&"),
    ("apos", "'"),
    ("lpar", "("),
    ("rpar", ")"),
    ("ast", "*"),
    ("midast", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("period", "."),
    ("sol", "/"),
    ("colon", ":"),
    ("semi", ";"),
    ("lt", "<"),
    ("LT", "<"),
    ("equals", "="),
    ("gt", ">"),
    ("GT", ">"),
    ("quest", "?"),
    ("commat", "@"),
    ("lsqb", "["),
    ("lbrack", "["),
    ("bsol", "\\"),
    ("rsqb", "]"),
    ("rbrack", "]"),
    ("Hat", "^"),
    ("lowbar", "_"),
    ("UnderBar", "_"),
    ("grave", "`"),
    ("DiacriticalGrave", "`"),
    ("fjlig", "fj"),
    ("lcub", "{"),
    ("lbrace", "{"),
    ("verbar", "|"),
    ("vert", "|"),
    ("VerticalLine", "|"),
    ("rcub", "}"),
    ("rbrace", "}"),
];

/// Longest of them, with the semicolon.
const ENTITY_BYTES: usize = 17;
/// Those of them that browsers read without the semicolon too.
const UNENDED: [&str; 8] = ["quot", "QUOT", "amp", "AMP", "lt", "LT", "gt", "GT"];

/// A text resolved once more, as long as that text. Tests count how many there are.
struct Layer {
    bytes: Vec<u8>,
    #[cfg(test)]
    _held: held::One,
}

impl Layer {
    fn new(bytes: Vec<u8>) -> Rc<Self> {
        Rc::new(Self {
            bytes,
            #[cfg(test)]
            _held: held::One::new(),
        })
    }
}

/// One way to read a text: which kinds of escapes are resolved, and how often.
pub(super) struct Copy {
    marks: Vec<u8>,
    /// The text resolved once, twice, …; never empty.
    layers: Vec<Rc<Layer>>,
}

impl Copy {
    /// What is looked at.
    pub(super) fn bytes(&self) -> &[u8] {
        self.layers.last().map_or(&[], |layer| layer.bytes.as_slice())
    }

    /// Where these places of the copy, in order and apart, stand in the text that it is
    /// of. They are in order then, but two may touch the same escape.
    pub(super) fn back(&self, text: &[u8], mut places: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        let below = self.layers.iter().rev().skip(1).map(|layer| layer.bytes.as_slice()).chain([text]);
        for text in below {
            let (mut starts, mut ends) = (Walk::new(text, &self.marks), Walk::new(text, &self.marks));
            for (start, end) in &mut places {
                let last = end.saturating_sub(1).max(*start);
                (*start, *end) = (starts.stands(*start).0, ends.stands(last).1);
            }
        }
        places
    }
}

/// Every way to read this text but as it stands; none where it has no escapes. One after
/// the other: nobody keeps those that were looked at, each of which is as long as the text.
pub(super) fn copies(text: &[u8]) -> impl Iterator<Item = Copy> + '_ {
    let there: Vec<u8> = MARKS.into_iter().filter(|mark| text.contains(mark)).collect();
    // Some kinds without the others: then the marks of those are as they were meant to be.
    let partial = (1..(1_usize << there.len()) - 1).filter_map(move |some| {
        let marks: Vec<u8> = there.iter().enumerate().filter(|(bit, _)| (some >> bit) & 1 == 1).map(|(_, mark)| *mark).collect();
        resolved(text, &marks).map(|copy| Copy { marks, layers: vec![Layer::new(copy)] })
    });
    let mut layers: Vec<Rc<Layer>> = Vec::new();
    let whole = std::iter::from_fn(move || {
        if layers.len() == LAYERS {
            return None;
        }
        layers.push(Layer::new(resolved(layers.last().map_or(text, |below| below.bytes.as_slice()), &MARKS)?));
        Some(Copy { marks: MARKS.to_vec(), layers: layers.clone() })
    });
    partial.chain(whole)
}

/// The text without any escapes, as far as it is resolved here.
pub(super) fn plain(text: &[u8]) -> Vec<u8> {
    let mut plain = text.to_vec();
    for _ in 0..LAYERS {
        let Some(next) = resolved(&plain, &MARKS) else { break };
        plain = next;
    }
    plain
}

/// The text with its escapes resolved once. Nothing: it has none.
fn resolved(text: &[u8], marks: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut from = 0;
    for (at, escape) in Escapes::new(text, marks) {
        out.extend_from_slice(text.get(from..at).unwrap_or_default());
        out.extend_from_slice(escape.meant());
        from = at + escape.taken;
    }
    (from > 0).then(|| {
        out.extend_from_slice(text.get(from..).unwrap_or_default());
        out
    })
}

/// One escape.
struct Escape {
    /// How many bytes of the text it is.
    taken: usize,
    bytes: [u8; 4],
    length: usize,
}

impl Escape {
    const fn byte(taken: usize, byte: u8) -> Self {
        Self { taken, bytes: [byte, 0, 0, 0], length: 1 }
    }

    /// At most four bytes of a text.
    fn text(taken: usize, meant: &str) -> Self {
        let mut bytes = [0; 4];
        let length = meant.len().min(4);
        for (place, byte) in bytes.iter_mut().zip(meant.bytes()) {
            *place = byte;
        }
        Self { taken, bytes, length }
    }

    fn character(taken: usize, number: u32) -> Option<Self> {
        let mut bytes = [0; 4];
        let length = char::from_u32(number)?.encode_utf8(&mut bytes).len();
        Some(Self { taken, bytes, length })
    }

    fn meant(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The escape that a text begins with.
    fn first(text: &[u8]) -> Option<Self> {
        match text {
            [b'%', b'u' | b'U', rest @ ..] => unit(rest, 2),
            [b'%', rest @ ..] => Some(Self::byte(3, u8::try_from(hex(rest, 2)?).ok()?)),
            [b'&', rest @ ..] => entity(rest),
            [b'\\', rest @ ..] => backslash(rest),
            _ => None,
        }
    }
}

/// What follows a backslash.
fn backslash(rest: &[u8]) -> Option<Escape> {
    let octal = |byte: &u8| (b'0'..=b'7').contains(byte);
    match rest {
        [b'u', b'{', digits @ ..] => braced(digits, 16, 3),
        [b'u', digits @ ..] => unit(digits, 2),
        [b'x', b'{', digits @ ..] => braced(digits, 16, 3),
        [b'o', b'{', digits @ ..] => braced(digits, 8, 3),
        [b'N', b'{', b'U', b'+', digits @ ..] => braced(digits, 16, 5),
        [b'U', digits @ ..] => Escape::character(10, hex(digits, 8)?),
        [b'x', digits @ ..] => Some(Escape::byte(4, u8::try_from(hex(digits, 2)?).ok()?)),
        [first, ..] if octal(first) => {
            let most = if *first == b'0' { 4 } else { 3 };
            let digits = rest.iter().take(most).take_while(|byte| octal(byte));
            let (length, number) = digits.fold((0, 0_u32), |(length, number), digit| (length + 1, number * 8 + u32::from(digit - b'0')));
            Some(Escape::byte(length + 1, u8::try_from(number).ok()?))
        }
        [letter, ..] => {
            let meant = match letter {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'b' => 8,
                b'f' => 12,
                b'v' => 11,
                b'a' => 7,
                b'e' => 27,
                b' ' => b' ',
                other if other.is_ascii_punctuation() => *other,
                _ => return None,
            };
            Some(Escape::byte(2, meant))
        }
        [] => None,
    }
}

/// Digits up to a closing brace, behind a backslash and so many bytes in all.
fn braced(digits: &[u8], radix: u32, before: usize) -> Option<Escape> {
    let (zeros, length) = counted(digits, radix);
    (length > 0 && digits.get(length) == Some(&b'}')).then_some(())?;
    Escape::character(before + length + 1, value(digits.get(zeros..length)?, radix)?)
}

/// How many zeros a number begins with, and how long it is with them; longer than any
/// character's it is none.
fn counted(digits: &[u8], radix: u32) -> (usize, usize) {
    let zeros = zeros(digits);
    (zeros, zeros + digits.iter().skip(zeros).take(10).take_while(|byte| char::from(**byte).is_digit(radix)).count())
}

fn value(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return Some(0);
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// Four digits of UTF-16 behind a mark of so many bytes, and the second half of a pair
/// behind the same mark.
fn unit(digits: &[u8], mark: usize) -> Option<Escape> {
    let high = hex(digits, 4)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Escape::character(mark + 4, high);
    }
    let low = hex(digits.get(4 + mark..)?, 4).filter(|low| (0xDC00..0xE000).contains(low))?;
    Escape::character(2 * (mark + 4), 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

/// What follows an ampersand.
fn entity(rest: &[u8]) -> Option<Escape> {
    let Some(number) = rest.strip_prefix(b"#") else {
        let named = |name: &[u8]| ENTITIES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, meant)| *meant);
        let ended = rest.iter().take(ENTITY_BYTES).position(|byte| *byte == b';');
        if let Some((length, meant)) = ended.and_then(|length| Some((length, named(rest.get(..length)?)?))) {
            return Some(Escape::text(length + 2, meant));
        }
        let name = UNENDED.iter().find(|name| rest.starts_with(name.as_bytes()))?;
        return Some(Escape::text(name.len() + 1, named(name.as_bytes())?));
    };
    let (digits, radix) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    // Some writers fill up with zeros, as many as they like; readers take a number without
    // its semicolon too.
    let (zeros, length) = counted(digits, radix);
    (length > 0).then_some(())?;
    let end = usize::from(digits.get(length) == Some(&b';'));
    Escape::character(2 + number.len() - digits.len() + length + end, value(digits.get(zeros..length)?, radix)?)
}

/// How many zeros a number begins with. They are walked over once for each escape, and no
/// escape begins within them: the whole stays linear.
fn zeros(digits: &[u8]) -> usize {
    digits.iter().take_while(|byte| **byte == b'0').count()
}

/// The number that so many hexadecimal digits are.
fn hex(text: &[u8], digits: usize) -> Option<u32> {
    let digits = text.get(..digits).filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0_u32, |number, digit| Some((number << 4) | char::from(*digit).to_digit(16)?))
}

/// Every escape of a text, with its place.
struct Escapes<'t> {
    text: &'t [u8],
    marks: &'t [u8],
    at: usize,
}

impl<'t> Escapes<'t> {
    const fn new(text: &'t [u8], marks: &'t [u8]) -> Self {
        Self { text, marks, at: 0 }
    }
}

impl Iterator for Escapes<'_> {
    type Item = (usize, Escape);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.text.get(self.at..)?;
            let at = self.at + rest.iter().position(|byte| self.marks.contains(byte))?;
            let escape = Escape::first(self.text.get(at..)?);
            self.at = at + escape.as_ref().map_or(1, |escape| escape.taken);
            if let Some(escape) = escape {
                return Some((at, escape));
            }
        }
    }
}

/// The way from places of a copy, in order, to those of its text.
struct Walk<'t> {
    escapes: Escapes<'t>,
    next: Option<(usize, Escape)>,
    /// A place of the text behind an escape, and what it is in the copy.
    text: usize,
    copy: usize,
}

impl<'t> Walk<'t> {
    fn new(text: &'t [u8], marks: &'t [u8]) -> Self {
        let mut escapes = Escapes::new(text, marks);
        Self { next: escapes.next(), escapes, text: 0, copy: 0 }
    }

    /// Where what means the byte at this place of the copy begins and ends in the text.
    fn stands(&mut self, place: usize) -> (usize, usize) {
        loop {
            let itself = self.text + place.saturating_sub(self.copy);
            let Some((at, escape)) = &self.next else { return (itself, itself + 1) };
            let begins = self.copy + (at - self.text);
            if place < begins {
                return (itself, itself + 1);
            }
            if place < begins + escape.length {
                return (*at, at + escape.taken);
            }
            (self.text, self.copy) = (at + escape.taken, begins + escape.length);
            self.next = self.escapes.next();
        }
    }
}

/// How many layers this thread holds, and held at most.
#[cfg(test)]
pub(super) mod held {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<usize> = const { Cell::new(0) };
        pub(crate) static MOST: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) struct One;

    impl One {
        pub(super) fn new() -> Self {
            NOW.set(NOW.get() + 1);
            MOST.set(MOST.get().max(NOW.get()));
            Self
        }
    }

    impl Drop for One {
        fn drop(&mut self) {
            NOW.set(NOW.get() - 1);
        }
    }
}
