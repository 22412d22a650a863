//! `brig approve`: a person decides.
//!
//! Owns showing before asking: what is approved is the hash of what this very run has
//! shown. Never says yes by itself: without a terminal somebody has to have said `--yes`.

use super::args::{ApproveArgs, ApproveCommand};
use super::{Admin, shown};
use crate::cli::Fault;
use crate::cli::exit::Exit;
use crate::cli::terminal;
use brig::protocol::admin::{
    ApprovalDetail, ApprovalParams, ApprovalsListParams, ApprovalsListResult, ApproveParams, DecidedResult, DenyParams, method,
};
use std::io::{IsTerminal as _, stdin};

/// Does what the arguments say.
pub(crate) async fn approve(args: ApproveArgs) -> Result<Exit, Fault> {
    let admin = Admin::open(&args.global).await?;
    match (args.command, args.approval) {
        (Some(ApproveCommand::Show { approval }), _) => {
            admin.tell(method::APPROVALS_SHOW, &ApprovalParams { approval }, shown::detail).await
        }
        (Some(ApproveCommand::Deny { approval, comment }), _) => deny(&admin, approval, comment).await,
        (Some(ApproveCommand::List { decided }), _) => list(&admin, decided).await,
        (None, None) => list(&admin, false).await,
        (None, Some(approval)) => decide(&admin, approval, args.comment, args.yes).await,
    }
}

async fn list(admin: &Admin, decided: bool) -> Result<Exit, Fault> {
    let params = ApprovalsListParams { decided };
    admin.tell(method::APPROVALS_LIST, &params, |list: &ApprovalsListResult| shown::approvals(&list.approvals)).await
}

async fn deny(admin: &Admin, approval: String, comment: Option<String>) -> Result<Exit, Fault> {
    admin.tell(method::APPROVALS_DENY, &DenyParams { approval, comment }, decided).await
}

/// Shows what would run, asks, and passes on what was said.
async fn decide(admin: &Admin, approval: String, comment: Option<String>, yes: bool) -> Result<Exit, Fault> {
    let detail: ApprovalDetail = admin.ask(method::APPROVALS_SHOW, &ApprovalParams { approval: approval.clone() }).await?;
    if !admin.json {
        terminal::out(&shown::detail(&detail));
    }
    if !yes {
        if !stdin().is_terminal() || !terminal::reads_stdout() {
            return Err(Fault::usage("nobody sits at a terminal to be asked: say --yes to approve what is shown"));
        }
        if detail.refused.is_some() {
            return Ok(Exit::Refused);
        }
        match said("\nLet it run? y = yes, n = no, anything else = decide later: ").await.as_str() {
            "y" | "yes" => {}
            "n" | "no" => return deny(admin, approval, comment).await,
            _ => {
                terminal::out("nothing was decided\n");
                return Ok(Exit::Cancelled);
            }
        }
    }
    let params = ApproveParams { approval, input_sha256: detail.approval.input_sha256, comment };
    admin.tell(method::APPROVALS_APPROVE, &params, decided).await
}

fn decided(result: &DecidedResult) -> String {
    format!("{}\n", shown::approval(&result.approval))
}

/// One line that somebody types; nothing when they type none.
async fn said(question: &str) -> String {
    terminal::out(question);
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        stdin().read_line(&mut line).map(|_| line)
    });
    read.await.ok().and_then(Result::ok).unwrap_or_default().trim().to_lowercase()
}
