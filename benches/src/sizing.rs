//! The table of docs/operations.md: what an operator needs to say how big a machine is to be.
//!
//! Owns its rows and how each is measured. Figures are of this machine and this moment:
//! run it where nothing else does. `--sizing` prints it, and nothing else is measured.

use crate::line::throughput_of;
use crate::memory::{rollup_kib, workers};
use acceptance::{Brigd, BrigdOptions, Client};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

/// The names of the rows, as the guide has them; `{n}` is a number of cores.
pub(crate) const ROWS: [&str; 7] = [
    "evaluations of `1+2` a second, 8 clients, on {n} core(s)",
    "brigd, idle (RSS)",
    "a ready worker (PSS)",
    "a worker with a program that holds 16 MiB, besides these (PSS)",
    "a vm in which `1` was evaluated (PSS)",
    "a connection (brigd's RSS)",
    "an evaluation that waits, 1 KiB of program (brigd's RSS)",
];
/// What the program of one row holds, in KiB.
const HELD_KIB: f64 = 16.0 * 1024.0;
/// Evaluations and vms that are there at once while their workers are measured.
const TOGETHER: usize = 8;

/// How often things are done.
struct Size {
    evaluations: usize,
    many: usize,
}

/// Prints the table.
pub(crate) fn print(quick: bool) {
    let size = if quick { Size { evaluations: 200, many: 50 } } else { Size { evaluations: 4000, many: 1000 } };
    println!("| what | measured |\n|---|---|");
    let [rate, idle, ready, holding, vm, connection, waiting] = ROWS;
    for (cores, per_second) in by_cores(&size) {
        println!("| {} | {per_second:.0} |", rate.replace("{n}", &cores.to_string()));
    }
    let row = |name: &str, kib: f64| println!("| {name} | {kib:.0} KiB |");
    let brigd = Brigd::start();
    row(idle, rss(&brigd));
    row(ready, median_pss(&brigd, 0));
    row(holding, while_evaluating(&brigd) - HELD_KIB);
    row(vm, of_a_vm());
    row(connection, of_a_connection(&size));
    row(waiting, of_one_that_waits(&size));
}

/// Evaluations a second with brigd and its clients on so many cores.
fn by_cores(size: &Size) -> Vec<(usize, f64)> {
    let all = sched_getaffinity(None).expect("the cores of this process");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
    let mut found = Vec::new();
    let mut count = 1;
    while count <= cores.len() {
        let mut some = CpuSet::new();
        cores.iter().take(count).for_each(|core| some.set(*core));
        sched_setaffinity(None, &some).expect("fewer cores");
        // Born on these cores, it stays there.
        let brigd = Brigd::start();
        throughput_of(&brigd, TOGETHER, size.evaluations / TOGETHER / 4);
        found.push((count, throughput_of(&brigd, TOGETHER, size.evaluations / TOGETHER)));
        count = if count * 2 > cores.len() && count < cores.len() { cores.len() } else { count * 2 };
    }
    sched_setaffinity(None, &all).expect("all cores again");
    found
}

fn rss(brigd: &Brigd) -> f64 {
    brigd.rss_kib() as f64
}

/// The median of all workers that are bigger than that.
fn median_pss(brigd: &Brigd, least_kib: u32) -> f64 {
    let mut sizes: Vec<f64> = workers(brigd).into_iter().filter_map(|pid| rollup_kib(pid, "Pss:")).collect();
    sizes.retain(|size| *size >= f64::from(least_kib));
    sizes.sort_by(f64::total_cmp);
    *sizes.get(sizes.len() / 2).expect("a worker")
}

/// Starts a program that says that it is there by a call, and waits for the answer.
fn held(client: &mut Client, source: &str) -> Value {
    client.request("evaluate", &json!({"source": source, "timeoutMs": 60_000, "hostFunctions": {"svc": {"there": {}}}}));
    let call = client.next_message();
    assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
    call
}

fn while_evaluating(brigd: &Brigd) -> f64 {
    let mut clients: Vec<Client> = (0..TOGETHER).map(|_| brigd.connect()).collect();
    for client in &mut clients {
        held(client, "const all = new Uint8Array(16 << 20).fill(1); await svc.there({}); return all.length");
    }
    median_pss(brigd, 16 << 10)
}

fn of_a_vm() -> f64 {
    let brigd = BrigdOptions::default().config("[workers]\nready = 1\n[vms]\nmost_each = 8\n").start();
    let mut client = brigd.connect();
    for _ in 0..TOGETHER {
        let vm = client.result("vm.create", &json!({}));
        let name = vm.get("vm").expect("its name");
        client.result("evaluate", &json!({"source": "1", "vm": name}));
    }
    median_pss(&brigd, 0)
}

fn of_a_connection(size: &Size) -> f64 {
    let most = size.many * 2;
    let brigd = BrigdOptions::default().config(&format!("[clients]\nconnections = {most}\nconnections_each = {most}\n")).start();
    let mut first = brigd.connect();
    first.evaluate("1");
    let before = rss(&brigd);
    let others: Vec<Client> = (0..size.many).map(|_| greeted(&brigd)).collect();
    (rss(&brigd) - before) / others.len() as f64
}

/// A connection that brigd has read from.
fn greeted(brigd: &Brigd) -> Client {
    let mut client = brigd.connect();
    client.call("vm.list", &json!({}));
    client
}

fn of_one_that_waits(size: &Size) -> f64 {
    let most = size.many + 2;
    let config = format!(
        "[queue]\nrunning = 1\nrunning_each = 1\nwaiting = {most}\nwaiting_each = {most}\nwait_ms = 60000\n[clients]\nrequests_in_flight = {most}\n"
    );
    let brigd = BrigdOptions::default().config(&config).start();
    let mut client = brigd.connect();
    held(&mut client, "return await svc.there({})");
    let mut other = brigd.connect();
    other.call("vm.list", &json!({}));
    let before = rss(&brigd);
    let source = format!("{}1", " ".repeat(1023));
    for _ in 0..size.many {
        other.request("evaluate", &json!({"source": source}));
    }
    // Read after all of the others.
    other.call("vm.list", &json!({}));
    (rss(&brigd) - before) / size.many as f64
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn the_table_of_the_operations_guide_has_each_row() {
        let guide = include_str!("../../docs/operations.md");
        for row in ROWS {
            let (start, end) = row.split_once("{n}").unwrap_or((row, ""));
            let found = guide
                .lines()
                .any(|line| line.strip_prefix("| ").is_some_and(|line| line.starts_with(start) && line.contains(&format!("{end} |"))));
            assert!(found, "docs/operations.md has no row {row:?}");
        }
    }
}
