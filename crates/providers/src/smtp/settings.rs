//! Settings: what the overrides of a trigger say about an e-mail.

use base64ct::{Base64, Encoding};
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName};
use lettre::message::{Attachment, Body, Mailbox, SinglePart};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings::error::{Invalid, Reason};
use tidings::{Delivery, SendError};

use super::{Smtp, address};

// Headers that the parts of the e-mail decide.
const OWN_HEADERS: [&str; 15] = [
    "bcc",
    "cc",
    "content-transfer-encoding",
    "content-type",
    "date",
    "from",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "message-id",
    "mime-version",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
];

const ADDRESSES: &str = "an e-mail address or a list of them";

// Media type of a file without another one.
const BINARY: &str = "application/octet-stream";

// The caller names the field and what it expects.
const MALFORMED: &str = "malformed";

/// Overrides that an e-mail knows.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) to: Mailboxes,
    pub(super) cc: Mailboxes,
    pub(super) bcc: Mailboxes,
    pub(super) from: Option<Address>,
    pub(super) sender_name: Option<String>,
    pub(super) reply_to: Mailboxes,
    pub(super) text: Option<String>,
    pub(super) unsubscribe_url: Option<Link>,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) attachments: Vec<File>,
}

/// One address, or a list of them.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub(super) struct Mailboxes(pub(super) Vec<Mailbox>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Address),
    Many(Vec<Address>),
}

/// E-mail address, with or without a name.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Address(pub(super) Mailbox);

/// URL at which a recipient unsubscribes.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Link(String);

/// File that is attached.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "file")]
    bytes: Bytes,
    name: Option<String>,
    mime: Option<Mime>,
    content_id: Option<ContentId>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Bytes(Vec<u8>);

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Mime(ContentType);

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ContentId(String);

impl Settings {
    /// Reads the overrides of a delivery, and the attachments in its payload.
    pub(super) fn of(delivery: &Delivery) -> Result<Self, SendError> {
        let most = Smtp::MAX_URL;
        let link = format!("a URL of `https`, `http` or `mailto`, with at most {most} bytes");
        Ok(Self {
            to: read(delivery, "to", ADDRESSES)?,
            cc: read(delivery, "cc", ADDRESSES)?,
            bcc: read(delivery, "bcc", ADDRESSES)?,
            from: read(delivery, "from", "an e-mail address")?,
            sender_name: read(delivery, "senderName", "a text")?,
            reply_to: read(delivery, "replyTo", ADDRESSES)?,
            text: read(delivery, "text", "a text")?,
            unsubscribe_url: read(delivery, "unsubscribeUrl", &link)?,
            headers: headers(delivery)?,
            attachments: attachments(delivery)?,
        })
    }

    /// Returns the link of the trigger, or else that of the engine. Leaves out a link of the engine that a
    /// header cannot hold.
    pub(super) fn unsubscribe_link(&self, delivery: &Delivery) -> Option<Link> {
        let own = || Link::try_from(delivery.unsubscribe_url.clone()?).ok();
        self.unsubscribe_url.clone().or_else(own)
    }
}

// Returns an override, unless it is absent or `null`.
fn value<'a>(delivery: &'a Delivery, name: &str) -> Option<&'a Value> {
    delivery.overrides.get(name).filter(|value| !value.is_null())
}

// Reads an override. Returns the default if there is none.
fn read<T: DeserializeOwned + Default>(
    delivery: &Delivery,
    name: &str,
    expected: &str,
) -> Result<T, SendError> {
    let Some(value) = value(delivery, name) else { return Ok(T::default()) };
    // The error of serde may quote the value, which is the host's.
    T::deserialize(value).map_err(|_| malformed(format!("overrides.{name}"), expected))
}

fn headers(delivery: &Delivery) -> Result<Vec<(HeaderName, String)>, SendError> {
    let Some(headers) = value(delivery, "headers") else { return Ok(Vec::new()) };
    let headers = headers.as_object();
    let headers = headers.ok_or_else(|| malformed("overrides.headers", "an object of texts"))?;
    let read = |(name, value): (&String, &Value)| {
        let header = header_name(name)?;
        let field = || format!("overrides.headers.{name}");
        let value = value.as_str().ok_or_else(|| malformed(field(), "a text"))?;
        Ok((header, value.to_owned()))
    };
    headers.iter().map(read).collect()
}

// Reads the name of a header that is not one of [`OWN_HEADERS`].
fn header_name(name: &str) -> Result<HeaderName, SendError> {
    let is_own = OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str());
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_sound = name.len() <= Smtp::MAX_HEADER_NAME && name.bytes().all(is_token) && !is_own;
    let header = is_sound.then(|| HeaderName::new_from_ascii(name.to_owned()).ok()).flatten();
    header.ok_or_else(|| {
        let start: String = name.chars().take(Smtp::MAX_HEADER_NAME).collect();
        let start = start.escape_debug();
        SendError::permanent(format!("`overrides.headers`: `{start}` is no header to set"))
    })
}

// Returns the attachments of the trigger, or else those in the payload. An `attachments` of the payload
// without any `file` is data of the host, and is passed over.
fn attachments(delivery: &Delivery) -> Result<Vec<File>, SendError> {
    if let Some(list) = value(delivery, "attachments") {
        let list = list.as_array();
        let list = list.ok_or_else(|| malformed("overrides.attachments", "a list of files"))?;
        return files("overrides", list);
    }
    let payload = delivery.notification.payload.as_ref();
    let list = payload.and_then(|payload| payload.get("attachments")?.as_array());
    let has_file = |item: &Value| item.get("file").is_some();
    list.filter(|list| list.iter().any(has_file))
        .map_or(Ok(Vec::new()), |list| files("payload", list))
}

fn files(place: &str, list: &[Value]) -> Result<Vec<File>, SendError> {
    let expected = "an object with `file` in base64, and texts as `name`, `mime` (a media type) and \
                    `contentId` (of A-Z 0-9 -_.@)";
    let read = |(number, item)| {
        let field = || format!("{place}.attachments[{number}]");
        File::deserialize(item).map_err(|_| malformed(field(), expected))
    };
    list.iter().enumerate().map(read).collect()
}

fn malformed(field: impl Into<String>, expected: &str) -> SendError {
    let reason = Reason::malformed(expected.to_owned());
    SendError::permanent(Invalid::new(field, reason).to_string())
}

impl From<OneOrMany> for Mailboxes {
    fn from(addresses: OneOrMany) -> Self {
        let addresses = match addresses {
            OneOrMany::One(address) => vec![address],
            OneOrMany::Many(addresses) => addresses,
        };
        Self(addresses.into_iter().map(|Address(mailbox)| mailbox).collect())
    }
}

impl TryFrom<String> for Address {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        address::mailbox(&text).map(Self).ok_or(MALFORMED)
    }
}

impl TryFrom<String> for Link {
    type Error = &'static str;

    fn try_from(url: String) -> Result<Self, &'static str> {
        let is_short = url.len() <= Smtp::MAX_URL;
        let is_known = ["https://", "http://", "mailto:"].iter().any(|way| url.starts_with(way));
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>,".contains(&byte));
        if is_short && is_known && is_plain { Ok(Self(url)) } else { Err(MALFORMED) }
    }
}

impl TryFrom<String> for Bytes {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Base64::decode_vec(&text).map(Self).map_err(|_| MALFORMED)
    }
}

impl TryFrom<String> for Mime {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        // A part of these types may not be in Base64 (RFC 2045, 6.4), as all files are.
        let is_composite = ["message/", "multipart/"].iter().any(|kind| {
            text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind))
        });
        let mime = if is_composite { BINARY } else { &text };
        ContentType::parse(mime).map(Self).map_err(|_| MALFORMED)
    }
}

impl TryFrom<String> for ContentId {
    type Error = &'static str;

    fn try_from(id: String) -> Result<Self, &'static str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        let is_sound = !id.is_empty() && id.bytes().all(is_plain);
        if is_sound { Ok(Self(id)) } else { Err(MALFORMED) }
    }
}

impl Link {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if a mail program may unsubscribe by a request of its own. RFC 8058 asks for
    /// `https`.
    pub(super) fn has_one_click(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl File {
    /// Returns `true` if the HTML shows the file.
    pub(super) fn is_inline(&self) -> bool {
        self.content_id.is_some()
    }

    /// Returns the file as a part of an e-mail.
    pub(super) fn into_part(self) -> SinglePart {
        let name = one_line(self.name.as_deref().unwrap_or("attachment"));
        let binary = || ContentType::parse(BINARY).unwrap_or(ContentType::TEXT_PLAIN);
        let mime = self.mime.map_or_else(binary, |Mime(mime)| mime);
        let attachment = match self.content_id {
            Some(ContentId(id)) => Attachment::new_inline_with_name(id, name),
            None => Attachment::new(name),
        };
        // Base64 keeps each byte, line breaks among them.
        let encoding = ContentTransferEncoding::Base64;
        let body = Body::new_with_encoding(self.bytes.0, encoding).unwrap_or_else(Body::new);
        attachment.body(body, mime)
    }
}

/// Returns a text for a header, without line breaks and other control characters.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
