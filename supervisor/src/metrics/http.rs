//! The socket that shows the figures.
//!
//! Owns a loopback port, a Unix socket, or both, and one question: `GET /metrics`. Every
//! bound is here: how many ask at once, how long a head may be and how long it may take.
//! Never reads a body, keeps no connection, and speaks to this host only.

use super::{families, text};
use crate::config::observe::Shown;
use crate::listener::{BindFault, Doors, Listener};
use crate::service::Service;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Most that ask at the same time, at the port and at the socket each; whoever comes then is
/// hung up on. The kernel does not say whose a connection to a port is.
const AT_ONCE: usize = 16;
/// Most of one user at the socket.
const AT_ONCE_EACH: usize = 4;
/// Longest head of a request, in bytes.
const HEAD_BYTES: usize = 8 * 1024;
/// How long one question and its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long brigd takes no more when the host has no descriptor left.
const PAUSE: Duration = Duration::from_millis(200);
/// Mode of the Unix socket: its group may read figures.
const MODE: u32 = 0o660;

/// Why the figures can not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFault {
    /// The port.
    #[error(
        "metrics.listen: cannot listen on {address}: {fault}; the packaged unit has no network: add its drop-in loopback.conf, or set \
         metrics.socket instead"
    )]
    Port {
        /// Where.
        address: SocketAddr,
        /// Why not.
        fault: std::io::Error,
    },
    /// The Unix socket.
    #[error("metrics.socket: {0}")]
    Socket(#[from] BindFault),
}

/// Where figures are asked for.
#[derive(Default)]
pub(crate) struct Door {
    port: Option<TcpListener>,
    socket: Option<Listener>,
}

impl Door {
    /// Opens what is configured; nothing when nothing is.
    ///
    /// # Errors
    /// [`OpenFault`] naming the setting.
    pub(crate) async fn open(shown: &Shown) -> Result<Self, OpenFault> {
        let port = match shown.address {
            Some(address) => {
                let port = TcpListener::bind(address).await.map_err(|fault| OpenFault::Port { address, fault })?;
                let address = port.local_addr().unwrap_or(address);
                tracing::info!(%address, "figures are shown at /metrics");
                Some(port)
            }
            None => None,
        };
        let socket = shown.socket.as_deref().map(|path| Listener::bind(path, MODE)).transpose()?;
        Ok(Self { port, socket })
    }

    /// Answers whoever asks. Never ends.
    pub(crate) async fn serve(&self, service: &Arc<Service>) {
        tokio::join!(self.serve_port(service), self.serve_socket(service));
    }

    async fn serve_port(&self, service: &Arc<Service>) {
        let Some(port) = &self.port else { return std::future::pending().await };
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            match port.accept().await {
                Ok((stream, _)) => {
                    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                        answer_in_place(stream, true, service, place);
                    }
                }
                Err(fault) => {
                    tracing::debug!(%fault, "nobody who asks for figures can be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve_socket(&self, service: &Arc<Service>) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        let doors = Doors::new(AT_ONCE, AT_ONCE_EACH);
        loop {
            let (stream, peer) = socket.accept().await;
            if let Ok(door) = doors.enter(peer.uid) {
                answer_in_place(stream, false, service, door);
            }
        }
    }
}

fn answer_in_place<S>(stream: S, by_port: bool, service: &Arc<Service>, place: impl Send + 'static)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = Arc::clone(service);
    tokio::spawn(async move {
        let show = || text::text(&families(&service));
        if tokio::time::timeout(PATIENCE, converse(stream, by_port, show)).await.is_err() {
            tracing::debug!("somebody who asked for figures was too slow");
        }
        drop(place);
    });
}

/// One question, one answer. Whoever goes away meanwhile needs none.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, by_port: bool, show: impl FnOnce() -> String) {
    let answer = match head(&mut stream).await {
        Some(head) => judged(&head, by_port),
        None => Answer::TooLong,
    };
    let sent = async {
        stream.write_all(answer.text(show).as_bytes()).await?;
        stream.shutdown().await
    };
    if let Err(fault) = sent.await {
        tracing::trace!(%fault, "somebody who asked for figures went away");
    }
}

/// The head of a request as far as it came; nothing when it is too long.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    let mut chunk = [0; 1024];
    while !is_whole(&head) {
        let length = stream.read(&mut chunk).await.unwrap_or(0);
        let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
        if head.len() + bytes.len() > HEAD_BYTES {
            return None;
        }
        head.extend_from_slice(bytes);
    }
    Some(head)
}

fn is_whole(head: &[u8]) -> bool {
    holds(head, b"\r\n\r\n") || holds(head, b"\n\n")
}

fn holds(head: &[u8], end: &[u8]) -> bool {
    head.windows(end.len()).any(|window| window == end)
}

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Figures,
    Malformed,
    Elsewhere,
    NotFound,
    Method,
    TooLong,
}

fn judged(head: &[u8], by_port: bool) -> Answer {
    let Some(head) = std::str::from_utf8(head).ok().filter(|head| is_whole(head.as_bytes())) else { return Answer::Malformed };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Answer::Malformed;
    };
    // A page in somebody's browser can ask a loopback port by a name of its own.
    let mut hosts = lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if by_port && !hosts.all(|(_, host)| is_loopback(host.trim())) {
        return Answer::Elsewhere;
    }
    match (method, target.split('?').next()) {
        ("GET", Some("/metrics")) => Answer::Figures,
        ("GET", _) => Answer::NotFound,
        _ => Answer::Method,
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Answer {
    fn text(self, show: impl FnOnce() -> String) -> String {
        let (status, more, body) = match self {
            Self::Figures => ("200 OK", "", show()),
            Self::Malformed => ("400 Bad Request", "", "this is no request of HTTP/1.1\n".to_owned()),
            Self::Elsewhere => ("403 Forbidden", "", "the host must be a loopback address or localhost\n".to_owned()),
            Self::NotFound => ("404 Not Found", "", "there is /metrics and nothing else\n".to_owned()),
            Self::Method => ("405 Method Not Allowed", "Allow: GET\r\n", "there is GET and nothing else\n".to_owned()),
            Self::TooLong => ("431 Request Header Fields Too Large", "", format!("a head has at most {HEAD_BYTES} bytes\n")),
        };
        let kind = text::CONTENT_TYPE;
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nX-Content-Type-Options: nosniff\r\n\
             Cache-Control: no-store\r\n{more}Connection: close\r\n\r\n{body}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &str) -> Answer {
        judged(request.as_bytes(), true)
    }

    #[test]
    fn one_question_is_answered_and_every_other_refused_by_what_is_wrong_with_it() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", Answer::Figures),
            ("GET /metrics?x=1 HTTP/1.0\n\n", Answer::Figures),
            ("GET /metrics HTTP/1.1\r\nhost: [::1]:9464\r\n\r\n", Answer::Figures),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", Answer::Figures),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", Answer::Elsewhere),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHOST: 127.0.0.1.evil.example:80\r\n\r\n", Answer::Elsewhere),
            ("GET / HTTP/1.1\r\n\r\n", Answer::NotFound),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", Answer::NotFound),
            ("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", Answer::Method),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", Answer::Method),
            ("GET /metrics HTTP/2\r\n\r\n", Answer::Malformed),
            ("GET  /metrics HTTP/1.1\r\n\r\n", Answer::Malformed),
            ("GET /metrics\r\n\r\n", Answer::Malformed),
            ("GET /metrics HTTP/1.1\r\n", Answer::Malformed),
            ("", Answer::Malformed),
        ] {
            assert_eq!(answer(request), expected, "{request:?}");
        }
        assert_eq!(judged(b"GET /metrics HTTP/1.1\r\nHost: anything\r\n\r\n", false), Answer::Figures);
        assert_eq!(judged(b"GET /\xff HTTP/1.1\r\n\r\n", true), Answer::Malformed);
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_read_no_further_than_its_bound() {
        let long = vec![b'a'; HEAD_BYTES + 1];
        assert_eq!(head(&mut long.as_slice()).await, None);
        let short = vec![b'a'; HEAD_BYTES];
        assert_eq!(head(&mut short.as_slice()).await.map(|head| head.len()), Some(HEAD_BYTES));
    }
}
