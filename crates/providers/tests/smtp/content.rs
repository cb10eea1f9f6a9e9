//! Content: text and HTML, files, headers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidings_providers::Smtp;

use crate::server::{Mail, Server, polite};
use crate::{account, delivery, outcome, overridden};

/// Sends an e-mail with overrides, and returns it as the server has got it.
pub fn sent(overrides: Value) -> Mail {
    let server = Server::start(polite);
    let delivery = overridden(delivery(account(&server)), overrides);
    assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
    server.kept().pop().unwrap()
}

pub fn refused(overrides: Value) -> String {
    let server = Server::start(polite);
    let delivery = overridden(delivery(account(&server)), overrides);
    let (kind, said) = outcome(&Smtp::default(), &delivery);
    assert_eq!((kind, server.connections()), ("permanent", 0), "{said}");
    said
}

pub fn headers(mail: &Mail) -> &str {
    mail.content.split("\r\n\r\n").next().unwrap()
}

#[test]
fn an_email_has_text_and_html() {
    let mail = sent(json!({}));
    let parts: Vec<&str> = mail.content.split("\r\n--both-").skip(1).collect();
    assert!(headers(&mail).contains("Content-Type: multipart/alternative;"));
    assert!(parts[0].contains("Content-Type: text/plain; charset=utf-8"));
    assert!(parts[0].contains("\r\n\r\nDear Ada"), "{}", parts[0]);
    assert!(parts[1].contains("Content-Type: text/html; charset=utf-8"));
    assert!(parts[1].contains("<p>Dear <b>Ada</b></p>"));
    let own = sent(json!({ "text": "Dear Ada, in words" }));
    assert!(own.content.contains("\r\n\r\nDear Ada, in words\r\n"));
}

/// One row per content: its text and its HTML, as the engine shows them elsewhere.
#[test]
fn text_and_html_are_those_of_the_engine() {
    let button = json!([
        { "type": "text", "content": "Dear Ada" },
        { "type": "button", "content": "Open", "url": "https://shop.example/1" },
    ]);
    for content in [
        json!("<ul><li>tea</li></ul><a href=\"https://shop.example/1\">Open</a> &euro; <b"),
        button,
        // Libraries for this read the like in quadratic time.
        json!("<a href=x>".repeat((512 << 10) / 10)),
        json!("\n".repeat(2 << 20)),
    ] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        delivery.message.content = Some(serde_json::from_value(content).unwrap());
        let start = Instant::now();
        assert_eq!(outcome(&Smtp::default(), &delivery).0, "sent");
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        let mail = server.kept().pop().unwrap();
        let parts: Vec<String> =
            mail.content.split("\r\n--both-").skip(1).take(2).map(readable).collect();
        let (text, html) =
            (delivery.message.plain_text().unwrap(), delivery.message.content.unwrap().html());
        assert_eq!(parts[0], text.replace('\n', "\r\n"));
        assert_eq!(parts[1], html.replace('\n', "\r\n"));
    }
}

/// One row per content with line breaks of other systems. Some servers take a lone carriage return for
/// the end of a line, and a dot between two of them for the end of the e-mail.
#[test]
fn every_line_ends_with_a_carriage_return_and_a_line_feed() {
    for content in ["hi\r.\r\nMAIL FROM:<x@y.z>\r\nb", "a\rb\nc\r\nd\n\re\r\r.\r", "\r.\n"] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        delivery.message.content = Some(serde_json::from_value(json!(content)).unwrap());
        let delivery = overridden(delivery, json!({ "text": content }));
        assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
        let [mail] = &server.kept()[..] else { panic!("one e-mail") };
        let inside = mail.content.replace("\r\n", "");
        assert!(!inside.contains(['\r', '\n']), "{content:?}: {:?}", mail.content);
    }
}

/// The content of a part of an e-mail.
fn readable(part: &str) -> String {
    let (head, content) = part.split_once("\r\n\r\n").unwrap();
    if head.contains("quoted-printable") {
        let joined = content.replace("=\r\n", "");
        let mut bytes = Vec::new();
        let mut rest = joined.as_bytes();
        while let [first, behind @ ..] = rest {
            rest = behind;
            match (first, behind) {
                (b'=', [high, low, behind @ ..]) => {
                    let digits = String::from_utf8(vec![*high, *low]).unwrap();
                    bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                    rest = behind;
                }
                _ => bytes.push(*first),
            }
        }
        return String::from_utf8(bytes).unwrap();
    }
    assert!(head.contains("Encoding: 7bit"), "{head}");
    content.to_owned()
}

#[test]
fn every_attempt_has_the_same_bytes() {
    let overrides = json!({
        "attachments": [{ "file": "YQ==", "name": "a" }, { "file": "YQ==", "contentId": "i" }],
    });
    assert_eq!(sent(overrides.clone()), sent(overrides));
}

#[test]
fn files_are_attached_and_images_are_in_the_html() {
    let mail = sent(json!({ "attachments": [
        { "file": "/wD+", "name": "Rechnung für Ada.pdf", "mime": "application/pdf" },
        { "file": "R0lGODlh", "name": "logo.gif", "mime": "image/gif", "contentId": "logo" },
    ] }));
    assert!(headers(&mail).contains("multipart/mixed;"));
    assert!(mail.content.contains("multipart/related;"));
    assert!(mail.content.contains("Content-ID: <logo>\r\n"));
    assert!(mail.content.contains("Content-Disposition: inline; filename=\"logo.gif\""));
    assert!(mail.content.contains("Content-Type: application/pdf\r\n"));
    assert!(mail.content.contains("\r\n\r\n/wD+\r\n"));
    assert!(mail.content.contains("Content-Disposition: attachment;"));
}

#[test]
fn an_attached_email_is_sent_as_bytes() {
    for mime in ["message/rfc822", "Multipart/Mixed; boundary=x"] {
        let file = json!({ "file": "YQ==", "name": "a.eml", "mime": mime });
        let mail = sent(json!({ "attachments": [file] }));
        assert!(mail.content.contains("Content-Type: application/octet-stream\r\n"), "{mime}");
        assert!(mail.content.contains("filename=\"a.eml\""), "{mime}");
    }
}

#[test]
fn attachments_in_the_payload_are_taken() {
    let server = Server::start(polite);
    let mut delivery = delivery(account(&server));
    let payload =
        json!({ "attachments": [{ "file": "aGVsbG8=", "name": "a.txt", "mime": "text/plain" }] });
    delivery.notification.payload = Some(payload.try_into().unwrap());
    assert_eq!(outcome(&Smtp::default(), &delivery).0, "sent");
    assert!(server.kept()[0].content.contains("filename=\"a.txt\""));
}

/// One row per field of the host that has the name of attachments: the e-mail has no file.
#[test]
fn attachments_of_another_form_are_those_of_the_host() {
    for attachments in [
        json!(null),
        json!(3),
        json!("report.pdf"),
        json!({ "file": "aGVsbG8=" }),
        json!([]),
        json!(["report.pdf"]),
        json!([{ "url": "https://shop.example/report.pdf" }]),
    ] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        let payload = json!({ "attachments": attachments });
        delivery.notification.payload = Some(payload.try_into().unwrap());
        let sent = outcome(&Smtp::default(), &delivery);
        assert_eq!(sent, ("sent", String::new()), "{attachments}");
        assert!(!server.kept()[0].content.contains("attachment"), "{attachments}");
    }
}

/// One row per list of files with one that is wrong: its place. The payload may be a secret.
#[test]
fn an_attachment_of_the_payload_that_is_wrong_is_named_without_its_value() {
    for (attachments, place) in [
        (json!([{ "file": "?SECRET" }]), "payload.attachments[0]"),
        (json!([{ "file": "YQ==" }, { "file": 17_000_017 }]), "payload.attachments[1]"),
        (json!([{ "file": "YQ==", "name": 17_000_017 }]), "payload.attachments[0]"),
        (json!([{ "file": "YQ==", "mime": "SECRET" }]), "payload.attachments[0]"),
        (json!([{ "file": "YQ==", "contentId": "SECRET>" }]), "payload.attachments[0]"),
        (json!(["SECRET", { "file": "YQ==" }]), "payload.attachments[0]"),
        (json!([{ "file": "YQ==" }, { "name": "SECRET" }]), "payload.attachments[1]"),
    ] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        let payload = json!({ "attachments": attachments });
        delivery.notification.payload = Some(payload.try_into().unwrap());
        let (kind, said) = outcome(&Smtp::default(), &delivery);
        assert_eq!((kind, server.connections()), ("permanent", 0), "{said}");
        assert!(said.contains(&format!("`{place}`")), "{said}");
        assert!(!said.contains("SECRET") && !said.contains("17000017"), "{said}");
        // The list of the trigger takes the place of that in the payload.
        let own = overridden(delivery, json!({ "attachments": [{ "file": "YQ==" }] }));
        assert_eq!(outcome(&Smtp::default(), &own), ("sent", String::new()));
    }
}

#[test]
fn copies_are_in_the_envelope_and_blind_ones_there_only() {
    let mail = sent(json!({
        "to": "Bob <bob@example.org>", "cc": ["cleo@example.org", "ada@example.org"],
        "bcc": "dora@example.org", "replyTo": "help@example.com",
        "from": "orders@example.com", "senderName": "Orders",
    }));
    assert_eq!(
        mail.to,
        ["<ada@example.org>", "<bob@example.org>", "<cleo@example.org>", "<dora@example.org>"]
    );
    assert_eq!(mail.from, "<orders@example.com>");
    assert!(headers(&mail).contains("To: Ada <ada@example.org>, Bob <bob@example.org>"));
    assert!(headers(&mail).contains("Cc: cleo@example.org, ada@example.org"));
    assert!(headers(&mail).contains("Reply-To: help@example.com"));
    assert!(headers(&mail).contains("From: Orders <orders@example.com>"));
    assert!(!mail.content.contains("dora@"));
}

#[test]
fn a_link_to_unsubscribe_works_with_one_click() {
    let url = format!("https://shop.example.com/u/{}", "x".repeat(200));
    let mail = sent(json!({ "unsubscribeUrl": url }));
    assert!(headers(&mail).contains(&format!("\r\nList-Unsubscribe: <{url}>")));
    assert!(headers(&mail).contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click"));
    let by_mail = sent(json!({ "unsubscribeUrl": "mailto:stop@example.com" }));
    assert!(headers(&by_mail).contains("List-Unsubscribe: <mailto:stop@example.com>"));
    assert!(!by_mail.content.contains("One-Click"));
}

/// One row per link of the engine: whether the e-mail has it.
#[test]
fn the_link_of_the_engine_is_used_unless_the_trigger_has_one() {
    let long = format!("https://shop.example.com/u?token={}", "x".repeat(900));
    for (url, is_there) in [("https://shop.example.com/u?token=AQ", true), (&*long, false)] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        delivery.unsubscribe_url = Some(url.into());
        assert_eq!(outcome(&Smtp::default(), &delivery).0, "sent");
        let mail = server.kept().remove(0);
        let header = format!("\r\nList-Unsubscribe: <{url}>\r\n");
        assert_eq!(mail.content.contains(&header), is_there, "{url}");
        assert_eq!(mail.content.contains("List-Unsubscribe=One-Click"), is_there, "{url}");
        let delivery = overridden(delivery, json!({ "unsubscribeUrl": "https://a.example/b" }));
        assert_eq!(outcome(&Smtp::default(), &delivery).0, "sent");
        let mail = server.kept().remove(1);
        assert!(mail.content.contains("\r\nList-Unsubscribe: <https://a.example/b>"), "{url}");
    }
}

#[test]
fn no_text_becomes_a_header_of_its_own() {
    let evil = "x\r\nBcc: eve@example.net\r\n\r\n<p>";
    let server = Server::start(polite);
    let mut delivery = delivery(account(&server).sender_name(evil));
    delivery.message.subject = Some(evil.into());
    delivery.subscriber.profile.first_name = Some(evil.into());
    let delivery = overridden(
        delivery,
        json!({
            "headers": { "X-Campaign": evil }, "attachments": [{ "file": "", "name": evil }],
        }),
    );
    assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
    let [mail] = &server.kept()[..] else { panic!("one e-mail") };
    assert_eq!(mail.to, ["<ada@example.org>"]);
    assert!(headers(mail).contains("X-Campaign: x"));
    for line in mail.content.lines() {
        assert!(!line.to_ascii_lowercase().starts_with("bcc"), "{}", mail.content);
    }
}

/// One row per override that no e-mail can have: the refusal.
#[test]
fn an_override_that_is_wrong_is_refused_before_a_connection() {
    let name = "`overrides.headers`: `X: y\\r\\nBcc` is no header to set";
    let own = "`overrides.headers`: `Message-ID` is no header to set";
    let link = "`overrides.unsubscribeUrl` must be a URL of `https`, `http` or `mailto`, with at \
                most 900 bytes";
    let file = "`overrides.attachments[0]` must be an object with `file` in base64, and texts as \
                `name`, `mime` (a media type) and `contentId` (of A-Z 0-9 -_.@)";
    let addresses = "must be an e-mail address or a list of them";
    for (overrides, refusal) in [
        (json!({ "cc": "nobody" }), &*format!("`overrides.cc` {addresses}")),
        (json!({ "cc": 1 }), &*format!("`overrides.cc` {addresses}")),
        (json!({ "bcc": ["a@b.c\r\nRCPT TO:<e@f.g>"] }), &*format!("`overrides.bcc` {addresses}")),
        (json!({ "headers": { "X: y\r\nBcc": "z" } }), name),
        (json!({ "headers": { "Message-ID": "z" } }), own),
        (json!({ "unsubscribeUrl": "javascript:x" }), link),
        (json!({ "unsubscribeUrl": "https://a.b/>,<x" }), link),
        (json!({ "attachments": [{ "file": "?" }] }), file),
        (json!({ "attachments": [{ "file": "", "mime": "a\r\nb" }] }), file),
        (json!({ "attachments": [{ "file": "", "contentId": "a>b" }] }), file),
    ] {
        assert_eq!(refused(overrides), format!("refused: {refusal}"));
    }
}

/// One row per override that is wrong: its name. The values may be secrets.
#[test]
fn an_override_that_is_wrong_is_named_without_its_value() {
    for (name, value) in [
        ("to", json!("SECRET ".repeat(5_000))),
        ("cc", json!(["ada@example.org", "SECRET"])),
        ("bcc", json!({ "SECRET": 1 })),
        ("replyTo", json!(17_000_017)),
        ("from", json!("SECRET ".repeat(5_000))),
        ("from", json!(["SECRET"])),
        ("senderName", json!(["SECRET"])),
        ("text", json!({ "SECRET": 1 })),
        ("unsubscribeUrl", json!(17_000_017)),
        ("unsubscribeUrl", json!("SECRET ".repeat(5_000))),
        ("headers", json!("SECRET")),
        ("headers", json!({ "X-Data": ["SECRET"] })),
        ("headers", json!({ "X-Data": 17_000_017 })),
        ("headers", json!({ (":".to_owned() + &"a".repeat(100) + "SECRET"): "z" })),
        ("attachments", json!("SECRET".repeat(10_000))),
        ("attachments", json!([{ "file": "SECRET?" }])),
        ("attachments", json!([{ "file": "YQ==", "name": 17_000_017 }])),
    ] {
        let said = refused(json!({ name: value }));
        assert!(said.contains(&format!("`overrides.{name}")), "{said}");
        assert!(!said.contains("SECRET") && !said.contains("17000017"), "{said}");
        assert!(said.len() < 300, "{said}");
    }
}

/// One row per override: it is as if it were not there.
#[test]
fn an_override_that_is_null_is_none() {
    for name in [
        "to",
        "cc",
        "bcc",
        "from",
        "senderName",
        "replyTo",
        "text",
        "unsubscribeUrl",
        "headers",
        "attachments",
    ] {
        assert_eq!(sent(json!({ name: null })), sent(json!({})), "{name}");
    }
}

/// One row per control character. RFC 5322 and RFC 2045 allow none but the tab.
#[test]
fn a_text_has_no_control_characters() {
    for control in ["\u{0}", "\u{1}", "\u{8}", "\u{c}", "\u{1b}", "\u{7f}"] {
        let server = Server::start(polite);
        let mut delivery = delivery(account(&server));
        let content = format!("a{control}b\tc");
        delivery.message.content = Some(serde_json::from_value(json!(content)).unwrap());
        // A tab of HTML is a space in its text.
        for (overrides, tabs) in [(json!({}), 1), (json!({ "text": content }), 2)] {
            let delivery = overridden(delivery.clone(), overrides);
            assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
            let mail = server.kept().pop().unwrap();
            assert!(!mail.content.contains(control), "{control:?}: {:?}", mail.content);
            assert_eq!(mail.content.matches("ab\tc").count(), tabs, "{:?}", mail.content);
        }
    }
}
