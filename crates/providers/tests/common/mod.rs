//! What the tests have in common.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, crypto};
use tidings::SendError;

/// A connection, with or without encryption.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// TLS for this machine, by a certificate that is signed by itself.
pub fn tls() -> (Arc<ServerConfig>, rcgen::Certificate) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (Arc::new(config), cert)
}

/// The kind of an error.
pub fn kind(error: &SendError) -> &'static str {
    match error {
        SendError::Retryable { .. } => "retryable",
        SendError::Permanent { .. } => "permanent",
        SendError::RecipientGone { .. } => "gone",
        SendError::Misconfigured { .. } => "misconfigured",
        SendError::Unknown { .. } => "unknown",
        _ => "another",
    }
}
