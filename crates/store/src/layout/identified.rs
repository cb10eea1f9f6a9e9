//! The keys of records by their identifiers.

use domain::ids::{EnvironmentId, IntegrationIdentifier, LayoutIdentifier, WorkflowIdentifier};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::workflow::Workflow;

use super::{INTEGRATION_IDENTIFIERS, LAYOUTS, WORKFLOW_IDENTIFIERS};
use crate::key::{Key, KeyPart, Range, TableOf, parts};
use crate::record::Record;

/// A record with an identifier that no other one in its environment has.
pub trait Identified: Record {
    /// The identifier.
    type Identifier: for<'i> KeyPart<Form<'i> = &'i Self::Identifier, Read<'i> = Self::Identifier>
        + 'static;

    /// The table of the identifiers.
    const IDENTIFIERS: TableOf<Self, parts![EnvironmentId, Self::Identifier]>;
}

impl Identified for Workflow {
    type Identifier = WorkflowIdentifier;

    const IDENTIFIERS: TableOf<Self, parts![EnvironmentId, WorkflowIdentifier]> =
        WORKFLOW_IDENTIFIERS;
}

// An integration that is deleted is not found by its identifier.
impl Identified for Integration {
    type Identifier = IntegrationIdentifier;

    const IDENTIFIERS: TableOf<Self, parts![EnvironmentId, IntegrationIdentifier]> =
        INTEGRATION_IDENTIFIERS;
}

impl Identified for Layout {
    type Identifier = LayoutIdentifier;

    const IDENTIFIERS: TableOf<Self, parts![EnvironmentId, LayoutIdentifier]> = LAYOUTS;
}

/// A record, by its identifier.
pub fn by_identifier<R: Identified>(
    environment: EnvironmentId,
    identifier: &R::Identifier,
) -> Key<R> {
    R::IDENTIFIERS.within(environment).then(identifier).end()
}

/// The keys before that of an identifier, and those behind it.
pub fn around_identifier<R: Identified>(
    environment: EnvironmentId,
    identifier: &R::Identifier,
) -> [Range<R>; 2] {
    R::IDENTIFIERS.within(environment).around(identifier)
}

/// The identifier in a key.
pub fn identifier_of<R: Identified>(key: &[u8]) -> Option<R::Identifier> {
    let (_, (identifier, ())) = R::IDENTIFIERS.read(key)?;
    Some(identifier)
}
