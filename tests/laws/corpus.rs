//! What the fuzzer has found once stays found.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::dice::Dice;
use testkit::effort::Effort;
use testkit::{requests, targets};

use crate::seeded;

/// A test for each target, which replays its corpus. A macro makes the list of the targets from the same lines,
/// so that none is forgotten.
macro_rules! replayed {
    ($($test:ident: $target:literal,)*) => {
        const REPLAYED: &[&str] = &[$($target),*];
        $(
            #[test]
            fn $test() {
                replay($target);
            }
        )*
    };
}

replayed! {
    histories_of_every_entity: "entities",
    histories_of_operations: "facade",
    any_damage_of_a_file: "files",
    any_filters: "filters",
    histories_of_transactions: "history",
    any_cursor: "keys",
    any_text_as_a_request: "reads",
    any_stored_bytes: "records",
    any_request: "requests",
    any_condition: "rules",
    any_schedule: "schedules",
    any_damage_of_the_activity_index: "segments",
    any_template: "templates",
}

#[test]
fn every_target_has_its_corpus_and_its_tests() {
    let folder = fs::read_dir(corpus()).unwrap();
    let folders = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: BTreeSet<String> = folders.collect();
    let targets = targets::ALL.map(|(target, _)| target);
    assert!(folders.iter().map(String::as_str).eq(targets), "{folders:?}");
    assert_eq!(REPLAYED, targets);
}

#[test]
fn every_sound_request_is_done() {
    for request in requests::sound() {
        let world = seeded::copy();
        let answer = requests::call(&world.engine, &world.env, request);
        assert!(answer.is_ok(), "{request} is answered with {answer:?}");
    }
    println!("{} sound requests are done", requests::sound().len());
}

/// What a fuzzer would try first, where no fuzzer is installed. `TIDINGS_FUZZ` sets the number of
/// inputs for each target.
#[test]
fn inputs_like_those_of_the_corpus() {
    let inputs = env::var("TIDINGS_FUZZ").map_or(100, |inputs| inputs.parse().unwrap());
    for (target, run) in targets::ALL {
        let seeds: Vec<Vec<u8>> = files_of(target).iter().map(|it| fs::read(it).unwrap()).collect();
        let mut dice = Dice::new(inputs);
        for number in 0..inputs {
            let input = mutated(&seeds, &mut dice);
            println!("{target} {number}: {}", String::from_utf8_lossy(&input).escape_debug());
            run(&input, Effort::over(&input));
        }
    }
}

/// A seed with some changes: a byte, a part that is missing or repeated, or a part of another seed.
fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(4) {
        let start = dice.below(input.len() + 1);
        let end = input.len().min(start + dice.below(12));
        let part = match dice.below(4) {
            0 => vec![u8::try_from(dice.below(256)).unwrap()],
            1 => Vec::new(),
            2 => input[start..end].repeat(2),
            _ => {
                let other = &seeds[dice.below(seeds.len())];
                let at = dice.below(other.len() + 1);
                other[at..other.len().min(at + 1 + dice.below(24))].to_vec()
            }
        };
        input.splice(start..end, part);
    }
    input
}

/// Runs everything in `fuzz/corpus/` that was made for `target`.
fn replay(target: &str) {
    let files = files_of(target);
    for file in &files {
        println!("{}", file.display());
        targets::run(target, &fs::read(file).unwrap(), Effort::Full);
    }
    println!("{target}: {} inputs", files.len());
}

fn files_of(target: &str) -> Vec<PathBuf> {
    let folder = corpus().join(target);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    assert!(!files.is_empty(), "nothing is in {}", folder.display());
    files
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}
