//! Triggers in a second, of several processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use testkit::postgres::{Place, Server};
use tidings::trigger::Trigger;
use tidings::{Engine, Scope};

use crate::{prepare, subscriber};

const SPAN: Duration = Duration::from_secs(6);

/// Which environments the processes have.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Hot,
    Distinct,
}

pub(crate) fn measure(server: &Server) {
    println!(
        "| processes | callers of each | environments | triggers a second | server | callers |"
    );
    println!("|---:|---:|---|---:|---:|---:|");
    for callers in [1, 4] {
        for (processes, kind) in [(1, Kind::Hot), (4, Kind::Hot), (4, Kind::Distinct)] {
            run(&server.place(), processes, callers, kind);
        }
    }
}

/// Prints a row. The shares are those of two cores, if the machine has two.
fn run(place: &Place, processes: usize, callers: usize, kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    place.write(&path);
    let engine = Engine::builder().build(place.open());
    let organization = |at: usize| format!("shop-{}", if kind == Kind::Hot { 0 } else { at });
    for at in 0..processes {
        drop(prepare(&engine, &organization(at)));
    }
    let mut children: Vec<Worker> = (0..processes)
        .map(|at| Worker::start(&format!("{} {} {callers}", path.display(), organization(at))))
        .collect();
    for child in &mut children {
        assert_eq!(child.line(), "ready");
    }
    let (before, start) = (cpu_of_servers(), Instant::now());
    children.iter_mut().for_each(Worker::go);
    let told: Vec<(u64, f64)> = children.iter_mut().map(Worker::result).collect();
    let (server, took) = (cpu_of_servers() - before, start.elapsed().as_secs_f64());
    let triggers: u64 = told.iter().map(|(count, _)| count).sum();
    let own: f64 = told.iter().map(|(_, cpu)| cpu).sum();
    let environments = if kind == Kind::Hot { "one" } else { "one each" };
    println!(
        "| {processes} | {callers} | {environments} | {:.0} | {:.2} cores | {:.2} cores |",
        triggers as f64 / SPAN.as_secs_f64(),
        server / took,
        own / took
    );
}

struct Worker {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(arguments: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .arg(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn go(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn result(&mut self) -> (u64, f64) {
        let line = self.line();
        let (count, cpu) = line.split_once(' ').unwrap();
        (count.parse().unwrap(), cpu.parse().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

/// What another process does.
pub(crate) fn work(arguments: &str) {
    let [path, organization, callers] = arguments.split(' ').collect::<Vec<_>>()[..] else {
        return;
    };
    let engine = Engine::builder().build(Place::read(path.as_ref()).open());
    let env = engine.organization(organization).unwrap().production().unwrap();
    (0..20).for_each(|number| trigger(&env, number));
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    let before = cpu_of("self");
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..callers.parse().unwrap() {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    trigger(&env, count.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
        thread::sleep(SPAN);
        is_over.store(true, Ordering::Relaxed);
    });
    println!("{} {:.3}", count.into_inner(), cpu_of("self") - before);
    // The connections stay, so that the server's processes can be asked what they have used.
    io::stdin().read_line(&mut String::new()).unwrap();
}

pub(crate) fn trigger(env: &Scope, number: u64) {
    let workflow = format!("workflow-{}", number % 20);
    let trigger = Trigger::new(workflow.as_str(), subscriber(number).as_str()).unwrap();
    env.events().trigger(&trigger).unwrap();
}

/// Seconds of processor time of all processes of PostgreSQL on this machine.
fn cpu_of_servers() -> f64 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.map(|one| one.file_name().to_string_lossy().into_owned());
    let is_server = |pid: &String| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "postgres")
    };
    names.filter(is_server).map(|pid| cpu_of(&pid)).sum()
}

fn cpu_of(process: &str) -> f64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return 0.0 };
    let Some((_, fields)) = stat.rsplit_once(") ") else { return 0.0 };
    // A tick is 10 ms on Linux.
    let ticks = fields.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}
