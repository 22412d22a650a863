//! Alert rules, the dashboard and the reference ask for what there is.

use super::*;

fn packaged(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)).expect("the file")
}

/// Names of metrics in an expression, with the values that it compares labels of ours to.
fn named_in(expression: &str) -> (BTreeSet<String>, Vec<(String, String)>) {
    let metrics = regex::Regex::new(r"\bbrig_[a-z0-9_]+").expect("a pattern");
    let matchers = regex::Regex::new(r#"\b([a-z_]+)\s*=~?\s*"([^"]*)""#).expect("a pattern");
    let words = matchers.captures_iter(expression).filter_map(|found| Some((found.get(1)?.as_str(), found.get(2)?.as_str())));
    let words = words.flat_map(|(label, values)| values.split('|').map(move |value| (label.to_owned(), value.to_owned())));
    (metrics.find_iter(expression).map(|found| found.as_str().to_owned()).collect(), words.collect())
}

/// Whether brigd shows what an expression asks for.
fn check_expression(figures: &Scraped, expression: &str) -> usize {
    let (names, words) = named_in(expression);
    for name in &names {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let kind = figures.types.get(base).or_else(|| figures.types.get(name));
        // Of these there is nothing before a function is configured, or a state directory.
        let later = ["brig_function_calls_total", "brig_function_duration_seconds", "brig_journal_bytes"].contains(&base);
        assert!(kind.is_some() || later, "{name} does not exist: {expression}");
        if kind.is_some_and(|kind| kind == "counter") {
            assert!(expression.contains("rate(") || expression.contains("increase("), "{name} only grows: {expression}");
        }
    }
    let closed = closed();
    for (label, value) in words.iter().filter(|(label, _)| !["job", "instance"].contains(&label.as_str())) {
        assert!(closed.get(label.as_str()).is_some_and(|words| words.contains(value.as_str())), "{label}={value} can not be: {expression}");
    }
    let mut depth = 0;
    for letter in expression.chars() {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        assert!(depth >= 0, "{expression}");
    }
    assert_eq!(depth, 0, "{expression}");
    names.len()
}

#[test]
fn the_alert_rules_ask_for_what_brigd_shows() {
    let figures = scrape(&with_port());
    let all = yaml_rust2::YamlLoader::load_from_str(&packaged("prometheus/alerts.yml")).expect("YAML");
    let groups = all.first().and_then(|file| file["groups"].as_vec()).expect("groups");
    let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_vec().expect("rules")).collect();
    let mut names = BTreeSet::new();
    for rule in &rules {
        let name = rule["alert"].as_str().expect("a name");
        assert!(names.insert(name), "{name} comes twice");
        assert!(check_expression(&figures, rule["expr"].as_str().expect("an expression")) > 0, "{name}");
        assert!(["info", "warning", "critical"].contains(&rule["labels"]["severity"].as_str().expect("a severity")), "{name}");
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].as_str().is_some_and(|text| text.ends_with('.')), "{name} has no {text}");
        }
    }
    assert!(names.len() > 10);
}

#[test]
fn the_dashboard_asks_for_what_brigd_shows_and_shows_all_of_it() {
    let figures = scrape(&with_port());
    let dashboard: Value = serde_json::from_str(&packaged("grafana/dashboard.json")).expect("JSON");
    let panels = dashboard.get("panels").and_then(Value::as_array).expect("panels");
    let (mut ids, mut shown) = (BTreeSet::new(), String::new());
    for panel in panels {
        let at = |pointer: &str| panel.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer}: {panel}"));
        assert!(ids.insert(at("/id")) && at("/gridPos/x") + at("/gridPos/w") <= 24, "{panel}");
        let targets = panel.get("targets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        assert!(panel.get("type") == Some(&json!("row")) || !targets.is_empty(), "{panel}");
        for target in targets {
            let expression = target.get("expr").and_then(Value::as_str).expect("an expression").replace("$__rate_interval", "5m");
            assert!(check_expression(&figures, &expression) > 0, "{panel}");
            writeln!(shown, "{expression}").expect("a line");
        }
    }
    // Left out knowingly: what is beside another figure, or only for whoever looks into it.
    let beside = [
        "brig_sandbox_layer",
        "brig_uptime_seconds",
        "brig_configured_functions",
        "brig_configured_files_disabled",
        "brig_approvals_asked_total",
        "brig_revoked",
        "brig_connections_total",
        "brig_bad_lines_total",
        "brig_stray_answers_total",
        "brig_journal_failures_total",
        "brig_reloads_total",
    ];
    for name in figures.types.keys().filter(|name| !beside.contains(&name.as_str())) {
        assert!(shown.contains(name.as_str()), "{name} is on no panel");
    }
}

#[test]
fn every_metric_is_in_the_reference_and_nothing_else_is() {
    let figures = scrape(&with_port());
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md")).expect("the reference");
    let rows: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("| `brig_")?.split('`').next()).collect();
    let later = ["function_calls_total", "function_duration_seconds", "journal_bytes"];
    let shown = figures.types.keys().filter_map(|name| name.strip_prefix("brig_")).chain(later).collect();
    assert_eq!(rows, shown);
}

/// Runs Prometheus' own linter.
fn promtool(what: &[&str], input: &str) {
    let mut file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a file");
    file.write_all(input.as_bytes()).expect("it is written");
    let mut linter = Command::new("promtool");
    linter.arg("check").args(what);
    if what.first() == Some(&"metrics") {
        linter.stdin(std::fs::File::open(file.path()).expect("the file"));
    } else {
        linter.arg(file.path());
    }
    let output = linter.output().expect("promtool, which tests/run installs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{what:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn the_linter_of_prometheus_takes_figures_alert_rules_and_each_query_of_the_dashboard() {
    let brigd = with_port();
    let figures = ask(connected(&port(&brigd)), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").1;
    promtool(&["metrics"], &figures);
    promtool(&["rules", "--lint=all", "--lint-fatal"], &packaged("prometheus/alerts.yml"));
    // A query is what a recording rule has.
    let dashboard: Value = serde_json::from_str(&packaged("grafana/dashboard.json")).expect("JSON");
    let targets = dashboard.get("panels").and_then(Value::as_array).expect("panels").iter();
    let targets = targets.filter_map(|panel| panel.get("targets")?.as_array()).flatten();
    let (mut rules, mut count) = ("groups:\n- name: dashboard\n  rules:\n".to_owned(), 0);
    for query in targets.filter_map(|target| target.get("expr")?.as_str()) {
        let query = json!(query.replace("$__rate_interval", "5m"));
        writeln!(rules, "  - {{record: 'panel:query:{count}', expr: {query}}}").expect("a line");
        count += 1;
    }
    assert!(count > 10, "{rules}");
    promtool(&["rules"], &rules);
}

#[test]
fn the_dashboard_uses_no_variable_that_it_does_not_define() {
    let text = packaged("grafana/dashboard.json");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let listed = dashboard.pointer("/templating/list").and_then(Value::as_array).expect("variables");
    let names: BTreeSet<&str> = listed.iter().filter_map(|one| one.get("name")?.as_str()).collect();
    let inputs: Vec<&Value> = dashboard.get("__inputs").and_then(Value::as_array).into_iter().flatten().collect();
    let inputs = inputs.iter().filter_map(|one| one.get("name")?.as_str());
    let defined: BTreeSet<&str> = names.into_iter().chain(inputs).chain(["__rate_interval", "__all"]).collect();
    let used = regex::Regex::new(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)").expect("a pattern");
    let used: BTreeSet<&str> = used.captures_iter(&text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    assert!(!used.is_empty() && used.is_subset(&defined), "used: {used:?}, defined: {defined:?}");
    for panel in dashboard.get("panels").and_then(Value::as_array).expect("panels") {
        let source = panel.pointer("/datasource/uid").and_then(Value::as_str);
        assert!(panel.get("type") == Some(&json!("row")) || source.is_some_and(|uid| uid.starts_with("${")), "{panel}");
    }
}
