//! Operations that take several transactions, because a lot depends on what they change.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZero;

use serde_json::Value;
use store::Table;
use testkit::interposed::{Call, Interposed, Point};
use testkit::is_thorough;
use testkit::tables::{check_indexes, dump};
use testkit::world::World;

use super::faults::{ask, assert_is_fault};
use crate::large;

/// Wherever such an operation fails, each of its transactions has happened as a whole or not at all, and
/// the indexes agree with the records. A repeated call does the rest.
///
/// The last commit of every fourth one fails, and of each with `TIDINGS_TEST_SCALE` or `TIDINGS_FAULTS`.
/// `TIDINGS_FAULTS` is the number of calls of the store, and of commits, that fail one after the other for each
/// operation: evenly spread ones, or all of them if it is `all`.
#[test]
fn what_takes_several_transactions() {
    let wanted = env::var("TIDINGS_FAULTS").ok().map(|wanted| match wanted.as_str() {
        "all" => NonZero::<usize>::MAX,
        number => number.parse().unwrap(),
    });
    let mut sum = 0;
    let step = if is_thorough() || wanted.is_some() { 1 } else { 4 };
    for request in large::requests().into_iter().step_by(step) {
        let world = world();
        let request = large::with_ids(&world, &request);
        let (calls, answer) = world.store.calls_of(|| ask(&world, &request));
        answer.unwrap();
        let expected = rows(&world);
        let commits = calls.iter().filter(|call| **call == Call::Commit).count();
        if commits < 2 {
            continue;
        }
        let mut faults = 0;
        let of_calls = wanted.map(|wanted| (Point::Call, calls.len(), wanted));
        let of_commits = (Point::Commit, commits, wanted.unwrap_or(NonZero::<usize>::MIN));
        for (point, passes, wanted) in of_calls.into_iter().chain([of_commits]) {
            for after in (0..passes).rev().step_by(passes.div_ceil(wanted.get())) {
                faults += usize::from(fails_at((point, after), &request, &expected));
            }
        }
        println!(
            "{}: {commits} transactions, {} calls, {faults} faults",
            said(&request),
            calls.len()
        );
        assert!(faults > 0, "{} has reported no fault", said(&request));
        sum += faults;
    }
    println!("{sum} faults between the transactions of an operation are made up for");
}

fn said(request: &Value) -> String {
    request.to_string().chars().take(60).collect()
}

// Returns `true` if the call has failed. A fault in the upkeep behind an answer is not reported.
fn fails_at((point, after): (Point, usize), request: &Value, expected: &Rows) -> bool {
    let at = || format!("{} {point:?} {after}", said(request));
    let world = world();
    world.store.fail(point, after);
    let result = ask(&world, request);
    assert!(world.store.recover(), "{} is not reached", at());
    check_indexes(&world.store);
    if result.is_ok() {
        return false;
    }
    assert_is_fault(&result);
    if let Err(error) = ask(&world, request) {
        panic!("{} cannot be repeated: {error}", at());
    }
    assert_eq!(rows(&world), *expected, "{} is not made up for", at());
    true
}

fn world() -> World {
    let world = large::over(Interposed::new(large::store()));
    world.engine.delivery().next_due().unwrap();
    world
}

/// The number of rows of each table. Their ids and times differ from call to call.
type Rows = BTreeMap<Table, usize>;

fn rows(world: &World) -> Rows {
    let mut rows = Rows::new();
    for (table, ..) in dump(&world.store) {
        *rows.entry(table).or_default() += 1;
    }
    rows
}
