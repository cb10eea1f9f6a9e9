//! The dialogue: connections, encryption, logins.

use std::time::Duration;

use serde_json::json;
use tidings::{Address, IntegrationTestResult, Provider, ProviderReceipt};
use tidings_providers::Smtp;

use crate::server::{Act, Moment, Server, but, polite, polite_with_tls, say};
use crate::{account, delivery, json_of, kind, outcome, overridden, tls};

#[test]
fn an_email_reaches_the_server_with_its_envelope() {
    let server = Server::start(polite);
    let delivery = delivery(account(&server));

    let receipt = Smtp::default().send(&delivery).unwrap();

    let [mail] = &server.kept()[..] else { panic!("one e-mail") };
    assert_eq!(mail.from, "<shop@example.com>");
    assert_eq!(mail.to, ["<ada@example.org>"]);
    let id = format!("<{}@example.com>", delivery.idempotency_key());
    assert_eq!(receipt, ProviderReceipt::with_id(&id));
    for line in [
        &format!("Message-ID: {id}\r\n"),
        "From: \"The Shop\" <shop@example.com>\r\n",
        "To: Ada <ada@example.org>\r\n",
        "Subject: On its way\r\n",
        "<p>Dear <b>Ada</b></p>",
    ] {
        assert!(mail.content.contains(line), "{line} in {}", mail.content);
    }
    assert_eq!(server.commands()[0], "EHLO [127.0.0.1]");
}

#[test]
fn a_server_is_greeted_with_the_name_of_the_host() {
    let server = Server::start(polite);
    let smtp = Smtp::default().hello_name("mail.example.com").unwrap();
    let delivery = delivery(account(&server));
    assert_eq!(outcome(&smtp, &delivery).0, "sent");
    assert_eq!(smtp.check(&delivery.integration), IntegrationTestResult::Passed);
    let commands = server.commands().into_iter();
    let greetings: Vec<_> = commands.filter(|line| line.starts_with("EHLO")).collect();
    assert_eq!(greetings, ["EHLO mail.example.com"; 2]);
    for name in ["", "a b", "a..b", "a\r\nQUIT", "münchen.example", &"a.".repeat(200)] {
        let refused = Smtp::default().hello_name(name).unwrap_err().to_string();
        assert_eq!(refused, "`helloName` must be a domain name in ASCII", "{name}");
    }
}

#[test]
fn a_connection_serves_one_email_after_the_other() {
    let server = Server::start(polite);
    let smtp = Smtp::default();
    let delivery = delivery(account(&server));
    for _ in 0..5 {
        smtp.send(&delivery).unwrap();
    }
    assert_eq!((server.kept().len(), server.connections()), (5, 1));
}

/// The next e-mail would take the answer for its own.
#[test]
fn a_connection_with_an_answer_too_many_serves_no_other_email() {
    for late in ["550 late", "250 late"] {
        let answers = format!("250 kept\r\n{late}");
        let server = Server::start(but(move |line| (line == "sent").then(|| say(&answers))));
        let smtp = Smtp::default();
        let delivery = delivery(account(&server));
        for _ in 0..3 {
            assert_eq!(outcome(&smtp, &delivery), ("sent", String::new()));
        }
        assert_eq!(server.connections(), 3, "{late}");
    }
}

/// A server closes connections that wait, without a word.
#[test]
fn a_connection_that_is_dead_is_replaced() {
    let server = Server::start(but(|line| (line == "RSET").then(|| vec![Act::HangUp])));
    let smtp = Smtp::default();
    let delivery = delivery(account(&server));
    for _ in 0..3 {
        assert_eq!(outcome(&smtp, &delivery), ("sent", String::new()));
    }
    assert_eq!((server.kept().len(), server.connections()), (3, 3));
}

#[test]
fn other_credentials_are_another_connection() {
    let (old, new) = (Server::start(polite), Server::start(polite));
    let smtp = Smtp::default();
    let mut delivery = delivery(account(&old));
    smtp.send(&delivery).unwrap();
    delivery.integration.credentials = account(&new);
    smtp.send(&delivery).unwrap();
    assert_eq!((old.kept().len(), new.kept().len()), (1, 1));
}

/// One row per mechanism that a server has.
#[test]
fn user_and_password_are_sent_by_a_common_mechanism() {
    for (mechanism, expected) in [
        ("AUTH CRAM-MD5 PLAIN", vec!["AUTH PLAIN AGFkYQBzZWNyZXQ="]),
        ("auth login", vec!["AUTH LOGIN", "YWRh", "c2VjcmV0"]),
    ] {
        let server = Server::start(but(move |line| match line.split(' ').next()? {
            "EHLO" => Some(say(&format!("250-localhost\r\n250 {mechanism}"))),
            "AUTH" if line == "AUTH LOGIN" => Some(say("334 VXNlcm5hbWU6")),
            "YWRh" => Some(say("334 UGFzc3dvcmQ6")),
            "c2VjcmV0" => Some(say("235 welcome")),
            _ => None,
        }));
        let credentials = account(&server).user("ada").password("secret");

        let sent = outcome(&Smtp::default(), &delivery(credentials));

        assert_eq!(sent, ("sent", String::new()), "{mechanism}");
        let commands = server.commands();
        let of_login: Vec<_> = commands.iter().skip(1).take(expected.len()).collect();
        assert_eq!(of_login, expected, "{mechanism}");
    }
}

/// One row per address that is not ASCII: its place in the e-mail.
#[test]
fn an_address_that_is_not_ascii_needs_a_server_that_takes_it() {
    for place in ["from", "cc", "bcc", "replyTo"] {
        let (able, unable) = (Server::start(polite), Server::start(without_unicode()));
        let sent = |server: &Server| {
            let delivery = delivery(account(server));
            outcome(&Smtp::default(), &overridden(delivery, json!({ place: "jürgen@example.org" })))
        };
        assert_eq!(sent(&able), ("sent", String::new()), "{place}");
        let of_sender = able.commands().into_iter().find(|line| line.starts_with("MAIL")).unwrap();
        assert!(of_sender.contains(" SMTPUTF8"), "{place}: {of_sender}");
        let refusal = "refused: the server has no SMTPUTF8".to_owned();
        assert_eq!(sent(&unable), ("permanent", refusal), "{place}");
    }
}

/// Names, subjects, texts and files are encoded.
#[test]
fn an_email_with_plain_addresses_needs_no_unicode_of_the_server() {
    let server = Server::start(without_unicode());
    let mut delivery = delivery(account(&server).sender_name("Jürgen"));
    delivery.message.subject = Some("Grüße".into());
    let overrides = json!({
        "text": "Grüße", "cc": "Jürgen <jurgen@example.org>", "headers": { "X-Campaign": "Grüße" },
        "attachments": [{
            "file": "", "name": "Grüße.txt", "mime": "text/plain; name=\"Grüße.txt\"",
        }],
    });
    assert_eq!(
        outcome(&Smtp::default(), &overridden(delivery, overrides)),
        ("sent", String::new())
    );
    assert!(server.kept()[0].content.is_ascii(), "{}", server.kept()[0].content);
}

fn without_unicode() -> impl Fn(Moment) -> Vec<Act> {
    but(|line| line.starts_with("EHLO").then(|| say("250-localhost\r\n250 8BITMIME")))
}

#[test]
fn starttls_encrypts_before_the_login() {
    let server = Server::start(polite_with_tls);
    let mut credentials = account(&server).user("ada").password("secret").require_tls(true);
    credentials = credentials.tls_options(tls(&server.certificate)).unwrap();

    assert_eq!(outcome(&Smtp::default(), &delivery(credentials)), ("sent", String::new()));

    let commands = server.commands();
    let words: Vec<_> = commands.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words[..5], ["EHLO", "STARTTLS", "EHLO", "AUTH", "MAIL"]);
}

#[test]
fn a_secure_server_speaks_tls_at_once() {
    let server = Server::start(|moment| match moment {
        Moment::Connected => vec![Act::Encrypt, Act::Say("220 ready".into())],
        moment => polite(moment),
    });
    let credentials = account(&server).secure(true).tls_options(tls(&server.certificate)).unwrap();
    assert_eq!(outcome(&Smtp::default(), &delivery(credentials)), ("sent", String::new()));
}

/// One row per server and account: what a test of the integration says.
#[test]
fn a_test_of_an_integration_logs_in_and_sends_nothing() {
    let sound = Server::start(polite);
    let strict = Server::start(but(|line| {
        line.starts_with("AUTH").then(|| say("535 5.7.8 wrong password"))
    }));
    let silent = Server::start(but(|line| {
        (line == "connected").then(|| vec![Act::Wait(Duration::from_secs(5))])
    }));
    for (server, millis, result) in [
        (&sound, 60_000, IntegrationTestResult::Passed),
        (&strict, 60_000, failed("misconfigured")),
        (&silent, 900, failed("retryable")),
    ] {
        let delivery = delivery(account(server).user("ada").password("secret"));
        let smtp = Smtp::default().timeout(Duration::from_millis(millis));
        match smtp.check(&delivery.integration) {
            IntegrationTestResult::Failed(error) => assert_eq!(failed(kind(&error)), result),
            tested => assert_eq!(tested, result),
        }
        assert_eq!(server.kept(), []);
    }
    assert_eq!(sound.commands().last().unwrap(), "QUIT");
}

fn failed(kind: &str) -> IntegrationTestResult {
    IntegrationTestResult::Failed(tidings::SendError::retryable(kind))
}

/// One row per account that cannot send: the field that is named.
#[test]
fn an_account_that_cannot_send_is_not_accepted() {
    let least = json!({ "host": "smtp.example.org", "from": "us@example.org" });
    for (change, refusal) in [
        (json!({}), ""),
        (json!({ "port": "2525", "secure": true, "user": "u", "password": "p" }), ""),
        (json!({ "from": "The Shop <us@example.org>" }), ""),
        (json!({ "host": null }), "`credentials.host` is required"),
        (json!({ "host": "" }), "`credentials.host` is required"),
        (json!({ "host": "a b" }), "`credentials.host` must be a host name or an IP address"),
        (json!({ "from": null }), "`credentials.from` is required"),
        (json!({ "from": "us\r\nBcc: x@y.z" }), "`credentials.from` must be an e-mail address"),
        (json!({ "port": "0" }), "`credentials.port` must be between 1 and 65535"),
        (json!({ "port": "smtp" }), "`credentials.port` must be between 1 and 65535"),
        (json!({ "user": "u" }), "`credentials.password` is required"),
        (json!({ "password": "p" }), "`credentials.user` is required"),
        (
            json!({ "secure": true, "ignoreTls": true }),
            "`credentials.ignoreTls` must not be given together with `credentials.secure`",
        ),
        (
            json!({ "tlsOptions": { "rejectUnauthorized": false } }),
            "`credentials.tlsOptions.rejectUnauthorized` is not known",
        ),
        (
            json!({ "tlsOptions": { "ca": "none" } }),
            "`credentials.tlsOptions.ca` must be certificates in PEM",
        ),
    ] {
        let mut credentials = least.clone();
        for (name, value) in change.as_object().unwrap() {
            credentials[name] = value.clone();
        }
        let accepted =
            Smtp::default().accept(tidings::vocabulary::Channel::Email, &json_of(credentials));
        let said = accepted.err().map(|invalid| invalid.to_string()).unwrap_or_default();
        assert_eq!(said, refusal, "{change}");
    }
    let sms = Smtp::default().accept(tidings::vocabulary::Channel::Sms, &json_of(least));
    assert_eq!(sms.unwrap_err().field, "channel");
}

/// One row per sender whose domain is not ASCII.
#[test]
fn the_id_of_an_email_is_ascii() {
    for from in ["shop@bücher.example", "jürgen@bücher.example"] {
        let server = Server::start(polite);
        let delivery = overridden(delivery(account(&server)), json!({ "from": from }));

        let receipt = Smtp::default().send(&delivery).unwrap();

        let id = format!("<{}@xn--bcher-kva.example>", delivery.idempotency_key());
        assert_eq!(receipt, ProviderReceipt::with_id(&id), "{from}");
        let mail = server.kept().remove(0);
        assert!(mail.content.contains(&format!("\r\nMessage-ID: {id}\r\n")), "{}", mail.content);
    }
}

/// One row per place of an address whose domain alone is not ASCII.
#[test]
fn a_domain_that_is_not_ascii_needs_nothing_of_the_server() {
    let (address, ascii) = ("jurgen@bücher.example", "jurgen@xn--bcher-kva.example");
    for (place, command) in [
        ("from", Some("MAIL FROM:<jurgen@xn--bcher-kva.example>")),
        ("to", Some("RCPT TO:<jurgen@xn--bcher-kva.example>")),
        ("cc", Some("RCPT TO:<jurgen@xn--bcher-kva.example>")),
        ("bcc", Some("RCPT TO:<jurgen@xn--bcher-kva.example>")),
        ("replyTo", None),
    ] {
        let server = Server::start(without_unicode());
        let delivery = overridden(delivery(account(&server)), json!({ place: address }));
        assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()), "{place}");
        let commands = server.commands();
        if let Some(command) = command {
            assert!(commands.iter().any(|line| line == command), "{place}: {commands:?}");
        }
        let content = &server.kept()[0].content;
        assert!(content.is_ascii(), "{place}: {content}");
        assert_eq!(content.contains(ascii), place != "bcc", "{place}: {content}");
    }
}

#[test]
fn domains_of_the_account_and_of_the_subscriber_may_be_other_than_ascii() {
    let server = Server::start(without_unicode());
    let mut delivery = delivery(account(&server).from("Shop <shop@bücher.example>"));
    delivery.address = Address::Email("ada@bücher.example".parse().unwrap());
    assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
    let mail = server.kept().remove(0);
    assert_eq!(mail.from, "<shop@xn--bcher-kva.example>");
    assert_eq!(mail.to, ["<ada@xn--bcher-kva.example>"]);
}
