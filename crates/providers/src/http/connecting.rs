//! The connector: connections whose failures leave no request behind.

use std::fmt;
use std::io;

use ureq::unversioned::transport::{ConnectionDetails, Connector, DefaultConnector, Transport};

use crate::tls::is_untrusted;

/// Connector whose errors of connection and handshake are [`NotConnected`].
#[derive(Debug, Default)]
pub(super) struct Connecting(DefaultConnector);

/// Failure of a look-up, of a connection, or of its handshake. The request follows them, so that the server has
/// read nothing of it. Behind the handshake the same errors of TLS leave that open.
#[derive(Debug)]
pub(super) struct NotConnected(pub(super) io::Error);

impl Connector for Connecting {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        self.0.connect(details, chained).map_err(|error| match error {
            ureq::Error::Io(error) if !is_untrusted(&error) => {
                ureq::Error::Other(Box::new(NotConnected(error)))
            }
            error => error,
        })
    }
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotConnected {}
