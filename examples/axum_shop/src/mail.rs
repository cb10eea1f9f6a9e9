//! E-mail: a provider over SMTP, or over a folder of files.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::{file, smtp};
use lettre::{FileTransport, Message, SmtpTransport, Transport};
use tidings::Address;
use tidings::{Delivery, Provider, ProviderReceipt, SendError};

// A server that is silent for longer is tried again later.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends e-mail from one address.
#[derive(Debug)]
pub struct Mail {
    from: Mailbox,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Smtp(SmtpTransport),
    Folder(FileTransport),
}

impl Mail {
    /// A provider that sends from `from` through the server at `url`, such as
    /// `smtps://user:password@smtp.example.org`.
    pub fn smtp(from: &str, url: &str) -> Result<Self, Box<dyn Error>> {
        let server = SmtpTransport::from_url(url)?.timeout(Some(TIMEOUT)).build();
        Ok(Self { from: from.parse()?, way: Way::Smtp(server) })
    }

    /// A provider that writes each e-mail to a file in `folder`, for a machine without a server.
    pub fn folder(from: &str, folder: impl AsRef<Path>) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(&folder)?;
        Ok(Self { from: from.parse()?, way: Way::Folder(FileTransport::new(folder)) })
    }

    fn message(&self, delivery: &Delivery, id: &str) -> Result<Message, SendError> {
        let Address::Email(address) = &delivery.address else {
            return Err(SendError::misconfigured("this provider sends e-mail only"));
        };
        let to = address.as_str().parse().map_err(gone)?;
        let message = &delivery.message;
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(delivery.subscriber.profile.first_name.clone(), to))
            .subject(message.subject.clone().unwrap_or_default())
            .message_id(Some(id.to_owned()))
            .header(ContentType::TEXT_HTML)
            .body(message.text().unwrap_or_default().to_owned())
            .map_err(|error| SendError::permanent(error.to_string()))
    }
}

impl Provider for Mail {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        // The same for every try, so that a server or a reader can drop what comes twice.
        let id = format!("<{}@{}>", delivery.idempotency_key(), self.from.email.domain());
        let message = self.message(delivery, &id)?;
        match &self.way {
            Way::Smtp(server) => server.send(&message).map(drop).map_err(|error| refused(&error)),
            Way::Folder(folder) => folder.send(&message).map(drop).map_err(|error| full(&error)),
        }?;
        Ok(ProviderReceipt::id(id))
    }
}

// The answer of the server decides what happens next: 550 means that there is no such mailbox,
// another 5xx that the message will never be taken. Everything else may go away.
fn refused(error: &smtp::Error) -> SendError {
    let reason = error.to_string();
    match error.status().map(u16::from) {
        Some(550) => SendError::recipient_gone(reason),
        Some(500..) => SendError::permanent(reason),
        _ => SendError::retryable(reason),
    }
}

fn gone(error: lettre::address::AddressError) -> SendError {
    SendError::recipient_gone(error.to_string())
}

fn full(error: &file::Error) -> SendError {
    SendError::retryable(error.to_string())
}
