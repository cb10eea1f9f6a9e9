//! Statements that answer a question, one for each way to do it. All that gives the right answer
//! are timed, and the fastest one stands for its database.
//!
//! Each way goes along one list that is in order of time: all notifications, or those of a
//! subscriber, of a topic, of a channel. The list has the columns for all other terms, so nothing
//! else is looked up. Of several lists, the first so many of each are taken and sorted, or all are
//! merged, or the database decides.
//!
//! Values are in the text of a statement, which is prepared once: no database has to guess how
//! often a value comes up, or to bind it.

use crate::list::facts::{Column, Group, Question};

/// How databases differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "nobody speaks it"))]
    Postgres,
}

/// A way to answer a question.
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// A list to go along.
struct List {
    name: &'static str,
    from: &'static str,
    key: &'static str,
    // What a partial index asks for.
    also: &'static str,
    // Whether one notification can be in several of these lists.
    overlaps: bool,
}

/// Every way to answer a question.
pub(crate) fn ways(question: &Question, dialect: Dialect) -> Vec<Way> {
    let mut ways =
        vec![everywhere(question, "the planner decides", "notifications n", "n.ordinal")];
    if question.transaction.is_some() {
        return of_transaction(question);
    }
    match dialect {
        Dialect::Sqlite => {
            let table = "notifications n NOT INDEXED";
            ways.push(everywhere(question, "all", table, "n.ordinal"));
            let index = "notifications n INDEXED BY by_time";
            ways.push(everywhere(question, "all by time", index, "n.created_at DESC, n.ordinal"));
        }
        // It does not know how rare a combination is, and may wait for eleven in vain.
        Dialect::Postgres => {
            ways.push(everywhere(question, "all, sorted", "notifications n", "n.ordinal + 0"));
        }
    }
    for (at, group) in question.groups.iter().enumerate() {
        if let Some(list) = list(group, dialect) {
            ways.extend(along(question, at, &list));
        }
    }
    ways
}

/// Every way to count what matches a question.
pub(crate) fn counts(question: &Question, dialect: Dialect) -> Vec<Way> {
    let all = ways(question, dialect).into_iter();
    // The first of each are too few.
    let all = all.filter(|way| !way.name.ends_with("the first of each"));
    all.map(|Way { name, sql }| {
        let (unsorted, _) = sql.rsplit_once(" ORDER BY ").unwrap();
        Way { name, sql: format!("SELECT count(*) FROM ({unsorted}) AS f") }
    })
    .collect()
}

fn list(group: &Group, dialect: Dialect) -> Option<List> {
    let single = |name, from, key| List { name, from, key, also: "", overlaps: false };
    let linked = |name, from, key| List { name, from, key, also: "", overlaps: true };
    let table = "notifications n";
    let list = match (group.column, dialect) {
        (Column::Channel, _) => linked("channels", "channels n", "n.channel"),
        (Column::Topic, _) => linked("topics", "topics n", "n.topic"),
        (Column::Subscription, _) => linked("subscriptions", "subscriptions n", "n.subscription"),
        // An index on what does not matter would have nearly everything in it.
        (Column::Severity, _) if group.values.contains(&0) => return None,
        (Column::Subscriber, Dialect::Sqlite) => {
            single("by_subscriber", "notifications n INDEXED BY by_subscriber", "n.subscriber")
        }
        (Column::Workflow, Dialect::Sqlite) => {
            single("by_workflow", "notifications n INDEXED BY by_workflow", "n.workflow")
        }
        (Column::Contexts, Dialect::Sqlite) => {
            single("by_contexts", "notifications n INDEXED BY by_contexts", "n.contexts")
        }
        (Column::Severity, Dialect::Sqlite) => List {
            also: "n.severity > 0",
            ..single("by_severity", "notifications n INDEXED BY by_severity", "n.severity")
        },
        (Column::Subscriber, Dialect::Postgres) => single("by_subscriber", table, "n.subscriber"),
        (Column::Workflow, Dialect::Postgres) => single("by_workflow", table, "n.workflow"),
        (Column::Contexts, Dialect::Postgres) => single("by_contexts", table, "n.contexts"),
        (Column::Severity, Dialect::Postgres) => {
            List { also: "n.severity > 0", ..single("by_severity", table, "n.severity") }
        }
    };
    Some(list)
}

// Everything, filtered.
fn everywhere(question: &Question, name: &str, from: &str, order: &str) -> Way {
    let filters = filters(question, None);
    let filters = if filters.is_empty() { "1 = 1".into() } else { filters.join(" AND ") };
    let page = page(question);
    let sql = format!("SELECT n.ordinal FROM {from} WHERE {filters} ORDER BY {order} DESC {page}");
    Way { name: name.into(), sql }
}

// A transaction is a run of ordinals.
fn of_transaction(question: &Question) -> Vec<Way> {
    let name = question.transaction.as_deref().unwrap_or_default();
    let rest = and(&filters(question, None));
    let page = page(question);
    let joined = format!(
        "SELECT n.ordinal FROM transactions t JOIN notifications n \
         ON n.ordinal BETWEEN t.first AND t.last \
         WHERE t.name = '{name}'{rest} ORDER BY n.ordinal DESC {page}"
    );
    let end = |end| format!("(SELECT t.{end} FROM transactions t WHERE t.name = '{name}')");
    let between = format!(
        "SELECT n.ordinal FROM notifications n WHERE n.ordinal BETWEEN {} AND {}{rest} \
         ORDER BY n.ordinal DESC {page}",
        end("first"),
        end("last")
    );
    vec![
        Way { name: "transactions, joined".into(), sql: joined },
        Way { name: "transactions".into(), sql: between },
    ]
}

// The ways along the lists of the group at that place.
fn along(question: &Question, at: usize, list: &List) -> Vec<Way> {
    let values = &question.groups[at].values;
    let List { name, from, key, .. } = list;
    let mut filters = filters(question, Some(at));
    filters.extend((!list.also.is_empty()).then(|| list.also.into()));
    let rest = and(&filters);
    let (page, most) = (page(question), question.skip + question.limit);
    let distinct = if list.overlaps && values.len() > 1 { "DISTINCT " } else { "" };
    let is_any = is_any(key, values);
    let at_once = format!(
        "SELECT {distinct}n.ordinal FROM {from} WHERE {is_any}{rest} ORDER BY n.ordinal DESC {page}"
    );
    let mut ways = vec![Way { name: (*name).into(), sql: at_once }];
    if values.len() > 1 {
        let union = if list.overlaps { " UNION " } else { " UNION ALL " };
        let one = |value| format!("SELECT n.ordinal FROM {from} WHERE {key} = {value}{rest}");
        let all: Vec<_> = values.iter().map(one).collect();
        let merged = format!("{} ORDER BY 1 DESC {page}", all.join(union));
        ways.push(Way { name: format!("{name}, merged"), sql: merged });
        let first = |sql| format!("SELECT * FROM ({sql} ORDER BY 1 DESC LIMIT {most}) f");
        let firsts: Vec<_> = all.iter().map(first).collect();
        let sorted = format!("{} ORDER BY 1 DESC {page}", firsts.join(union));
        ways.push(Way { name: format!("{name}, the first of each"), sql: sorted });
    }
    ways
}

// What has to hold, but for the group at that place.
fn filters(question: &Question, but: Option<usize>) -> Vec<String> {
    let groups = question.groups.iter().enumerate().filter(|(at, _)| Some(*at) != but);
    let mut filters: Vec<_> = groups.map(|(_, group)| filter(group)).collect();
    // Ordinals are in order of time, which is not in every list.
    filters.extend(question.after.map(|after| {
        format!(
            "n.ordinal >= (SELECT b.ordinal FROM notifications b \
             WHERE b.created_at >= {after} ORDER BY b.created_at, b.ordinal LIMIT 1)"
        )
    }));
    filters.extend(question.before.map(|before| {
        format!(
            "n.ordinal <= (SELECT b.ordinal FROM notifications b \
             WHERE b.created_at <= {before} ORDER BY b.created_at DESC, b.ordinal DESC LIMIT 1)"
        )
    }));
    filters
}

// Further conditions.
fn and(filters: &[String]) -> String {
    filters.iter().fold(String::new(), |sql, filter| sql + " AND " + filter)
}

fn filter(Group { column, values }: &Group) -> String {
    let linked = |table, key| {
        let is_any = is_any(key, values);
        format!("EXISTS (SELECT 1 FROM {table} l WHERE {is_any} AND l.ordinal = n.ordinal)")
    };
    match column {
        Column::Subscriber => is_any("n.subscriber", values),
        Column::Workflow => is_any("n.workflow", values),
        Column::Contexts => is_any("n.contexts", values),
        Column::Severity => is_any("n.severity", values),
        Column::Channel => {
            let bits = values.iter().fold(0, |bits, channel| bits | 1 << channel);
            format!("(n.channels & {bits}) <> 0")
        }
        Column::Topic => linked("topics", "l.topic"),
        Column::Subscription => linked("subscriptions", "l.subscription"),
    }
}

fn is_any(column: &str, values: &[i64]) -> String {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    match values.as_slice() {
        [value] => format!("{column} = {value}"),
        values => format!("{column} IN ({})", values.join(", ")),
    }
}

fn page(Question { skip, limit, .. }: &Question) -> String {
    let skip = if *skip > 0 { format!(" OFFSET {skip}") } else { String::new() };
    format!("LIMIT {limit}{skip}")
}

/// The way that is made for a combination of terms, if there is one.
pub(crate) fn made_for(question: &Question) -> Option<Way> {
    let values = |column| {
        let group = question.groups.iter().find(|group| group.column == column)?;
        let [value] = group.values.as_slice() else { return None };
        Some(*value)
    };
    let (workflow, channel) = (values(Column::Workflow)?, values(Column::Channel)?);
    let page = page(question);
    if let (Some(contexts), Some(severity)) = (values(Column::Contexts), values(Column::Severity)) {
        let sql = format!(
            "SELECT ordinal FROM notifications INDEXED BY by_three WHERE contexts = {contexts} \
             AND workflow = {workflow} AND severity = {severity} \
             AND (channels & {}) <> 0 ORDER BY ordinal DESC {page}",
            1 << channel
        );
        return Some(Way { name: "by_three".into(), sql });
    }
    let others = question.groups.iter().filter(|group| group.column == Column::Subscriber);
    let others = and(&others.map(filter).collect::<Vec<_>>());
    let sql = format!(
        "SELECT n.ordinal FROM workflow_channels n WHERE n.workflow = {workflow} \
         AND n.channel = {channel}{others} ORDER BY n.ordinal DESC {page}"
    );
    Some(Way { name: "workflow_channels".into(), sql })
}
