//! What of a request is known, and what is a mistake: the golden files are read strictly, and no
//! name in them can be misspelled.

use std::collections::BTreeSet;

use domain::error::Reason;
use serde_json::Value;
use testkit::reads::{KINDS, Kind};

use crate::document::Structure;
use crate::wire::{Golden, goldens};

/// Types that an operation takes by reference, and that are read otherwise than as JSON.
const OTHERS: [&str; 4] = [
    // Given by the engine to a function of the host.
    "Call",
    // A text, which is no JSON.
    "FeedCursor",
    // The bytes of a request that the host has received.
    "InboundReport",
    // A page of a table for operators, which is no JSON.
    "QuarantineQuery",
];

/// A request whose members are the arguments of `Messages::mark`.
const IN_PARTS: &str = "MarkMessages";

/// Every request with its golden files.
fn each(check: impl Fn(&Kind, &Golden)) {
    let goldens = goldens();
    for kind in KINDS {
        let of_kind = goldens.iter().filter(|golden| golden.of == (kind.name)());
        let checked = of_kind.map(|golden| check(kind, golden)).count();
        assert!(checked > 0, "{} has no file", (kind.name)());
    }
}

/// The listing has every operation, and the type of each request.
#[test]
fn every_request_of_the_public_api_is_listed() {
    let mut taken = BTreeSet::new();
    for line in include_str!("public-api.txt").lines() {
        let Some((_, given)) = line.split_once("(&self, ") else { continue };
        let (given, _) = given.split_once(") -> tidings::error::Result<").unwrap_or_default();
        for argument in given.split(", ") {
            let of = argument.trim_start_matches("&[").trim_start_matches('&');
            if of != argument && of.starts_with("tidings") {
                taken.extend(of.trim_end_matches(']').rsplit("::").next());
            }
        }
    }
    let listed = KINDS.iter().filter_map(|kind| (kind.name)().rsplit("::").next());
    let listed = listed.filter(|name| *name != IN_PARTS);
    assert_eq!(taken, listed.chain(OTHERS).collect());
}

#[test]
fn what_is_known_is_read() {
    each(|kind, golden| {
        for json in [golden.full(), golden.minimal()] {
            let expected = golden.rewritten(json.clone());
            assert_eq!((kind.strict)(&bytes(&json)), Ok(expected.clone()), "{}", golden.file);
            assert_eq!((kind.lenient)(&bytes(&json)), Ok(expected), "{}", golden.file);
        }
    });
}

/// Each name of each object in a full file, one at a time, with its last letter doubled.
#[test]
fn no_name_can_be_misspelled() {
    // Which fields the place of an endpoint has is for the type of the endpoint to say.
    each(|kind, golden| {
        let is_place = |of: &Structure| golden.file == "channel_endpoint_update" && of.closed;
        let (full, mut names) = (golden.full(), Vec::new());
        golden.changed(full.clone(), |of, object| {
            names.extend(object.keys().filter(|_| !is_place(of)).cloned());
        });
        for (place, name) in names.iter().enumerate() {
            let misspelled = format!("{name}{}", name.chars().last().unwrap());
            let mut next = 0;
            let json = golden.changed(full.clone(), |of, object| {
                let names = object.keys().filter(|_| !is_place(of)).cloned();
                for known in names.collect::<Vec<_>>() {
                    if next == place {
                        let value = object.remove(&known).unwrap();
                        object.insert(misspelled.clone(), value);
                    }
                    next += 1;
                }
            });
            let at = format!("{}: {misspelled}", golden.file);
            let refused = (kind.strict)(&bytes(&json)).expect_err(&at);
            let end = refused.field.rsplit('.').next();
            assert_eq!(end, Some(misspelled.as_str()), "{at}");
            let suggestion = Some(name.clone());
            assert_eq!(refused.reason, Reason::Unknown { suggestion }, "{at}");
            let by_serde = (golden.rewrite)(json.clone()).ok();
            assert_eq!((kind.lenient)(&bytes(&json)).ok(), by_serde, "{at}");
        }
        assert!(!names.is_empty(), "{}", golden.file);
    });
}

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}
