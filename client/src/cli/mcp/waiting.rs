//! Waiting for a program, also one that waits for a person.
//!
//! Owns the evaluations whose end no model has heard yet. Never approves anything: the
//! user of `brig mcp` is the one for whom the call would run, and nobody decides their
//! own (docs/decisions/013-approvals-through-mcp.md).

use super::ask::{Choice, Form};
use brig::protocol::client::ApprovalNote;
use brig::{Canceller, Error, EvaluateResult, Evaluation};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Most programs whose end is still to be asked for.
const KEPT: usize = 64;
/// Most questions of one program that are named.
const NAMED: usize = 10;

type Answer = Result<EvaluateResult, Error>;

/// One program that was begun. Dropped, it is cancelled.
pub(super) struct Running {
    evaluation: Evaluation,
    canceller: Canceller,
    approvals: mpsc::Receiver<ApprovalNote>,
    telling: Option<JoinHandle<()>>,
    /// What it has asked a person for, oldest first.
    asked: Vec<ApprovalNote>,
    answer: Option<Answer>,
}

/// How far it is.
pub(super) enum Heard {
    /// It is over.
    Ended(Box<Answer>),
    /// It goes on; it has asked for an approval.
    Waits(Box<Running>),
}

impl Running {
    pub(super) fn new(evaluation: Evaluation, approvals: mpsc::Receiver<ApprovalNote>, telling: Option<JoinHandle<()>>) -> Self {
        let canceller = evaluation.canceller();
        Self { evaluation, canceller, approvals, telling, asked: Vec::new(), answer: None }
    }

    /// What it has asked a person for.
    pub(super) fn asked(&self) -> &[ApprovalNote] {
        &self.asked
    }

    /// Waits for its end; where a person is asked, no longer than `patience` after that, or
    /// after the user was asked whether to wait. A request that is cancelled ends the
    /// program, and what it did until then is still awaited.
    pub(super) async fn wait(mut self: Box<Self>, patience: Duration, context: &RequestContext<RoleServer>) -> Heard {
        let mut form: Option<Form> = None;
        let mut until = (!self.asked.is_empty()).then(|| Instant::now() + patience);
        let ended = loop {
            if let Some(answer) = self.answer.take() {
                break Some(answer);
            }
            tokio::select! {
                biased;
                answer = &mut self.evaluation => break Some(answer),
                () = context.ct.cancelled() => {
                    self.canceller.cancel();
                    break Some((&mut self.evaluation).await);
                }
                Some(note) = self.approvals.recv() => {
                    if form.is_none() {
                        form = Form::open(&context.peer, &note).await;
                    }
                    until = form.is_none().then(|| Instant::now() + patience);
                    self.ask(note);
                }
                choice = Form::choice(&mut form) => {
                    form = None;
                    until = Some(Instant::now() + patience);
                    if choice == Choice::Stop {
                        self.canceller.cancel();
                    }
                }
                () = tokio::time::sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break None,
            }
        };
        if let Some(form) = form {
            form.close().await;
        }
        match ended {
            Some(answer) => {
                // Progress comes before the answer or not at all.
                if let Some(telling) = self.telling.take() {
                    telling.await.ok();
                }
                Heard::Ended(Box::new(answer))
            }
            None => {
                // The request whose progress this was is answered.
                if let Some(telling) = self.telling.take() {
                    telling.abort();
                }
                Heard::Waits(self)
            }
        }
    }

    fn ask(&mut self, note: ApprovalNote) {
        if self.asked.len() == NAMED {
            self.asked.remove(0);
        }
        self.asked.push(note);
    }

    /// Whether it is over, found out without waiting.
    fn is_over(&mut self) -> bool {
        if self.answer.is_none()
            && let Poll::Ready(answer) = Pin::new(&mut self.evaluation).poll(&mut Context::from_waker(Waker::noop()))
        {
            self.answer = Some(answer);
        }
        self.answer.is_some()
    }
}

/// Programs of which a model was told that they wait, until it asks again.
#[derive(Default)]
pub(super) struct Kept(Mutex<VecDeque<Box<Running>>>);

impl Kept {
    /// Keeps one, and gives its evaluation's id. One that is over and that nobody came
    /// back for makes room.
    ///
    /// # Errors
    /// The program itself, where there is no room.
    pub(super) fn keep(&self, running: Box<Running>) -> Result<String, Box<Running>> {
        let mut all = self.lock();
        if all.len() >= KEPT
            && let Some(over) = all.iter_mut().position(|one| one.is_over())
        {
            all.remove(over);
        }
        let Some(id) = running.asked.first().map(|note| note.evaluation.clone()) else { return Err(running) };
        if all.len() >= KEPT {
            return Err(running);
        }
        all.push_back(running);
        Ok(id)
    }

    /// Takes the program with this id.
    pub(super) fn take(&self, evaluation: &str) -> Option<Box<Running>> {
        let mut all = self.lock();
        let at = all.iter().position(|one| one.asked.iter().any(|note| note.evaluation == evaluation))?;
        all.remove(at)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Box<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
