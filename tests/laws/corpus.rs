//! What the fuzzer has found once stays found.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::disk::Dice;
use testkit::effort::Effort::{self, Full};
use testkit::{
    entities, facade, files, filters, history, keys, reads, records, requests, rules, schedules,
    segments, templates,
};

use crate::seeded;

#[test]
fn histories_of_transactions() {
    replay("history", |bytes| history::run(&testkit::decode(bytes), Full));
}

#[test]
fn histories_of_operations() {
    replay("facade", |bytes| facade::run(&testkit::decode(bytes), Full));
}

#[test]
fn histories_of_every_entity() {
    replay("entities", |bytes| entities::run(&testkit::decode(bytes), Full));
}

#[test]
fn any_damage_of_the_activity_index() {
    replay("segments", |bytes| segments::run(&testkit::decode(bytes), Full));
}

#[test]
fn any_damage_of_a_file() {
    replay("files", |bytes| files::run(&testkit::step(bytes), Full));
}

#[test]
fn any_cursor() {
    replay("keys", |bytes| keys::run(&testkit::step(bytes)));
}

#[test]
fn any_condition() {
    replay("rules", |bytes| rules::run(&rules::decode(bytes)));
}

#[test]
fn any_filters() {
    replay("filters", |bytes| filters::run(&filters::decode(bytes)));
}

#[test]
fn any_schedule() {
    replay("schedules", |bytes| schedules::run(&schedules::decode(bytes)));
}

#[test]
fn any_template() {
    replay("templates", templates::run);
}

#[test]
fn any_stored_bytes() {
    replay("records", |bytes| records::run(records::decode(bytes), Full));
}

#[test]
fn any_text_as_a_request() {
    replay("reads", |bytes| reads::run(bytes, Full));
}

#[test]
fn any_request() {
    replay("requests", |bytes| requests::run(&requests::decode(bytes), Full));
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

/// What a target does with an input.
type Run = fn(&[u8]);

/// What a fuzzer would try first, where no fuzzer is installed. `TIDINGS_FUZZ` sets the number of
/// inputs for each target.
#[test]
fn inputs_like_those_of_the_corpus() {
    let inputs = env::var("TIDINGS_FUZZ").map_or(150, |inputs| inputs.parse().unwrap());
    let targets: [(&str, Run); 12] = [
        ("entities", |bytes| entities::run(&testkit::decode(bytes), Effort::over(bytes))),
        ("files", |bytes| files::run(&testkit::step(bytes), Effort::over(bytes))),
        ("filters", |bytes| filters::run(&filters::decode(bytes))),
        ("history", |bytes| history::run(&testkit::decode(bytes), Effort::over(bytes))),
        ("keys", |bytes| keys::run(&testkit::step(bytes))),
        ("reads", |bytes| reads::run(bytes, Effort::over(bytes))),
        ("records", |bytes| records::run(records::decode(bytes), Effort::over(bytes))),
        ("requests", |bytes| requests::run(&requests::decode(bytes), Effort::over(bytes))),
        ("rules", |bytes| rules::run(&rules::decode(bytes))),
        ("schedules", |bytes| schedules::run(&schedules::decode(bytes))),
        ("segments", |bytes| segments::run(&testkit::decode(bytes), Effort::over(bytes))),
        ("templates", templates::run),
    ];
    for (target, run) in targets {
        let seeds: Vec<Vec<u8>> = files_of(target).iter().map(|it| fs::read(it).unwrap()).collect();
        let mut dice = Dice::new(inputs);
        for number in 0..inputs {
            let input = mutated(&seeds, &mut dice);
            println!("{target} {number}: {}", String::from_utf8_lossy(&input).escape_debug());
            run(&input);
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
fn replay(target: &str, run: impl Fn(&[u8])) {
    let files = files_of(target);
    for file in &files {
        println!("{}", file.display());
        run(&fs::read(file).unwrap());
    }
    println!("{target}: {} inputs", files.len());
}

fn files_of(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    assert!(!files.is_empty(), "nothing is in {}", folder.display());
    files
}
