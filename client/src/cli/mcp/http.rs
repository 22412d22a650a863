//! Streamable HTTP, for those who ask for it.
//!
//! Owns where it listens and who may speak: a Unix socket of this user, or loopback TCP
//! with a bearer token. A foreign `Host` or `Origin` is refused, so that no web page can
//! reach it. Never listens to the network.

use super::server::Server;
use crate::cli::exit::Exit;
use crate::cli::{Fault, read, terminal};
use brig::protocol::escape::ShowPath as _;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

/// The variable that has the token.
const TOKEN_VARIABLE: &str = "BRIG_MCP_TOKEN";
/// Shortest token, in bytes.
const TOKEN_BYTES: usize = 16;
/// Most connections at once.
const CONNECTIONS: usize = 64;
/// Largest request, in bytes: a program at its limit, escaped, and its inputs.
const BODY_BYTES: usize = 16 * 1024 * 1024;
/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a session that asks nothing is kept, and with it what waits for an approval.
const IDLE_SESSION: Duration = Duration::from_secs(3600);
/// Pause after a connection could not be accepted: descriptors come back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Answer = Response<http_body_util::combinators::BoxBody<hyper::body::Bytes, Infallible>>;

/// Where to listen.
#[derive(Debug)]
pub(super) enum Listen {
    Unix(PathBuf),
    Loopback(SocketAddr, Token),
}

/// What a client over TCP has to know. Never shown.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Listen {
    /// From the arguments.
    pub(super) fn of(address: &str, token_file: Option<&Path>) -> Result<Self, Fault> {
        if let Some(path) = address.strip_prefix("unix:") {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let wrong = |why: &str| Fault::usage(format!("--listen {address}: {why}; write unix:PATH, 127.0.0.1:PORT or [::1]:PORT"));
        let at: SocketAddr = address.parse().map_err(|_| wrong("that is no address"))?;
        if !at.ip().is_loopback() {
            return Err(wrong("only loopback addresses are listened on, never the network"));
        }
        let given = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let token = match (token_file, given) {
            (Some(path), _) => read::text(path, "token", 4096)?.text.trim().to_owned(),
            (None, Some(token)) => token.trim().to_owned(),
            (None, None) => {
                return Err(wrong(&format!(
                    "every user of this machine can reach a port, so a token is needed: name a file with --token-file, or set {TOKEN_VARIABLE}"
                )));
            }
        };
        if token.len() < TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Fault::usage(format!("the token must have at least {TOKEN_BYTES} visible ASCII characters and no space")));
        }
        Ok(Self::Loopback(at, Token(token.into())))
    }
}

/// Serves until it is dropped.
pub(super) async fn serve(listen: Listen, server: Server) -> Result<Exit, Fault> {
    let fault = |what: &str, fault: std::io::Error| Fault::usage(format!("{what} can not be listened on: {fault}"));
    match listen {
        Listen::Unix(path) => {
            let listener = bind_unix(&path).await.map_err(|why| fault(&path.shown().to_string(), why))?;
            let _socket = OwnSocket(path.clone());
            terminal::err(&format!("brig: MCP over HTTP on unix:{}\n", path.shown()));
            let service = service(server, vec!["localhost".to_owned()], false);
            accept(service, None, async || listener.accept().await.map(|(stream, _)| stream)).await
        }
        Listen::Loopback(address, token) => {
            let listener = TcpListener::bind(address).await.map_err(|why| fault(&address.to_string(), why))?;
            let address = listener.local_addr().map_err(|why| fault(&address.to_string(), why))?;
            terminal::err(&format!("brig: MCP over HTTP on http://{address}/\n"));
            let hosts = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{}", address.port()));
            let service = service(server, hosts.to_vec(), true);
            accept(service, Some(token), async || listener.accept().await.map(|(stream, _)| stream)).await
        }
    }
}

/// `page`: whether the origin of its own may be said, which has no pages and is harmless.
fn service(server: Server, hosts: Vec<String>, page: bool) -> Service {
    let origins: Vec<String> = hosts.iter().filter(|_| page).map(|host| format!("http://{host}")).collect();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(BODY_BYTES);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(IDLE_SESSION);
    StreamableHttpService::new(move || Ok(server.for_session()), Arc::new(sessions), config)
}

/// A socket that only this user can connect to. One that a dead process left is taken
/// away; one that answers is somebody's.
async fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(std::io::Error::new(std::io::ErrorKind::AddrInUse, "another process listens there"));
        }
        std::fs::remove_file(path)?;
    }
    // Nobody may connect between the making of the socket and its mode.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(mask);
    let listener = listener?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A socket that goes away with its listener.
struct OwnSocket(PathBuf);

impl Drop for OwnSocket {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

async fn accept<S>(service: Service, token: Option<Token>, mut next: impl AsyncFnMut() -> std::io::Result<S>) -> Result<Exit, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return Ok(Exit::Succeeded) };
        let stream = match next().await {
            Ok(stream) => stream,
            Err(fault) => {
                terminal::complain(&format!("a connection could not be accepted: {fault}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (service, token) = (service.clone(), token.clone());
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request| answer(service.clone(), token.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), answer);
            // How a client ends its connection is its own affair.
            connection.await.ok();
            drop(permit);
        });
    }
}

async fn answer(service: Service, token: Option<Token>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if token.is_some_and(|token| !has_token(request.headers(), &token)) {
        let mut refused = Response::new(http_body_util::combinators::BoxBody::default());
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        refused.headers_mut().insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
        return Ok(refused);
    }
    Ok(service.handle(request).await)
}

/// Whether a request has the token. How long it takes says nothing about a wrong one but
/// its length.
fn has_token(headers: &HeaderMap, token: &Token) -> bool {
    let Some(value) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else { return false };
    let Some((scheme, given)) = value.split_once(' ') else { return false };
    let (given, right) = (given.trim().as_bytes(), token.0.as_bytes());
    let differs = given.iter().zip(right).fold(0, |differs, (one, other)| differs | (one ^ other));
    scheme.eq_ignore_ascii_case("bearer") && given.len() == right.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_loopback_and_unix_are_listened_on_and_a_port_needs_a_token() {
        let told = |address: &str| Listen::of(address, None).unwrap_err().message;
        assert!(told("0.0.0.0:80").contains("never the network"));
        assert!(told("[::]:80").contains("never the network"));
        assert!(told("example.com:80").contains("no address"));
        assert!(told("127.0.0.1:0").contains("a token is needed"));
        assert!(matches!(Listen::of("unix:/run/x", None), Ok(Listen::Unix(path)) if path == Path::new("/run/x")));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "short").unwrap();
        assert!(Listen::of("127.0.0.1:0", Some(file.path())).unwrap_err().message.contains("at least 16"));
        std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
        let listen = Listen::of("127.0.0.1:0", Some(file.path())).unwrap();
        assert!(!format!("{listen:?}").contains("0123"), "a token is never shown");
    }

    #[test]
    fn a_token_is_right_or_wrong_as_a_whole() {
        let token = Token("0123456789abcdef".into());
        let has = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            has_token(&headers, &token)
        };
        assert!(has("Bearer 0123456789abcdef") && has("bearer  0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcde", "Bearer 0123456789abcdeff", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef"] {
            assert!(!has(wrong), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), &token));
    }
}
