use serde_json::{Value, json};

use super::*;
use crate::json::read;

const CRON: &str = "`metadata.timed.cronExpression` must be a cron expression with five fields, \
                    such as `0 9 * * 1-5`";
const NEVER: &str = "`metadata.timed.cronExpression` must be a time that comes";
const PLUS: &str = "`metadata.timed.cronExpression` must be a cron expression without `+`";
const RARE: &str = "`metadata.timed` must be calendar times at most 3660 days apart";

fn refusal(step: Value) -> Option<String> {
    let step: StepDefinition = serde_json::from_value(step).unwrap();
    step.check().err().map(|invalid| invalid.to_string())
}

#[track_caller]
fn check(kind: &str, metadata: Value, problem: &str) {
    let step = json!({ "type": kind, "metadata": metadata });
    assert_eq!(refusal(step.clone()).unwrap_or_default(), problem, "{step}");
}

#[test]
fn a_digest_has_a_window() {
    let days = || json!({ "type": "regular", "amount": 1, "unit": "days" });
    let with = |name: &str, value: Value| {
        let mut digest = days();
        digest[name] = value;
        digest
    };
    for (metadata, problem) in [
        (days(), ""),
        (json!({ "type": "regular" }), "`metadata.amount` is required"),
        (json!({ "type": "regular", "amount": 1 }), "`metadata.unit` is required"),
        (with("amount", json!(0)), "`metadata.amount` must be between 1 and 3660"),
        (with("amount", json!(3660)), ""),
        (with("amount", json!(3661)), "`metadata.amount` must be between 1 and 3660"),
        (with("digestKey", json!("payload.order.id")), ""),
        (with("digestKey", json!("")), "`metadata.digestKey` must not be empty"),
        (
            with("digestKey", json!("a..b")),
            "`metadata.digestKey` must be a path such as `order.id`",
        ),
        (with("backoff", json!(false)), ""),
        (with("backoff", json!(true)), "`metadata.backoffAmount` is required"),
        (with("type", json!("backoff")), "`metadata.backoffAmount` is required"),
        (
            json!({
                "type": "backoff", "amount": 1, "unit": "days", "backoffAmount": 123,
                "backoffUnit": "months",
            }),
            "`metadata.backoffAmount` must be between 1 and 120",
        ),
    ] {
        check("digest", metadata, problem);
    }
}

#[test]
fn calendar_times_are_complete_and_say_nothing_in_vain() {
    let timed = |timed: Value| json!({ "type": "timed", "timed": timed });
    let unit = |unit: &str, timed: Value| json!({ "type": "timed", "unit": unit, "timed": timed });
    let amount =
        |amount: u32, unit: &str| json!({ "type": "timed", "amount": amount, "unit": unit });
    let months = |every: u32, timed: Value| json!({ "type": "timed", "amount": every, "unit": "months", "timed": timed });
    let on = |every, ordinal: &str| {
        months(every, json!({ "ordinal": ordinal, "ordinalValue": "monday" }))
    };
    let each = |every, days: Value| months(every, json!({ "monthDays": days }));
    for (metadata, problem) in [
        (json!({ "type": "timed" }), "`metadata.timed` is required unless there is `unit`"),
        (amount(0, "days"), "`metadata.amount` must be between 1 and 3660"),
        (amount(1441, "minutes"), "`metadata.amount` must be between 1 and 1440"),
        (amount(25, "hours"), "`metadata.amount` must be between 1 and 24"),
        (amount(1, "seconds"), "`metadata.unit` must be at least `minutes`"),
        (timed(json!({ "atTime": "09:30" })), ""),
        (
            timed(json!({ "atTime": "9:30" })),
            "`metadata.timed.atTime` must be a time such as `09:30`",
        ),
        (
            timed(json!({ "atTime": " 9:30" })),
            "`metadata.timed.atTime` must be a time such as `09:30`",
        ),
        (
            timed(json!({ "atTime": "24:00" })),
            "`metadata.timed.atTime` must be a time such as `09:30`",
        ),
        (
            timed(json!({ "monthDays": ["1", "32"] })),
            "`metadata.timed.monthDays[1]` must be a day of the month: `1` to `31`",
        ),
        (
            timed(json!({ "monthDays": ["0"] })),
            "`metadata.timed.monthDays[0]` must be a day of the month: `1` to `31`",
        ),
        (
            timed(json!({ "monthlyType": "on", "ordinalValue": "day" })),
            "`metadata.timed.ordinal` is required",
        ),
        (timed(json!({ "ordinal": "last" })), "`metadata.timed.ordinalValue` is required"),
        (timed(json!({ "cronExpression": "0 9 * * 1-5" })), ""),
        (timed(json!({ "cronExpression": "0 0 9 * * 1-5" })), CRON),
        (timed(json!({ "cronExpression": "60 9 * * *" })), CRON),
        (timed(json!({ "cronExpression": "" })), CRON),
        (timed(json!({ "cronExpression": "0 0 31 2,4,6 *" })), NEVER),
        (timed(json!({ "cronExpression": ", 9 * * *" })), NEVER),
        (timed(json!({ "cronExpression": "0 , * * *" })), NEVER),
        (timed(json!({ "cronExpression": "0 9 29 2 *" })), ""),
        (timed(json!({ "cronExpression": "0 9 29 2 MON" })), ""),
        (timed(json!({ "cronExpression": "0 9 29 2 +MON" })), PLUS),
        (timed(json!({ "cronExpression": "0 9 13 * +FRI" })), PLUS),
        // February 29th is a Monday in 2016 and 2044.
        (timed(json!({ "cronExpression": "0 9 * 2 MON#5" })), RARE),
        (on(120, "4"), ""),
        (on(12, "5"), ""),
        (on(120, "5"), RARE),
        (each(24, json!(["31"])), ""),
        (each(29, json!(["28"])), ""),
        // June, November, April, September and February have no such day.
        (each(29, json!(["31"])), RARE),
        (
            timed(json!({ "cronExpression": "0 9 * * *", "atTime": "09:00" })),
            "`metadata.timed.atTime` must not be given together with `timed.cronExpression`",
        ),
        (
            unit("hours", json!({ "atTime": "09:00" })),
            "`metadata.timed.atTime` must not be given together with `unit`",
        ),
        (
            unit("weeks", json!({ "monthDays": ["1"] })),
            "`metadata.timed.monthDays` must not be given together with `unit`",
        ),
        (
            unit("months", json!({ "ordinal": "1", "ordinalValue": "day", "monthDays": ["1"] })),
            "`metadata.timed.monthDays` must not be given together with `timed.ordinal`",
        ),
        (
            timed(json!({ "monthlyType": "each", "ordinal": "1", "ordinalValue": "day" })),
            "`metadata.timed.ordinal` must not be given together with `timed.monthlyType`",
        ),
    ] {
        check("digest", metadata.clone(), problem);
        if metadata["amount"].is_null() {
            check("delay", metadata, problem);
        }
    }
    let long = timed(json!({ "cronExpression": "1".repeat(129) }));
    let problem = "`metadata.timed.cronExpression` must be at most 128 characters long, not 129";
    check("digest", long, problem);
}

#[test]
fn a_delay_has_a_length() {
    for (metadata, problem) in [
        (json!({ "type": "regular" }), ""),
        (json!({ "type": "regular", "amount": 0 }), ""),
        (json!({ "type": "regular", "amount": 1 }), "`metadata.unit` is required"),
        (
            json!({ "type": "regular", "amount": 523, "unit": "weeks" }),
            "`metadata.amount` must be between 1 and 522",
        ),
        (json!({ "type": "scheduled", "delayPath": "order.due" }), ""),
        (json!({ "type": "scheduled", "delayPath": "" }), "`metadata.delayPath` must not be empty"),
        (
            json!({ "type": "dynamic", "dynamicKey": ".x" }),
            "`metadata.dynamicKey` must be a path such as `order.id`",
        ),
    ] {
        check("delay", metadata, problem);
    }
}

#[test]
fn a_throttle_has_one_window() {
    for (metadata, problem) in [
        (json!({ "amount": 1, "unit": "hours" }), ""),
        (json!({}), "`metadata.amount` is required"),
        (json!({ "amount": 0, "unit": "hours" }), "`metadata.amount` must be between 1 and 87840"),
        (json!({ "dynamicKey": "quiet" }), ""),
        (
            json!({ "dynamicKey": "quiet", "amount": 1 }),
            "`metadata.dynamicKey` must not be given together with `amount`",
        ),
        (
            json!({ "dynamicKey": "quiet", "threshold": 0 }),
            "`metadata.threshold` must be between 1 and 10000",
        ),
        (
            json!({ "dynamicKey": "quiet", "threshold": 10_001 }),
            "`metadata.threshold` must be between 1 and 10000",
        ),
        (
            json!({ "dynamicKey": "quiet", "throttleKey": "a." }),
            "`metadata.throttleKey` must be a path such as `order.id`",
        ),
    ] {
        check("throttle", metadata, problem);
    }
}

#[test]
fn a_custom_step_names_its_handler() {
    check("custom", json!({ "handler": "charge" }), "");
    check("custom", json!({ "handler": " " }), "`metadata.handler` must not be empty");
    let long = json!({ "handler": "x".repeat(129) });
    check("custom", long, "`metadata.handler` must be at most 128 characters long");
    let missing = json!({ "type": "custom", "metadata": {} });
    // The specification has custom steps without a handler. They are read, and not saved.
    let missing: StepDefinition = serde_json::from_value(missing).unwrap();
    assert!(missing.check().is_err());
}

#[test]
fn a_condition_names_what_there_is() {
    for (rule, problem) in [
        (json!({ "var": "steps.mail.seen" }), ""),
        (json!({ "var": "actor.email" }), ""),
        (json!({ "==": [{ "var": "total_count" }, 1] }), ""),
        (
            json!({ "!": { "var": "step.mail.seen" } }),
            "`runIf.!.var` has no variable `step.mail.seen`; did you mean `steps`?",
        ),
        (
            json!({ "var": "actor.emial" }),
            "`runIf.var` has no variable `actor.emial`; did you mean `actor.email`?",
        ),
    ] {
        let step = json!({ "type": "sms", "template": { "body": "" }, "runIf": rule });
        assert_eq!(refusal(step).unwrap_or_default(), problem, "{rule}");
    }
    let unknown = json!({ "type": "sms", "template": { "body": "" }, "runIf": { "equals": [] } });
    let error = read::<StepDefinition>(unknown.to_string().as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "`runIf` has no operator `equals`");
}
