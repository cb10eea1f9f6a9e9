//! Names of operations in the hashes of stored calls.

/// Returns the name of an operation in the hash of its call. It is a part of the disk format: a call that
/// was stored by an earlier version is the same call when it is made again.
pub(super) fn stored(operation: &'static str) -> &'static str {
    match operation {
        "api_keys.create" => "keys.create",
        "api_keys.revoke" => "keys.revoke",
        // A repeated call may be one of `trigger`.
        "events.trigger_in" => "events.trigger",
        "scope.unsubscribe" => "unsubscribe",
        // Their arguments tell them apart.
        "suppressions.clear_all" | "suppressions.clear_channel" => "suppressions.clear",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use domain::api_key::ApiKeyCreate;
    use domain::idempotency::StoredAnswer;
    use domain::ids::IdempotencyKey;
    use domain::vocabulary::Channel;
    use store::{ReadRecords, layout};

    use crate::{Engine, Scope};

    /// One row per operation whose name is another one in stored calls: the JSON that is hashed.
    #[test]
    fn a_call_keeps_its_stored_form() {
        type Call = fn(&Scope) -> crate::Result<()>;
        const CALLS: &[(&str, Call)] = &[
            (r#"["keys.create",{"name":"Orders"}]"#, |env| {
                env.api_keys().create(&ApiKeyCreate::new("Orders")?).map(drop)
            }),
            (r#"["keys.revoke","00000000-0000-7000-8000-000000000001"]"#, |env| {
                env.api_keys().revoke("00000000-0000-7000-8000-000000000001").map(drop)
            }),
            (r#"["suppressions.clear",null]"#, |env| env.suppressions().clear_all().map(drop)),
            (r#"["suppressions.clear","email"]"#, |env| {
                env.suppressions().clear_channel(Channel::Email).map(drop)
            }),
            (r#"["unsubscribe","token"]"#, |env| env.unsubscribe("token").map(drop)),
        ];
        for (json, call) in CALLS {
            let engine = Engine::in_memory();
            let env = engine.organization("acme").unwrap().development().unwrap();
            _ = call(&env.idempotent("key").unwrap());
            let place =
                layout::stored_answer(env.environment_id(), &IdempotencyKey::new("key").unwrap());
            let stored: StoredAnswer = env.view(|view| Ok(view.find(&place)?)).unwrap().unwrap();
            assert_eq!(stored.call, crate::resources::environments::hash(json), "{json}");
        }
    }
}
