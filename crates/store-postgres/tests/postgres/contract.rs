//! The contract of a store.

use testkit::postgres::Server;

mod in_a_schema_of_its_own {
    use super::Server;

    store::conformance_tests!(match Server::shared() {
        Some(server) => server.place().open(),
        None => return,
    });
}
