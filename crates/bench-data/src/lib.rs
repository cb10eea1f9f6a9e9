//! Realistic activity for tests and benches: subscribers, workflows, topics and contexts of
//! which few come up often and many come up rarely, and the notifications that they lead to.
//!
//! A [`Profile`] has amounts and frequencies. A [`Population`] has the entities, and [`Activity`]
//! is an endless sequence of triggers. The same profile, home and seed make the same data on every
//! machine. The crate reads no clock and uses no mathematics of the operating system.
//!
//! Every entity has a rank from 0. Lower ranks occur more often, so a bench can query a subscriber
//! with many notifications, or with few:
//!
//! ```
//! use tidings_bench_data::{Activity, Profile};
//! use domain::environment::Home;
//!
//! let home = Home {
//!     organization_id: "acme".parse()?,
//!     environment_id: "0192f0c1-2345-7678-9abc-def012345678".parse()?,
//! };
//! let mut activity = Activity::new(Profile::default(), home, 42);
//! let notifications: Vec<_> =
//!     activity.by_ref().flat_map(|triggered| triggered.notifications).take(10_000).collect();
//!
//! let of = |rank| {
//!     let id = activity.population().internal_subscriber_id(rank);
//!     notifications.iter().filter(|notification| notification.subscriber_id == id).count()
//! };
//! assert!(of(0) > 10 * of(99));
//! # Ok::<(), domain::error::Invalid>(())
//! ```

mod activity;
mod calls;
mod course;
mod draw;
mod occasion;
mod population;
mod profile;
mod shape;
mod workflows;

pub use activity::{Activity, Triggered};
pub use calls::Calls;
pub use population::Population;
pub use profile::{Profile, Ranked, Severities};
pub use shape::{Shape, Wanted};

#[cfg(test)]
mod tests;
