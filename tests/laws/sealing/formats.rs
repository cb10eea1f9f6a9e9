//! The sealed format: `tests/golden/sealed/v2.jsonl` has the entries of a small world, sealed with
//! the key 1. It is opened by every later version.
//!
//! ```text
//! TIDINGS_BLESS=1 cargo test --test laws sealing::formats
//! ```
//!
//! writes it anew, if nothing was released with the format.

use std::path::PathBuf;
use std::{env, fs};

use serde_json::{Value, json};
use store::Table;
use store::layout::FORMAT;
use store::memory::MemoryStore;
use testkit::interposed::Interposed;
use testkit::sealed::keyring;
use testkit::tables::{dump, load};
use testkit::world::World;
use tidings::Engine;
use tidings::secret::Secret;
use tidings::subscriber::SubscriberCreate;

use super::check_sealed;
use crate::formats::{entry, line};
use crate::parsed;

const PASSWORD: &str = "a password that is sealed";

#[test]
fn the_sealed_format_is_as_it_was() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join(format!("tests/golden/sealed/v{FORMAT}.jsonl"));
    if env::var_os("TIDINGS_BLESS").is_some() {
        fs::write(&path, lines().join("\n") + "\n").unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(!golden.contains(PASSWORD));
    let entries: Vec<_> = golden.lines().map(entry).collect();
    assert!(entries.iter().any(|(table, ..)| *table == Table::Seals));
    let memory = Interposed::new(MemoryStore::default());
    load(&memory, &entries);
    check_sealed(&memory, 1);
    let engine = Engine::builder().sealing(keyring(&[2, 1])).build(memory.clone());
    check_reads(&engine);
    assert!(engine.reseal().unwrap().is_finished);
    check_sealed(&memory, 2);
    check_reads(&Engine::builder().sealing(keyring(&[2])).build(memory));
}

fn check_reads(engine: &Engine) {
    let env = engine.organization("acme").unwrap().development().unwrap();
    let mail = env.integrations().list().unwrap().remove(0);
    assert_eq!(mail.credentials.password.as_ref().map(Secret::expose), Some(PASSWORD));
    assert_eq!(env.subscribers().get("ada").unwrap().profile.first_name.as_deref(), Some("Ada"));
}

fn lines() -> Vec<String> {
    let world = World::with(Interposed::default(), |builder| builder.sealing(keyring(&[1])));
    let mail: Value = json!({ "providerId": "smtp", "channel": "email", "active": true,
        "credentials": { "password": PASSWORD } });
    world.env.integrations().create(&parsed(mail)).unwrap();
    let ada = SubscriberCreate::new("ada").unwrap().first_name("Ada");
    world.env.subscribers().create(&ada).unwrap();
    dump(&world.store).iter().map(line).collect()
}
