//! No error repeats more than a part of a long text of its caller.

use std::any::type_name;
use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value, json};
use testkit::reads::{KINDS, Kind};
use testkit::requests::{self, Answer, Refusal};
use testkit::seeded;
use tidings::api_key::ApiKeyName;
use tidings::condition::Rule;
use tidings::contact::{Email, Locale, TimeZone};
use tidings::content::{ActionStatus, ButtonType, CtaType, EmailBlockType, TextAlign};
use tidings::context::{ContextKey, ContextPart};
use tidings::dead_letter::DeadLetterReason;
use tidings::endpoint::{EndpointType, PhoneNumber, WebhookUrl};
use tidings::environment::{Color, EnvironmentName, EnvironmentType};
use tidings::explain::Assumption;
use tidings::filter::{FilterOperator, FilterSource, FilterType, Joint};
use tidings::ids::{
    ApiKeyId, ConnectionId, ConnectionIdentifier, ContentId, ContextId, DeadLetterId, DetailId,
    DigestWindowId, EndpointId, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, JobId, LayoutId, LayoutIdentifier, MessageId,
    NotificationGroupId, NotificationId, OrganizationId, PlatformId, QuarantineId, SendId, StepId,
    SubscriberId, SubscriptionId, SubscriptionIdentifier, SuppressionId, TaskId, TopicId, TopicKey,
    TransactionId, TranslationId, UserId, WorkflowId, WorkflowIdentifier,
};
use tidings::integration::OnUnknown;
use tidings::job::{Detail, DigestType, ExecutionSource, ExecutionStatus, SendStatus};
use tidings::message::{FeedCursor, MarkAs};
use tidings::notification::NotificationOutcome;
use tidings::page::{Cursor, Direction, OrderBy};
use tidings::preference::{Criticality, Layer, OverrideSource, PreferenceLevel};
use tidings::receipt::ReceiptKind;
use tidings::schedule::{ClockTime, Outside};
use tidings::secret::Secret;
use tidings::step::{EmailBody, MonthlyType, NthDay, OnPast, OrdinalValue, ThrottleWindow};
use tidings::subscription::{SubscribeItem, SubscriptionErrorCode, UnsubscribeItem};
use tidings::suppression::SuppressionReason;
use tidings::template::{MissingVariables, Template};
use tidings::time::Timestamp;
use tidings::translation::ResourceType;
use tidings::trigger::{
    ProgressStatus, Recipient, SubscriberRecipient, TopicRecipientType, TriggerStatus,
};
use tidings::unsubscribe::{TokenProblem, UnsubscribeLinks};
use tidings::vocabulary::{
    Channel, ChannelProviderId, ProviderId, Severity, StepType, TimeUnit, Weekday,
};
use tidings::workflow::{TriggerType, Undeclared, WorkflowOrigin};
use tidings_providers::{SignedHeaders, WebhookKeys};

const LONG: usize = 1024 * 1024;

/// Long for a text that is read often.
const SHORTER: usize = 16 * 1024;

/// Longest text of an error, in bytes.
const TEXT: usize = 4 * 1024;

/// Every text of every request in turn, and a member of every object.
#[test]
fn no_refusal_repeats_a_megabyte() {
    let mut world = seeded::copy();
    let mut measured = 0;
    for sound in requests::sound() {
        let mut places = Vec::new();
        collect(sound, &mut Vec::new(), &mut places);
        for place in places {
            for change in [long_text, long_member, long_list] {
                let mut request = sound.clone();
                if !change(at(&mut request, &place), LONG) {
                    continue;
                }
                let answer = requests::call(&world.engine, &world.env, &request);
                if answer.is_ok() {
                    world = seeded::copy();
                }
                measured += usize::from(check(&answer, &format!("{sound} at {place:?}")));
            }
        }
    }
    println!("{measured} refusals are short");
    assert!(measured > 100, "{measured} refusals were measured");
}

/// Name of a type, and its error for a text.
type Text = (fn() -> &'static str, fn(&str) -> Option<(String, String)>);

macro_rules! texts {
    ($($parsed:ty),+; $($converted:ty),+) => {
        /// Every type that is made from a text.
        const TEXTS: &[Text] = &[
            $((type_name::<$parsed>, |text| shown(text.parse::<$parsed>())),)+
            $((type_name::<$converted>, |text| shown(<$converted>::try_from(text))),)+
        ];
    };
}

texts! {
    ApiKeyName, Email, Locale, TimeZone, ActionStatus, ButtonType, CtaType, EmailBlockType,
    TextAlign, ContextKey, ContextPart, EndpointType, PhoneNumber, WebhookUrl, Color,
    EnvironmentName, EnvironmentType, Assumption, FilterOperator, FilterSource, FilterType, Joint,
    DeadLetterReason, ApiKeyId, ConnectionId, ConnectionIdentifier, ContextId, DeadLetterId, DetailId,
    DigestWindowId,
    EndpointId, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, JobId, LayoutId, LayoutIdentifier, MessageId,
    NotificationGroupId, NotificationId, OrganizationId, PlatformId, QuarantineId, SendId, StepId,
    SubscriberId, SubscriptionId, SubscriptionIdentifier, SuppressionId, TaskId, ContentId,
    TopicId, TopicKey, TransactionId, TranslationId, UserId, WorkflowId, WorkflowIdentifier,
    OnUnknown, Detail, DigestType, ExecutionSource, ExecutionStatus, SendStatus, FeedCursor, MarkAs,
    NotificationOutcome, Cursor, Direction, OrderBy, Criticality, Layer, OverrideSource,
    PreferenceLevel, ReceiptKind, ClockTime, Outside, Secret, MonthlyType, OnPast, NthDay,
    OrdinalValue, ThrottleWindow, SubscriptionErrorCode, SuppressionReason, MissingVariables, Template,
    Timestamp, ResourceType, ProgressStatus, TopicRecipientType, TriggerStatus, TokenProblem,
    Channel, ChannelProviderId, StepType, ProviderId, Severity, TimeUnit, Weekday, TriggerType,
    Undeclared, WorkflowOrigin;
    EmailBody, SubscribeItem, UnsubscribeItem, Recipient, SubscriberRecipient
}

fn shown<T, E: Display + Debug>(made: Result<T, E>) -> Option<(String, String)> {
    made.err().map(|error| (error.to_string(), format!("{error:?}")))
}

/// Texts that are nearly of some type, and long: each is refused by most types.
fn long_texts() -> Vec<String> {
    let forms = [
        "*",
        "a:*",
        "*:a",
        "*@a.b",
        "a@*.b",
        "https://*",
        "{{ * }}",
        "{% * %}",
        "+*",
        "#*",
        "en_*",
        "2026-11-26T*",
        "ApiKey *",
        "Bearer *",
        "whsec_*",
        "\u{1}*",
    ];
    let long = ["x", "1", "\u{fc}", " ", "{{", "A"].map(|part| part.repeat(SHORTER));
    forms.iter().flat_map(|form| long.each_ref().map(|long| form.replace('*', long))).collect()
}

#[test]
fn no_type_that_is_made_from_a_text_repeats_it() {
    for text in long_texts() {
        for (name, made) in TEXTS {
            let Some((error, debug)) = made(&text) else { continue };
            bounded(&error, &debug, text.len(), &format!("{} from {text:.20}", name()));
        }
    }
}

/// Types that are made from a text in a request, and that the listing leaves out.
const HIDDEN: &[&str] = &["CtaType", "TopicRecipientType", "TriggerType"];

/// The listing has every type that is made from a text.
#[test]
fn every_type_that_is_made_from_a_text_is_tried() {
    let of_texts = ["FromStr for ", "TryFrom<&str> for ", "TryFrom<alloc::string::String> for "];
    let listing = include_str!("../golden/public-api.txt");
    let made = listing.lines().filter_map(|line| {
        let of = of_texts.iter().find_map(|from| line.split_once(from));
        of.and_then(|(_, of)| of.rsplit("::").next())
    });
    let made: BTreeSet<_> = made.collect();
    let tried = TEXTS.iter().filter_map(|(name, _)| name().rsplit("::").next());
    assert_eq!(made, tried.filter(|name| !HIDDEN.contains(name)).collect());
}

/// Calls that take a text, and are no requests: headers, tokens, pages and signatures.
#[test]
fn no_call_repeats_a_text() {
    let world = seeded::copy();
    let keys = WebhookKeys::new(&format!("whsec_{}", "A".repeat(32))).unwrap();
    for text in long_texts() {
        let template = |text: &str| Template::new(format!("{{{{ payload.a|{text} }}}}"));
        let headers = SignedHeaders { id: &text, timestamp: &text, signature: &text };
        for made in [
            shown(world.engine.authenticate(&text)),
            shown(world.env.unsubscribe(&text)),
            shown(world.engine.unsubscribe_scope(&text)),
            shown(world.env.read_unsubscribe(&text)),
            shown(UnsubscribeLinks::new(&text)),
            shown(template(&text)),
            shown(template(&format!("date('{text}')"))),
            shown(Rule::new(json!({ &text: [1] }))),
            shown(Rule::new(json!({ "var": [&text, 1, 2] }))),
            shown(keys.verify(&headers, b"", SystemTime::UNIX_EPOCH)),
        ] {
            let Some((error, debug)) = made else { continue };
            bounded(&error, &debug, text.len(), &format!("{text:.20}"));
        }
    }
}

/// The corpus has a request of each kind. Each of its texts, objects and lists in turn is long.
#[test]
fn no_reading_of_a_request_repeats_a_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/reads");
    let (mut read, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let of_queries = |kind: &&Kind| (kind.from_query)(&text).is_ok();
        let of_json = |kind: &&Kind| (kind.strict)(text.as_bytes()).is_ok();
        let queried: Vec<_> = KINDS.iter().filter(of_queries).collect();
        let kinds: Vec<_> = KINDS.iter().filter(of_json).collect();
        read.extend(kinds.iter().map(|kind| (kind.name)()));
        if let Ok(sound) = serde_json::from_str::<Value>(&text) {
            let mut places = Vec::new();
            collect(&sound, &mut Vec::new(), &mut places);
            // One of the items of a list is as good as another.
            let names: Vec<_> = kinds.iter().map(|kind| (kind.name)()).collect();
            places.retain(|place| seen.insert((names.clone(), names_of(place))));
            for (place, change) in places
                .iter()
                .flat_map(|place| [long_text, long_member, long_list].map(|change| (place, change)))
            {
                let mut request = sound.clone();
                if change(at(&mut request, place), SHORTER) {
                    let json = request.to_string();
                    for kind in &kinds {
                        let Some((error, debug)) = shown((kind.strict)(json.as_bytes())) else {
                            continue;
                        };
                        let of = format!("{} at {place:?}", (kind.name)());
                        bounded(&error, &debug, SHORTER, &of);
                    }
                }
            }
        }
        for field in text.split('&').filter(|field| field.contains('=') && field.len() < 100) {
            let long = "x".repeat(SHORTER);
            let (name, value) = field.split_once('=').unwrap();
            for query in [
                format!("{name}={long}"),
                format!("{name}{long}={value}"),
                format!("{name}={value}&{name}={long}"),
                format!("{name}=%FF{long}"),
            ] {
                for kind in &queried {
                    let Some((error, debug)) = shown((kind.from_query)(&query)) else { continue };
                    let of = format!("{} of {query:.40}", (kind.name)());
                    bounded(&error, &debug, SHORTER, &of);
                }
            }
        }
    }
    assert_eq!(read.len(), KINDS.len(), "a kind has no request in the corpus: {read:?}");
}

// The place without the indices of lists.
fn names_of(place: &[Part]) -> Vec<String> {
    let name = |part: &Part| match part {
        Part::Index(_) => String::new(),
        Part::Name(name) => name.clone(),
    };
    place.iter().map(name).collect()
}

/// The debug text, which may list many names, has at most half of the bytes that were `given`.
#[track_caller]
fn bounded(text: &str, debug: &str, given: usize, of: &str) {
    let start: String = text.chars().take(200).collect();
    assert!(text.len() <= TEXT, "{of}: {} bytes: {start}", text.len());
    let most = (given / 2).min(64 * TEXT);
    assert!(debug.len() <= most, "{of}: {} bytes of debug text: {start}", debug.len());
}

#[derive(Clone, Debug)]
enum Part {
    Index(usize),
    Name(String),
}

fn collect(value: &Value, place: &mut Vec<Part>, places: &mut Vec<Vec<Part>>) {
    places.push(place.clone());
    let inside: Vec<_> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (Part::Index(i), v)).collect(),
        Value::Object(map) => map.iter().map(|(n, v)| (Part::Name(n.clone()), v)).collect(),
        _ => Vec::new(),
    };
    for (part, value) in inside {
        place.push(part);
        collect(value, place, places);
        place.pop();
    }
}

fn at<'v>(value: &'v mut Value, place: &[Part]) -> &'v mut Value {
    place.iter().fold(value, |value, part| match part {
        Part::Index(index) => &mut value[*index],
        Part::Name(name) => &mut value[name.as_str()],
    })
}

fn long_text(value: &mut Value, length: usize) -> bool {
    if !value.is_string() {
        return false;
    }
    *value = json!("x".repeat(length));
    true
}

fn long_member(value: &mut Value, length: usize) -> bool {
    value.as_object_mut().is_some_and(|map: &mut Map<_, _>| {
        map.insert("x".repeat(length), json!({ "y": 1 }));
        true
    })
}

// A thousand long names.
fn long_list(value: &mut Value, length: usize) -> bool {
    let Some(items) = value.as_array_mut() else { return false };
    let [Value::String(_), ..] = items.as_slice() else { return false };
    *items = (0..1_000).map(|n| json!(format!("{n}{}", "x".repeat(length / 1_000)))).collect();
    true
}

// Returns `true` if the request was refused by an operation, with a bounded text. The text of an
// unreadable request is that of `serde_json`.
fn check(answer: &Answer, request: &str) -> bool {
    let Err(Refusal::By(error)) = answer else { return false };
    bounded(&error.to_string(), &format!("{error:?}"), LONG, request);
    true
}
