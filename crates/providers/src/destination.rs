//! Destinations to which a provider does not send.

use tidings::{Address, SendError};

/// Returns the refusal of a destination. It is one of this message, and not of the integration, whose
/// other recipients have destinations of their own.
pub(crate) fn refused(reason: &str, destination: &Address) -> SendError {
    let kind = match destination {
        Address::Email(_) => "an e-mail address".to_owned(),
        Address::Phone(_) => "a telephone number".to_owned(),
        Address::Webhook { .. } => "a webhook".to_owned(),
        Address::Device(_) => "a device".to_owned(),
        Address::Workspace { endpoint, .. } => format!("a `{}`", endpoint.kind()),
    };
    SendError::permanent(format!("{reason}, and the destination is {kind}"))
}
