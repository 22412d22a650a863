//! `brigd config`: what a configuration would be, without running it.
//!
//! Owns the words of both commands. Never starts anything, and never shows a secret:
//! there is none in a configuration, only names of credentials.

use super::layers::{Layers, joined};
use super::{Config, ConfigFault};
use crate::say::{complain, print};
use crate::survey::{self, Found, Given};
use brig_protocol::escape::ShowPath as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the service's configuration is.
pub(crate) const DEFAULT_PATH: &str = "/etc/brig/brig.toml";

/// Look at the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigTool {
    /// Read a configuration and all that belongs to it (drop-ins, functions and their
    /// credentials, the state directory, who may decide), and say everything that is wrong.
    Check {
        /// The configuration file; `conf.d` and `functions.d` beside it are read as well.
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
        /// Take warnings for errors.
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        given: Given,
    },
    /// Print what is set, and where.
    Show {
        /// The configuration file; `conf.d` beside it is read as well.
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
        /// Also what is not set: everything that holds.
        #[arg(long)]
        effective: bool,
    },
}

impl ConfigTool {
    /// Does the work: 0 when it is valid, 2 when it is not.
    pub(crate) fn run(&self) -> ExitCode {
        let told = match self {
            Self::Check { file, strict, given } => return check(&survey::look(file, given), *strict),
            Self::Show { file, effective } => show(file, *effective),
        };
        match told {
            Ok(text) => print(&text),
            Err(fault) => {
                fault.each().iter().for_each(|fault| complain(&fault.to_string()));
                ExitCode::from(2)
            }
        }
    }
}

/// Says everything that was found: 0 when brigd would start with all of it.
fn check(found: &Found, strict: bool) -> ExitCode {
    for fault in &found.errors {
        complain(fault);
    }
    for warning in &found.warnings {
        complain(&format!("warning: {warning}"));
    }
    let (errors, warnings) = (found.errors.len(), found.warnings.len());
    if errors > 0 || (strict && warnings > 0) {
        let strictly = if errors == 0 { ", and --strict takes them for errors" } else { "" };
        complain(&format!("errors: {errors}, warnings: {warnings}{strictly}"));
        return ExitCode::from(2);
    }
    let files: Vec<String> = found.files.iter().map(|file| file.shown().to_string()).collect();
    let count = found.functions;
    print(&format!("the configuration is valid: {}; functions configured: {count}; warnings: {warnings}\n", files.join(", ")))
}

fn show(file: &Path, effective: bool) -> Result<String, ConfigFault> {
    let layers = Layers::read(file)?;
    let config = layers.config()?;
    let mut text = String::new();
    write_table(&as_table(&config)?, "", &layers, effective, &mut text);
    Ok(text)
}

/// Everything that holds, limits included.
fn as_table(config: &Config) -> Result<toml::Table, ConfigFault> {
    let unshown = |fault: toml::ser::Error| super::fault("the configuration", "what can not be shown", &fault.to_string());
    let mut table = toml::Table::try_from(config).map_err(unshown)?;
    let ceilings = serde_json::to_value(config.ceilings()?).unwrap_or_default();
    let limits = brig_protocol::limits::LIMITS.iter().filter_map(|row| {
        let value = ceilings.get(row.name)?.as_i64()?;
        Some((row.setting.strip_prefix("limits.")?.to_owned(), toml::Value::Integer(value)))
    });
    table.insert("limits".to_owned(), toml::Value::Table(limits.collect()));
    Ok(table)
}

fn write_table(table: &toml::Table, path: &str, layers: &Layers, effective: bool, text: &mut String) {
    let mut lines = String::new();
    for (key, value) in table.iter().filter(|(_, value)| !value.is_table()) {
        let setting = joined(path, key);
        let key = joined("", key);
        match layers.place(&setting) {
            Some(place) => lines.push_str(&format!("{key} = {value}  # {place}\n")),
            None if effective => lines.push_str(&format!("{key} = {value}  # default\n")),
            None => {}
        }
    }
    if !lines.is_empty() {
        if !path.is_empty() {
            text.push_str(&format!("{}[{path}]\n", if text.is_empty() { "" } else { "\n" }));
        }
        text.push_str(&lines);
    }
    for (key, value) in table {
        if let Some(inner) = value.as_table() {
            write_table(inner, &joined(path, key), layers, effective, text);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::say::{LINE_BYTES, lines};

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brig.toml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn what_a_file_holds_is_told_without_moving_the_terminal_and_no_line_is_endless() {
        let (_folder, path) = file("[server]\n\"\\u001b[2J\\u202e\" = 1\n");
        let found = survey::look(&path, &Given::default());
        let told: Vec<String> = found.errors.iter().map(|fault| lines(fault, LINE_BYTES)).collect();
        assert!(told.iter().any(|line| line.contains("\\u{1b}[2J\\u{202e}")), "{told:?}");
        assert!(!told.concat().contains(['\u{1b}', '\u{202e}']), "{told:?}");
        let (_folder, path) = file(&format!("a={}", "[".repeat(100_000)));
        let found = survey::look(&path, &Given::default());
        assert!(found.errors.iter().all(|fault| lines(fault, LINE_BYTES).lines().all(|line| line.len() < 2 * LINE_BYTES)));
    }

    #[test]
    fn what_is_set_is_shown_with_its_place_and_nothing_else_unless_asked_for() {
        let (_folder, path) = file("[queue]\nrunning = 5\n[limits]\ncpu_ms = 2000\n");
        let set = show(&path, false).unwrap();
        assert!(set.contains("[queue]\nrunning = 5  # ") && set.contains("brig.toml:2"), "{set}");
        assert!(set.contains("cpu_ms = 2000  # ") && !set.contains("default"), "{set}");
        let all = show(&path, true).unwrap();
        assert!(all.contains("waiting = 4096  # default") && all.contains("heap_bytes = "), "{all}");
    }

    #[test]
    fn what_is_shown_is_a_configuration_that_means_the_same() {
        let (_folder, path) = file("[queue]\nrunning = 5\n[workers]\nuid_range = [1000, 200]\n");
        let shown = show(&path, true).unwrap();
        let (_again, again) = file(&shown);
        assert!(Layers::read(&again).and_then(|layers| layers.config()).is_ok(), "{shown}");
        assert_eq!(show(&again, true).unwrap().lines().count(), shown.lines().count());
    }

    #[test]
    fn a_configuration_that_is_wrong_is_not_shown() {
        let (_folder, path) = file("[queue]\nrunning = 0\n");
        assert!(survey::look(&path, &Given::default()).errors.concat().contains("brig.toml:2"));
        assert!(show(&path, false).is_err());
    }
}
