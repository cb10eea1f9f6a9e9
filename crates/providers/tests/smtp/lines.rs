//! Lines: lists of addresses, and headers that no space divides.

use std::time::{Duration, Instant};

use serde_json::json;
use tidings_providers::Smtp;

use crate::content::{headers, refused, sent};
use crate::server::{Mail, Server, polite};
use crate::{account, delivery, outcome};

fn long_lines(mail: &Mail) -> Vec<&str> {
    mail.content.split("\r\n").filter(|line| line.len() > 998).collect()
}

/// One row per list of addresses: its header. A line has at most 998 bytes (RFC 5322, 2.1.1).
#[test]
fn a_list_of_addresses_is_folded() {
    let plain = |number| format!("a-recipient-with-a-long-name-{number}@example.org");
    let addresses: Vec<_> = (0..60).map(plain).collect();
    let named: Vec<_> = addresses.iter().map(|address| format!("\"A B\" <{address}>")).collect();
    for (list, header) in [("to", "To"), ("cc", "Cc"), ("replyTo", "Reply-To")] {
        for addresses in [&addresses, &named] {
            let mail = sent(json!({ list: addresses }));
            assert_eq!(long_lines(&mail), Vec::<&str>::new(), "{list}");
            let unfolded = headers(&mail).replace("\r\n ", " ");
            let line = unfolded.lines().find(|line| line.starts_with(&format!("{header}: ")));
            assert!(line.unwrap().ends_with(&addresses.join(", ")), "{list}: {line:?}");
        }
    }
}

/// One row per override with a word that no fold divides: the header that would have it.
#[test]
fn a_header_with_a_line_that_is_too_long_is_refused_before_a_connection() {
    let long = "x".repeat(1_200);
    for (overrides, header) in [
        (json!({ "headers": { "X-Data": &long } }), "X-Data"),
        (json!({ "headers": { "X-Data": " ".repeat(1_200) } }), "X-Data"),
        (json!({ "headers": { "X-Data": format!("a {long} b") } }), "X-Data"),
        (json!({ "senderName": &long }), "From"),
        (json!({ "replyTo": format!("{long} <help@example.com>") }), "Reply-To"),
        (json!({ "attachments": [{ "file": "", "contentId": &long }] }), "Content-ID"),
    ] {
        let refusal = format!("the header `{header}` would have a line of more than 998 bytes");
        let said = refused(overrides);
        assert!(said.contains(&refusal) && !said.contains("xxx"), "{said}");
    }
    let longest = "x".repeat(998 - "X-Data: ".len());
    assert!(long_lines(&sent(json!({ "headers": { "X-Data": longest } }))).is_empty());
}

#[test]
fn a_subject_that_no_fold_divides_is_refused_before_a_connection() {
    let server = Server::start(polite);
    let mut delivery = delivery(account(&server));
    delivery.message.subject = Some("x".repeat(1_200));
    let (kind, said) = outcome(&Smtp::default(), &delivery);
    assert_eq!((kind, server.connections()), ("permanent", 0), "{said}");
    assert!(said.contains("`Subject`"), "{said}");
    delivery.message.subject = Some("x y".repeat(1_200));
    assert_eq!(outcome(&Smtp::default(), &delivery), ("sent", String::new()));
    assert!(long_lines(&server.kept()[0]).is_empty());
}

/// 64 KiB of overrides have room for as many.
#[test]
fn an_email_with_thousands_of_copies_is_made_at_once() {
    let addresses: Vec<_> = (0..5_000).map(|number| format!("{number}@b.cd")).collect();
    for list in ["to", "cc", "replyTo"] {
        let start = Instant::now();
        let mail = sent(json!({ list: addresses }));
        assert!(start.elapsed() < Duration::from_secs(30), "{list}: {:?}", start.elapsed());
        assert!(headers(&mail).replace("\r\n ", " ").contains(&addresses.join(", ")), "{list}");
    }
}
