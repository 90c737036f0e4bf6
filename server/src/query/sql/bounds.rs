//! Bounds of what the functions of a statement make: the query engine has that on nobody's account. Does no I/O.
//!
//! What a function or `||` makes is looked at right after (`within`): a text or a list has at most [`VALUE_BYTES`],
//! and a batch of them at most [`MEAN_BYTES`] a row. So each works on what is bounded, makes a small multiple of it
//! at most (that is what [`Statement`] sees to), and there are at most [`MOST_MAKERS`] of them, each counted as often
//! as a statement refers to it.

use crate::query::limits::error::QueryError;
use crate::query::sql::shape;
use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, exec_err};
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Rows that are worked on at a time.
pub(crate) const ROWS: usize = 1_024;
/// Largest text or list that is made.
const VALUE_BYTES: usize = 64 << 10;
/// The same on average, over [`ROWS`] rows or all of a larger batch.
const MEAN_BYTES: usize = 2 << 10;
/// Most functions and operators of a statement that make texts and lists, and arguments of one of them.
const MOST_MAKERS: usize = 32;
const MOST_ARGUMENTS: usize = 32;
/// Most steps of a statement, each counted as often as it is referred to.
const MOST_STEPS: usize = 2_000;
/// Most references to what stands under WITH: a part that refers to another one twice, which does so too, is a plan
/// of any size.
const MOST_REFERENCES: usize = 24;
/// Longest text that is put between others, and longest pattern of a time.
const SEPARATOR_BYTES: usize = 16;
const PATTERN_BYTES: usize = 64;
/// Most groups of a regular expression that are given back.
const MOST_GROUPS: usize = 16;
/// A text may be replaced by one so many times as long.
const REPLACED: usize = 4;

const HINT: &str = "texts and lists that a statement makes are bounded, since they are on no account of memory: the server's documentation has the bounds";

/// Functions that make as much as one says of nothing, or of each item of a list: one of their arguments is how much.
pub(crate) const OF_ANY_SIZE: [&str; 11] = [
    "repeat",
    "lpad",
    "rpad",
    "range",
    "generate_series",
    "array_repeat",
    "array_resize",
    "array_replace_n",
    "array_replace_all",
    "arrow_cast",
    "arrow_try_cast",
];

/// Functions that make one value of many rows. What they gather is on the engine's account, but copies of it are not:
/// it may be answered, and nothing else be made of it.
const GATHERING: [&str; 2] = ["array_agg", "string_agg"];

/// # Errors
/// For a statement that refers too often to parts of itself to be planned.
pub(crate) fn few_references(statement: &Parsed) -> Result<(), QueryError> {
    let Some(statement) = shape::tree(statement) else {
        return Ok(());
    };
    let mut parts = Parts::default();
    let _ = statement.visit(&mut parts);
    let named = |name: &&String| parts.names.contains(*name);
    if parts.tables.iter().filter(named).count() <= MOST_REFERENCES {
        return Ok(());
    }
    let message = format!("SQL: the statement refers more than {MOST_REFERENCES} times to what stands under WITH");
    Err(QueryError::bad_query(
        message,
        "refer to fewer parts, or ask in several statements",
    ))
}

/// Names of the parts of a statement, and of the tables that it reads, in lower case.
#[derive(Default)]
struct Parts {
    names: HashSet<String>,
    tables: Vec<String>,
}

impl Visitor for Parts {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let parts = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names
            .extend(parts.map(|part| part.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, table: &ObjectName) -> ControlFlow<()> {
        self.tables.extend(shape::table_name(table));
        ControlFlow::Continue(())
    }
}

/// The same statement, with a look at all that its functions make.
///
/// # Errors
/// For a statement that could make too much of what is bounded.
pub(crate) fn bounded(plan: LogicalPlan) -> Result<Result<LogicalPlan>, QueryError> {
    let mut statement = Statement::default();
    let last = last_aggregate(&plan);
    let walked = plan.apply_with_subqueries(|step| {
        statement.steps += 1;
        if statement.steps > MOST_STEPS {
            statement.refuse(format!("the statement has more than {MOST_STEPS} steps"));
        }
        statement.is_last = last.is_some_and(|last| std::ptr::eq(last, step));
        let schema = merge_schema(&step.inputs());
        step.apply_expressions(|expr| {
            expr.apply(|expr| {
                statement.look(expr, &schema);
                Ok(statement.next())
            })
        })?;
        Ok(statement.next())
    });
    match (statement.refused, walked) {
        (Some(message), _) => Err(QueryError::bad_query(format!("SQL: {message}"), HINT)),
        (None, Err(error)) => Ok(Err(error)),
        (None, Ok(_)) => Ok(watched(plan)),
    }
}

/// What was seen of a statement.
#[derive(Default)]
struct Statement {
    steps: usize,
    makers: usize,
    /// What the step makes that is looked at is answered.
    is_last: bool,
    /// The step that gathers.
    gathers: Option<usize>,
    refused: Option<String>,
}

impl Statement {
    fn refuse(&mut self, message: String) {
        self.refused.get_or_insert(message);
    }

    /// Whether this step may: once, since the same step may also be a part of what it is compared with.
    fn may_gather(&mut self) -> bool {
        self.is_last && *self.gathers.get_or_insert(self.steps) == self.steps
    }

    fn refuse_gathering(&mut self, name: &str) {
        self.refuse(format!(
            "what `{name}` makes may be answered, but not be joined, and no other text or list be made of it"
        ));
    }

    fn next(&self) -> TreeNodeRecursion {
        match self.refused {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        }
    }

    fn look(&mut self, expr: &Expr, schema: &DFSchema) {
        if makes(expr, schema) {
            self.makers += 1;
            if self.makers > MOST_MAKERS {
                self.refuse(format!(
                    "more than {MOST_MAKERS} functions and operators that make texts or lists, each counted as often as it is referred to"
                ));
            }
        }
        match expr {
            Expr::ScalarFunction(function) => {
                if let Err(message) = small_multiple(function) {
                    self.refuse(message);
                }
            }
            Expr::HigherOrderFunction(_) | Expr::Lambda(_) => {
                self.refuse("functions of functions are not there".into())
            }
            Expr::AggregateFunction(aggregate) if GATHERING.contains(&aggregate.func.name()) && !self.may_gather() => {
                self.refuse_gathering(aggregate.func.name());
            }
            Expr::WindowFunction(window) => {
                if let WindowFunctionDefinition::AggregateUDF(function) = &window.fun
                    && GATHERING.contains(&function.name())
                {
                    self.refuse_gathering(function.name());
                }
            }
            _ => {}
        }
    }
}

/// The step whose rows are answered as they are, but for their order, number and columns.
fn last_aggregate(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    let mut step = plan;
    loop {
        step = match step {
            LogicalPlan::Explain(explain) => &explain.plan,
            LogicalPlan::Aggregate(_) => return Some(step),
            LogicalPlan::Analyze(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::SubqueryAlias(_) => {
                let schema = merge_schema(&step.inputs());
                let has_maker = |expr: &Expr| expr.exists(|expr| Ok(makes(expr, &schema))).unwrap_or(true);
                if step.expressions().iter().any(has_maker) {
                    return None;
                }
                step.inputs().first()?
            }
            _ => return None,
        };
    }
}

/// Whether values of any length are made.
fn makes(expr: &Expr, schema: &DFSchema) -> bool {
    let may = match expr {
        Expr::ScalarFunction(_) => true,
        Expr::BinaryExpr(binary) => binary.op == Operator::StringConcat,
        _ => false,
    };
    may && !expr
        .get_type(schema)
        .is_ok_and(|data_type| data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null))
}

/// Whether a function makes a small multiple of its arguments at most; else what it must not have.
fn small_multiple(function: &ScalarFunction) -> Result<(), String> {
    let (name, args) = (function.func.name(), &function.args);
    if args.len() > MOST_ARGUMENTS {
        return Err(format!("`{name}` has more than {MOST_ARGUMENTS} arguments"));
    }
    // What stands there as it is; nothing, where there is no such argument.
    let text = |at: usize| match args.get(at) {
        None => Some(""),
        Some(Expr::Literal(value, _)) if value.is_null() => Some(""),
        Some(Expr::Literal(value, _)) => value.try_as_str().flatten(),
        Some(_) => None,
    };
    let up_to = |at: usize, most: usize| match text(at) {
        Some(text) if text.len() <= most => Ok(()),
        _ => Err(format!(
            "argument {} of `{name}` must be a text in quotes of at most {most} bytes",
            at + 1
        )),
    };
    match name {
        "replace" => match (text(1), text(2)) {
            (Some(from), Some(to)) if to.len() <= REPLACED * from.len() => Ok(()),
            _ => Err(format!(
                "`replace` takes two texts in quotes, the second at most {REPLACED} times as long as the first"
            )),
        },
        "regexp_replace" => up_to(2, SEPARATOR_BYTES),
        "regexp_match" => match text(1) {
            Some(pattern) if pattern.matches('(').count() <= MOST_GROUPS => Ok(()),
            _ => Err(format!(
                "the pattern of `regexp_match` must be a text in quotes with at most {MOST_GROUPS} groups"
            )),
        },
        "concat_ws" => up_to(0, SEPARATOR_BYTES),
        "array_to_string" => up_to(1, SEPARATOR_BYTES).and(up_to(2, SEPARATOR_BYTES)),
        "to_char" => up_to(1, PATTERN_BYTES),
        _ => Ok(()),
    }
}

/// Lays [`Within`] around all that makes values.
fn watched(plan: LogicalPlan) -> Result<LogicalPlan> {
    let within = ScalarUDF::from(Within::new());
    let watch = |step: LogicalPlan| {
        let (schema, names) = (merge_schema(&step.inputs()), NamePreserver::new(&step));
        let step = step.map_expressions(|expr| {
            let name = names.save(&expr);
            let watched = expr.transform_up(|expr| {
                Ok(if makes(&expr, &schema) {
                    Transformed::yes(within.call(vec![expr]))
                } else {
                    Transformed::no(expr)
                })
            })?;
            Ok(watched.update_data(|expr| name.restore(expr)))
        })?;
        if step.transformed {
            step.map_data(LogicalPlan::recompute_schema)
        } else {
            Ok(step)
        }
    };
    plan.transform_up_with_subqueries(watch).map(|watched| watched.data)
}

/// Gives back what it is given, unless that is too much.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Within {
    signature: Signature,
}

impl Within {
    fn new() -> Self {
        Within {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Within {
    fn name(&self) -> &str {
        "within"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return Err(DataFusionError::Internal("`within` takes one value".into()));
        };
        match &value {
            ColumnarValue::Array(values) => check(values)?,
            ColumnarValue::Scalar(one) => check(&one.to_array()?)?,
        }
        Ok(value)
    }
}

fn check(values: &dyn Array) -> Result<()> {
    let all = bytes(values);
    if all > MEAN_BYTES * values.len().max(ROWS) {
        return exec_err!(
            "functions or operators make {all} bytes of {} rows; at most {MEAN_BYTES} a row are allowed",
            values.len()
        );
    }
    if all > VALUE_BYTES {
        for row in 0..values.len() {
            let one = bytes(&values.slice(row, 1));
            if one > VALUE_BYTES {
                return exec_err!(
                    "a function or operator makes a value of {one} bytes; at most {VALUE_BYTES} are allowed"
                );
            }
        }
    }
    Ok(())
}

fn sum(lengths: impl Iterator<Item = u32>) -> usize {
    lengths.map(|length| length as usize).sum()
}

/// Memory of these values, without what lies beside them.
fn bytes(values: &dyn Array) -> usize {
    let part = |all: &dyn Array, from: usize, until: usize| bytes(&all.slice(from, until - from));
    let own = values.len() * size_of::<u128>();
    match values.data_type() {
        DataType::Utf8View => own + sum(values.as_string_view().lengths()),
        DataType::BinaryView => own + sum(values.as_binary_view().lengths()),
        DataType::List(_) => {
            let list = values.as_list::<i32>();
            let offsets = list.value_offsets();
            own + part(list.values(), offsets[0] as usize, offsets[list.len()] as usize)
        }
        DataType::LargeList(_) => {
            let list = values.as_list::<i64>();
            let offsets = list.value_offsets();
            own + part(list.values(), offsets[0] as usize, offsets[list.len()] as usize)
        }
        DataType::Struct(_) => {
            own + values
                .as_struct()
                .columns()
                .iter()
                .map(|column| bytes(column))
                .sum::<usize>()
        }
        _ => {
            let data = values.to_data();
            data.get_slice_memory_size()
                .unwrap_or_else(|_| values.get_array_memory_size())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;

    #[test]
    fn long_values_and_many_of_them_are_refused() {
        let texts = |length: usize, rows: usize| StringArray::from(vec!["x".repeat(length); rows]);
        check(&texts(60_000, 1)).unwrap();
        check(&texts(1_500, 5_000)).unwrap();
        check(&Int64Array::from(vec![1; 1_000_000])).unwrap();
        for (many, said) in [
            (texts(70_000, 1), "a value of 700"),
            (texts(10_000, 1_024), "of 1024 rows"),
            (texts(2_500, 5_000), "of 5000 rows"),
        ] {
            let error = check(&many).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        // A slice is not as large as what it is a part of.
        let list = |items: usize| ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1); items]), None]);
        check(&list(8_000)).unwrap();
        assert!(check(&list(9_000)).is_err());
        check(&list(9_000).slice(1, 1)).unwrap();
    }
}
