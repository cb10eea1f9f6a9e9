//! A PostgreSQL server of the tests, in a temporary folder, behind a socket there.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use store::Error;
use tempfile::TempDir;
use tidings_store_postgres::{PostgresOptions, PostgresStore};

use crate::wait_until;

/// The variable with the folder of the server's programs.
const BIN: &str = "TIDINGS_POSTGRES_BIN";

/// The variable that makes scenarios run on PostgreSQL as well, if it is set.
pub const WANTED: &str = "TIDINGS_TEST_POSTGRES";

/// The number in the name of the socket of a server.
const PORT: u16 = 5_432;

/// How many ports a server tries.
const PORTS: usize = 10;

/// Name of the file in the folder of a server with what the server prints.
const LOG: &str = "log";

/// Name of the file that has the shell leave the folder of a server behind.
const KEPT: &str = "is-kept";

/// A schema of a server.
#[derive(Clone, Debug)]
pub struct Place {
    url: String,
    options: PostgresOptions,
}

impl Place {
    /// The same schema, with other options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut PostgresOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// How to connect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// With which options.
    pub fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// The name of the schema.
    pub fn schema(&self) -> &str {
        &self.options.schema
    }

    /// The same schema, by another way.
    #[must_use]
    pub fn through(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Writes down where the schema is, for another process.
    pub fn write(&self, path: &Path) {
        let lines = format!("{}\n{}", self.url, self.options.schema);
        fs::write(path, lines).expect("the folder is there");
    }

    /// The schema that another process has written down.
    pub fn read(path: &Path) -> Self {
        let lines = fs::read_to_string(path).expect("it was written");
        let (url, schema) = lines.split_once('\n').expect("there are two lines");
        let mut options = PostgresOptions::default();
        schema.clone_into(&mut options.schema);
        Self { url: url.to_owned(), options }
    }

    /// Opens the store of the schema. A server that is busy may take longer than the timeout of the options.
    ///
    /// # Panics
    ///
    /// Panics if the store cannot be opened, or if the server does not answer within a minute.
    pub fn open(&self) -> PostgresStore {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match PostgresStore::open_with(&self.url, &self.options) {
                Err(Error::Unavailable { .. }) if Instant::now() < deadline => {}
                opened => return opened.expect("the server runs"),
            }
        }
    }
}

/// A running server. It ends with this process.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    process: Option<Child>,
    schemas: AtomicUsize,
    tls: Option<Tls>,
    /// The number in the name of the socket, and of the port if there is one.
    port: u16,
}

/// TLS of a server, which takes connections over the network besides, and none without TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate as PEM.
    pub certificate: String,
    /// Its key as PEM.
    pub key: String,
}

impl Server {
    /// The server that all tests share. Returns `None`, and says so, if PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// A server of its own.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// A server of its own that takes connections by TLS.
    pub fn start_tls(tls: Tls) -> Option<Self> {
        Self::start_with(Some(tls))
    }

    fn start_with(tls: Option<Tls>) -> Option<Self> {
        let Some(programs) = programs() else {
            say_skipped();
            return None;
        };
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        let schemas = AtomicUsize::new(0);
        let port = if tls.is_some() { free_port() } else { PORT };
        let mut server = Self { folder, programs, process: None, schemas, tls, port };
        server.make();
        server.run();
        Some(server)
    }

    /// The shared server, if the environment asks for it.
    pub fn wanted() -> Option<&'static Self> {
        env::var_os(WANTED).and_then(|_| Self::shared())
    }

    /// A new schema.
    pub fn place(&self) -> Place {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        let mut options = PostgresOptions::default();
        options.schema = format!("test {number}");
        options.connections = 4;
        Place { url: self.url(), options }
    }

    /// How to connect.
    pub fn url(&self) -> String {
        let (folder, port) = (self.folder.path().display(), self.port);
        format!("host={folder} port={port} user=postgres dbname=postgres")
    }

    /// How to connect by TLS to a server that takes such connections, by a name.
    pub fn url_by_tls(&self, name: &str) -> String {
        let at = format!("host={name} hostaddr=127.0.0.1 port={}", self.port);
        format!("{at} user=postgres dbname=postgres sslmode=require")
    }

    /// The folder with the socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends all connections, in the middle of what they do.
    pub fn cut_connections(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        self.query(cut);
    }

    /// Lets all connections do nothing, as a server does that hangs. Returns their processes.
    pub fn halt_connections(&self) -> Vec<String> {
        let query = "SELECT pid FROM pg_stat_activity \
            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let pids = self.query(query);
        self.signal("-STOP", &pids);
        pids
    }

    /// Runs statements as the superuser, on a connection of its own. Returns a line for each row.
    pub fn query(&self, statements: &str) -> Vec<String> {
        let output = self
            .tool("psql")
            .args(["-q", "-t", "-A", "-U", "postgres", "-c", statements, "-h"])
            .arg(self.folder.path())
            .output()
            .unwrap();
        let refusal = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{refusal}");
        let rows = String::from_utf8(output.stdout).unwrap();
        rows.lines().filter(|row| !row.is_empty()).map(str::to_owned).collect()
    }

    /// Lets processes of connections go on.
    pub fn resume_connections(&self, pids: &[String]) {
        self.signal("-CONT", pids);
    }

    fn signal(&self, signal: &str, pids: &[String]) {
        let script = format!("kill {signal} {}", pids.join(" "));
        assert!(as_user(self.folder.path(), &script).status().unwrap().success());
    }

    /// Stops the server at once, as a crash does.
    pub fn crash(&mut self) {
        let data = self.data();
        let data = data.display();
        self.control(&format!("stop -D {data} -m immediate -w"));
        self.end();
    }

    /// Keeps what a server has that does not run.
    pub fn keep(&self) {
        self.copy("data", "kept");
    }

    /// Puts back what was kept of a server that does not run. It has lost all later commits.
    pub fn put_back(&self) {
        self.copy("kept", "data");
    }

    fn copy(&self, from: &str, to: &str) {
        let script = format!("rm -rf {to} && cp -a {from} {to}");
        assert!(as_user(self.folder.path(), &script).status().unwrap().success());
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Panics
    ///
    /// If it does not start, or if other programs take each of its ports.
    pub fn run(&mut self) {
        for _ in 0..PORTS {
            for name in [KEPT, LOG] {
                drop(fs::remove_file(self.folder.path().join(name)));
            }
            self.process = Some(self.started());
            let mut is_ready = false;
            wait_until(|| {
                is_ready = self.is_ready();
                is_ready || self.has_no_port()
            });
            if is_ready {
                return;
            }
            // Another program has taken the port since it was found to be free.
            self.end();
            self.port = free_port();
        }
        panic!("{PORTS} ports that were free are taken");
    }

    /// When this process ends, so does the input of the shell, and then the server. The static one is never
    /// dropped, so the shell removes the folder.
    fn started(&self) -> Child {
        let (postgres, folder) = (self.programs.join("postgres"), self.folder.path());
        let network = match &self.tls {
            Some(_) => "-c listen_addresses=127.0.0.1 -c ssl=on",
            None => "-c listen_addresses=''",
        };
        let port = self.port;
        let script = format!(
            "{} -D {} -k {} -c port={port} {network} -c max_connections=100 >{LOG} 2>&1 & \
             cat >/dev/null; kill -INT $! 2>/dev/null; wait; [ -e {KEPT} ] || rm -rf {}",
            postgres.display(),
            self.data().display(),
            folder.display(),
            folder.display(),
        );
        as_user(folder, &script).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Ends the shell of the server, which keeps its folder.
    fn end(&mut self) {
        fs::write(self.folder.path().join(KEPT), "").unwrap();
        drop(self.process.take().map(|mut process| process.wait()));
    }

    fn has_no_port(&self) -> bool {
        let log = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
        log.contains("could not create any TCP/IP sockets")
    }

    fn tool(&self, name: &str) -> Command {
        let mut tool = Command::new(self.programs.join(name));
        tool.env("PGPORT", self.port.to_string());
        tool
    }

    fn is_ready(&self) -> bool {
        let folder = self.folder.path();
        let ready = self.tool("pg_isready").args(["-q", "-h"]).arg(folder).status();
        ready.is_ok_and(|status| status.success())
    }

    fn make(&self) {
        let folder = self.folder.path();
        if is_root() {
            let own = Command::new("chown").arg("postgres").arg(folder).status().unwrap();
            assert!(own.success());
        }
        let initdb = self.programs.join("initdb");
        let script = format!(
            "{} -D {} -U postgres -A trust -E UTF8 --no-locale >{}/initdb 2>&1",
            initdb.display(),
            self.data().display(),
            folder.display(),
        );
        let made = as_user(folder, &script).status().unwrap();
        let said = fs::read_to_string(folder.join("initdb")).unwrap_or_default();
        assert!(made.success(), "{said}");
        if let Some(tls) = &self.tls {
            self.make_tls(tls);
        }
    }

    fn make_tls(&self, Tls { certificate, key }: &Tls) {
        let access = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        for (name, text) in [("server.crt", certificate.as_str()), ("server.key", key)] {
            self.write_data(name, text);
        }
        self.write_data("pg_hba.conf", access);
    }

    // A file that belongs to the user of the server, and that no other user reads.
    fn write_data(&self, name: &str, text: &str) {
        let path = self.data().join(name);
        fs::write(&path, text).unwrap();
        let mut script = format!("chmod 600 {}", path.display());
        if is_root() {
            write!(script, " && chown postgres {}", path.display()).unwrap();
        }
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    fn control(&self, what: &str) {
        let script = format!("{} {what} >/dev/null", self.programs.join("pg_ctl").display());
        assert!(as_user(self.folder.path(), &script).status().unwrap().success());
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            drop(process.wait());
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a network");
    listener.local_addr().expect("it listens").port()
}

/// The server refuses to run as root.
fn as_user(folder: &Path, script: &str) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    command.args(["-c", script]).current_dir(folder);
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Says on standard error why tests do nothing, also where the output of tests is captured.
fn say_skipped() {
    let why = format!("SKIPPED: PostgreSQL is not installed, and {BIN} does not name its programs");
    writeln!(io::stderr(), "\n{why}").expect("standard error is open");
}

/// The folder of the newest version.
fn programs() -> Option<PathBuf> {
    if let Some(folder) = env::var_os(BIN) {
        return Some(folder.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let newest = versions.flatten().max_by_key(|version| {
        version.file_name().to_string_lossy().parse::<u32>().unwrap_or_default()
    })?;
    let programs = newest.path().join("bin");
    programs.join("postgres").exists().then_some(programs)
}
