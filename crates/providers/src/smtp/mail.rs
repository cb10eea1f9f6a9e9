//! E-mails: a message of the engine as bytes, the same for every attempt.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MessageBuilder, MultiPart, SinglePart};
use tidings::{Address, Delivery, SendError};

use super::account::Account;
use super::outcome::{Parties, Recipients, Sender};
use super::settings::{File, Link, Settings, one_line};
use super::{address, lines};

/// E-mail that is ready to be sent.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) id: String,
    pub(super) envelope: Envelope,
    pub(super) content: Vec<u8>,
}

impl Mail {
    /// Makes the e-mail of a delivery.
    pub(super) fn of(delivery: &Delivery, account: &Account) -> Result<Self, SendError> {
        let settings = Settings::of(delivery)?;
        let (to, from) = (recipient(delivery)?, sender(&settings, account));
        let id = format!("<{}@{}>", delivery.idempotency_key(), from.email.domain());
        let subject = delivery.message.subject.as_deref().unwrap_or_default();
        let message = MessageBuilder::new()
            .date(created_at(delivery))
            .message_id(Some(id.clone()))
            .subject(one_line(subject))
            .from(from.clone());
        let link = settings.unsubscribe_link(delivery);
        let message = with_lists(message, &to, &settings);
        let message = with_headers(message, &settings, link.as_ref());
        let envelope = Envelope::new(Some(from.email), recipients(to.email, &settings));
        let envelope = envelope.map_err(malformed)?;
        // lettre would read the envelope from the headers.
        let message = message.envelope(envelope.clone());
        let message = message.multipart(body(delivery, settings)?).map_err(malformed)?;
        let content = message.formatted();
        lines::check(&content)?;
        Ok(Self { id, envelope, content })
    }

    /// Returns the parties of an e-mail that is sent through `account`.
    pub(super) fn parties(&self, account: &Account) -> Parties {
        let is_own = self.envelope.from() == Some(&account.from.email);
        Parties {
            sender: if is_own { Sender::OfAccount } else { Sender::OfTrigger },
            recipients: match self.envelope.to() {
                [_] => Recipients::One,
                _ => Recipients::Several,
            },
        }
    }
}

fn recipient(delivery: &Delivery) -> Result<Mailbox, SendError> {
    let Address::Email(address) = &delivery.address else {
        return Err(SendError::misconfigured("SMTP sends e-mail only"));
    };
    let address = address::parse(address.as_str()).ok_or(SendError::permanent(
        "the address is no e-mail address, or its domain has no form in ASCII",
    ))?;
    let profile = &delivery.subscriber.profile;
    let names = [&profile.first_name, &profile.last_name].into_iter().flatten();
    let name = names.map(String::as_str).collect::<Vec<_>>().join(" ");
    Ok(named(Mailbox::new(Some(name).filter(|name| !name.is_empty()), address)))
}

// Returns every recipient once.
fn recipients(to: lettre::Address, settings: &Settings) -> Vec<lettre::Address> {
    let others = [&settings.to, &settings.cc, &settings.bcc];
    let others = others.into_iter().flat_map(|list| &list.0).map(|one| one.email.clone());
    let mut known = HashSet::new();
    std::iter::once(to).chain(others).filter(|one| known.insert(one.clone())).collect()
}

fn with_lists(message: MessageBuilder, to: &Mailbox, settings: &Settings) -> MessageBuilder {
    let others = settings.to.0.iter().cloned().map(named);
    let to: Vec<_> = std::iter::once(to.clone()).chain(others).collect();
    let mut message = message.raw_header(lines::list("To", &to));
    for (name, list) in [("Cc", &settings.cc.0), ("Reply-To", &settings.reply_to.0)] {
        if !list.is_empty() {
            let list: Vec<_> = list.iter().cloned().map(named).collect();
            message = message.raw_header(lines::list(name, &list));
        }
    }
    message
}

fn sender(settings: &Settings, account: &Account) -> Mailbox {
    let from = settings.from.as_ref().map_or(&account.from, |from| &from.0);
    let name = settings.sender_name.clone().or(from.name.clone());
    named(Mailbox::new(name.or(account.from.name.clone()), from.email.clone()))
}

fn named(mailbox: Mailbox) -> Mailbox {
    Mailbox::new(mailbox.name.map(|name| one_line(&name)), mailbox.email)
}

fn created_at(delivery: &Delivery) -> SystemTime {
    let millis = u64::try_from(delivery.message.created_at.as_millis()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

fn with_headers(
    mut message: MessageBuilder,
    settings: &Settings,
    link: Option<&Link>,
) -> MessageBuilder {
    let unfolded = |name, value: &str| {
        HeaderValue::dangerous_new_pre_encoded(name, value.to_owned(), value.to_owned())
    };
    if let Some(link) = link {
        let name = HeaderName::new_from_ascii_str("List-Unsubscribe");
        // Folding may not cut a URL, which is plain ASCII.
        message = message.raw_header(unfolded(name, &format!("<{}>", link.as_str())));
        if link.has_one_click() {
            let name = HeaderName::new_from_ascii_str("List-Unsubscribe-Post");
            message = message.raw_header(unfolded(name, "List-Unsubscribe=One-Click"));
        }
    }
    for (name, value) in &settings.headers {
        message = message.raw_header(HeaderValue::new(name.clone(), one_line(value)));
    }
    message
}

// Returns text and HTML, with inline images beside the HTML and other files behind both. Boundaries
// follow from the key, so that every attempt has the same bytes.
fn body(delivery: &Delivery, settings: Settings) -> Result<MultiPart, SendError> {
    let content = delivery.message.content.as_ref();
    let content = content.ok_or(SendError::permanent("the message has no content"))?;
    let text = settings.text.unwrap_or_else(|| content.plain_text());
    let boundary = |part: &str| format!("{part}-{}", delivery.idempotency_key());
    let files = settings.attachments.into_iter();
    let (inline, attached): (Vec<_>, Vec<_>) = files.partition(File::is_inline);
    let both = MultiPart::alternative().boundary(boundary("both"));
    let both = both.singlepart(SinglePart::plain(text_part(&text)));
    let html = SinglePart::html(text_part(&content.html()));
    let mut body = if inline.is_empty() {
        both.singlepart(html)
    } else {
        let related = MultiPart::related().boundary(boundary("images")).singlepart(html);
        both.multipart(with_files(related, inline))
    };
    if !attached.is_empty() {
        let mixed = MultiPart::mixed().boundary(boundary("files")).multipart(body);
        body = with_files(mixed, attached);
    }
    Ok(body)
}

// Returns a text as a part of an e-mail has it: lines end with CRLF, and there are no control characters but
// tabs (RFC 5322, 2.3 and 3.5; RFC 2045, 2.7). Some servers end a line at a lone carriage return. lettre
// leaves both in, and takes quadratic time for line ends.
fn text_part(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    let is_text = |letter: &char| !letter.is_ascii_control() || "\r\n\t".contains(*letter);
    lines.chars().filter(is_text).collect()
}

fn with_files(part: MultiPart, files: Vec<File>) -> MultiPart {
    files.into_iter().fold(part, |part, file| part.singlepart(file.into_part()))
}

fn malformed(error: impl std::fmt::Display) -> SendError {
    SendError::permanent(error.to_string())
}
