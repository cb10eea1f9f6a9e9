//! What a template makes while it is rendered is bounded, whatever it asks for.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{child, templates};

/// Tells the child that it is one.
const CHILD: &str = "TIDINGS_LAWS_GREED";

/// What the child may take, in KiB: some 64 MiB for templates, the rest for the test itself.
const LIMIT: usize = 192 * 1024;

#[test]
#[cfg(target_os = "linux")]
fn greedy_templates_stay_within_a_limit_of_memory() {
    let limited = format!("ulimit -v {LIMIT} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited]).env("MALLOC_ARENA_MAX", "1");
    child::passed(child::command_of(shell, "greed::child").env(CHILD, "yes"));
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    if env::var(CHILD).is_err() {
        return;
    }
    for template in templates::greedy() {
        println!("{template:.200}");
        let start = Instant::now();
        templates::run(template.as_bytes());
        assert!(start.elapsed() < Duration::from_secs(60), "{template}");
    }
}
