//! Questions to the server, and how transactions begin.

use futures_util::future::{try_join4, try_join5};
use store::Order;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::heads::{Counts, Lock};
use crate::hidden::query;
use crate::scan::Span;
use crate::schema::StoredKey;
use crate::server::Client;
use crate::{Params, schema};

/// A statement with its parameters.
pub(crate) struct Question {
    pub(crate) statement: &'static str,
    pub(crate) params: Params,
    /// The number of a table and a span, if the question is for the first entry of the span. Readers ask
    /// such questions together.
    pub(crate) first_of: Option<(i16, Span)>,
}

/// What the server has answered to the begin of a transaction.
pub(crate) struct Begun {
    /// Numbers and counts of the heads that are locked.
    pub(crate) locked: Option<Vec<(i16, i64)>>,
    pub(crate) news: Vec<Row>,
    pub(crate) values: Vec<Row>,
    /// The answer to the first question.
    pub(crate) answer: Vec<Row>,
}

impl Question {
    pub(crate) fn of(statement: &'static str, params: Params) -> Self {
        Self { statement, params, first_of: None }
    }

    /// The question for the entries under keys of a table.
    pub(crate) fn for_entries(table: i16, keys: &[&[u8]]) -> Self {
        let heads: Vec<Vec<u8>> = keys.iter().map(|key| StoredKey::of(key).head).collect();
        Self::of(schema::GET_MANY, vec![Box::new(table), Box::new(heads)])
    }

    /// The question for a page of a scan.
    pub(crate) fn for_page(table: i16, span: &Span, order: Order, limit: usize) -> Self {
        let (start, end) = (StoredKey::of(&span.start), span.end.as_deref().map(StoredKey::of));
        let statement = schema::scan(end.is_some(), order == Order::Descending);
        let is_first = limit == 1 && order == Order::Ascending && end.is_some();
        let first_of = is_first.then(|| (table, span.clone()));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut params: Params =
            vec![Box::new(table), Box::new(start.head), Box::new(start.rest), Box::new(limit)];
        if let Some(end) = end {
            params.push(Box::new(end.head));
            params.push(Box::new(end.rest));
        }
        Self { statement, params, first_of }
    }

    /// The question for the news since these counts.
    pub(crate) fn for_news(known: &Counts) -> Self {
        Self::of(schema::NEWS, vec![Box::new(known.to_row()), Box::new(known.era.start)])
    }
}

/// Begins a transaction that reads, with the values that it is going to read and its first question.
pub(crate) async fn begin_read(
    client: &Client,
    known: Counts,
    (values, question): (Option<Question>, Option<Question>),
) -> Result<Begun, Error> {
    let news = Question::for_news(&known);
    let news = prepare(client, Some(news)).await?;
    let (values, question) = (prepare(client, values).await?, prepare(client, question).await?);
    // All are sent at once, in this order.
    let begin = client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    let questions = (answer(client, news), answer(client, values), answer(client, question));
    let ((), news, values, answer) =
        try_join4(begin, questions.0, questions.1, questions.2).await?;
    Ok(Begun { locked: None, news, values, answer })
}

/// Begins a transaction that writes, with the values that it is likely to read and its first question.
pub(crate) async fn begin_write(
    client: &Client,
    lock: Lock,
    known: Counts,
    (values, question): (Option<Question>, Option<Question>),
) -> Result<Begun, Error> {
    let heads = lock.numbers();
    let lock = Question::of(schema::LOCK, vec![Box::new(heads.clone())]);
    let since: Params = vec![Box::new(known.to_row()), Box::new(known.era.start), Box::new(heads)];
    let news = Question::of(schema::NEWS_OF, since);
    let (lock, news) = (prepare(client, Some(lock)).await?, prepare(client, Some(news)).await?);
    let (values, question) = (prepare(client, values).await?, prepare(client, question).await?);
    // Behind the lock, all statements see the same state.
    let ((), locked, news, values, answer) = try_join5(
        client.batch_execute(schema::BEGIN_WRITE),
        answer(client, lock),
        answer(client, news),
        answer(client, values),
        answer(client, question),
    )
    .await?;
    let locked = locked.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let locked = Some(locked.collect::<Result<_, Error>>()?);
    Ok(Begun { locked, news, values, answer })
}

/// A question whose statement the server knows.
pub(crate) type Prepared = Option<(Statement, Params)>;

/// Tells the server the statement of a question, unless it knows it.
pub(crate) async fn prepare(
    client: &Client,
    question: Option<Question>,
) -> Result<Prepared, Error> {
    let Some(Question { statement, params, .. }) = question else { return Ok(None) };
    Ok(Some((client.prepare_cached(statement).await?, params)))
}

/// Sends a question when it is polled for the first time.
pub(crate) async fn answer(client: &Client, question: Prepared) -> Result<Vec<Row>, Error> {
    let Some((statement, params)) = question else { return Ok(Vec::new()) };
    let params: Vec<_> = params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
    query(client, &statement, &params).await
}
