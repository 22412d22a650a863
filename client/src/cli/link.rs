//! `brig link`: a command of each collection, and being called as one.
//!
//! Owns the links in one directory. Never replaces or removes anything but a link to this
//! very binary, and never makes one to a path that depends on where it is read.

use super::args::Global;
use super::call::names;
use super::exit::Exit;
use super::shell_args::LinkArgs;
use super::{Fault, session, terminal};
use brig::FunctionListed;
use brig::protocol::escape::ShowPath as _;
use brig::protocol::escape::escaped;
use brig::protocol::names::kebab;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Before the name of a collection.
const PREFIX: &str = "brig-";
/// What brigd looks for beside itself: a link of that name could be taken for it.
const TAKEN: &[&str] = &["brig-worker"];

/// The arguments as if `brig call` had been written, when the name is that of a link, and
/// whether it was.
pub(crate) fn arguments(mut all: impl Iterator<Item = OsString>) -> (Vec<OsString>, bool) {
    let name = all.next().unwrap_or_else(|| "brig".into());
    let file = Path::new(&name).file_name().and_then(|file| file.to_str()).and_then(|file| file.strip_prefix(PREFIX));
    match file.filter(|collection| !collection.is_empty()) {
        Some(collection) => {
            let words = ["brig".into(), "call".into(), collection.into()];
            (words.into_iter().chain(all).collect(), true)
        }
        None => (std::iter::once(name).chain(all).collect(), false),
    }
}

/// Makes links, or removes them, and says which.
pub(crate) async fn link(global: &Global, args: LinkArgs) -> Result<Exit, Fault> {
    if !args.folder.is_dir() {
        return Err(Fault::usage(format!("{} is no directory", shown(&args.folder))));
    }
    let own = own_binary()?;
    if args.remove {
        return remove(&args.folder, &own);
    }
    let client = session::service(global).await?;
    let listed = client.configured_functions(None).await;
    client.close().await;
    make(&args.folder, &own, &commands(&listed?)?)
}

/// This binary, as the kernel names it.
fn own_binary() -> Result<PathBuf, Fault> {
    let own = std::env::current_exe().map_err(|fault| Fault::usage(format!("this binary has no path: {fault}")))?;
    if own.is_absolute() && own.is_file() { Ok(own) } else { Err(Fault::usage(format!("this binary is no longer at {}", shown(&own)))) }
}

/// A command for each collection.
fn commands(listed: &[FunctionListed]) -> Result<BTreeSet<String>, Fault> {
    let collections: BTreeSet<&str> = listed.iter().map(|function| function.collection.as_str()).collect();
    let mut commands = BTreeSet::new();
    for collection in collections {
        names::of_collection(listed, &kebab(collection))?;
        let command = format!("{PREFIX}{}", kebab(collection));
        if !is_file_name(&command) || TAKEN.contains(&command.as_str()) {
            let why = format!("the collection {:?} can not be a command: {command:?} is no name for one", escaped(collection, 100));
            return Err(Fault::usage(escaped(&why, 500)));
        }
        commands.insert(command);
    }
    Ok(commands)
}

/// Names that brigd has checked are; another brigd's word for it is not enough.
fn is_file_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '$' | '_')) && name.len() > PREFIX.len() && name.len() <= 128
}

/// All of them or, where something is in the way, none.
fn make(folder: &Path, own: &Path, commands: &BTreeSet<String>) -> Result<Exit, Fault> {
    let mut missing = Vec::new();
    for command in commands {
        let path = folder.join(command);
        match std::fs::symlink_metadata(&path) {
            Err(fault) if fault.kind() == ErrorKind::NotFound => missing.push(path),
            Err(fault) => return Err(Fault::usage(format!("{} can not be looked at: {fault}", shown(&path)))),
            Ok(_) if leads_to(&path, own) => {}
            Ok(_) => {
                return Err(Fault::usage(format!(
                    "{} is there already, and is no link to {}; nothing was changed",
                    shown(&path),
                    shown(own)
                )));
            }
        }
    }
    for path in &missing {
        // Fails where something has come there since.
        std::os::unix::fs::symlink(own, path).map_err(|fault| Fault::usage(format!("{} can not be made: {fault}", shown(path))))?;
        terminal::out(&format!("linked {} -> {}\n", shown(path), shown(own)));
    }
    let there = commands.len() - missing.len();
    if there > 0 || commands.is_empty() {
        terminal::out(&format!("{there} links were there already; {} collections are configured for you\n", commands.len()));
    }
    Ok(Exit::Succeeded)
}

fn remove(folder: &Path, own: &Path) -> Result<Exit, Fault> {
    let wrong = |fault: std::io::Error| Fault::usage(format!("{} can not be read: {fault}", shown(folder)));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) && leads_to(&entry.path(), own) {
            found.push(entry.path());
        }
    }
    found.sort();
    for path in &found {
        std::fs::remove_file(path).map_err(|fault| Fault::usage(format!("{} can not be removed: {fault}", shown(path))))?;
        terminal::out(&format!("removed {}\n", shown(path)));
    }
    if found.is_empty() {
        terminal::out(&format!("{} has no links to {}\n", shown(folder), shown(own)));
    }
    Ok(Exit::Succeeded)
}

/// Whether it is a link, with exactly this in it.
fn leads_to(path: &Path, own: &Path) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == own)
}

fn shown(path: &Path) -> String {
    escaped(&path.shown().to_string(), 1000)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn words(all: &[&str]) -> (Vec<OsString>, bool) {
        arguments(all.iter().map(OsString::from))
    }

    #[test]
    fn a_link_is_the_command_that_its_name_says() {
        assert_eq!(
            words(&["/usr/bin/brig-order-store", "list", "--raw"]),
            (["brig", "call", "order-store", "list", "--raw"].map(Into::into).to_vec(), true)
        );
        for plain in ["brig", "/opt/brig", "brig-", "", "/x/brig-y/brig"] {
            assert_eq!(words(&[plain, "eval"]), ([plain, "eval"].map(Into::into).to_vec(), false), "{plain}");
        }
    }

    #[test]
    fn what_is_no_own_link_is_never_replaced_and_then_none_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let own = Path::new("/opt/brig");
        let commands: BTreeSet<String> = ["brig-a", "brig-b"].map(str::to_owned).into();
        for other in ["file", "link", "folder"] {
            let path = folder.path().join("brig-b");
            match other {
                "file" => std::fs::write(&path, "x").unwrap(),
                "folder" => std::fs::create_dir(&path).unwrap(),
                _ => std::os::unix::fs::symlink("/elsewhere/brig", &path).unwrap(),
            }
            let told = make(folder.path(), own, &commands).unwrap_err().message;
            assert!(told.contains("brig-b is there already"), "{told}");
            assert!(std::fs::symlink_metadata(folder.path().join("brig-a")).is_err());
            remove(folder.path(), own).unwrap();
            assert!(std::fs::symlink_metadata(&path).is_ok(), "{other}");
            if other == "folder" { std::fs::remove_dir(&path).unwrap() } else { std::fs::remove_file(&path).unwrap() }
        }
        make(folder.path(), own, &commands).unwrap();
        make(folder.path(), own, &commands).unwrap();
        assert_eq!(std::fs::read_link(folder.path().join("brig-a")).unwrap(), own);
        remove(folder.path(), own).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_collection_whose_link_would_pass_for_a_part_of_brig_or_leave_the_directory_has_none() {
        for collection in ["worker", "a/../../b", "..", "a\u{1b}"] {
            let function = FunctionListed {
                function: format!("{collection}.f"),
                collection: collection.to_owned(),
                description: String::new(),
                effect: brig::Effect::Read,
            };
            let told = commands(&[function]).unwrap_err().message;
            assert!(told.contains("can not be a command") && !told.contains('\u{1b}'), "{told}");
        }
    }
}
