//! Credentials by name.
//!
//! Owns reading them, once, from the folder that systemd gives (`$CREDENTIALS_DIRECTORY`)
//! or from a file that only root or brigd's user can read, and wiping them when they are
//! let go. Never shows one: what is printed of it is its name.

use super::ownership::{self, Privacy};
use crate::host::redact::LEAST_BYTES;
use brig_protocol::escape::ShowPath as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Largest credential, in bytes.
const MOST_BYTES: usize = 8 * 1024;

/// One credential.
pub(crate) struct Credential {
    /// Its name.
    pub(crate) name: String,
    text: Zeroizing<Vec<u8>>,
}

impl Credential {
    /// Its bytes, without the line end that editors leave.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.text
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Credential").field(&self.name).finish()
    }
}

/// Where credentials without a file come from, and for whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// `$CREDENTIALS_DIRECTORY`.
    pub(crate) folder: Option<PathBuf>,
    /// As whom the brigd runs that is to use them, where another looks at its files.
    pub(crate) own: Option<u32>,
}

impl Source {
    /// As brigd was started.
    pub(crate) fn of_process() -> Self {
        Self { folder: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from), own: None }
    }

    /// Reads the credential `name`.
    ///
    /// # Errors
    /// A half sentence that follows its place; it never holds anything of the credential.
    pub(crate) fn read(&self, name: &str, file: Option<&Path>) -> Result<Credential, String> {
        check_name(name)?;
        let (path, privacy) = match (file, &self.folder) {
            (Some(file), _) if file.is_absolute() => (file.to_owned(), Privacy::OwnerOnly),
            (Some(file), _) => return Err(format!("names the file {}; the path must be absolute", file.shown())),
            (None, Some(folder)) => (folder.join(name), Privacy::NotByOthers),
            (None, None) => {
                return Err("has no `file`, and brigd was started without $CREDENTIALS_DIRECTORY; name a file, or add \
                            LoadCredential= to the unit"
                    .to_owned());
            }
        };
        let own = self.own.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let text = Zeroizing::new(ownership::read_for(&path, MOST_BYTES, privacy, own)?);
        let text = trimmed(text);
        if text.len() < LEAST_BYTES {
            return Err(format!(
                "has less than {LEAST_BYTES} bytes: so short a credential can not be told from other text, and so not be redacted"
            ));
        }
        Ok(Credential { name: name.to_owned(), text })
    }
}

/// Every credential of one collection.
///
/// # Errors
/// Each that can not be read, with its name.
pub(crate) fn read_all<'n>(
    source: &Source,
    wanted: impl Iterator<Item = (&'n String, Option<&'n Path>)>,
) -> Result<BTreeMap<String, Arc<Credential>>, Vec<String>> {
    let (mut read, mut faults) = (BTreeMap::new(), Vec::new());
    for (name, file) in wanted {
        match source.read(name, file) {
            Ok(credential) => {
                read.insert(name.clone(), Arc::new(credential));
            }
            Err(fault) => faults.push(format!("credentials.{name} {fault}")),
        }
    }
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

/// A name that is a file name, and can stand in a mark within JSON.
fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.bytes().all(fits) {
        return Err("can not be the name of a credential: 1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.`".to_owned());
    }
    Ok(())
}

/// Without one line end; what is cut off is a copy no longer.
fn trimmed(mut text: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    if text.last() == Some(&b'\n') {
        text.pop();
        if text.last() == Some(&b'\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn folder_with(mode: u32, text: &str) -> (tempfile::TempDir, Source) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let source = Source { folder: Some(folder.path().to_owned()), own: None };
        (folder, source)
    }

    #[test]
    fn a_credential_is_read_without_its_line_end_and_never_shown() {
        let (_folder, source) = folder_with(0o400, "hunter2-hunter2\n");
        let credential = source.read("token", None).unwrap();
        assert_eq!(credential.expose(), b"hunter2-hunter2");
        assert_eq!(format!("{credential:?}"), "Credential(\"token\")");
    }

    #[test]
    fn one_that_others_may_read_or_that_is_too_short_is_refused_and_not_shown() {
        for (mode, text, says) in
            [(0o644, "hunter2-hunter2", "chmod 0600"), (0o660, "hunter2-hunter2", "chmod go-w"), (0o600, "abc\n", "6 bytes")]
        {
            let (_folder, source) = folder_with(mode, text);
            let fault = source.read("token", None).unwrap_err();
            assert!(fault.contains(says) && !fault.contains("hunter2") && !fault.contains("abc"), "{fault}");
        }
    }

    #[test]
    fn a_file_of_the_operators_is_for_its_owner_only() {
        let (folder, source) = folder_with(0o640, "hunter2-hunter2");
        assert!(source.read("token", None).is_ok(), "systemd's access lists show as the group's bits");
        let fault = source.read("token", Some(&folder.path().join("token"))).unwrap_err();
        assert!(fault.contains("chmod 0600"), "{fault}");
        assert!(source.read("token", Some(Path::new("token"))).unwrap_err().contains("absolute"));
    }

    #[test]
    fn a_credential_of_the_user_that_brigd_will_run_as_is_its_own_whoever_looks() {
        const OTHER: u32 = 54_321;
        let (folder, source) = folder_with(0o400, "hunter2-hunter2");
        let of_other = Source { own: Some(OTHER), ..source.clone() };
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path().join("token"), Some(OTHER), None).unwrap();
            assert!(of_other.read("token", None).is_ok());
            assert!(source.read("token", None).unwrap_err().contains("belongs to user 54321"));
        } else {
            assert!(source.read("token", None).is_ok());
            assert!(of_other.read("token", None).unwrap_err().contains("brigd's user (54321)"));
        }
    }

    #[test]
    fn a_name_never_leads_out_of_the_folder() {
        let (_folder, source) = folder_with(0o400, "hunter2-hunter2");
        for name in ["../token", "/etc/passwd", ".", "..", "", "a\nb", ".hidden"] {
            assert!(source.read(name, None).unwrap_err().contains("name of a credential"), "{name}");
        }
        assert!(Source::default().read("token", None).unwrap_err().contains("LoadCredential="));
    }
}
