//! The packages: what is in them, that nothing in them grants anything, and that the same
//! binaries give the same bytes. What they do when installed, `tests/systemd/run` tries.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use acceptance::binary;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const FILES: [(&str, &str); 29] = [
    ("usr/bin/brig", "-rwxr-xr-x"),
    ("usr/bin/brigd", "-rwxr-xr-x"),
    ("usr/libexec/brig/brig-worker", "-rwxr-xr-x"),
    ("usr/lib/systemd/system/brigd.service", "-rw-r--r--"),
    ("usr/lib/systemd/system/brigd.socket", "-rw-r--r--"),
    ("usr/lib/systemd/system/brigd-admin.socket", "-rw-r--r--"),
    ("usr/lib/systemd/system/brig.slice", "-rw-r--r--"),
    ("usr/lib/systemd/system-preset/80-brig.preset", "-rw-r--r--"),
    ("usr/lib/sysusers.d/brig.conf", "-rw-r--r--"),
    ("usr/lib/tmpfiles.d/brig.conf", "-rw-r--r--"),
    ("etc/brig/brig.toml", "-rw-r--r--"),
    ("etc/brig/conf.d/", "drwxr-xr-x"),
    ("etc/brig/functions.d/", "drwxr-xr-x"),
    ("usr/share/man/man8/brigd.8.gz", "-rw-r--r--"),
    ("usr/share/man/man1/brig.1.gz", "-rw-r--r--"),
    ("usr/share/man/man1/brig-call.1.gz", "-rw-r--r--"),
    ("usr/share/man/man1/brig-evaluations-wait.1.gz", "-rw-r--r--"),
    ("usr/share/bash-completion/completions/brig", "-rw-r--r--"),
    ("usr/share/fish/vendor_completions.d/brig.fish", "-rw-r--r--"),
    ("usr/share/doc/brig/operations.md", "-rw-r--r--"),
    ("usr/share/doc/brig/units.md", "-rw-r--r--"),
    ("usr/share/doc/brig/copyright", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/delegate.conf", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/namespaces.conf", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/credentials.conf", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/alerts.yml", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/dashboard.json", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/loopback.conf", "-rw-r--r--"),
    ("usr/share/doc/brig/examples/metrics-socket.conf", "-rw-r--r--"),
];

/// Each kind of package has the completions of zsh where its distributions look for them.
const ZSH_DEB: (&str, &str) = ("usr/share/zsh/vendor-completions/_brig", "-rw-r--r--");
const ZSH_RPM: (&str, &str) = ("usr/share/zsh/site-functions/_brig", "-rw-r--r--");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The binaries of this build without what the packages leave out: taken out once, not for
/// each of them.
fn binaries() -> &'static Path {
    static STRIPPED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = STRIPPED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for name in ["brig", "brigd", "brig-worker"] {
            said("strip", &["-o", &folder.path().join(name).display().to_string(), &binary(name).display().to_string()]);
        }
        folder
    });
    folder.path()
}

fn built(kind: &str, folder: &Path) -> Result<PathBuf, String> {
    let output = Command::new(root().join("packaging/build"))
        .args([kind.as_ref(), folder.as_os_str()])
        .env("BRIG_BIN", binaries())
        .env("BRIG_COMPRESSION", "0")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(PathBuf::from(said.trim()))
}

/// Made once for all tests.
fn deb() -> &'static Path {
    static DEB: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = DEB.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = built("deb", folder.path()).unwrap_or_else(|said| panic!("{said}"));
        (folder, path)
    });
    path
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn has(program: &str) -> bool {
    std::env::var("PATH").unwrap_or_default().split(':').any(|folder| Path::new(folder).join(program).exists())
}

#[test]
fn the_same_binaries_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let again = built("deb", folder.path()).unwrap_or_else(|said| panic!("{said}"));
    assert!(fs::read(deb()).unwrap() == fs::read(&again).unwrap(), "two builds differ");
}

#[test]
fn the_deb_has_every_file_with_its_mode_and_owned_by_root() {
    let listing = said("dpkg-deb", &["--contents", &deb().display().to_string()]);
    let found: BTreeMap<&str, (&str, &str)> = listing
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            Some((fields.get(5)?.trim_start_matches("./"), (*fields.first()?, *fields.get(1)?)))
        })
        .collect();
    for (path, mode) in FILES.into_iter().chain([ZSH_DEB]) {
        assert_eq!(found.get(path).map(|(mode, _)| *mode), Some(mode), "{path}");
    }
    for (path, (mode, owner)) in &found {
        assert_eq!(*owner, "root/root", "{path}");
        assert!(!mode.contains('s') && mode.as_bytes().get(8) != Some(&b'w'), "{path} is {mode}");
    }
}

#[test]
fn what_an_operator_may_change_is_marked_so_and_nothing_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    said("dpkg-deb", &["--raw-extract", &deb().display().to_string(), &place]);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("DEBIAN/conffiles"), "/etc/brig/brig.toml\n");
    let configuration = read("etc/brig/brig.toml");
    let set: Vec<&str> = configuration.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(set.is_empty(), "{set:?}");
    assert!(configuration.contains("principals"), "it says how to grant");
    for script in ["postinst", "prerm", "postrm"] {
        let text = read(&format!("DEBIAN/{script}"));
        for word in ["usermod", "gpasswd", "adduser", "chmod"] {
            assert!(!text.contains(word), "{script} has {word}");
        }
        said("sh", &["-n", &folder.path().join("DEBIAN").join(script).display().to_string()]);
    }
    let postrm = read("DEBIAN/postrm");
    let (removal, purge) = postrm.split_once("purge)").unwrap();
    assert!(purge.contains("/var/lib/brig") && !removal.contains("rm -rf"), "state goes only with purge");
}

#[test]
fn what_the_command_says_of_itself_is_in_the_package_as_it_says_it() {
    let folder = tempfile::tempdir().unwrap();
    said("dpkg-deb", &["--raw-extract", &deb().display().to_string(), &folder.path().display().to_string()]);
    let brig = binary("brig").display().to_string();
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/brig"),
        ("zsh", "usr/share/zsh/vendor-completions/_brig"),
        ("fish", "usr/share/fish/vendor_completions.d/brig.fish"),
    ] {
        assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), said(&brig, &["completions", shell]), "{shell}");
    }
    let page = said("gzip", &["-dc", &folder.path().join("usr/share/man/man1/brig-call.1.gz").display().to_string()]);
    assert!(page.contains("idempotency\\-key") && page.contains("unknown"), "{page}");
    for entry in fs::read_dir(folder.path().join("usr/share/man/man1")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("brig") && name.ends_with(".1.gz") && !name.contains("__"), "{name}");
    }
}

/// It is written by hand, for what clap can not know, so that brigd need not hold it.
#[test]
fn the_man_page_of_brigd_names_all_its_options_and_tools() {
    let page = fs::read_to_string(root().join("packaging/man/brigd.8")).unwrap().replace('\\', "");
    let help = said(&binary("brigd").display().to_string(), &["--help"]);
    let words = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with("     "));
    let mut count = 0;
    for line in words {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let word = if first.starts_with("--") { first } else { words.find(|word| word.starts_with("--")).unwrap_or(first) };
        assert!(page.contains(word), "packaging/man/brigd.8 lacks {word:?}");
        count += 1;
    }
    assert!(count > 10, "{help}");
}

#[test]
fn lintian_has_nothing_to_say() {
    assert!(has("lintian"), "lintian is not installed; tests/run installs it");
    // The changelog of a package that Debian does not carry closes no bug there.
    let suppressed = "initial-upload-closes-no-bugs";
    let output = Command::new("lintian")
        .args(["--fail-on", "error,warning", "--suppress-tags", suppressed, "--allow-root"])
        .arg(deb())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_rpm_has_the_same_files_and_the_same_bytes_twice() {
    assert!(has("rpmbuild"), "rpmbuild is not installed; tests/run installs it");
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = built("rpm", one.path()).unwrap_or_else(|said| panic!("{said}"));
    let second = built("rpm", two.path()).unwrap_or_else(|said| panic!("{said}"));
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "two builds differ");
    let listing = said("rpm", &["-qlpv", &first.display().to_string()]);
    for (path, mode) in FILES.iter().chain([&ZSH_RPM]).filter(|(path, _)| !path.ends_with("copyright")) {
        let path = format!("/{}", path.trim_end_matches('/'));
        let line = listing.lines().find(|line| line.ends_with(&format!(" {path}"))).unwrap_or_else(|| panic!("no {path}"));
        assert!(line.starts_with(mode) && line.contains(" root "), "{line}");
    }
    assert_eq!(said("rpm", &["-qcp", &first.display().to_string()]).trim(), "/etc/brig/brig.toml");
    let scripts = said("rpm", &["-qp", "--scripts", &first.display().to_string()]);
    assert!(scripts.contains("systemd-sysusers") && scripts.contains("try-restart") && !scripts.contains("rm -rf"), "{scripts}");
}
