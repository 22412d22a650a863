//! Memory of brigd and of ready workers, as the kernel counts it.

use crate::report::Report;
use acceptance::Brigd;

pub(crate) fn rollup_kib(pid: u32, field: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(field)).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
}

/// The workers: processes below brigd that are children of the nursery proper.
pub(crate) fn workers(brigd: &Brigd) -> Vec<u32> {
    let all = brigd.descendants();
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let parents: Vec<u32> = all.iter().filter_map(|(pid, _)| parent(*pid)).collect();
    all.iter().map(|(pid, _)| *pid).filter(|pid| !parents.contains(pid)).collect()
}

pub(crate) fn idle(brigd: &Brigd, report: &mut Report) {
    report.count("(d) brigd idle, RSS", brigd.rss_kib() as f64, "KiB");
    let mut sizes: Vec<f64> = workers(brigd).into_iter().filter_map(|pid| rollup_kib(pid, "Pss:")).collect();
    sizes.sort_by(f64::total_cmp);
    if let Some(median) = sizes.get(sizes.len() / 2) {
        report.count("(d) ready worker, PSS", *median, "KiB");
        report.count("(d) ready workers", sizes.len() as f64, "");
    }
}

pub(crate) fn after(brigd: &Brigd, report: &mut Report) {
    report.count("(d) brigd after all of the above, RSS", brigd.rss_kib() as f64, "KiB");
}
