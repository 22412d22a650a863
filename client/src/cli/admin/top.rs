//! `brig top`: a live view.
//!
//! Owns asking again and again, and the keys. What is drawn is [`frame`]'s.

mod frame;
mod screen;

use super::Admin;
use super::args::TopArgs;
use crate::cli::exit::Exit;
use crate::cli::{Fault, render, terminal};
use brig::protocol::admin::{ApprovalsListParams, ApprovalsListResult, EvaluationsListResult, StatusResult, method};
use frame::Snapshot;
use screen::Screen;
use serde_json::json;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often it asks.
const PERIOD: Duration = Duration::from_secs(1);

/// Draws until somebody presses `q`, or once.
pub(crate) async fn top(args: TopArgs) -> Result<Exit, Fault> {
    let admin = Admin::open(&args.global).await?;
    if args.once || args.global.json || !terminal::reads_stdout() {
        let snapshot = look(&admin).await?;
        if admin.json {
            terminal::out(&render::json_line(&json!({
                "status": snapshot.status, "evaluations": snapshot.evaluations, "approvals": snapshot.approvals
            })));
        } else {
            let (width, height) = screen::size_of_one();
            terminal::out(&frame::frame(&snapshot, width, height).iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        return Ok(Exit::Succeeded);
    }
    live(&admin).await
}

async fn live(admin: &Admin) -> Result<Exit, Fault> {
    let cannot = |fault: std::io::Error| Fault::usage(format!("the terminal can not be used: {fault}; try --once"));
    let mut resized = signal(SignalKind::window_change()).map_err(cannot)?;
    let mut ended = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut snapshot = look(admin).await?;
    let (screen, mut keys) = Screen::enter().map_err(cannot)?;
    let mut tick = tokio::time::interval(PERIOD);
    loop {
        let (width, height) = screen::size();
        screen.draw(&frame::frame(&snapshot, width, height));
        tokio::select! {
            key = keys.recv() => match key {
                // q, Q, Escape, Ctrl-C, Ctrl-D, or nobody types any more.
                Some(b'q' | b'Q' | 27 | 3 | 4) | None => return Ok(Exit::Succeeded),
                Some(_) => {}
            },
            _ = tick.tick() => snapshot = look(admin).await?,
            _ = resized.recv() => {}
            _ = ended.recv() => return Ok(Exit::Succeeded),
        }
    }
}

async fn look(admin: &Admin) -> Result<Snapshot, Fault> {
    let nothing = json!({});
    let status: StatusResult = admin.ask(method::STATUS, &nothing).await?;
    let evaluations: EvaluationsListResult = admin.ask(method::EVALUATIONS_LIST, &nothing).await?;
    let approvals: ApprovalsListResult = admin.ask(method::APPROVALS_LIST, &ApprovalsListParams { decided: false }).await?;
    Ok(Snapshot { status, evaluations: evaluations.evaluations, approvals: approvals.approvals })
}
