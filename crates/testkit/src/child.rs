//! Tests that go on in another process: this program again, which runs one of its tests.

use std::env;
use std::process::Command;

/// The other process of a test. It also runs a test that is ignored, and prints what the test prints.
///
/// # Panics
///
/// If the path of this program is not known.
pub fn command(test: &str) -> Command {
    with_arguments(Command::new(env::current_exe().expect("this is a program")), test)
}

/// The same, started by a shell whose last arguments are the program and its arguments.
///
/// # Panics
///
/// If the path of this program is not known.
pub fn command_of(mut shell: Command, test: &str) -> Command {
    shell.arg(env::current_exe().expect("this is a program"));
    with_arguments(shell, test)
}

fn with_arguments(mut command: Command, test: &str) -> Command {
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// Returns `true` if a line of a test program says that the one test has passed. A name without a test is no
/// failure of the program.
pub fn has_passed(line: &str) -> bool {
    line.contains(" 1 passed;")
}

/// Runs the process to its end. Returns what it has printed on standard output and on standard error.
///
/// # Errors
///
/// What it has printed, if its test has not passed, or does not exist.
///
/// # Panics
///
/// If the process cannot be started.
pub fn run(command: &mut Command) -> Result<[String; 2], String> {
    let output = command.output().expect("a process can be started");
    let printed =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    if output.status.success() && has_passed(&printed[0]) {
        return Ok(printed);
    }
    let [said, errors] = printed;
    Err(format!("{}: {errors:.4000} {said:.4000}", output.status))
}

/// As [`run`], if the test is meant to pass.
///
/// # Panics
///
/// If its test has not passed, or does not exist.
#[track_caller]
pub fn passed(command: &mut Command) -> [String; 2] {
    run(command).unwrap_or_else(|failure| panic!("the other process has failed: {failure}"))
}
