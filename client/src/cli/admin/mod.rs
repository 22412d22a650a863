//! `brig admin`: operating a brigd over its admin socket.
//!
//! Owns one request a command, and how its answer reads. Never decides anything: brigd
//! does, by who the kernel says is asking.

mod approve;
pub(crate) mod args;
mod shown;
mod top;

pub(crate) use approve::approve;
pub(crate) use top::top;

use super::exit::Exit;
use super::{Fault, render, terminal};
use args::{AdminArgs, AdminCommand, AdminGlobal, AuditCommand, TargetArgs};
use brig::protocol::admin::{
    AuditTailParams, AuditTailResult, AuditVerifyParams, AuditVerifyResult, EndedResult, EvaluationsListResult, KillParams, PolicyResult,
    PrincipalParams, PrincipalRevokeParams, RestoreParams, RevocationsResult, RevokeParams, StatusResult, method,
};
use brig::protocol::escape::line;
use brig::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A connection to the admin socket.
pub(super) struct Admin {
    client: Client,
    json: bool,
}

impl Admin {
    pub(super) async fn open(global: &AdminGlobal) -> Result<Self, Fault> {
        let client = Client::connect(&global.admin_socket).await.map_err(unreached)?;
        Ok(Self { client, json: global.json })
    }

    /// A request whose answer is for this command.
    pub(super) async fn ask<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R, Fault> {
        Ok(self.client.request(method, params).await?)
    }

    /// A request whose answer is printed: as it is, or as `read` words it.
    async fn tell<R: DeserializeOwned + Serialize>(
        &self,
        method: &str,
        params: &impl Serialize,
        read: impl FnOnce(&R) -> String,
    ) -> Result<Exit, Fault> {
        let answer: R = self.ask(method, params).await?;
        self.print(&answer, read(&answer));
        Ok(Exit::Succeeded)
    }

    pub(super) fn print(&self, answer: &impl Serialize, text: String) {
        terminal::out(&if self.json { render::json_line(answer) } else { text });
    }
}

/// What helps with the admin socket is not what helps with the other: no private brigd can
/// take its place.
fn unreached(error: Error) -> Fault {
    let advice = "nothing was done; --admin-socket PATH or BRIG_ADMIN_SOCKET names the socket; brigd has one with server.admin_socket or \
                  --admin-socket, and the service with systemctl enable brigd-admin.socket && systemctl restart brigd.service";
    let mut fault = Fault::from(error);
    fault.message = match fault.message.split_once('\n') {
        Some((said, _)) if fault.exit == Exit::Unreachable => format!("{said}\n  {advice}"),
        _ => fault.message,
    };
    fault
}

/// Does what the arguments say.
pub(crate) async fn admin(args: AdminArgs) -> Result<Exit, Fault> {
    let admin = Admin::open(&args.global).await?;
    let nothing = json!({});
    match args.command {
        AdminCommand::Status => admin.tell(method::STATUS, &nothing, shown::status::<StatusResult>).await,
        AdminCommand::Evaluations => {
            admin.tell(method::EVALUATIONS_LIST, &nothing, |list: &EvaluationsListResult| shown::evaluations(&list.evaluations)).await
        }
        AdminCommand::Kill { evaluation, reason } => {
            let text = format!("{} is ended\n", line(&evaluation));
            admin.tell(method::EVALUATIONS_KILL, &KillParams { evaluation, reason }, |_: &Value| text).await
        }
        AdminCommand::Revoke(target) => revoke(&admin, target).await,
        AdminCommand::Restore(target) => restore(&admin, target).await,
        AdminCommand::Revoked => admin.tell(method::FUNCTIONS_LIST, &nothing, shown::revoked::<RevocationsResult>).await,
        AdminCommand::Check => policy(&admin, method::POLICY_CHECK, "the configuration would load").await,
        AdminCommand::Reload => policy(&admin, method::POLICY_RELOAD, "the configuration is loaded").await,
        AdminCommand::Audit(AuditCommand::Tail { lines }) => {
            admin.tell(method::AUDIT_TAIL, &AuditTailParams { lines }, shown::records::<AuditTailResult>).await
        }
        AdminCommand::Audit(AuditCommand::Verify { anchors }) => verify(&admin, anchors).await,
        AdminCommand::Drain => {
            admin.tell(method::DRAIN, &nothing, |_: &Value| "brigd takes no new work, and ends when what runs has\n".to_owned()).await
        }
    }
}

async fn verify(admin: &Admin, anchors: Vec<String>) -> Result<Exit, Fault> {
    let checked: AuditVerifyResult = admin.ask(method::AUDIT_VERIFY, &AuditVerifyParams { anchors }).await?;
    admin.print(&checked, shown::verified(&checked));
    Ok(if checked.intact { Exit::Succeeded } else { Exit::Failed })
}

async fn revoke(admin: &Admin, target: TargetArgs) -> Result<Exit, Fault> {
    let TargetArgs { pattern, principal, reason } = target;
    let named = line(pattern.as_deref().or(principal.as_deref()).unwrap_or_default());
    let text = |ended: &EndedResult| {
        let lasting =
            if ended.persisted { "also after a restart" } else { "until brigd ends: it has no state directory, or could not write there" };
        let note = ended.note.as_deref().map(|note| format!("note: {}\n", line(note))).unwrap_or_default();
        let ended = match ended.evaluations {
            0 => "nothing that runs used it".to_owned(),
            1 => "1 evaluation that used it is told".to_owned(),
            many => format!("{many} evaluations that used it are told"),
        };
        format!("{named} is revoked, {lasting}; {ended}\n{note}")
    };
    match (pattern, principal) {
        (Some(pattern), _) => admin.tell(method::FUNCTIONS_REVOKE, &RevokeParams { pattern, reason }, text).await,
        (None, principal) => {
            let params = PrincipalRevokeParams { principal: principal.unwrap_or_default(), reason };
            admin.tell(method::PRINCIPALS_REVOKE, &params, text).await
        }
    }
}

async fn restore(admin: &Admin, target: TargetArgs) -> Result<Exit, Fault> {
    let named = line(target.pattern.as_deref().or(target.principal.as_deref()).unwrap_or_default());
    let text = |_: &Value| format!("{named} is not revoked any more: policy alone says who may use it\n");
    match (target.pattern, target.principal) {
        (Some(pattern), _) => admin.tell(method::FUNCTIONS_RESTORE, &RestoreParams { pattern }, text).await,
        (None, principal) => {
            admin.tell(method::PRINCIPALS_RESTORE, &PrincipalParams { principal: principal.unwrap_or_default() }, text).await
        }
    }
}

/// What became of the configuration; exit code 1 where a part of it is not used.
async fn policy(admin: &Admin, method: &str, sentence: &str) -> Result<Exit, Fault> {
    let told: PolicyResult = admin.ask(method, &json!({})).await?;
    let mut text = format!("{sentence}; the policy that holds is {}\n", line(&told.policy_version));
    for off in &told.files_off {
        text.push_str(&format!("NOT USED: {}: {}\n", line(&off.file), line(&off.why)));
    }
    told.warnings.iter().for_each(|warning| text.push_str(&format!("warning: {}\n", line(warning))));
    told.notes.iter().for_each(|note| text.push_str(&format!("note: {}\n", line(note))));
    admin.print(&told, text);
    Ok(if told.files_off.is_empty() { Exit::Succeeded } else { Exit::Failed })
}
