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
use super::terminal::safe_lines;
use super::{Fault, render, terminal};
use args::{AdminArgs, AdminCommand, AdminGlobal, AuditCommand, TargetArgs};
use brig::Client;
use brig::protocol::admin::{
    AuditTailParams, AuditTailResult, AuditVerifyParams, AuditVerifyResult, EndedResult, EvaluationsListResult, KillParams, PolicyResult,
    PrincipalParams, PrincipalRevokeParams, RestoreParams, RevocationsResult, RevokeParams, StatusResult, method,
};
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
        Ok(Self { client: Client::connect(&global.admin_socket).await?, json: global.json })
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
            let text = format!("{} is ended\n", safe_lines(&evaluation));
            admin.tell(method::EVALUATIONS_KILL, &KillParams { evaluation, reason }, |_: &Value| text).await
        }
        AdminCommand::Revoke(target) => revoke(&admin, target).await,
        AdminCommand::Restore(target) => restore(&admin, target).await,
        AdminCommand::Revoked => admin.tell(method::FUNCTIONS_LIST, &nothing, shown::revoked::<RevocationsResult>).await,
        AdminCommand::Check => {
            admin.tell(method::POLICY_CHECK, &nothing, |told: &PolicyResult| policy("the configuration is valid", told)).await
        }
        AdminCommand::Reload => {
            admin.tell(method::POLICY_RELOAD, &nothing, |told: &PolicyResult| policy("the configuration is loaded", told)).await
        }
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
    let named = safe_lines(pattern.as_deref().or(principal.as_deref()).unwrap_or_default());
    let text = |ended: &EndedResult| {
        let lasting =
            if ended.persisted { "also after a restart" } else { "until brigd ends: it has no state directory, or could not write there" };
        format!("{named} is revoked, {lasting}; {} evaluations that run are concerned\n", ended.evaluations)
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
    let named = safe_lines(target.pattern.as_deref().or(target.principal.as_deref()).unwrap_or_default());
    let text = |_: &Value| format!("{named} is restored\n");
    match (target.pattern, target.principal) {
        (Some(pattern), _) => admin.tell(method::FUNCTIONS_RESTORE, &RestoreParams { pattern }, text).await,
        (None, principal) => {
            admin.tell(method::PRINCIPALS_RESTORE, &PrincipalParams { principal: principal.unwrap_or_default() }, text).await
        }
    }
}

fn policy(sentence: &str, told: &PolicyResult) -> String {
    let notes: String = told.notes.iter().map(|note| format!("note: {}\n", safe_lines(note))).collect();
    format!("{sentence}; the policy that holds is {}\n{notes}", safe_lines(&told.policy_version))
}
