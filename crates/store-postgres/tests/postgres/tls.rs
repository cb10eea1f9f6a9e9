//! TLS, by a crate of the host's choice, to a server that takes no other connections over the network.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::CertifiedKey;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore, crypto};
use store::Error;
use testkit::postgres::{Server, Tls};
use testkit::tables::{dump, put};
use testkit::wait_until;
use tidings::Engine;
use tidings_store_postgres::{PostgresOptions, PostgresStore};
use tokio::runtime;
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Name in the certificate.
const NAME: &str = "db.example.org";

#[test]
fn a_store_works_over_tls() {
    let Some((server, authority)) = started() else { return };
    let open = || open(&server, NAME, &authority).unwrap();
    let (one, other) = (open(), open());
    // An engine listens to other processes.
    let engine = Engine::builder().build(one.clone());
    let env = engine.organization("acme").unwrap().development().unwrap();
    assert_eq!(dump(&other), dump(&one));
    put(&other, store::Table::Seals, b"by the other", Some(b"value"));
    assert_eq!(dump(&one), dump(&other));
    drop(env);

    let listens = "query LIKE 'SET synchronous_commit%' OR query LIKE '%pg_backend_pid%' \
        OR query LIKE '%pg_notify%'";
    wait_until(|| count(&server, listens) > 0);
    assert_eq!(count(&server, &format!("NOT ssl AND ({listens})")), 0);
    assert_eq!(count(&server, "NOT ssl"), 0);
    assert!(count(&server, "ssl") >= 3);
}

#[test]
fn a_certificate_of_another_authority_is_refused_with_the_remedy() {
    let Some((server, authority)) = started() else { return };
    let (_, other) = certificate();
    for (name, authority, cause) in [
        (NAME, &other, "invalid peer certificate"),
        ("other.example.org", &authority, "not valid for name"),
    ] {
        let started = Instant::now();
        let error = open(&server, name, authority).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Refused { action: "connect by TLS", .. }), "{error:?}");
        assert!(text.starts_with("PostgreSQL could not connect by TLS: "), "{text}");
        let remedy = "give `open_tls` the authority that has signed the certificate of the server, \
            and connect by the name in the certificate";
        assert!(text.contains(cause) && text.ends_with(remedy), "{text}");
        // Another try would not help.
        assert!(started.elapsed() < Duration::from_secs(9));
    }
}

/// A host that asks for TLS gets no connection without it.
#[test]
fn a_server_without_tls_is_refused() {
    let Some(server) = Server::shared() else { return };
    let (_, authority) = certificate();
    let config = format!("{} sslmode=require", server.url()).parse().unwrap();
    let options = PostgresOptions::default();
    let error = PostgresStore::open_tls(config, by(&authority), &options).unwrap_err();
    let text = error.to_string();
    let refused = "PostgreSQL could not connect by TLS: server does not support TLS: ";
    assert!(text.starts_with(refused), "{text}");
}

fn started() -> Option<(Server, CertificateDer<'static>)> {
    let (tls, authority) = certificate();
    Some((Server::start_tls(tls)?, authority))
}

/// A certificate of a server, which is its own authority.
fn certificate() -> (Tls, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let tls = Tls { certificate: cert.pem(), key: signing_key.serialize_pem() };
    (tls, cert.der().clone())
}

fn open(
    server: &Server,
    name: &str,
    authority: &CertificateDer<'static>,
) -> store::Result<PostgresStore> {
    let config = server.url_by_tls(name).parse().unwrap();
    PostgresStore::open_tls(config, by(authority), &PostgresOptions::default())
}

fn by(authority: &CertificateDer<'static>) -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}

/// Number of connections over the network, asked for behind the socket.
fn count(server: &Server, which: &str) -> i64 {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let query = format!(
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE client_addr IS NOT NULL AND ({which})"
        );
        client.query_one(&query, &[]).await.unwrap().get(0)
    })
}
