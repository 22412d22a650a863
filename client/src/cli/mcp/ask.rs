//! What the user of the MCP client is asked while a program waits for an approval.
//!
//! Owns the form and what an answer to it means: to wait, or to end the program. Never
//! offers to approve: who asks for a call does not decide it.

use brig::protocol::client::ApprovalNote;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, EnumSchema, PingRequest, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use rmcp::{RoleServer, ServiceError};
use std::time::Duration;

/// The member of the form.
const MEMBER: &str = "then";
/// Its values.
const WAIT: &str = "wait";
const STOP: &str = "stop";

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// To go on waiting; also that of who gave no answer.
    Wait,
    /// To end the program.
    Stop,
}

/// A form that the client was asked to show.
pub(super) struct Form(RequestHandle<RoleServer>);

impl Form {
    /// Asks, where the client can be asked.
    pub(super) async fn open(peer: &Peer<RoleServer>, note: &ApprovalNote) -> Option<Self> {
        let can = peer.peer_info()?.capabilities.elicitation.clone()?;
        // A client that names no mode has that of forms.
        if can.form.is_none() && can.url.is_some() {
            return None;
        }
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message: message(note), requested_schema: schema()? };
        // The official TypeScript client does not hear that request 0 is cancelled, and the
        // first one has that number: it is spent on one that need not be.
        let ping = ServerRequest::PingRequest(PingRequest::default());
        drop(peer.send_cancellable_request(ping, PeerRequestOptions::no_options()).await.ok()?);
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok().map(Self)
    }

    /// What the user says; never, where nobody was asked.
    pub(super) async fn choice(form: &mut Option<Self>) -> Choice {
        match form {
            None => std::future::pending().await,
            Some(form) => match (&mut form.0.rx).await {
                Ok(answer) => meaning(answer),
                Err(_) => Choice::Wait,
            },
        }
    }

    /// Takes the form away: there is nothing to choose any more.
    pub(super) async fn close(self) {
        // A client that is gone shows nothing.
        self.0.cancel(Some("the program no longer waits for this".to_owned())).await.ok();
    }
}

/// Only who says so ends a program: a form that is declined or closed says nothing.
fn meaning(answer: Result<ClientResult, ServiceError>) -> Choice {
    match answer {
        Ok(ClientResult::ElicitResult(answer)) if answer.action == ElicitationAction::Accept => {
            let chosen = answer.content.as_ref().and_then(|content| content.get(MEMBER)).and_then(serde_json::Value::as_str);
            if chosen == Some(STOP) { Choice::Stop } else { Choice::Wait }
        }
        _ => Choice::Wait,
    }
}

fn message(note: &ApprovalNote) -> String {
    let seconds = Duration::from_millis(note.expires_in_ms).as_secs();
    format!(
        "The program wants to call {}, which waits for a person's approval, for at most {seconds} s. You can not give it here: the \
         call would run for you, and nobody approves their own. Whoever may, decides with: brig approve {}. Keep waiting, or end \
         the program?",
        note.function, note.approval
    )
}

fn schema() -> Option<ElicitationSchema> {
    let choices = EnumSchema::builder(vec![WAIT.to_owned(), STOP.to_owned()])
        .enum_titles(vec!["Keep waiting".to_owned(), "End the program; the call does not run".to_owned()])
        .ok()?
        .title("Meanwhile")
        .build();
    ElicitationSchema::builder().required_enum_schema(MEMBER, choices).build().ok()
}
