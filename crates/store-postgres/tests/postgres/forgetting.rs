//! What is left in the relations of a person or an environment that is gone.

use std::sync::Arc;

use serde_json::json;
use testkit::interposed::Interposed;
use testkit::postgres::{Place, Server};
use testkit::world::World;

// Returns `true` if a row has a part of the canary: an entry, or the keys of a commit.
fn is_left(server: &Server, place: &Place) -> bool {
    let schema = place.schema();
    let left = server.query(&format!(
        "SELECT 1 FROM (
            SELECT head || rest || value AS bytes FROM \"{schema}\".tidings_entries
            UNION ALL SELECT keys FROM \"{schema}\".tidings_commits
        ) AS stored WHERE position('canary'::bytea IN bytes) > 0"
    ));
    !left.is_empty()
}

/// Commits that follow may never come, and another process reads what is there.
#[test]
fn no_commit_names_who_is_erased_or_was_in_an_environment_that_is_deleted() {
    let Some(server) = Server::shared() else { return };
    for erases in [false, true] {
        let place = server.place();
        let open = || World::with(Interposed::over(Arc::new(place.open())), |it| it);
        let (world, other) = (open(), open());
        world.subscriber(json!({ "subscriberId": "canary-1", "email": "canary@example.org" }));
        assert!(other.env.subscribers().find("canary-1").unwrap().is_some());
        assert!(is_left(server, &place));

        if erases {
            assert!(world.env.subscribers().erase("canary-1").unwrap().is_finished);
        } else {
            let acme = world.engine.organization("acme").unwrap();
            assert!(acme.delete_environment(world.env.environment_id()).unwrap().is_finished);
        }

        assert!(!is_left(server, &place), "{erases}");
        assert_eq!(other.env.subscribers().find("canary-1").unwrap(), None);
    }
}
