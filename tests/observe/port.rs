//! The port and the socket of the figures.

use super::*;

#[test]
fn the_port_takes_one_question_from_this_host_and_bounds_every_other() {
    let brigd = with_port();
    let port = port(&brigd);
    for (request, expected) in [
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /other HTTP/1.1\r\n\r\n", 404),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("nonsense\r\n\r\n", 400),
    ] {
        assert_eq!(ask(connected(&port), request.as_bytes()).0, expected, "{request:?}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "a".repeat(9_000));
    assert_eq!(ask(connected(&port), long.as_bytes()).0, 431);
    // As many as may ask at once say nothing; whoever comes then is hung up on, and clients
    // are served meanwhile. brigd gives the silent ones up by itself.
    let silent: Vec<TcpStream> = (0..16).map(|_| connected(&port)).collect();
    let mut one_more = connected(&port);
    assert_eq!(one_more.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(brigd.connect().evaluate("1").get("value"), Some(&json!(1)));
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0; 1]).expect("an end within the deadline"), 0);
    }
    scrape(&brigd);
}

#[test]
fn a_unix_socket_shows_the_same_to_its_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.sock");
    let brigd = BrigdOptions::default().config(&format!("[metrics]\nsocket = {path:?}\n")).start();
    assert_eq!(std::fs::metadata(&path).expect("the socket").permissions().mode() & 0o777, 0o660);
    let (status, body) = ask(UnixStream::connect(&path).expect("the socket"), b"GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n");
    assert_eq!(status, 200);
    Scraped::parse(&body);
    drop(brigd);
}

#[test]
fn one_user_never_has_all_places_at_the_socket_of_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.sock");
    let brigd = BrigdOptions::default().config(&format!("[metrics]\nsocket = {path:?}\n")).start();
    let question = b"GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n";
    // They say nothing, which they may do for five seconds.
    let held: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).expect("the socket")).collect();
    let mut one_more = UnixStream::connect(&path).expect("the socket");
    one_more.set_read_timeout(Some(std::time::Duration::from_secs(3))).expect("a time-out");
    // Hung up on, and not left waiting for its turn.
    let read = one_more.read(&mut [0; 1]);
    let hung_up = matches!(&read, Ok(0)) || read.as_ref().is_err_and(|fault| fault.kind() == std::io::ErrorKind::ConnectionReset);
    assert!(hung_up, "{read:?}");
    drop(held);
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let mut stream = UnixStream::connect(&path).expect("the socket");
        let mut told = String::new();
        if stream.write_all(question).and_then(|()| stream.read_to_string(&mut told)).is_ok() && told.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "no place came free: {}", brigd.log());
    }
}

#[test]
fn figures_are_not_shown_to_other_hosts() {
    let log = BrigdOptions::default().config("[metrics]\nlisten = \"0.0.0.0:9464\"\n").try_start().expect_err("a refusal");
    assert!(log.contains("metrics.listen") && log.contains("loopback"), "{log}");
}
