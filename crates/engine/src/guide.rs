//! The guide: a chapter for each part of the engine, with programs that compile.

#[doc = include_str!("../guide/delivery.md")]
pub mod delivery {}

#[doc = include_str!("../guide/workflows.md")]
pub mod workflows {}

#[doc = include_str!("../guide/preferences.md")]
pub mod preferences {}

#[doc = include_str!("../guide/applications.md")]
pub mod applications {}

#[doc = include_str!("../guide/storage.md")]
pub mod storage {}

#[doc = include_str!("../guide/privacy.md")]
pub mod privacy {}

#[doc = include_str!("../guide/operating.md")]
pub mod operating {}
