use serde_json::json;

use super::*;

#[test]
fn a_subscriber_id_is_any_readable_text() {
    for good in ["1", "ada@lovelace.org", "user:42", "Åsa Öberg", &"x".repeat(255)] {
        assert_eq!(SubscriberId::new(good).unwrap().as_str(), good);
    }
    check::<SubscriberId>("", "`subscriberId` must not be empty");
    check::<SubscriberId>(&"x".repeat(256), "`subscriberId` must be at most 255 bytes long");
    check::<SubscriberId>("a\0b", "`subscriberId` must be text without control characters");
}

#[test]
fn a_workflow_identifier_is_runs_joined_by_single_signs() {
    for good in ["welcome", "order-shipped", "a.b_c-d", "first_signup", "V2"] {
        assert!(good.parse::<WorkflowIdentifier>().is_ok(), "{good}");
    }
    for bad in ["-a", "a-", "a--b", "a b", "ä", "a/b"] {
        let expected = "`workflowId` must be letters and digits, joined by single `-`, `_` or `.`";
        check::<WorkflowIdentifier>(bad, expected);
    }
}

#[test]
fn a_reference_is_any_text_on_the_wire() {
    for text in ["", "welcome", "no identifier", &"x".repeat(70_000)] {
        let reference = WorkflowRef::from(text);
        assert_eq!(serde_json::to_value(&reference).unwrap(), json!(text));
        assert_eq!(serde_json::from_value::<WorkflowRef>(json!(text)).unwrap(), reference);
    }
    assert!(serde_json::from_value::<WorkflowRef>(json!(1)).is_err());
}

#[test]
fn a_message_with_one_destination_has_the_id_of_its_job() {
    let job: JobId = Uuid::from_u128(7).into();
    assert_eq!(Uuid::from(SendId::from(job)), Uuid::from(job));
}

#[test]
fn a_topic_key_is_plain_or_an_email_address() {
    let email = format!("{}@example.com", "x".repeat(88));
    for good in ["orders:eu.1_x-y", "team+a@example.com", ":", &"x".repeat(100), &email] {
        assert!(good.parse::<TopicKey>().is_ok(), "{good}");
    }
    for bad in ["a b", "a/b", "ä", "a\0", "a@b", "@example.com"] {
        let expected =
            "`topicKey` must be letters, digits, `_`, `:`, `.` and `-`, or an e-mail address";
        check::<TopicKey>(bad, expected);
    }
    check::<TopicKey>("", "`topicKey` must not be empty");
    for long in ["x".repeat(101), format!("x{email}"), "ü".repeat(101)] {
        check::<TopicKey>(&long, "`topicKey` must be at most 100 characters long");
    }
}

#[test]
fn a_subscription_identifier_holds_a_name_made_of_other_names() {
    for good in ["tk_orders:si_ada:ctx_a:b,c:d", "Åsas Abo", &"x".repeat(2_048)] {
        assert!(good.parse::<SubscriptionIdentifier>().is_ok(), "{good}");
    }
    let long = "x".repeat(2_049);
    check::<SubscriptionIdentifier>(&long, "`identifier` must be at most 2048 bytes long");
    check::<SubscriptionIdentifier>("", "`identifier` must not be empty");
    let expected = "`identifier` must be text without control characters";
    check::<SubscriptionIdentifier>("a\0b", expected);
}

#[test]
fn an_idempotency_key_has_1_to_255_characters() {
    for good in ["1", "pay 42", &"x".repeat(255), &"ü".repeat(255), &"🦀".repeat(255)] {
        assert_eq!(good.parse::<IdempotencyKey>().unwrap().as_str(), good);
    }
    let field = "`idempotency-key`";
    for long in ["x".repeat(256), "ü".repeat(256)] {
        check::<IdempotencyKey>(&long, &format!("{field} must be at most 255 characters long"));
    }
    check::<IdempotencyKey>("", &format!("{field} must not be empty"));
    let expected = format!("{field} must be text without control characters");
    check::<IdempotencyKey>("a\nb", &expected);
}

/// One row per kind of name that a host application gives: what refuses an empty one.
#[test]
fn a_name_is_called_what_it_is_called_on_the_wire() {
    check::<ConnectionIdentifier>("", "`connectionIdentifier` must not be empty");
    check::<EndpointIdentifier>("", "`identifier` must not be empty");
    check::<PlatformId>("", "`id` must not be empty");
    check::<LayoutIdentifier>("", "`layoutId` must not be empty");
    check::<LayoutIdentifier>(
        "a b",
        "`layoutId` must be letters and digits, joined by single `-`, `_` or `.`",
    );
    for good in ["chconn_AbC123", "Åsas", &"x".repeat(255)] {
        assert!(good.parse::<ConnectionIdentifier>().is_ok(), "{good}");
        assert!(good.parse::<EndpointIdentifier>().is_ok(), "{good}");
    }
}

#[test]
fn a_made_id_is_written_as_it_is_read() {
    let text = "0192f0c1-2345-7678-9abc-def012345678";
    let id: MessageId = text.parse().unwrap();
    assert_eq!(id.to_string(), text);
    assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
    check::<MessageId>("42", "`messageId` must be an identifier made by the engine");
}

#[track_caller]
fn check<T: FromStr<Err = Invalid> + fmt::Debug>(raw: &str, expected: &str) {
    assert_eq!(raw.parse::<T>().unwrap_err().to_string(), expected);
}
