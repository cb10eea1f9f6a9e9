//! Reading requests.

use serde::de::DeserializeOwned;
use serde_path_to_error::Path;

use crate::error::{Invalid, Reason};

/// Reads a request from JSON text. What is refused is named with the way to it, as everywhere.
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
    let value = serde_path_to_error::deserialize(&mut from)
        .map_err(|error| refusal(error.path(), &error.inner().to_string()))?;
    from.end().map_err(|error| unreadable(BODY, &error.to_string()))?;
    Ok(value)
}

// What a request is called as a whole.
const BODY: &str = "body";

// Serde has nothing but a text for what went wrong, and loses its way in flattened structures. The
// text names the field if something is missing or if a rule of ours was broken.
fn refusal(path: &Path, text: &str) -> Invalid {
    // Where in the text it is helps nobody who has the way.
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    let missing = text.strip_prefix("missing field ");
    let named = missing.unwrap_or(text).strip_prefix('`').and_then(|named| named.split_once('`'));
    let way = Way::of(path);
    match (missing, named) {
        (Some(_), Some((name, _))) => Invalid::new(way.field(name), Reason::Missing),
        (None, Some((name, rule))) => {
            let rule = rule.trim_start().to_owned();
            Invalid::new(way.value(name), Reason::InWords { rule })
        }
        (_, None) => unreadable(&way.whole(), text),
    }
}

fn unreadable(field: &str, problem: &str) -> Invalid {
    Invalid::new(field, Reason::Unreadable { problem: problem.to_owned() })
}

// The way to where reading ended, as far as it is known.
struct Way(Option<String>);

impl Way {
    fn of(path: &Path) -> Self {
        let path = path.to_string();
        // So it is written at the start, and where it was lost.
        Self((path != "." && path != "?").then_some(path))
    }

    fn whole(self) -> String {
        self.0.unwrap_or_else(|| BODY.to_owned())
    }

    fn field(self, name: &str) -> String {
        self.0.map_or_else(|| name.to_owned(), |way| format!("{way}.{name}"))
    }

    // A value that does not know where it is calls itself something, such as `identifier` where the
    // way ends in `integrationIdentifier`, or `environmentId` where it ends in `parentId`.
    fn value(self, name: &str) -> String {
        let is_value = |way: &str| {
            let way = way.rsplit('.').next().unwrap_or(way);
            let (way, name) =
                (way.split('[').next().unwrap_or(way).to_lowercase(), name.to_lowercase());
            way.ends_with(&name)
                || name.ends_with(&way)
                || way.ends_with("id") && name.ends_with("id")
        };
        match self.0 {
            Some(way) if is_value(&way) => way,
            way => Self(way).field(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::ChannelConnectionCreate;
    use crate::context::ContextCreate;
    use crate::environment::EnvironmentCreate;
    use crate::message::MarkMessages;
    use crate::preference::BulkPreferences;
    use crate::subscriber::SubscriberUpdate;
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
            (
                text::<ChannelConnectionCreate>(connection(json!(1))),
                "`auth` cannot be read: invalid type: integer `1`, expected struct ConnectionAuth",
            ),
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
            (
                text::<TopicQuery>(json!({ "limit": "x" })),
                "`body` cannot be read: invalid digit found in string",
            ),
            (
                read::<TopicQuery>(b"{").unwrap_err().to_string(),
                "`body` cannot be read: EOF while parsing an object",
            ),
            (
                read::<TopicQuery>(b"{} {}").unwrap_err().to_string(),
                "`body` cannot be read: trailing characters at line 1 column 4",
            ),
        ] {
            assert_eq!(refused, expected);
        }
    }
}
