//! Every limit of the list in `tidings::limits`: what is as large as it is accepted, and one more is
//! refused with the field, and leaves nothing behind.

mod rows;

use std::fs;
use std::path::Path;

use testkit::requests::{self, Refusal};
use testkit::seeded;

use self::rows::{Row, rows};

/// Limits that no single request can reach: the file and the name of a test, and what it reaches.
const ELSEWHERE: &[(&str, &str, &[&str])] = &[
    (
        "tests/laws/greed.rs",
        "greedy_templates_stay_within_a_limit_of_memory",
        &["Template::MAX_OUTPUT"],
    ),
    (
        "crates/domain/src/template/tests/limits.rs",
        "an_expression_and_its_statements_share_a_depth",
        &["Template::MAX_DEPTH"],
    ),
    (
        "crates/domain/src/template/tests/limits.rs",
        "a_rendering_is_bounded",
        &[
            "Template::MAX_RANGE",
            "Template::MAX_WORK",
            "Template::MAX_WEIGHT",
            "Template::MAX_VALUE_DEPTH",
        ],
    ),
    (
        "crates/domain/src/step/tests.rs",
        "the_templates_of_a_message_share_a_budget",
        &["Template::MAX_MESSAGE_WORK", "Template::MAX_MESSAGE_WEIGHT"],
    ),
    (
        "crates/domain/src/condition/tests.rs",
        "an_evaluation_is_bounded",
        &["Rule::MAX_WORK", "Rule::MAX_DATA_DEPTH"],
    ),
    (
        "crates/domain/src/plan/tests.rs",
        "a_message_goes_to_so_many_destinations_at_most",
        &["StepDefinition::MAX_INTEGRATIONS", "StepDefinition::MAX_DESTINATIONS"],
    ),
    (
        "tests/operations/delivery/fan_out.rs",
        "a_message_goes_to_so_many_endpoints_at_most",
        &["ChannelEndpoint::MAX_PER_INTEGRATION"],
    ),
    (
        "crates/domain/src/unsubscribe/tests.rs",
        "a_token_has_a_longest_form",
        &["UnsubscribeLinks::MAX_TOKEN"],
    ),
    (
        "crates/domain/src/payload/tests.rs",
        "references_that_are_followed_are_bounded",
        &["Workflow::MAX_SCHEMA_REFERENCES"],
    ),
    ("tests/operations/fan_out.rs", "a_topic_counts_as_one_recipient", &["Trigger::MAX_AT_ONCE"]),
    (
        "crates/domain/src/subscription/tests.rs",
        "a_subscriber_has_10_subscriptions_in_a_topic",
        &["Subscription::MAX_OF_SUBSCRIBER"],
    ),
    ("tests/operations/limits.rs", "a_link_has_a_longest_page", &["UnsubscribeLinks::MAX_URL"]),
    ("tests/operations/limits.rs", "the_text_of_a_receipt_is_cut", &["Receipt::MAX_TEXT"]),
    (
        "crates/domain/src/receipt/tests.rs",
        "a_message_has_a_limited_number_of_reports",
        &["Receipt::MAX_RECORDED"],
    ),
    (
        "tests/operations/limits.rs",
        "messages_that_are_changed_by_their_ids_have_a_largest_size",
        &["Message::MAX_MARKED_SIZE"],
    ),
    (
        "tests/operations/steps/digests.rs",
        "a_job_has_the_first_hundred_events",
        &["JobDigest::MAX_EVENTS"],
    ),
    (
        "tests/operations/steps/digests.rs",
        "a_job_has_the_first_mebibyte_of_events",
        &["JobDigest::MAX_EVENTS_SIZE"],
    ),
    (
        "tests/operations/inbox/filters.rs",
        "a_page_of_few_among_many_has_an_end",
        &["MessageQuery::MAX_SCANNED"],
    ),
    (
        "tests/operations/inbox/filters.rs",
        "a_page_passes_so_many_entries_at_most",
        &["MessageQuery::MAX_ENTRIES"],
    ),
    (
        "tests/operations/dead_letters.rs",
        "a_page_looks_at_ten_thousand_dead_letters",
        &["DeadLetterQuery::MAX_SCANNED"],
    ),
    (
        "tests/operations/environments.rs",
        "a_key_that_cannot_be_created_is_refused",
        &["ApiKey::MAX"],
    ),
];

#[test]
fn each_limit_is_accepted_and_one_more_is_refused() {
    let mut problems = Vec::new();
    for Row { limit, max, field, has_number, request } in rows() {
        let world = seeded::copy();
        let before = world.dump();
        let refused = requests::call(&world.engine, &world.env, &request(max + 1));
        let text = match &refused {
            Ok(_) => "it is accepted".to_owned(),
            Err(Refusal::Unreadable(why)) => why.clone(),
            Err(Refusal::By(error)) => error.to_string(),
        };
        let mut numbers = text.split(|char: char| !char.is_ascii_digit());
        let names_limit = numbers.any(|number| number == max.to_string());
        let names_field = text.contains(&format!("`{field}`"));
        if refused.is_ok() || !names_field || names_limit != has_number {
            problems.push(format!("{limit}: one more: {text:.200}"));
        }
        if world.dump() != before {
            problems.push(format!("{limit}: one more leaves something behind"));
        }
        if let Err(error) = requests::call(&world.engine, &world.env, &request(max)) {
            problems.push(format!("{limit}: {max}: {:.200}", format!("{error:?}")));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// The list also names the limits of the engine and of the providers, which the domain cannot link
/// to.
#[test]
fn the_list_names_the_limits_of_the_engine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("crates/domain/src/limits.rs")).unwrap();
    for file in [
        "engine/src/pipeline/delivery/inbound.rs",
        "providers/src/smtp.rs",
        "providers/src/web_push.rs",
        "providers/src/webhook/signature.rs",
    ] {
        let source = fs::read_to_string(root.join("crates").join(file)).unwrap();
        let constants = source.lines().filter_map(|line| line.trim().strip_prefix("pub const MAX"));
        let names: Vec<_> = constants.filter_map(|line| line.split_once(':')).collect();
        assert!(!names.is_empty(), "{file}");
        for (name, _) in names {
            assert!(list.contains(&format!("::MAX{name}`")), "MAX{name} is not in the list");
        }
    }
}

/// The list has no limit without a test.
#[test]
fn every_limit_of_the_list_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("crates/domain/src/limits.rs")).unwrap();
    let table = list.lines().filter(|line| line.starts_with("//! |")).collect::<Vec<_>>();
    let mut listed = Vec::new();
    for line in table {
        // Either "[`Type::NAME`]", or "[`NAME`](Type::NAME)".
        for link in line.split("[`").skip(1) {
            let (name, rest) = link.split_once("`]").unwrap();
            let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
            listed.push(target.map_or(name, |(target, _)| target).trim_start_matches("crate::"));
        }
    }
    assert!(listed.len() > 60, "{listed:?}");
    let rows = rows();
    for limit in listed {
        let elsewhere = ELSEWHERE.iter().find(|(.., limits)| limits.contains(&limit));
        if let Some((file, test, _)) = elsewhere {
            let source = fs::read_to_string(root.join(file)).unwrap();
            assert!(source.contains(&format!("fn {test}(")), "{limit} has no test {test}");
        } else {
            assert!(rows.iter().any(|row| row.limit == limit), "{limit} has no test");
        }
    }
}
