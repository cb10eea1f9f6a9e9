//! Tidings beside its peers.
mod compare;
mod facts;
mod load;
mod options;
mod oracle;
#[cfg(feature = "postgres")]
mod postgresql;
mod sql;
mod sqlite;
mod system;
mod tidings;
use peak_alloc::PeakAlloc;
use system::{Database,System};
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() {
    let options = options::Options::read();
    for size in options.sizes {
        let folder = tempfile::tempdir().unwrap();
        let t = std::time::Instant::now();
        let mut l = load::load(size, folder.path(), #[cfg(feature="postgres")] options.postgres.as_deref().map(postgresql::Postgres::create));
        println!("{size} loaded in {:?}: redb {:?} memory {:?} sqlite {:?} timed {} in_memory {}", t.elapsed(), l.redb.1, l.memory.1, l.sqlite.1, load::timed(size), l.in_memory);
        println!("sqlite bytes {}", l.sqlite.0.settle() as f64 / size as f64);
        println!("redb file {}", std::fs::metadata(folder.path().join("tidings.redb")).unwrap().len() as f64 / size as f64);
        let ways = |d| -> Vec<_> { l.questions.iter().map(|q| sql::ways(q, d)).collect() };
        let s = compare::fastest(&mut l.sqlite.0, &l.expected, ways(sql::Dialect::Sqlite));
        #[cfg(feature="postgres")]
        let p = l.postgres.as_mut().map(|(p, t)| { println!("pg {:?} bytes {}", t, p.settle() as f64 / size as f64); compare::fastest(p, &l.expected, ways(sql::Dialect::Postgres)) });
        let mut systems: Vec<(&str, &mut dyn System)> = vec![("redb", &mut l.redb.0), ("memory", &mut l.memory.0)];
        let mut sq = l.sqlite.0.prepare(&s.iter().collect::<Vec<_>>());
        systems.push(("sqlite", &mut *sq));
        #[cfg(feature="postgres")]
        let mut pq = l.postgres.as_mut().map(|(x, _)| x.prepare(&p.as_ref().unwrap().iter().collect::<Vec<_>>()));
        #[cfg(feature="postgres")]
        if let Some(pq) = &mut pq { systems.push(("pg", &mut **pq)); }
        let m = compare::medians(&mut systems, &l.expected);
        for (i, m) in m.iter().enumerate() {
            println!("{:45} {:8} {:?} {:.1} {} {}", l.expected[i].shape.name, l.expected[i].matches, m, m[2].as_secs_f64()/m[0].as_secs_f64(), s[i].name,
            { #[cfg(feature="postgres")] { p.as_ref().map_or("", |p| p[i].name.as_str()) } #[cfg(not(feature="postgres"))] "" });
        }
        println!("{:?}", t.elapsed());
    }
}
