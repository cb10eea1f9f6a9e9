//! A simulated week of a small shop, printed as a timeline: who was told what and when, and why not.
//!
//! ```sh
//! cargo run --example simulate
//! ```
//!
//! The clock is moved by hand and the entropy has a seed, so that every run prints the same.

mod timeline;
mod week;

use std::error::Error;

use tidings::store::memory::MemoryStore;
use tidings::{Engine, ManualClock, SeededEntropy};

fn story() -> Result<String, Box<dyn Error>> {
    let clock = ManualClock::at(week::START.parse()?);
    let engine = Engine::builder()
        .clock(clock.clone())
        .entropy(SeededEntropy::new(2026))
        .default_provider(week::Service::new(clock)?)
        .build(MemoryStore::default());
    let env = engine.organization("shop")?.production()?;
    week::furnish(&env)?;
    week::pass(&engine, &env)?;
    timeline::of(&env)
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", story()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::story;

    #[test]
    fn the_week_is_as_it_was() {
        let story = story().unwrap();
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/simulate/timeline.txt");
        if std::env::var_os("TIDINGS_BLESS").is_some() {
            std::fs::write(golden, &story).unwrap();
        }
        assert_eq!(story, std::fs::read_to_string(golden).unwrap());
    }
}
