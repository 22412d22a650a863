//! Lays out the program: the functions that every worker runs stand side by side, and so do
//! the constants that they name.
//! Owns: the order of both in `brig-worker`. Never: what they do.
//!
//! A worker faults in the text that it runs, anew after each fork, and the kernel maps
//! 64 KiB around each fault. Where the linker puts them, the functions of one evaluation
//! are spread over nearly all of the text; together they are a sixth of it.
#![expect(clippy::expect_used, reason = "a build that can not be made stops, and says why")]

use std::{env, fmt::Write as _, fs, path::Path};

/// One input section a line, alone or behind its object file in brackets; `*` stands for
/// the compiler's hashes. `benches/order/trace.py` makes it.
const LIST: &str = "hot-functions.txt";

fn main() {
    println!("cargo::rerun-if-changed={LIST}");
    let target = |part| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Where these are the target, the linker is GNU's or LLVM's, and both take the script.
    let known = target("OS") == "linux" && target("ENV") == "gnu";
    if !known || env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    let list = fs::read_to_string(LIST).expect("hot-functions.txt is beside build.rs");
    let folder = env::var("OUT_DIR").expect("cargo says where to write");
    let path = Path::new(&folder).join("order.ld");
    fs::write(&path, script(&list)).expect("cargo's folder can be written to");
    println!("cargo::rustc-link-arg-bin=brig-worker=-Wl,-T,{}", path.display());
}

/// One more output section before the text, and one before the constants; all else stays as
/// the linker has it. A name that no object file has is passed over: an old list makes a
/// slower program, never a wrong one.
fn script(list: &str) -> String {
    let lines = || list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut script = String::new();
    for kind in [".text", ".rodata"] {
        writeln!(script, "SECTIONS {{\n  {kind}.every_worker : {{").expect("a string takes all");
        for line in lines().filter(|line| line.contains(kind)) {
            let input = if line.ends_with(')') { format!("*{line}") } else { format!("*({line})") };
            writeln!(script, "    {input}").expect("a string takes all");
        }
        writeln!(script, "  }}\n}} INSERT BEFORE {kind};").expect("a string takes all");
    }
    script
}
