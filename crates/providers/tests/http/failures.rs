//! Failures: what an answer, a silence or a broken connection means for the message.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::child;
use tidings::credentials::Credentials;
use tidings::step::Step;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Provider, SendError};
use tidings_providers::Webhook;

use crate::server::{Act, Server, answer};
use crate::{chat, delivery, kind};

/// Time for a dialogue that comes to its end.
const LONG: Duration = Duration::from_secs(60);

/// Time for one that does not.
const SHORT: Duration = Duration::from_secs(3);

/// Time for one that does not come to its end, behind a connection that comes within it.
const AMPLE: Duration = Duration::from_secs(15);

fn webhook() -> Webhook {
    Webhook::default().allow_private_addresses().timeout(LONG)
}

fn signed() -> Credentials {
    Credentials::default().secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
}

/// A text message to the URL of the integration.
fn of_integration(url: &str) -> Delivery {
    let step = Step::sms("Your code is 17").unwrap();
    delivery(&step, Channel::Sms, json!({}), signed().webhook_url(url))
}

/// One row per answer: the error, and how long the service asks not to be called.
#[test]
fn an_answer_decides_what_follows() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (status, headers, expected, wait) in [
        (200, "", "sent", None),
        (202, "", "sent", None),
        (301, "location: http://127.0.0.1:1/\r\n", "permanent", None),
        (307, "location: /elsewhere\r\n", "permanent", None),
        (400, "", "permanent", None),
        (401, "", "permanent", None),
        (404, "", "permanent", None),
        (408, "", "retryable", None),
        (410, "", "gone", None),
        (429, "retry-after: 90\r\n", "retryable", seconds(90)),
        (429, "retry-after: soon\r\n", "retryable", None),
        (429, "retry-after: 99999999999999999999\r\n", "retryable", seconds(u64::MAX)),
        (503, "retry-after: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "retryable", seconds(0)),
        (500, "", "retryable", None),
        (502, "", "unknown", None),
        (504, "retry-after: 90\r\n", "unknown", None),
        (505, "", "retryable", None),
    ] {
        let server = Server::start(move |_| answer(status, headers, "because"));
        match webhook().send(&chat(&server.url("http"), signed())) {
            Ok(_) => assert_eq!(expected, "sent", "{status}"),
            Err(error) => {
                assert_eq!(kind(&error), expected, "{status}: {error}");
                assert!(error.to_string().contains(&format!("{status} because")), "{error}");
                if let SendError::Retryable { after, .. } = error {
                    assert_eq!(after, wait, "{status} {headers}");
                }
            }
        }
        // A redirect is not followed.
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

/// One row per answer of a URL of the integration: whether it is blamed on the integration or on the message.
#[test]
fn a_url_of_the_integration_that_will_not_do_is_blamed_on_the_integration() {
    for (status, expected) in [
        (301, "misconfigured"),
        (308, "misconfigured"),
        (401, "misconfigured"),
        (403, "misconfigured"),
        (404, "misconfigured"),
        (405, "misconfigured"),
        (410, "misconfigured"),
        (400, "permanent"),
        (413, "permanent"),
        (422, "permanent"),
        (429, "retryable"),
        (502, "unknown"),
        (503, "retryable"),
        (504, "unknown"),
    ] {
        let server = Server::start(move |_| answer(status, "", ""));
        let error = webhook().send(&of_integration(&server.url("http"))).unwrap_err();
        assert_eq!(kind(&error), expected, "{status}: {error}");
    }
}

type Script = Box<dyn Fn() -> Vec<Act> + Send + Sync>;

/// One row per misbehaviour: the error. None lasts longer than the timeout.
#[test]
fn nothing_hangs_and_a_lost_answer_is_unknown() {
    let silence = || vec![Act::Wait(AMPLE * 4)];
    let megabyte = |status: u16| move || answer(status, "", &"x".repeat(1 << 20));
    let endless = || {
        vec![
            Act::Say("HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n".into()),
            Act::Drip,
        ]
    };
    let rows: [(&str, Duration, Script, &str); 10] = [
        ("silence", AMPLE, Box::new(silence), "unknown"),
        ("hangs up", LONG, Box::new(|| vec![Act::HangUp]), "unknown"),
        ("drips a header", AMPLE, Box::new(|| vec![Act::Drip]), "unknown"),
        ("no HTTP", LONG, Box::new(|| vec![Act::Say("220 ready\r\n\r\n".into())]), "unknown"),
        ("half a header", LONG, Box::new(|| vec![Act::Say("HTTP/1.1 20".into())]), "unknown"),
        (
            "long header",
            LONG,
            Box::new(|| answer(200, &format!("x: {}\r\n", "x".repeat(1 << 20)), "")),
            "unknown",
        ),
        ("a megabyte", LONG, Box::new(megabyte(200)), "sent"),
        ("a megabyte of error", LONG, Box::new(megabyte(500)), "retryable"),
        ("drips an error", SHORT, Box::new(endless), "retryable"),
        (
            "slow",
            LONG,
            Box::new(|| {
                let mut acts = vec![Act::Wait(Duration::from_millis(100))];
                acts.extend(answer(200, "", ""));
                acts
            }),
            "sent",
        ),
    ];
    let check = |(name, timeout, script, expected): (&str, Duration, Script, &str)| {
        let server = Server::start(move |_| script());
        let start = Instant::now();
        let sent = webhook().timeout(timeout).send(&chat(&server.url("http"), signed()));
        let found = sent.as_ref().map_or_else(kind, |_| "sent");
        assert_eq!(found, expected, "{name}: {sent:?}");
        assert!(start.elapsed() < SHORT * 10, "{name}: {:?}", start.elapsed());
    };
    thread::scope(|threads| {
        for row in rows {
            threads.spawn(move || check(row));
        }
    });
}

#[test]
fn the_text_of_an_error_is_short() {
    let server = Server::start(|_| answer(500, "", &"x\u{1}".repeat(1 << 20)));
    let error = webhook().send(&chat(&server.url("http"), signed())).unwrap_err().to_string();
    assert!(error.len() < 400 && !error.contains('\u{1}'), "{error}");
}

#[test]
fn a_service_that_is_not_there_is_tried_again() {
    for url in ["http://127.0.0.1:1/", "http://nowhere.invalid/"] {
        let error = webhook().send(&chat(url, signed())).unwrap_err();
        assert_eq!(kind(&error), "retryable", "{url}: {error}");
    }
}

/// The URL of a webhook is a secret, and errors are in logs and dead letters.
#[test]
fn no_error_shows_a_url() {
    let moved = Server::start(|_| answer(301, "location: https://hooks.example/SECRET\r\n", ""));
    let echoing = Server::start(|request| answer(404, "", &format!("no route: {}", request.line)));
    let quoted = format!("http://{}/hooks/SECRET", echoing.address);
    let strict = Webhook::default().timeout(LONG);
    for (webhook, url) in [
        (&strict, "http://hooks.example/SECRET"),
        (&strict, "hooks.example/SECRET"),
        (&strict, "/SECRET"),
        (&strict, "https:///SECRET"),
        (&strict, "gopher://hooks.example/SECRET"),
        (&strict, "https://hooks.example/SECRET with spaces"),
        (&webhook(), &moved.url("http")),
        (&webhook(), &quoted),
    ] {
        for (delivery, expected) in
            [(chat(url, signed()), "permanent"), (of_integration(url), "misconfigured")]
        {
            let error = webhook.send(&delivery).unwrap_err();
            assert_eq!(kind(&error), expected, "{url}: {error}");
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
    }
}

/// One row per answer of a framework that knows no such path. The last one ends within the path when it is
/// shortened.
#[test]
fn no_error_shows_a_url_that_the_answer_quotes() {
    let quotes: [fn(&str) -> String; 5] = [
        |path| format!("<pre>Cannot POST {path}</pre>"),
        |path| json!({ "status": 404, "error": "Not Found", "path": path }).to_string(),
        |path| json!({ "message": format!("Route POST:{path} not found") }).to_string(),
        |path| format!(r#"{{"path":"{}"}}"#, path.replace('/', r"\/")),
        |path| format!("{}{path}", "x".repeat(296)),
    ];
    for quote in quotes {
        let server = Server::start(move |request| {
            let path = request.line.split(' ').nth(1).unwrap();
            answer(404, "", &quote(path))
        });
        let url = format!("http://{}/SECRET-0198?key=0123456789abcdef", server.address);
        for delivery in [chat(&url, signed()), of_integration(&url)] {
            let error = webhook().send(&delivery).unwrap_err().to_string();
            assert!(error.ends_with(": 404 (the text has a part of the URL)"), "{error}");
        }
    }
}

/// The request follows the handshake, so that no server has read it before.
#[test]
fn a_server_that_breaks_the_handshake_is_tried_again() {
    for bytes in [&b"220 ready\r\n"[..], &[21, 3, 3, 0, 2, 2, 40], &[21, 3, 3, 0, 2, 2, 80], &[]] {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", server.local_addr().unwrap());
        let answering = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            // The client says hello first.
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let error = webhook().send(&chat(&url, signed())).unwrap_err();
        answering.join().unwrap();
        assert_eq!(kind(&error), "retryable", "{bytes:?}: {error}");
    }
}

/// One row per break behind the handshake.
#[test]
fn a_server_that_breaks_the_encryption_may_have_the_request() {
    let alert: fn() -> Vec<Act> = || vec![Act::Break(vec![21, 3, 3, 0, 2, 2, 40])];
    for script in [alert, || vec![Act::HangUp]] {
        let server = Server::secure(move |_| script());
        let webhook = webhook().trust([server.certificate.clone()]);
        let error = webhook.send(&chat(&server.url("https"), signed())).unwrap_err();
        assert_eq!(kind(&error), "unknown", "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// The certificate of a recipient's server says nothing of the integration.
#[test]
fn a_certificate_that_is_wrong_ends_the_attempt() {
    let server = Server::secure(|_| answer(200, "", ""));
    let url = server.url("https");
    let error = webhook().send(&chat(&url, signed())).unwrap_err();
    assert_eq!(kind(&error), "permanent", "{error}");

    let error = webhook().send(&of_integration(&url)).unwrap_err();
    assert_eq!(kind(&error), "misconfigured", "{error}");
    assert_eq!(server.requests().len(), 0);

    let trusting = webhook().trust([server.certificate.clone()]);
    assert!(trusting.send(&chat(&url, signed())).is_ok());
}

#[test]
fn a_timeout_has_no_end_that_is_too_far_away() {
    let server = Server::start(|_| answer(200, "", ""));
    let webhook = webhook().timeout(Duration::MAX);
    assert!(webhook.send(&chat(&server.url("http"), signed())).is_ok());
}

/// Name of the variable with the URL for [`child`].
const URL: &str = "TIDINGS_TEST_URL";

/// A process whose threads would have stacks that are larger than its memory starts no thread.
#[test]
fn a_look_up_without_a_thread_is_tried_again() {
    let server = Server::start(|_| answer(200, "", ""));
    let url = server.url("http").replace("127.0.0.1", "localhost");
    let size = (1_u64 << 50).to_string();
    let mut other = child::command("failures::child");
    child::passed(other.env(URL, url).env("RUST_MIN_STACK", size));
    assert_eq!(server.requests().len(), 0);
}

/// The process that starts no thread.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let error = webhook().send(&chat(&url, signed())).unwrap_err();
    assert_eq!(kind(&error), "retryable", "{error}");
}
