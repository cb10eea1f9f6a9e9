//! Errors of TLS.

use std::io;

/// Returns `true` if the certificate of the server is not to be trusted. Another attempt finds the same
/// certificate; any other error of TLS is one of the connection.
pub(crate) fn is_untrusted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}
