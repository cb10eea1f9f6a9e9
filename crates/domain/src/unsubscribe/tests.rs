use super::*;
use crate::context::{ContextKey, ContextPayload};
use crate::ids::TopicKey;
use crate::sample::{at, id};

fn key(text: &str) -> Secret {
    Secret::new(text)
}

fn claims(from: Claimed) -> Claims {
    let contexts = [("tenant", "acme"), ("region", "eu")];
    Claims {
        environment_id: id(1),
        subscriber_id: id(2),
        from,
        context_keys: contexts.iter().map(|(k, i)| ContextKey::new(*k, *i).unwrap()).collect(),
        expires_at: at(100),
    }
}

fn subjects() -> Vec<Claimed> {
    let topic = TopicKey::new("orders:eu").unwrap();
    let workflows = Channel::ALL.iter().map(|channel| Claimed::Workflow(id(3), *channel));
    workflows.chain([Claimed::Topic(topic)]).collect()
}

#[test]
fn a_token_says_what_was_signed_until_it_expires() {
    for from in subjects() {
        for contexts in [ContextSet::default(), claims(from.clone()).context_keys] {
            let claims = Claims { context_keys: contexts, ..claims(from.clone()) };
            let token = claims.token(&key("k"));
            let read = |now| Claims::verified(&token, id(1), Some(&key("k")), at(now));
            assert_eq!(read(99), Ok(claims));
            assert_eq!(read(100), Err(TokenProblem::Expired));
        }
    }
}

/// A change of any letter is refused, and so is each part of a token.
#[test]
fn no_other_text_is_a_token() {
    for from in subjects() {
        let token = claims(from).token(&key("k"));
        let read = |text: &str| Claims::verified(text, id(1), Some(&key("k")), at(0));
        for place in 0..token.len() {
            let other = if token.as_bytes()[place] == b'A' { "B" } else { "A" };
            let mut forged = token.clone();
            forged.replace_range(place..=place, other);
            assert!(read(&forged).is_err(), "{forged}");
            assert!(read(&token[..place]).is_err());
        }
        assert_eq!(read(&format!("{token}A")), Err(TokenProblem::Malformed));
    }
}

/// One row per reader of a token.
#[test]
fn a_token_is_of_one_environment_and_one_key() {
    let token = claims(subjects().remove(0)).token(&key("k"));
    for (environment, key, problem) in [
        (2, Some(key("k")), TokenProblem::OtherEnvironment),
        (1, Some(key("other")), TokenProblem::Forged),
        (1, None, TokenProblem::Forged),
    ] {
        let read = Claims::verified(&token, id(environment), key.as_ref(), at(0));
        assert_eq!(read, Err(problem));
    }
}

#[test]
fn foreign_text_is_malformed() {
    let long = "A".repeat(1 << 20);
    for text in ["", "A", "ä", "====", "not a token", &long] {
        let read = Claims::verified(text, id(1), Some(&key("k")), at(0));
        assert_eq!(read, Err(TokenProblem::Malformed));
    }
}

#[test]
fn a_token_has_a_longest_form() {
    let token = |contexts: usize| {
        let claims = claims(Claimed::Topic(TopicKey::new("x".repeat(TopicKey::MAX_LEN)).unwrap()));
        let name = |number: usize| ContextKey::new(format!("{number:0>100}"), "x".repeat(100));
        let context_keys = (0..contexts).map(|number| name(number).unwrap()).collect();
        Claims { context_keys, ..claims }.token(&key("k"))
    };
    let read = |token: &str| Claims::verified(token, id(1), Some(&key("k")), at(0));
    let longest = (1..100).take_while(|contexts| read(&token(*contexts)).is_ok()).last().unwrap();
    assert!(longest >= ContextPayload::MAX, "the contexts of a notification do not fit");
    assert!(token(longest).len() <= UnsubscribeLinks::MAX_TOKEN);
    assert!(token(longest + 1).len() > UnsubscribeLinks::MAX_TOKEN);
    assert_eq!(read(&token(longest + 1)), Err(TokenProblem::Malformed));
}

/// One row per URL of a host: whether it is taken, and where its token goes.
#[test]
fn a_link_is_a_url_with_a_token() {
    let link = |url: &str| {
        let key = LinkKey { environment_id: id(1), key: key("k"), created_at: at(0) };
        UnsubscribeLinks::new(url).map(|links| links.sign(&key, claims(subjects().remove(0))))
    };
    for (url, start) in [
        ("https://shop.example/bye", Some("https://shop.example/bye?token=AQ")),
        ("http://localhost:8080/bye?lang=en", Some("http://localhost:8080/bye?lang=en&token=AQ")),
        ("https://", None),
        ("/bye", None),
        ("javascript:alert(1)", None),
        ("https://shop.example/bye#now", None),
        ("https://shop.example/b ye", None),
        ("https://shop.example/\r\nBcc: eve", None),
        ("https://shop.example/>", None),
        (&format!("https://shop.example/{}", "x".repeat(500)), None),
    ] {
        let made = link(url).ok().map(|link| link.to_url());
        assert_eq!(made.is_some(), start.is_some(), "{url}");
        assert!(made.unwrap_or_default().starts_with(start.unwrap_or_default()), "{url}");
    }
}

#[test]
fn a_critical_workflow_and_the_inbox_have_no_link() {
    let steps = serde_json::json!([{ "type": "sms", "template": { "body": "!" } }]);
    let mut workflow = crate::sample::workflow(steps);
    let key = LinkKey { environment_id: id(1), key: key("k"), created_at: at(0) };
    let contexts = ContextSet::default();
    let channel = Channel::Sms;
    let to = LinkTo { subscriber: id(2), contexts: &contexts, channel, since: at(5) };
    let links = UnsubscribeLinks::new("https://shop.example").unwrap().valid_for_days(1);
    assert!(links.link(&key, &workflow, to).is_some());
    let in_the_inbox = LinkTo { channel: Channel::InApp, ..to };
    assert!(links.link(&key, &workflow, in_the_inbox).is_none());
    assert_eq!(links.expiry(at(5)), at(24 * 60 * 60 * 1_000 + 5));
    workflow.critical = true;
    assert!(links.link(&key, &workflow, to).is_none());
}
