//! The journal of systemd, field by field.
//!
//! Owns the native protocol: a datagram an event, or a sealed memory file where it is too
//! large for one. Names of fields are ours (`EVALUATION`, `PRINCIPAL`, `FUNCTION`, `CALL`,
//! `CODE`, `RULE`, …), and a value has its length before it, so none can become another
//! field. Not `tracing-journald`: it hands values on as they are, and here each one is
//! looked through for credentials, and escaped. Never waits for the journal.

use super::safe;
use crate::host::redact;
use crate::say;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::fs::File;
use std::io::{IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

const SOCKET: &str = "/run/systemd/journal/socket";
/// Longest name that the journal takes.
const NAME_BYTES: usize = 64;

/// A way to the journal.
#[derive(Debug)]
pub(super) struct Journal {
    socket: OwnedFd,
}

impl Journal {
    /// The one of this host.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn open() -> std::io::Result<Self> {
        Self::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> std::io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket })
    }

    fn send(&self, entry: &[u8]) -> std::io::Result<()> {
        match rustix::net::send(&self.socket, entry, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            Err(Errno::MSGSIZE | Errno::NOBUFS) => self.send_large(entry),
            Err(fault) => Err(fault.into()),
        }
    }

    fn send_large(&self, entry: &[u8]) -> std::io::Result<()> {
        let memory = memfd_create("brigd-log", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(memory);
        file.write_all(entry)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(&[])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::default();
        let level = *event.metadata().level();
        entry.put("PRIORITY", priority(level), false);
        entry.put("SYSLOG_IDENTIFIER", "brigd", false);
        entry.put("TARGET", event.metadata().target(), false);
        event.record(&mut entry);
        // What the journal does not take is told where systemd keeps it just the same.
        if let Err(fault) = self.send(&entry.bytes)
            && level <= Level::WARN
        {
            let text = String::from_utf8_lossy(&entry.bytes);
            say::complain(&format!("the journal does not take an event ({fault}): {}", safe(&text, false)));
        }
    }
}

const fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}

/// One event in the form of the journal.
#[derive(Default)]
struct Entry {
    bytes: Vec<u8>,
}

impl Entry {
    fn put(&mut self, name: &str, value: &str, lines: bool) {
        let clean = redact::clean_log(value);
        let value = safe(&clean, lines);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'\n');
        self.bytes.extend_from_slice(&u64::try_from(value.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(&name_of(field.name()), value, field.name() == "message");
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_str(field, &value.to_string());
    }
}

/// The journal's names: capitals, digits and underscores, not at the front. A user is a
/// principal there, as in the documentation.
fn name_of(field: &str) -> String {
    if field == "uid" {
        return "PRINCIPAL".to_owned();
    }
    let name: String = field
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
        .take(NAME_BYTES)
        .collect();
    let name = name.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_digit());
    if name.is_empty() { "FIELD".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::net::UnixDatagram;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// Fields of an entry, as the journal reads them.
    fn fields(mut entry: &[u8]) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        while !entry.is_empty() {
            let end = entry.iter().position(|byte| *byte == b'\n').unwrap();
            let length = usize::try_from(u64::from_le_bytes(entry[end + 1..end + 9].try_into().unwrap())).unwrap();
            let value = String::from_utf8(entry[end + 9..end + 9 + length].to_vec()).unwrap();
            assert_eq!(entry[end + 9 + length], b'\n');
            assert!(found.insert(String::from_utf8(entry[..end].to_vec()).unwrap(), value).is_none(), "a field is there twice");
            entry = &entry[end + 9 + length + 1..];
        }
        found
    }

    fn logged(log: impl FnOnce()) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let receiver = UnixDatagram::bind(folder.path().join("s")).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let journal = Journal::at(&folder.path().join("s")).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(journal), log);
        let mut buffer = vec![0; 1 << 20];
        let length = receiver.recv(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }

    #[test]
    fn an_event_has_its_fields_by_the_names_of_the_documentation() {
        let found = fields(&logged(|| {
            let code: Option<&str> = None;
            tracing::warn!(evaluation = "ev_1", uid = 1000, function = "shop.refund", call = 3, code, rule = %"a.rules[0]", "no");
        }));
        for (name, value) in [
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "brigd"),
            ("MESSAGE", "no"),
            ("EVALUATION", "ev_1"),
            ("PRINCIPAL", "1000"),
            ("FUNCTION", "shop.refund"),
            ("CALL", "3"),
            ("RULE", "a.rules[0]"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}: {found:?}");
        }
        assert!(!found.contains_key("CODE"), "what is not there has no field");
    }

    #[test]
    fn a_value_can_not_become_another_field_and_holds_no_control_character() {
        let hostile = "x\nMESSAGE=forged\nPRIORITY\n\u{1}\0\0\0\0\0\0\0zero\n\u{1b}[2J\u{202e}";
        let found = fields(&logged(|| tracing::info!(name = hostile, other = %hostile, third = ?hostile, "said")));
        assert_eq!((found["MESSAGE"].as_str(), found["PRIORITY"].as_str()), ("said", "6"));
        for name in ["NAME", "OTHER", "THIRD"] {
            assert!(found[name].contains("forged") && !found[name].chars().any(char::is_control), "{name}: {:?}", found[name]);
        }
    }

    #[test]
    fn credentials_are_taken_out_of_every_field() {
        let secret = "jrnl-5ecret-value-0001";
        let planted = [redact::Planted { name: "token", text: secret.as_bytes() }];
        redact::install(redact::Redactor::new(&planted).unwrap());
        let found = fields(&logged(|| tracing::error!(fault = secret, other = ?format!("it is {secret}"), "with {secret}")));
        assert_eq!(found["FAULT"], "[redacted:token]");
        assert!(!found.values().any(|value| value.contains(secret)), "{found:?}");
    }

    #[test]
    fn what_is_too_large_for_a_datagram_comes_in_a_sealed_file() {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let folder = tempfile::tempdir().unwrap();
        let receiver = UnixDatagram::bind(folder.path().join("s")).unwrap();
        let journal = Journal::at(&folder.path().join("s")).unwrap();
        let large = "y".repeat(4 << 20);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(journal), || tracing::info!(record = large, "large"));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&receiver, &mut [std::io::IoSliceMut::new(&mut [0; 8])], &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
            .unwrap();
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        use std::os::unix::fs::FileExt as _;
        let file = File::from(file.unwrap());
        let mut entry = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut entry, 0).unwrap();
        assert_eq!(fields(&entry)["RECORD"].len(), large.len());
        assert!(file.write_at(b"x", 0).is_err(), "it is sealed");
    }
}
