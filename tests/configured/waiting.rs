//! Calls that wait for their place among those of one function, and what becomes of them
//! when a person agreed, an operator revokes, or a policy denies meanwhile.

use super::*;

#[test]
fn a_call_that_waits_for_its_place_does_not_run_once_a_reload_denies_it() {
    let place = Place::new();
    let fifo = gated(&place, "concurrency = 1");
    place.collection("other", &place.function("echo", "", "args = [\"echo\"]"));
    let config = |word: &str| {
        let folder = place.path("functions.d").display().to_string();
        format!("[principals.\"*\"]\ncallbacks = \"allow\"\nhost_function = {word:?}\n[functions]\ndir = {folder:?}\n")
    };
    let brigd = BrigdOptions::default().config(&config("allow")).admin().start();
    let mut client = brigd.connect();
    let first = client.request("functions.call", &json!({"function": "shop.gate"}));
    until("the first is in", || marks(&place) == 1);
    let alone = client.request("functions.call", &json!({"function": "shop.gate"}));
    // Once it asks its client, its call of the gate was allowed a whole program ago.
    let program = client.request(
        "evaluate",
        &json!({
            "source": "const gate = shop.gate({}); gate.catch(() => 0); await other.echo({}); await svc.told({}); await gate",
            "hostFunctions": {"svc": {"told": {}}},
        }),
    );
    let asked = client.next_message();
    assert_eq!(asked.pointer("/params/function"), Some(&json!("svc.told")), "{asked}");
    fs::write(brigd.folder().join("brig.toml"), config("deny")).expect("the configuration");
    brigd.admin().result("policy.reload", &json!({}));
    client.take_call(&asked, &mut Handlers::none().on("svc.told", json!({"kind": "static", "result": 1})));
    keep_open(&fifo);
    for _ in 0..3 {
        let answer = client.next_message();
        let id = answer.get("id").and_then(Value::as_u64).expect("its id");
        if id == first {
            assert_eq!(answer.pointer("/result/value"), Some(&json!(true)), "{answer}");
            continue;
        }
        assert!(id == alone || id == program, "{answer}");
        let call = if id == alone { "/result/call" } else { "/result/calls/0" };
        assert_eq!(answer.pointer(&format!("{call}/state")), Some(&json!("refused")), "{answer}");
        assert_eq!(answer.pointer(&format!("{call}/code")), Some(&json!("permission_denied")), "{answer}");
    }
    assert_eq!(marks(&place), 1);
}

/// Who decides about calls of the gate in [`approved_and_waiting`].
const APPROVER: u32 = 20_002;

/// A call of the gate that was approved and waits for its place, which another has; its
/// program is about to hear of `svc.told`.
struct Approved {
    brigd: Brigd,
    client: Client,
    program: u64,
    told: Value,
}

fn asking(place: &Place, rule: &str) -> String {
    let folder = place.path("functions.d").display().to_string();
    let audit = place.path("audit").display().to_string();
    format!(
        "[admin]\napprovers = [\"uid:{APPROVER}\"]\n[audit]\ndir = {audit:?}\n[functions]\ndir = {folder:?}\n\
         [principals.\"*\"]\ncallbacks = \"allow\"\nhost_function = {{ default = \"allow\", rules = [{{ patterns = [\"shop.gate\"], {rule} }}] }}\n"
    )
}

fn approved_and_waiting(place: &Place) -> Approved {
    let rule = format!("mode = \"ask\", when = {{ required = [\"who\"] }}, ask = {{ approvers = [\"uid:{APPROVER}\"] }}");
    let brigd = BrigdOptions::default().config(&asking(place, &rule)).admin().start();
    let mut client = brigd.connect();
    client.request("functions.call", &json!({"function": "shop.gate"}));
    until("the first is in", || marks(place) == 1);
    let source = "const gate = shop.gate({ who: 1 }); gate.catch(() => 0); await svc.told({}); await other.echo({}); await svc.told({}); return await gate";
    let program = client.request("evaluate", &json!({"source": source, "hostFunctions": {"svc": {"told": {}}}}));
    let (mut note, mut asked) = (None, None);
    while note.is_none() || asked.is_none() {
        let message = client.next_message();
        match message.get("method").and_then(Value::as_str) {
            Some("evaluation.approval") => note = message.pointer("/params/approval").and_then(Value::as_str).map(str::to_owned),
            _ => asked = Some(message),
        }
    }
    let (note, asked) = (note.expect("an approval"), asked.expect("a call"));
    let mut approver = Client::connect_as(&brigd.admin_socket(), APPROVER);
    let shown = approver.result("approvals.show", &json!({"approval": note}));
    let hash = shown.pointer("/approval/inputSha256").expect("a hash");
    approver.result("approvals.approve", &json!({"approval": note, "inputSha256": hash}));
    // Once it asks its client again, a whole call was made since the yes: the gate's waits.
    client.take_call(&asked, &mut Handlers::none().on("svc.told", json!({"kind": "static", "result": 1})));
    let told = client.next_message();
    assert_eq!(told.pointer("/params/function"), Some(&json!("svc.told")), "{told}");
    assert_eq!(marks(place), 1, "it ran beside the other");
    Approved { brigd, client, program, told }
}

impl Approved {
    /// The answer of the program.
    fn answer(&mut self) -> Value {
        self.client.take_call(&self.told, &mut Handlers::none().on("svc.told", json!({"kind": "static", "result": 1})));
        loop {
            let message = self.client.next_message();
            if message.get("id").and_then(Value::as_u64) == Some(self.program) {
                return message.get("result").expect("a result").clone();
            }
        }
    }

    /// What is on record of the end of the gate's call in the program.
    fn recorded(&self) -> Vec<Value> {
        let told = self.brigd.admin().result("audit.tail", &json!({"lines": 100}));
        let records = told.get("records").and_then(Value::as_array).expect("records").clone();
        let of_it = |record: &Value| record.get("function") == Some(&json!("shop.gate")) && record.get("call") == Some(&json!(1));
        records.into_iter().filter(of_it).collect()
    }
}

fn waiting_place() -> Option<(Place, PathBuf)> {
    if !is_root() {
        eprintln!("skipped: only root can be several users");
        return None;
    }
    let place = Place::new();
    let fifo = gated(&place, "concurrency = 1");
    place.collection("other", &place.function("echo", "", "args = [\"echo\"]"));
    Some((place, fifo))
}

#[test]
fn an_approved_call_that_waits_for_its_place_runs_when_there_is_one() {
    let Some((place, fifo)) = waiting_place() else { return };
    let mut approved = approved_and_waiting(&place);
    keep_open(&fifo);
    let result = approved.answer();
    assert_eq!((result.get("outcome"), result.get("value")), (Some(&json!("succeeded")), Some(&json!(true))), "{result}");
    assert_eq!(result.pointer("/calls/0/state"), Some(&json!("completed")), "{result}");
    assert_eq!(marks(&place), 2);
}

#[test]
fn a_yes_is_worth_nothing_for_a_call_that_is_denied_or_revoked_while_it_waits_for_its_place() {
    for (ends, code) in [("reload", "permission_denied"), ("revoke", "revoked")] {
        let Some((place, fifo)) = waiting_place() else { return };
        let mut approved = approved_and_waiting(&place);
        let mut admin = approved.brigd.admin();
        if ends == "reload" {
            fs::write(approved.brigd.folder().join("brig.toml"), asking(&place, "mode = \"deny\"")).expect("the configuration");
            admin.result("policy.reload", &json!({}));
        } else {
            admin.result("functions.revoke", &json!({"pattern": "shop.gate"}));
        }
        keep_open(&fifo);
        let result = approved.answer();
        assert_eq!(result.pointer("/calls/0/function"), Some(&json!("shop.gate")), "{result}");
        assert_eq!(result.pointer("/calls/0/state"), Some(&json!("refused")), "{ends}: {result}");
        assert_eq!(result.pointer("/calls/0/code"), Some(&json!(code)), "{ends}: {result}");
        assert_eq!(marks(&place), 1, "{ends}: it ran");
        let records = approved.recorded();
        let refused = |record: &Value| record.get("event") == Some(&json!("call_refused")) && record.get("code") == Some(&json!(code));
        assert!(records.iter().any(refused), "{ends}: {records:#?}");
    }
}
