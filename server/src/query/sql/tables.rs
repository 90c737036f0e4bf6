//! The tables that a statement reads: as they are stored, but that waits have tables of their own beside those of
//! samples. Does no I/O.
//!
//! A wait is a row of `samples` in the files, told by its type. Whoever counts rows of `samples` means what was sampled
//! while it ran, and would count both without a word.

use crate::profile_type::OF_WAITS;
use crate::query::limits::error::QueryError;
use crate::query::sql::shape;
use crate::store::Table;
use datafusion::common::Result;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, ObjectName, Value, Visit, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;

const TYPE: &str = "type";

/// Tables that hold samples and waits, and what the waits are called.
const SPLIT: [(Table, &str); 4] = [
    (Table::Samples, "waits"),
    (Table::SamplesTenSeconds, "waits_10s"),
    (Table::SamplesMinute, "waits_minute"),
    (Table::SamplesHour, "waits_hour"),
];

/// All that a statement may read.
pub(crate) fn names() -> Vec<&'static str> {
    let waits = SPLIT.iter().map(|(_, waits)| *waits);
    Table::ALL.into_iter().map(Table::name).chain(waits).collect()
}

/// Puts both in place of each table that holds both.
///
/// # Errors
/// None with a session of a snapshot, which has these tables.
pub(crate) fn split_waits(context: &SessionContext) -> Result<()> {
    for (table, waits) in SPLIT {
        let Some(all) = context.deregister_table(table.name())? else {
            continue;
        };
        for (name, are_waits) in [(table.name(), false), (waits, true)] {
            let kinds = OF_WAITS.map(lit).to_vec();
            let plan = LogicalPlanBuilder::scan(table.name(), provider_as_source(all.clone()), None)?
                .filter(col(TYPE).in_list(kinds, !are_waits))?
                .build()?;
            context.register_table(name, Arc::new(ViewTable::new(plan, None)))?;
        }
    }
    Ok(())
}

/// # Errors
/// For a statement that looks for waits where there are none: it would be answered by nothing, without a word.
pub(crate) fn waits_where_they_are(statement: &Parsed) -> Result<(), QueryError> {
    let Some(statement) = shape::tree(statement) else {
        return Ok(());
    };
    let mut asked = Asked::default();
    let _ = statement.visit(&mut asked);
    let Some(kind) = asked.kind else { return Ok(()) };
    let is_asked = |name: &str| asked.tables.iter().any(|table| table == name);
    let samples = SPLIT.iter().find(|(table, _)| is_asked(table.name()));
    match samples {
        Some((table, waits)) if !SPLIT.iter().any(|(_, waits)| is_asked(waits)) => Err(QueryError::bad_query(
            format!("SQL: rows of type {kind} stand in {waits}, not in {}", table.name()),
            format!("read them from {waits}, which has the same columns"),
        )),
        _ => Ok(()),
    }
}

/// What a statement reads, and the type of wait that it looks for.
#[derive(Default)]
struct Asked {
    tables: Vec<String>,
    kind: Option<&'static str>,
}

impl Visitor for Asked {
    type Break = ();

    fn pre_visit_relation(&mut self, table: &ObjectName) -> ControlFlow<()> {
        self.tables.extend(shape::table_name(table));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let kind = match expr {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => match (is_type(left), is_type(right)) {
                (true, _) => wait(right),
                (_, true) => wait(left),
                _ => None,
            },
            Expr::InList {
                expr,
                list,
                negated: false,
            } if is_type(expr) => list.iter().map(wait).reduce(|all, one| all.and(one)).flatten(),
            _ => None,
        };
        self.kind = self.kind.or(kind);
        ControlFlow::Continue(())
    }
}

fn is_type(expr: &Expr) -> bool {
    let name = match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    name.is_some_and(|name| name.value.eq_ignore_ascii_case(TYPE))
}

fn wait(expr: &Expr) -> Option<&'static str> {
    let Expr::Value(value) = expr else { return None };
    let (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) = &value.value else {
        return None;
    };
    OF_WAITS.into_iter().find(|kind| kind == text)
}
