//! Addresses in the form in which they are compared.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::unsupported;
use crate::contact::Email;
use crate::error::{Invalid, Reason};
use crate::hex;
use crate::ids::EnvironmentId;
use crate::json::shape;
use crate::vocabulary::Channel;

/// Beginning of an address of which only a hash is left.
const ERASED: &str = "erased:";

/// E-mail address or telephone number, in the form in which two spellings are equal: an e-mail
/// address without capitals, a telephone number without separators. A domain name in Unicode and the
/// same one in ASCII are two addresses: `ada@bücher.example` and `ada@xn--bcher-kva.example`. Of an
/// address that was erased, there is a hash: `erased:` with 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Fields")]
pub struct SuppressedAddress {
    channel: Channel,
    address: String,
}

// An address before it has its normal form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    channel: Channel,
    address: String,
}

shape! { SuppressedAddress { "channel": channel, "address": address } }

impl SuppressedAddress {
    /// Maximum number of digits of a telephone number, without separators.
    pub const MAX_DIGITS: usize = 32;

    /// Returns an address of a channel.
    ///
    /// # Errors
    ///
    /// [`Invalid`], if the channel has no addresses of its own, or the address has no valid form.
    pub fn new(channel: Channel, address: impl AsRef<str>) -> Result<Self, Invalid> {
        let address = address.as_ref().trim();
        let address = match channel {
            Channel::Email | Channel::Sms if is_hash(address) => address.to_ascii_lowercase(),
            Channel::Email => {
                let email = Email::new(address).map_err(|invalid| invalid.named("address"))?;
                lowercase(email.as_str())
            }
            Channel::Sms => number(address)?,
            Channel::InApp | Channel::Chat | Channel::Push => return Err(unsupported()),
        };
        Ok(Self { channel, address })
    }

    /// Returns the channel.
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// Returns the address in its normal form.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns `true` if a hash of the address is left.
    pub(super) fn is_hash(&self) -> bool {
        is_hash(&self.address)
    }

    /// Returns the address as a hash, which differs between environments.
    #[doc(hidden)]
    #[must_use]
    pub fn erased(&self, environment: EnvironmentId) -> Self {
        if self.is_hash() {
            return self.clone();
        }
        let hash = Sha256::new()
            .chain_update(Uuid::from(environment).into_bytes())
            .chain_update(self.channel.to_string())
            .chain_update([0])
            .chain_update(&self.address);
        let address = format!("{ERASED}{}", hex::text(hash.finalize()));
        Self { channel: self.channel, address }
    }
}

// Some letters have a small form with more bytes. They stay as they are in an address that would be too long
// with them.
fn lowercase(text: &str) -> String {
    let whole = text.to_lowercase();
    if whole.len() <= Email::MAX_LEN {
        return whole;
    }
    let small = |letter: char| {
        let small: String = letter.to_lowercase().collect();
        if small.len() > letter.len_utf8() { letter.to_string() } else { small }
    };
    text.chars().map(small).collect()
}

fn is_hash(address: &str) -> bool {
    let digits = address.strip_prefix(ERASED).filter(|digits| digits.len() == 64);
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

impl TryFrom<Fields> for SuppressedAddress {
    type Error = Invalid;

    fn try_from(fields: Fields) -> Result<Self, Invalid> {
        Self::new(fields.channel, fields.address)
    }
}

// The digits of a number, behind a plus sign if it has one. `00` is another spelling of the sign.
fn number(text: &str) -> Result<String, Invalid> {
    let is_separator = |letter: &char| letter.is_whitespace() || "-./()".contains(*letter);
    let plain: String = text.chars().filter(|letter| !is_separator(letter)).collect();
    let plain = plain.strip_prefix("00").map_or(plain.clone(), |rest| format!("+{rest}"));
    let digits = plain.strip_prefix('+').unwrap_or(&plain);
    let is_short = (1..=SuppressedAddress::MAX_DIGITS).contains(&digits.len());
    let is_number = is_short && digits.bytes().all(|c| c.is_ascii_digit());
    if is_number {
        Ok(plain)
    } else {
        Err(Invalid::new("address", Reason::malformed("a telephone number")))
    }
}
