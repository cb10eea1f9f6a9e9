//! The contract of a store.

use std::sync::OnceLock;

use testkit::postgres::Server;
use testkit::proxy::Proxy;

mod in_a_schema_of_its_own {
    use super::Server;

    store::conformance_tests!(match Server::shared() {
        Some(server) => server.place().open(),
        None => return,
    });
}

mod over_slow_connections {
    use super::{Server, slow};

    store::conformance_tests!(match Server::shared() {
        Some(server) => server.place().through(&slow(server).url()).open(),
        None => return,
    });
}

fn slow(server: &Server) -> &'static Proxy {
    static SLOW: OnceLock<Proxy> = OnceLock::new();
    SLOW.get_or_init(|| Proxy::before(server.folder()))
}
