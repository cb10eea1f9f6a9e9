//! Lines: headers that hold several addresses, and lines that are too long.

use lettre::message::header::{HeaderName, HeaderValue, Headers, To};
use lettre::message::{Mailbox, Mailboxes};
use tidings::SendError;

// Longest line without its end, in bytes (RFC 5322, 2.1.1).
const LONGEST_LINE: usize = 998;

// Length of a line behind which a header goes on in the next one, in bytes: that of lettre.
const FOLDED_AT: usize = 76;

/// Returns a header with these addresses. lettre writes addresses without names into one line, however
/// many there are, and reads a list anew for each address that it adds.
pub(super) fn list(name: &'static str, mailboxes: &[Mailbox]) -> HeaderValue {
    let mut value = String::new();
    let mut length = name.len() + ": ".len();
    for mailbox in mailboxes {
        let encoded = encoded(mailbox);
        let first = encoded.find("\r\n").unwrap_or(encoded.len());
        if !value.is_empty() {
            let is_full = length + ", ".len() + first + ",".len() > FOLDED_AT;
            value.push_str(if is_full { ",\r\n " } else { ", " });
            length = if is_full { " ".len() } else { length + ", ".len() };
        }
        value.push_str(&encoded);
        length = encoded.rsplit_once("\r\n").map_or(length + first, |(_, last)| last.len());
    }
    let name = HeaderName::new_from_ascii_str(name);
    HeaderValue::dangerous_new_pre_encoded(name, value.clone(), value)
}

// Returns an address with its name as lettre writes them, in several lines if the name is long.
fn encoded(mailbox: &Mailbox) -> String {
    let mut headers = Headers::new();
    headers.set(To::from(Mailboxes::from(mailbox.clone())));
    let header = headers.to_string();
    let value = header.strip_prefix("To: ").unwrap_or(&header);
    value.strip_suffix("\r\n").unwrap_or(value).to_owned()
}

/// Refuses an e-mail with a line that is too long: some servers refuse it, others cut it. Only a header
/// without spaces has one, because lettre wraps texts and files.
pub(super) fn check(content: &[u8]) -> Result<(), SendError> {
    let mut header: &[u8] = b"";
    for line in content.split(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") {
            header = line;
        }
        if line.strip_suffix(b"\r").unwrap_or(line).len() > LONGEST_LINE {
            let name = header.split(|byte| *byte == b':').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            return Err(SendError::permanent(format!(
                "the header `{name}` would have a line of more than {LONGEST_LINE} bytes"
            )));
        }
    }
    Ok(())
}
