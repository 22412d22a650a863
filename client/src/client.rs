//! The client: methods of the protocol as async functions.
//!
//! Owns the mapping of methods to types. Never keeps state of its own beside the
//! connection.

use crate::connection::Connection;
use crate::embedded::{self, StartOptions};
use crate::error::Error;
use crate::evaluate::{Evaluate, Evaluation};
use crate::functions::HostFunctions;
use brig_protocol::client::{
    CheckParams, CheckResult, ClientInfo, EvaluationStatus, EvaluationsGetParams, EvaluationsWaitParams, FunctionListed,
    FunctionsListParams, FunctionsListResult, FunctionsTypesParams, FunctionsTypesResult, FunctionsWaitParams, FunctionsWaitResult,
    InitializeParams, InitializeResult, PROTOCOL_VERSION, VmCreateParams, VmCreateResult, VmDisposeParams, VmInfo, VmListResult, method,
};
use brig_protocol::limits::RequestedLimits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a client came to its brigd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// One that was listening.
    Listening {
        /// On this socket.
        socket: PathBuf,
    },
    /// One of its own, which ends with the client.
    Private {
        /// The binary.
        brigd: PathBuf,
        /// Its socket, in a directory that only this user can enter.
        socket: PathBuf,
    },
}

/// A connection to brigd. Cheap to clone; the clones share the connection, on which any
/// number of evaluations can run at once. It belongs to the tokio runtime in which it
/// was made.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    origin: Arc<Origin>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the brigd that listens on `socket`. Where more clients connect at once than
    /// the socket's queue has room for, this waits for a place, up to 20 seconds.
    ///
    /// # Errors
    /// [`Error::Connect`] when none does.
    pub async fn connect(socket: impl AsRef<Path>) -> Result<Self, Error> {
        let socket = socket.as_ref();
        let connection = Arc::new(Connection::open(socket).await?);
        Ok(Self { connection, origin: Arc::new(Origin::Listening { socket: socket.to_owned() }) })
    }

    /// Connects to a brigd that listens, or starts a private one: see [`StartOptions`].
    ///
    /// # Errors
    /// [`Error::Connect`] when a socket was named and nothing answers there, or when the queue of
    /// a brigd that listens stayed full;
    /// [`Error::Start`] when there is no `brigd` binary or it does not come up.
    pub async fn connect_or_start(options: StartOptions) -> Result<Self, Error> {
        if let Some(socket) = options.socket_to_use() {
            match Self::connect(&socket.path).await {
                // A brigd that is busy is not replaced by one with another policy.
                Err(Error::Connect { listening: false, .. }) if !socket.named => {}
                other => return other,
            }
        }
        Self::start(options).await
    }

    /// Starts a private brigd and connects to it. It ends with the last clone of this
    /// client, or with this process, however that ends.
    ///
    /// # Errors
    /// [`Error::Start`] when there is no `brigd` binary or it does not come up.
    pub async fn start(options: StartOptions) -> Result<Self, Error> {
        let (server, connection) = embedded::start(&options).await?;
        let origin = Origin::Private { brigd: server.binary().to_owned(), socket: server.socket().to_owned() };
        connection.own(server);
        Ok(Self { connection: Arc::new(connection), origin: Arc::new(origin) })
    }

    pub(crate) const fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// How this client came to its brigd.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Facts about brigd: version, limits of this principal, active sandbox layers, and
    /// who the kernel says this process is.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn initialize(&self) -> Result<InitializeResult, Error> {
        let client = ClientInfo { name: "brig".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let params = InitializeParams { protocol_version: Some(PROTOCOL_VERSION.to_owned()), client: Some(client) };
        self.request(method::INITIALIZE, &params).await
    }

    /// Runs a program. A program that fails is a result; an [`Error`] means that there
    /// is none, and says whether anything ran.
    pub fn evaluate(&self, evaluate: Evaluate) -> Evaluation {
        let sent = evaluate.params().and_then(|params| self.connection.evaluate(params, evaluate.offer()));
        Evaluation::new(sent)
    }

    /// Runs a program that goes on when this client goes away: gives its id and state
    /// once it runs. Its answer is asked for with [`Client::wait_evaluation`], by any
    /// client of the same user.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails; [`Error::Request`] for one that
    /// calls functions of this process, which may be gone by then, or listens.
    pub async fn detach(&self, mut evaluate: Evaluate) -> Result<EvaluationStatus, Error> {
        if evaluate.needs_this_client() {
            let message = "a detached evaluation can not call functions of this process or tell it anything: it goes on without it";
            return Err(Error::Request(message.to_owned()));
        }
        evaluate.detach = true;
        self.request(method::EVALUATE, &evaluate.params()?).await
    }

    /// How far an evaluation of this user is, and its answer once it is over. Kept are
    /// those that were detached, had an idempotency key, or called a write function where
    /// brigd has a state directory.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn get_evaluation(&self, evaluation: &str) -> Result<EvaluationStatus, Error> {
        self.request(method::EVALUATIONS_GET, &EvaluationsGetParams { evaluation: evaluation.to_owned() }).await
    }

    /// The same, once it is over or `timeout` is; at most ten minutes, 30 s when nobody says.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn wait_evaluation(&self, evaluation: &str, timeout: Option<Duration>) -> Result<EvaluationStatus, Error> {
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self.request(method::EVALUATIONS_WAIT, &EvaluationsWaitParams { evaluation: evaluation.to_owned(), timeout_ms }).await
    }

    /// Parses a program without running it.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails; a program that does not
    /// parse is a result.
    pub async fn check(&self, params: &CheckParams<'_>) -> Result<CheckResult, Error> {
        self.request(method::CHECK, params).await
    }

    /// Makes a vm: a worker that keeps its realm between evaluations.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn create_vm(&self, options: VmOptions) -> Result<Vm, Error> {
        let params = VmCreateParams {
            host_functions: if options.functions.is_empty() { None } else { Some(options.functions.declarations()?) },
            limits: (options.limits != RequestedLimits::default()).then_some(options.limits),
            time_zone: options.time_zone.clone(),
        };
        let answer = self.connection.create_vm(&params, options.functions.handlers())?.await?;
        let made = serde_json::from_str(answer.get()).map_err(|fault| Error::Protocol(format!("the result of vm.create: {fault}")))?;
        Ok(Vm { client: self.clone(), made, disposed: false })
    }

    /// The vms of this principal.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn list_vms(&self) -> Result<Vec<VmInfo>, Error> {
        let list: VmListResult = self.request(method::VM_LIST, &serde_json::json!({})).await?;
        Ok(list.vms)
    }

    /// The functions that are configured in brigd and that this principal may list: of
    /// one collection, or all.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn configured_functions(&self, collection: Option<String>) -> Result<Vec<FunctionListed>, Error> {
        let list: FunctionsListResult = self.request(method::FUNCTIONS_LIST, &FunctionsListParams { collection }).await?;
        Ok(list.functions)
    }

    /// Waits until what this principal may call has changed since `version`, or `timeout` is
    /// over: at most ten minutes, 30 s when nobody says. Gives the version that holds then, and
    /// without one at once: ask for it before what is to be kept up to date.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn wait_functions(&self, version: Option<&str>, timeout: Option<Duration>) -> Result<String, Error> {
        let params = FunctionsWaitParams { version: version.map(ToOwned::to_owned), timeout_ms: timeout.map(crate::millis) };
        let changed: FunctionsWaitResult = self.request(method::FUNCTIONS_WAIT, &params).await?;
        Ok(changed.version)
    }

    /// TypeScript declarations of the configured functions that match one of `patterns`
    /// (of all, when there is no list) and of `functions`, and the text of the tool over
    /// them.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn types(&self, patterns: Option<Vec<String>>, functions: &HostFunctions) -> Result<FunctionsTypesResult, Error> {
        let host_functions = if functions.is_empty() { None } else { Some(functions.declarations()?) };
        self.request(method::FUNCTIONS_TYPES, &FunctionsTypesParams { functions: patterns, host_functions }).await
    }

    /// Waits for the end of the connection: every later request fails with
    /// [`Error::ConnectionLost`], and a new client has to be made.
    pub async fn closed(&self) {
        self.connection.over().cancelled().await;
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.over().is_cancelled()
    }

    /// Any other method of the protocol.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails, or the answer is not an `R`.
    pub async fn request<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R, Error> {
        let answer = self.connection.request(method, params)?.await?;
        serde_json::from_str(answer.get()).map_err(|fault| Error::Protocol(format!("the result of {method}: {fault}")))
    }

    /// Ends the connection, and a private brigd in good order. Evaluations in flight end
    /// with [`Error::ConnectionLost`].
    pub async fn close(self) {
        let server = self.connection.release_server();
        self.connection.hang_up();
        if let Some(server) = server {
            server.stop().await;
        }
    }
}

/// What a vm is made with.
#[derive(Clone, Debug, Default)]
pub struct VmOptions {
    functions: HostFunctions,
    limits: RequestedLimits,
    time_zone: Option<String>,
}

impl VmOptions {
    /// Nothing but the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What every evaluation in the vm may call, answered by this process.
    #[must_use]
    pub fn host_functions(mut self, functions: impl Into<HostFunctions>) -> Self {
        self.functions = functions.into();
        self
    }

    /// Lowers the ceilings for every evaluation in the vm.
    #[must_use]
    pub const fn limits(mut self, limits: RequestedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// IANA time zone of the vm.
    #[must_use]
    pub fn time_zone(mut self, zone: impl Into<String>) -> Self {
        self.time_zone = Some(zone.into());
        self
    }
}

/// A kept worker: `let`, `const` and functions persist from one evaluation to the next.
/// One evaluation at a time. Dropping it disposes of it.
#[derive(Debug)]
pub struct Vm {
    client: Client,
    made: VmCreateResult,
    disposed: bool,
}

impl Vm {
    /// Its id, `vm_…`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.made.vm
    }

    /// Its id and life times.
    #[must_use]
    pub const fn info(&self) -> &VmCreateResult {
        &self.made
    }

    /// Runs a program in the vm's realm.
    pub fn evaluate(&self, evaluate: Evaluate) -> Evaluation {
        self.client.evaluate(evaluate.vm(self.id()))
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails.
    pub async fn dispose(mut self) -> Result<(), Error> {
        self.disposed = true;
        self.client.connection.let_go(&self.made.vm);
        let params = VmDisposeParams { vm: self.made.vm.clone() };
        self.client.request::<serde_json::Value>(method::VM_DISPOSE, &params).await.map(drop)
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        if !self.disposed {
            self.client.connection.dispose(&self.made.vm);
        }
    }
}
