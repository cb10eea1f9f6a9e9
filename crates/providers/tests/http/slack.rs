//! Slack's incoming webhooks.

use serde_json::{Value, json};
use tidings::credentials::Credentials;
use tidings::endpoint::Endpoint;
use tidings::vocabulary::Channel;
use tidings::{Address, Provider};
use tidings_providers::Slack;

use crate::server::{Server, answer};
use crate::{chat, kind};

#[test]
fn a_message_is_text_with_the_blocks_of_the_trigger() {
    let server = Server::start(|_| answer(200, "", "ok"));
    let slack = Slack::default().allow_private_addresses();
    let mut delivery = chat(&server.url("http"), Credentials::default());
    slack.send(&delivery).unwrap();
    let blocks = json!([{ "type": "divider" }]);
    delivery.overrides = json!({ "blocks": blocks, "attachments": "none" }).try_into().unwrap();
    slack.send(&delivery).unwrap();

    let bodies: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    let text = "Order *A-1* is on its way";
    assert_eq!(bodies, [json!({ "text": text }), json!({ "text": text, "blocks": blocks })]);
}

/// A value of a subscriber or of the payload would otherwise notify a channel, or hide a link behind a
/// text.
#[test]
fn no_text_becomes_a_link_or_a_mention() {
    let server = Server::start(|_| answer(200, "", "ok"));
    let slack = Slack::default().allow_private_addresses();
    let mut delivery = chat(&server.url("http"), Credentials::default());
    let content = "Hello <!channel> &amp; <https://evil.example|*Ada*>: https://shop.example/?a&b";
    delivery.message.content = Some(serde_json::from_value(json!(content)).unwrap());
    let blocks =
        json!([{ "type": "section", "text": { "type": "mrkdwn", "text": "<!here> & a" } }]);
    delivery.overrides = json!({ "blocks": blocks }).try_into().unwrap();

    slack.send(&delivery).unwrap();

    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    let text = "Hello &lt;!channel&gt; &amp;amp; &lt;https://evil.example|*Ada*&gt;: \
                https://shop.example/?a&amp;b";
    assert_eq!(body, json!({ "text": text, "blocks": blocks }));
}

/// One row per destination that is no webhook: the name of its kind.
#[test]
fn a_destination_that_is_no_webhook_is_named() {
    let slack = Slack::default();
    let mut delivery = chat("https://hooks.slack.com/SECRET", Credentials::default());
    let endpoint = Endpoint::slack_channel("C0123").unwrap();
    for (address, name) in [
        (Address::Workspace { endpoint, workspace: None, access_token: None }, "a `slack_channel`"),
        (Address::Phone("+491234".into()), "a telephone number"),
        (Address::Device("token".into()), "a device"),
    ] {
        delivery.address = address;
        let error = slack.send(&delivery).unwrap_err();
        assert_eq!(kind(&error), "permanent", "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// One row per answer of Slack: the error.
#[test]
fn an_answer_of_slack_is_understood() {
    for (status, text, expected) in [
        (404, "no_service", "gone"),
        (410, "channel_is_archived", "gone"),
        (404, "channel_not_found", "gone"),
        (403, "action_prohibited", "permanent"),
        (400, "invalid_payload", "permanent"),
        (500, "rollup_error", "retryable"),
        (429, "rate_limited", "retryable"),
        (504, "upstream request timeout", "unknown"),
    ] {
        let server = Server::start(move |_| answer(status, "", text));
        let slack = Slack::default().allow_private_addresses();
        let error = slack.send(&chat(&server.url("http"), Credentials::default())).unwrap_err();
        assert_eq!(kind(&error), expected, "{error}");
    }
    let of_mail = Slack::default().accept(Channel::Email, &Credentials::default());
    assert_eq!(of_mail.unwrap_err().field, "channel");
}
