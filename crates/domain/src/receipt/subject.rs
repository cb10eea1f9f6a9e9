//! The address that a report is about.

use super::Receipt;
use crate::ids::EnvironmentId;
use crate::suppression::SuppressedAddress;
use crate::vocabulary::Channel;

/// Address that a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedAddress {
    /// Address of the message, if there is one that can be suppressed.
    Own(Option<SuppressedAddress>),
    /// Another address, such as that of a copy.
    Other(SuppressedAddress),
}

impl ReportedAddress {
    /// Returns the address that a report about a message to the address `own` is about. Chat and push messages
    /// have other addresses, and a service may write them otherwise. A text message has no copies.
    pub fn of(channel: Option<Channel>, own: Option<String>, receipt: &Receipt) -> Self {
        let address = |text: &String| SuppressedAddress::new(channel?, text).ok();
        let own = own.as_ref().and_then(address);
        match receipt.address.as_ref().and_then(address) {
            Some(named) if channel == Some(Channel::Sms) => Self::Own(own.or(Some(named))),
            Some(named) if own.as_ref() != Some(&named) => Self::Other(named),
            Some(_) | None => Self::Own(own),
        }
    }

    /// Returns the hash of an address that is not that of the message.
    pub fn other(&self, environment: EnvironmentId) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Other(address) => Some(address.erased(environment).address().to_owned()),
        }
    }

    /// Returns the address, if it can be suppressed.
    pub fn into_suppressed(self) -> Option<SuppressedAddress> {
        match self {
            Self::Own(address) => address,
            Self::Other(address) => Some(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::ReceiptKind;

    /// One row per channel, address of the message, and address that the report names.
    #[test]
    fn a_report_is_about_its_message_unless_it_names_another_address() {
        let (ada, bob) = ("ada@example.org", "bob@example.org");
        let (email, sms) = (Some(Channel::Email), Some(Channel::Sms));
        let suppressed = |channel: Option<Channel>, text: &str| {
            SuppressedAddress::new(channel.unwrap(), text).unwrap()
        };
        let own = |channel, text: &str| ReportedAddress::Own(Some(suppressed(channel, text)));
        let nothing = ReportedAddress::Own(None);
        for (channel, message, named, expected) in [
            (email, Some(ada), None, own(email, ada)),
            (email, Some(ada), Some("ADA@example.org"), own(email, ada)),
            (email, Some(ada), Some(bob), ReportedAddress::Other(suppressed(email, bob))),
            (email, None, Some(bob), ReportedAddress::Other(suppressed(email, bob))),
            (email, Some(ada), Some("no address"), own(email, ada)),
            (sms, Some("+44 20"), Some("4420"), own(sms, "+44 20")),
            (sms, None, Some("+44 20"), own(sms, "+44 20")),
            (Some(Channel::Push), Some("token"), Some(bob), nothing.clone()),
            (None, Some(ada), Some(bob), nothing),
        ] {
            let mut receipt = Receipt::new("m", ReceiptKind::Bounced).unwrap();
            receipt.address = named.map(str::to_owned);
            let about = ReportedAddress::of(channel, message.map(str::to_owned), &receipt);
            assert_eq!(about, expected, "{channel:?} {message:?} {named:?}");
        }
    }
}
