//! Parameters whose values are shown nowhere: the client logs those of each statement.

use std::error::Error as StdError;
use std::fmt;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};
use tokio_postgres::{Error, Row, Statement};

use crate::join::Param;
use crate::server::Client;

/// A parameter without its value in debug texts.
pub(crate) struct Hidden<P>(pub(crate) P);

/// What refers to a parameter.
pub(crate) trait AsParam {
    fn param(&self) -> &(dyn ToSql + Sync);
}

impl AsParam for &(dyn ToSql + Sync) {
    fn param(&self) -> &(dyn ToSql + Sync) {
        *self
    }
}

impl AsParam for Param {
    fn param(&self) -> &(dyn ToSql + Sync) {
        &**self
    }
}

impl<P: AsParam> ToSql for Hidden<P> {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql_checked(of, out)
    }

    // The parameter itself tells.
    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.0.param().to_sql_checked(of, out)
    }

    fn encode_format(&self, of: &Type) -> Format {
        self.0.param().encode_format(of)
    }
}

impl<P> fmt::Debug for Hidden<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// Runs a statement, whose parameters may have secrets.
pub(crate) async fn query(
    client: &Client,
    statement: &Statement,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let hidden: Vec<_> = params.iter().map(|param| Hidden(*param)).collect();
    let hidden: Vec<_> = hidden.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
    client.query(statement, &hidden).await
}
