//! Who sees from outside how brigd does.
//!
//! Owns `[metrics]` and `[telemetry]`: off unless set, and this host only. Never opens
//! anything.

use super::{Config, ConfigFault, fault};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// `[metrics]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Metrics {
    /// Loopback address and port for `GET /metrics`.
    listen: Option<String>,
    /// Path of a Unix socket for the same, mode 0660.
    socket: Option<PathBuf>,
}

/// `[telemetry]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// A collector on this host: `http://127.0.0.1:4318`, or `unix:PATH`.
    otlp_endpoint: Option<String>,
    /// One in so many evaluations that no client traces is told of; those that a client
    /// traces (`trace`) are as the client says.
    sample_one_in: u32,
    /// Metrics go out so often, in seconds; 0: never.
    metrics_seconds: u64,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_one_in: 1, metrics_seconds: 60 }
    }
}

/// Where figures are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// A loopback port.
    pub(crate) address: Option<SocketAddr>,
    /// A Unix socket.
    pub(crate) socket: Option<PathBuf>,
}

/// A collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A loopback port.
    Port(SocketAddr),
    /// A Unix socket.
    Socket(PathBuf),
}

/// Who is told, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Where.
    pub(crate) endpoint: Endpoint,
    /// One in so many.
    pub(crate) one_in: u32,
    /// How often metrics go out, in seconds; 0: never.
    pub(crate) metrics_seconds: u64,
}

impl Config {
    /// Where figures are shown.
    ///
    /// # Errors
    /// [`ConfigFault::Value`] for an address that others than this host reach, and for a
    /// path that is not absolute.
    pub(crate) fn shown(&self) -> Result<Shown, ConfigFault> {
        let Metrics { listen, socket } = &self.metrics;
        let address = listen.as_deref().map(|text| {
            text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback()).ok_or_else(|| {
                let expected = "it must be a loopback address and a port, as \"127.0.0.1:9464\"; for other hosts put a proxy before it";
                fault("metrics.listen", quoted(text), expected)
            })
        });
        if let Some(path) = socket.as_deref().filter(|path| !path.is_absolute()) {
            return Err(fault("metrics.socket", quoted(&path.to_string_lossy()), "it must be an absolute path"));
        }
        Ok(Shown { address: address.transpose()?, socket: socket.clone() })
    }

    /// Who is told of each evaluation.
    ///
    /// # Errors
    /// [`ConfigFault::Value`] for a collector that is not on this host.
    pub(crate) fn told(&self) -> Result<Option<Told>, ConfigFault> {
        let Telemetry { otlp_endpoint, sample_one_in, metrics_seconds } = &self.telemetry;
        if *sample_one_in == 0 {
            return Err(fault("telemetry.sample_one_in", 0, "it must be at least 1, which is every one"));
        }
        let Some(text) = otlp_endpoint.as_deref() else { return Ok(None) };
        let expected = "it must be a collector on this host, as \"http://127.0.0.1:4318\" or \"unix:/run/otel/otlp.sock\"; \
                        let that one send on to others";
        let endpoint = endpoint(text).ok_or_else(|| fault("telemetry.otlp_endpoint", quoted(text), expected))?;
        Ok(Some(Told { endpoint, one_in: *sample_one_in, metrics_seconds: *metrics_seconds }))
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", brig_protocol::escape::escaped(text, 200))
}

fn endpoint(text: &str) -> Option<Endpoint> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = Path::new(path);
        return path.is_absolute().then(|| Endpoint::Socket(path.to_owned()));
    }
    let authority = text.strip_prefix("http://")?.trim_end_matches('/');
    let named = authority.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = named.as_deref().unwrap_or(authority).parse().ok()?;
    let is_local = match address.ip() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.is_loopback(),
    };
    (is_local && address.port() != 0).then_some(Endpoint::Port(address))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn figures_are_shown_to_this_host_only() {
        assert_eq!(config("").shown().unwrap(), Shown::default());
        for good in ["127.0.0.1:9464", "127.9.9.9:0", "[::1]:9464"] {
            assert!(config(&format!("[metrics]\nlisten = {good:?}\n")).shown().unwrap().address.is_some(), "{good}");
        }
        for bad in ["0.0.0.0:9464", "[::]:9464", "192.168.1.1:9464", "localhost:9464", "127.0.0.1", ":9464", "[::ffff:127.0.0.1]:1", "x\ny"]
        {
            let fault = config(&format!("[metrics]\nlisten = {bad:?}\n")).check().unwrap_err().to_string();
            assert!(fault.contains("metrics.listen") && fault.contains("loopback") && !fault.contains('\n'), "{fault}");
        }
        let fault = config("[metrics]\nsocket = \"m.sock\"\n").check().unwrap_err().to_string();
        assert!(fault.contains("metrics.socket") && fault.contains("absolute"), "{fault}");
    }

    #[test]
    fn a_collector_is_on_this_host() {
        let told = |text: &str| config(&format!("[telemetry]\notlp_endpoint = {text:?}\n")).told();
        assert_eq!(config("").told().unwrap(), None);
        assert_eq!(told("http://127.0.0.1:4318").unwrap().unwrap().endpoint, Endpoint::Port("127.0.0.1:4318".parse().unwrap()));
        assert_eq!(told("http://localhost:4318/").unwrap().unwrap().endpoint, Endpoint::Port("127.0.0.1:4318".parse().unwrap()));
        assert_eq!(told("unix:/run/o.sock").unwrap().unwrap().endpoint, Endpoint::Socket("/run/o.sock".into()));
        for bad in [
            "https://127.0.0.1:4318",
            "http://10.0.0.1:4318",
            "http://collector:4318",
            "127.0.0.1:4318",
            "unix:o.sock",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "http://127.0.0.1:4318/v1/traces",
        ] {
            let fault = told(bad).unwrap_err().to_string();
            assert!(fault.contains("telemetry.otlp_endpoint") && fault.contains("on this host"), "{fault}");
        }
        assert!(config("[telemetry]\nsample_one_in = 0\n").told().is_err());
    }
}
