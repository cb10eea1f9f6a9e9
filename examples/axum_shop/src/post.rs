//! Where e-mail goes: to a server, or to a folder on a machine without one.

use std::fs;
use std::path::PathBuf;

use tidings::credentials::Credentials;
use tidings::integration::IntegrationCreate;
use tidings::vocabulary::Channel;
use tidings::{Builder, Delivery, Provider, ProviderReceipt, Result, SendError};
use tidings_providers::Smtp;

// The provider of the account. It is SMTP or a folder, so that the account of a file stays the same.
const PROVIDER: &str = "mail";

/// Where e-mail goes.
#[derive(Clone, Debug)]
pub enum Post {
    /// Through an SMTP server, with this account.
    Server(Box<Credentials>),
    /// Into files of this folder.
    Folder(PathBuf),
}

/// A provider that writes each e-mail to a file. The file has the name of the message, so that a
/// second try writes no second file.
#[derive(Debug)]
struct Folder(PathBuf);

impl Post {
    /// Returns the server of the settings `SMTP_HOST`, `SMTP_PORT`, `SMTP_USER`, `SMTP_PASSWORD` and
    /// `SHOP_FROM`. Without `SMTP_HOST` it is the folder `outbox`.
    pub fn from_settings(setting: impl Fn(&str) -> Option<String>) -> Self {
        let Some(host) = setting("SMTP_HOST") else {
            return Self::Folder(PathBuf::from("outbox"));
        };
        let from = setting("SHOP_FROM").unwrap_or_else(|| "shop@example.org".to_owned());
        let mut account = Credentials::default().host(host).from(from);
        account.port = setting("SMTP_PORT");
        account.user = setting("SMTP_USER");
        account.password = setting("SMTP_PASSWORD").map(Into::into);
        Self::Server(Box::new(account))
    }

    pub(crate) fn register(&self, builder: Builder) -> Builder {
        match self {
            Self::Server(_) => builder.provider(PROVIDER, Smtp::default()),
            Self::Folder(folder) => builder.provider(PROVIDER, Folder(folder.clone())),
        }
    }

    /// Returns the account that e-mail goes through. A server's account without `from` is refused.
    pub(crate) fn account(&self) -> Result<IntegrationCreate> {
        let account = IntegrationCreate::new(PROVIDER, Channel::Email)?.identifier("mail")?;
        Ok(match self {
            Self::Server(credentials) => account.credentials(Credentials::clone(credentials)),
            Self::Folder(_) => account.credentials(Credentials::default()),
        })
    }
}

impl Provider for Folder {
    fn send(&self, delivery: &Delivery) -> std::result::Result<ProviderReceipt, SendError> {
        let key = delivery.idempotency_key().to_string();
        let subject = delivery.message.subject.as_deref().unwrap_or_default();
        let text = delivery.message.text().unwrap_or_default();
        let written = fs::create_dir_all(&self.0).and_then(|()| {
            fs::write(self.0.join(format!("{key}.txt")), format!("{subject}\n\n{text}\n"))
        });
        written.map_err(|error| SendError::retryable(error.to_string()))?;
        Ok(ProviderReceipt::with_id(key))
    }
}
