//! Failures: what an answer, a silence or a broken connection means for the e-mail.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tidings_providers::Smtp;

use crate::server::{Act, Moment, Server, but, polite, polite_with_tls, say};
use crate::{account, delivery, outcome, overridden, tls};

/// Time for a dialogue that comes to its end.
const LONG: Duration = Duration::from_secs(60);

/// Time for one that does not.
const SHORT: Duration = Duration::from_secs(3);

/// Time for one that does not come to its end, behind a connection that comes within it.
const AMPLE: Duration = Duration::from_secs(15);

fn smtp() -> Smtp {
    Smtp::default().timeout(LONG)
}

/// One row per answer: where it comes, what it says, and the error.
#[test]
fn an_answer_decides_what_follows() {
    for (at, answer, kind) in [
        ("connected", "421 closing", "retryable"),
        ("connected", "554 no service for you", "misconfigured"),
        ("EHLO", "500 what", "misconfigured"),
        ("AUTH", "535 5.7.8 wrong password", "misconfigured"),
        ("AUTH", "454 4.7.0 try later", "retryable"),
        ("MAIL", "530 5.7.0 log in first", "misconfigured"),
        ("MAIL", "451 4.3.0 busy", "retryable"),
        ("MAIL", "550 5.7.1 sender refused", "misconfigured"),
        ("MAIL", "552 5.3.4 too large", "permanent"),
        ("RCPT", "450 4.2.1 greylisted", "retryable"),
        ("RCPT", "550 no such user", "permanent"),
        ("RCPT", "551 user not local", "permanent"),
        ("RCPT", "550 5.1.1 no such user", "gone"),
        ("RCPT", "553 5.1.10 null mx", "gone"),
        ("RCPT", "550 5.7.1 relaying denied", "permanent"),
        ("RCPT", "552 5.2.2 mailbox full", "permanent"),
        ("DATA", "452 no space", "retryable"),
        ("sent", "451 4.7.1 greylisted", "retryable"),
        ("sent", "554 5.6.0 spam", "permanent"),
        ("sent", "550 blocked", "permanent"),
        ("sent", "550 5.1.1 no such user", "gone"),
    ] {
        let server = Server::start(but(move |line| line.starts_with(at).then(|| say(answer))));
        let delivery = delivery(account(&server).user("ada").password("secret"));

        let (found, said) = outcome(&smtp(), &delivery);

        assert_eq!(found, kind, "{at}: {answer}");
        assert!(said.contains(answer), "{said}");
        assert_eq!(server.kept(), []);
    }
}

/// One row per answer of another command: where it comes, what it says, and the error.
#[test]
fn an_answer_that_does_not_belong_to_the_command_ends_the_dialogue() {
    for (at, answer, kind) in [
        ("connected", "354 go on", "retryable"),
        ("EHLO", "334 go on", "retryable"),
        ("AUTH", "250 fine", "retryable"),
        ("MAIL", "354 go on", "retryable"),
        ("RCPT", "354 go on", "retryable"),
        ("DATA", "250 fine", "retryable"),
        ("sent", "354 go on", "unknown"),
    ] {
        let server = Server::start(but(move |line| line.starts_with(at).then(|| say(answer))));
        let delivery = delivery(account(&server).user("ada").password("secret"));
        let smtp = smtp();

        let (found, said) = outcome(&smtp, &delivery);

        assert_eq!(found, kind, "{at}: {answer}: {said}");
        assert!(said.contains(answer), "{said}");
        let commands = server.commands();
        assert!(!commands.iter().any(|line| line.starts_with("Message-ID")), "{at}: {commands:?}");
        // The dialogue is out of step, so that the connection is good for nothing.
        outcome(&smtp, &delivery);
        assert_eq!(server.connections(), 2, "{at}");
    }
}

#[test]
fn a_refusal_of_one_of_several_recipients_is_none_of_the_subscriber() {
    let server = Server::start(but(|line| {
        line.starts_with("RCPT TO:<bob").then(|| say("550 5.1.1 no such user"))
    }));
    let delivery = overridden(delivery(account(&server)), json!({ "cc": "bob@example.org" }));
    assert_eq!(outcome(&smtp(), &delivery).0, "permanent");
}

#[test]
fn a_refusal_of_the_sender_of_a_trigger_is_one_of_the_message() {
    let refuse = |line: &str| line.starts_with("MAIL").then(|| say("550 5.7.1 sender refused"));
    let server = Server::start(but(refuse));
    let delivery = overridden(delivery(account(&server)), json!({ "from": "bob@example.org" }));
    assert_eq!(outcome(&smtp(), &delivery).0, "permanent");
}

type Script = Box<dyn Fn(Moment) -> Vec<Act> + Send + Sync>;

/// One row per misbehaviour: the time for it, and the error. None lasts longer than the timeout.
#[test]
fn nothing_hangs_and_only_a_lost_answer_is_unknown() {
    let silence = || vec![Act::Wait(AMPLE * 4)];
    let endless = || vec![Act::Say(format!("250 {}", "x".repeat(1 << 20)))];
    let at = |place: &'static str, acts: fn() -> Vec<Act>| -> Script {
        Box::new(but(move |line| line.starts_with(place).then(acts)))
    };
    let keeps_and_hangs_up: Script = Box::new(|moment| match moment {
        Moment::Sent(mail) => vec![Act::Keep(mail), Act::HangUp],
        moment => polite(moment),
    });
    let rows: [(Script, Duration, &str); 13] = [
        (at("connected", silence), SHORT, "retryable"),
        (at("connected", || vec![Act::HangUp]), LONG, "retryable"),
        (at("connected", || vec![Act::Drip]), SHORT, "retryable"),
        (at("connected", || say("\u{0}\u{ff}")), LONG, "retryable"),
        (at("EHLO", endless), LONG, "retryable"),
        (at("EHLO", || say(&vec!["250-a"; 100_000].join("\r\n"))), LONG, "retryable"),
        (at("EHLO", || say("250-localhost\r\n250- \r\n250 ")), LONG, "misconfigured"),
        (at("MAIL", || vec![Act::HangUp]), LONG, "retryable"),
        (at("DATA", || vec![Act::HangUp]), LONG, "retryable"),
        (at("sent", || vec![Act::HangUp]), LONG, "unknown"),
        (at("sent", silence), AMPLE, "unknown"),
        (at("sent", || say("hello")), LONG, "unknown"),
        (keeps_and_hangs_up, LONG, "unknown"),
    ];
    let check = |number: usize, (script, timeout, kind): (Script, Duration, &str)| {
        let server = Server::start(script);
        let delivery = delivery(account(&server).user("ada").password("secret"));
        let start = Instant::now();

        let smtp = Smtp::default().timeout(timeout).acceptance_timeout(timeout);
        let (found, said) = outcome(&smtp, &delivery);

        assert_eq!(found, kind, "row {number}: {said}");
        assert!(start.elapsed() < SHORT * 10, "row {number}: {:?}", start.elapsed());
    };
    thread::scope(|threads| {
        for (number, row) in rows.into_iter().enumerate() {
            threads.spawn(move || check(number, row));
        }
    });
}

/// A server that scans an e-mail answers later than the rest of the dialogue may take. One that does not answer
/// at all holds up a thread no longer than the time for the answer, however long the rest may take.
#[test]
fn the_answer_to_the_content_has_a_time_of_its_own() {
    let check = |acts: Vec<Act>, [timeout, acceptance]: [Duration; 2], kind: &str| {
        let server = Server::start(but(move |line| (line == "sent").then(|| acts.clone())));
        let smtp = Smtp::default().timeout(timeout).acceptance_timeout(acceptance);
        let start = Instant::now();

        let (found, said) = outcome(&smtp, &delivery(account(&server)));

        assert_eq!(found, kind, "{said}");
        assert!(start.elapsed() < SHORT * 10, "{:?}", start.elapsed());
    };
    let scans = vec![Act::Wait(AMPLE + SHORT), Act::Say("250 kept".into())];
    thread::scope(|threads| {
        threads.spawn(|| check(scans, [AMPLE, LONG], "sent"));
        threads.spawn(|| check(vec![Act::Wait(AMPLE * 4)], [LONG, SHORT], "unknown"));
    });
}

#[test]
fn a_server_that_is_not_there_is_tried_again() {
    let credentials = account(&Server::start(polite)).port(1);
    assert_eq!(outcome(&smtp(), &delivery(credentials)).0, "retryable");
    let credentials = account(&Server::start(polite)).host("nowhere.invalid").ignore_tls(true);
    assert_eq!(outcome(&smtp(), &delivery(credentials)).0, "retryable");
}

/// One row per account: the encryption that it asks for is not there.
#[test]
fn an_email_does_not_leave_without_the_encryption_that_is_asked_for() {
    let trusted = |server: &Server| account(server).tls_options(tls(&server.certificate)).unwrap();
    let (plain, encrypted) = (Server::start(polite), Server::start(polite_with_tls));
    for (number, (server, credentials)) in [
        (&plain, account(&plain).require_tls(true)),
        // The certificate is signed by itself.
        (&encrypted, account(&encrypted)),
        // Its name is another one.
        (
            &encrypted,
            trusted(&encrypted)
                .tls_options(json!({
                    "ca": encrypted.certificate, "servername": "mail.example.org",
                }))
                .unwrap(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (found, said) = outcome(&smtp(), &delivery(credentials));
        assert_eq!(found, "misconfigured", "{number}: {said}");
        assert!(!server.commands().iter().any(|line| line.starts_with("MAIL")));
    }
    assert_eq!(outcome(&smtp(), &delivery(trusted(&encrypted))).0, "sent");
}

/// What comes before the handshake may be of anybody (CVE-2011-0411).
#[test]
fn an_answer_before_the_handshake_is_refused() {
    let server = Server::start(|moment| match &moment {
        Moment::Command(line) if line == "STARTTLS" => {
            vec![Act::Say("220 go\r\n250 smuggled".into()), Act::Encrypt]
        }
        _ => polite_with_tls(moment),
    });
    let credentials = account(&server).tls_options(tls(&server.certificate)).unwrap();
    assert_eq!(outcome(&smtp(), &delivery(credentials)).0, "retryable");
    assert_eq!(server.kept(), []);
}

/// One row per answer that quotes what the client has sent: the mechanism that the server has, and the
/// command that it quotes.
#[test]
fn an_answer_that_quotes_the_login_is_not_repeated() {
    for (mechanism, at, text) in [
        ("PLAIN", "AUTH", "535 5.7.8 bad: AUTH PLAIN AGFkYQBzZWNyZXQ="),
        ("PLAIN", "AUTH", "535 5.7.8 bad: AUTH PLAIN AGFkYQBzZWNyZ"),
        ("PLAIN", "AUTH", "535-5.7.8 bad\r\n535 5.7.8 AUTH PLAIN AGFkYQBzZWNyZXQ="),
        ("PLAIN", "AUTH", "535 5.7.8 ada may not log in with secret"),
        ("PLAIN", "AUTH", "250 AUTH PLAIN AGFkYQBzZWNyZXQ="),
        ("PLAIN", "AUTH", "334 AGFkYQBzZWNyZXQ="),
        ("LOGIN", "c2VjcmV0", "535 5.7.8 bad: c2VjcmV0"),
        ("LOGIN", "c2VjcmV0", "334 c2VjcmV0"),
    ] {
        let server = Server::start(but(move |line| match line.split(' ').next()? {
            "EHLO" => Some(say(&format!("250-localhost\r\n250 AUTH {mechanism}"))),
            word if word == at => Some(say(text)),
            "AUTH" => Some(say("334 VXNlcm5hbWU6")),
            "YWRh" => Some(say("334 UGFzc3dvcmQ6")),
            _ => None,
        }));
        let delivery = delivery(account(&server).user("ada").password("secret"));
        let (kind, said) = outcome(&smtp(), &delivery);
        assert_ne!(kind, "sent");
        for secret in ["AGFkYQBzZWNyZ", "c2VjcmV0", "with secret"] {
            assert!(!said.contains(secret), "{text}: {said}");
        }
        if kind == "misconfigured" {
            assert!(said.contains("535 5.7.8"), "{text}: {said}");
        }
    }
}
