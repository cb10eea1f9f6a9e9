//! Reading requests.

use serde::de::DeserializeOwned;
use serde_json::Error;
use serde_json::error::Category;
use serde_path_to_error::Path;

use super::strict::Strict;
use crate::error::{Invalid, Reason};

/// Reads a request from JSON text. What is refused is named with the way to it, as everywhere, and
/// an object is read from nothing but an object.
///
/// ```
/// use tidings_domain::json::read;
/// use tidings_domain::preference::BulkPreferences;
///
/// let body = r#"{ "preferences": [{ "workflowId": "w", "channels": { "email": "no" } }] }"#;
/// let refused = read::<BulkPreferences>(body.as_bytes()).unwrap_err();
/// assert_eq!(refused.field, "preferences[0].channels.email");
/// ```
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Invalid> {
    let mut from = serde_json::Deserializer::from_slice(json);
    let value = serde_path_to_error::deserialize(Strict(&mut from))
        .map_err(|error| refusal(&Way::of(error.path()), error.inner()))?;
    from.end().map_err(|error| Invalid::new(BODY, unreadable(&error)))?;
    Ok(value)
}

// What a request is called as a whole.
const BODY: &str = "body";

// Serde has nothing but a text for what went wrong, and loses its way in flattened structures. The
// text names the field if it is missing or given twice, or if a rule of ours was broken.
fn refusal(way: &Way, error: &Error) -> Invalid {
    let text = error.to_string();
    // Where in the text it is helps nobody who has the way.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let (about, text) = if let Some(name) = text.strip_prefix("missing field ") {
        (Some(Reason::Missing), name)
    } else if let Some(name) = text.strip_prefix("duplicate field ") {
        (Some(Reason::Repeated), name)
    } else {
        (None, text)
    };
    let named = text.strip_prefix('`').and_then(|named| named.split_once('`'));
    match (about, named, text.rsplit_once("expected ")) {
        (Some(reason), Some((name, _)), _) => Invalid::new(way.field(name), reason),
        (None, Some((name, rule)), _) => {
            let rule = rule.trim_start().to_owned();
            Invalid::new(way.value(name), Reason::InWords { rule })
        }
        // The text in front of it shows what was read, which may be a secret.
        (_, None, Some((_, expected))) if error.is_data() => {
            Invalid::new(way.whole(), Reason::malformed(form(expected).to_owned()))
        }
        (_, None, _) => Invalid::new(way.whole(), unreadable(error)),
    }
}

// What a form that serde expects is called by people.
fn form(expected: &str) -> &str {
    match expected.split(' ').next().unwrap_or_default() {
        "struct" | "internally" | "adjacently" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ => match expected {
            "a map" => "an object",
            "a sequence" => "a list",
            "a string" | "a word" => "a text",
            "a boolean" => "`true` or `false`",
            other => other,
        },
    }
}

fn unreadable(error: &Error) -> Reason {
    let problem = match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => error.to_string(),
        // Whose text it is is not known, nor what it shows.
        Category::Data => "it has another form than it should".to_owned(),
    };
    Reason::Unreadable { problem }
}

// The way to where reading ended, as far as it is known.
struct Way(Option<String>);

impl Way {
    fn of(path: &Path) -> Self {
        let path = path.to_string();
        // So it is written at the start, and where it was lost.
        Self((path != "." && path != "?").then_some(path))
    }

    fn whole(&self) -> String {
        self.0.clone().unwrap_or_else(|| BODY.to_owned())
    }

    fn field(&self, name: &str) -> String {
        self.0.as_ref().map_or_else(|| name.to_owned(), |way| format!("{way}.{name}"))
    }

    // A value that does not know where it is calls itself something, such as `timestamp`, and is at
    // the end of the way; what is inside of it comes behind that. Items of lists, recipients and
    // contexts are read as a whole, and name what is inside of them.
    fn value(&self, name: &str) -> String {
        let Some(way) = &self.0 else { return name.to_owned() };
        if way.ends_with(']') || way == "to" || way.starts_with("context.") {
            return self.field(name);
        }
        let inside = name.find(['.', '[']).and_then(|at| name.get(at..)).unwrap_or_default();
        format!("{way}{inside}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::{ChannelConnectionCreate, ChannelConnectionUpdate};
    use crate::context::{ContextCreate, ContextPayload, ContextUpdate};
    use crate::endpoint::{ChannelEndpointCreate, ChannelEndpointUpdate};
    use crate::environment::EnvironmentCreate;
    use crate::integration::{IntegrationCreate, IntegrationUpdate};
    use crate::message::MarkMessages;
    use crate::notification::NotificationQuery;
    use crate::preference::BulkPreferences;
    use crate::subscriber::{SubscriberCreate, SubscriberUpdate};
    use crate::subscription::Subscribe;
    use crate::topic::TopicQuery;

    fn text<T: DeserializeOwned>(json: serde_json::Value) -> String {
        read::<T>(json.to_string().as_bytes()).map(drop).unwrap_err().to_string()
    }

    /// One row per kind of mistake.
    #[test]
    fn what_is_refused_is_named() {
        let connection = |auth| json!({ "integrationIdentifier": "slack", "workspace": { "id": "T1" }, "auth": auth });
        for (refused, expected) in [
            (
                text::<ChannelConnectionCreate>(connection(json!({}))),
                "`auth.accessToken` is required",
            ),
            (text::<ChannelConnectionCreate>(connection(json!(1))), "`auth` must be an object"),
            (
                text::<BulkPreferences>(json!({ "preferences": [{}] })),
                "`preferences[0].workflowId` is required",
            ),
            (
                text::<SubscriberUpdate>(json!({ "email": "x" })),
                "`email` must be an e-mail address",
            ),
            (
                text::<ChannelConnectionCreate>(json!({ "integrationIdentifier": "a b" })),
                "`integrationIdentifier` must be letters and digits, joined by single `-`, `_` or `.`",
            ),
            (
                text::<BulkPreferences>(json!({ "preferences": [{
                    "workflowId": "w", "channels": {}, "condition": { "and": [{ "equals": [] }] },
                }] })),
                "`preferences[0].condition.and[0]` has no operator `equals`",
            ),
            (text::<ContextUpdate>(json!([{}])), "`body` must be an object"),
            (
                text::<BulkPreferences>(json!({ "preferences": [["w", [false]]] })),
                "`preferences[0]` must be an object",
            ),
            (
                text::<ContextPayload>(json!({ "tenant": ["acme"] })),
                "`tenant` must be a text or an object",
            ),
            (
                text::<NotificationQuery>(json!({ "after": "x" })),
                "`after` must be an ISO 8601 timestamp",
            ),
            (
                text::<NotificationQuery>(json!({ "subscriberIds": "" })),
                "`subscriberIds` must not be empty",
            ),
            (
                text::<EnvironmentCreate>(json!({ "parentId": "1" })),
                "`parentId` must be an identifier made by the engine",
            ),
            (
                text::<MarkMessages>(json!({ "messageId": ["x"], "markAs": "read" })),
                "`messageId` must be an identifier made by the engine",
            ),
            (
                text::<Subscribe>(json!({ "subscriptions": ["ada", { "subscriberId": "" }] })),
                "`subscriptions[1].subscriberId` must not be empty",
            ),
            (
                text::<ContextCreate>(json!({ "type": "a.b", "id": "x" })),
                "`type` must be 1 to 100 letters, digits, `_` and `-`",
            ),
            (text::<TopicQuery>(json!({ "limit": "x" })), "`limit` must be a whole number"),
            (
                read::<ContextUpdate>(br#"{ "data": {}, "data": {} }"#).unwrap_err().to_string(),
                "`data` must not be given twice",
            ),
            (
                read::<TopicQuery>(b"{").unwrap_err().to_string(),
                "`body` cannot be read: EOF while parsing an object at line 1 column 1",
            ),
            (
                read::<TopicQuery>(b"{} {}").unwrap_err().to_string(),
                "`body` cannot be read: trailing characters at line 1 column 4",
            ),
        ] {
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let secret = || json!("xoxb-s3cr3t");
        for refused in [
            text::<ChannelConnectionCreate>(json!({
                "integrationIdentifier": "i", "workspace": { "id": "T" }, "auth": secret(),
            })),
            text::<ChannelConnectionUpdate>(json!({ "auth": { "accessToken": [secret()] } })),
            text::<ChannelEndpointCreate>(json!({
                "subscriberId": "ada", "integrationIdentifier": "i", "type": "webhook",
                "endpoint": secret(),
            })),
            text::<ChannelEndpointUpdate>(json!({ "endpoint": secret() })),
            text::<IntegrationCreate>(json!({
                "providerId": "ses", "channel": "email", "credentials": secret(),
            })),
            text::<IntegrationUpdate>(json!({ "credentials": { "secure": secret() } })),
            text::<SubscriberCreate>(json!({
                "subscriberId": "ada", "channels": [{ "credentials": secret() }],
            })),
        ] {
            assert!(!refused.contains("s3cr3t"), "{refused}");
        }
    }
}
