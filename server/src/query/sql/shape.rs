//! How deep and how large a statement may be: whoever plans, optimises, prints or frees it walks it with a call a
//! level. Does no I/O.
//!
//! What the parser calls itself for is counted on the tokens before it reads them, and the rest on the tree that it
//! makes. A step of a plan may become a part of the one above, so that levels add up: the parts of a statement
//! together bound how deep anything made of it is.

use crate::query::limits::error::QueryError;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, Query, SetExpr, TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::ops::ControlFlow;

/// Most words, numbers and signs of a statement.
pub(crate) const MOST_TOKENS: usize = 16_000;
/// Most brackets, and `CASE`s, that are open at once.
pub(crate) const MOST_OPEN: usize = 48;
/// The same word or sign so often in a row, and so many indices of one value.
pub(crate) const MOST_REPEATED: usize = 16;
/// Most levels of an expression, and set operations one after another.
pub(crate) const MOST_LEVELS: usize = 100;
/// Most operators, functions and queries of a statement; names and values are not counted.
pub(crate) const MOST_PARTS: usize = 2_000;
/// Most tables and subqueries that are read from.
pub(crate) const MOST_TABLES: usize = 100;

const HINT: &str = "many values of one column are said by IN (…); what remains can be asked in several statements";

fn refused(message: String) -> QueryError {
    QueryError::bad_query(format!("SQL: {message}"), HINT)
}

/// Looks at the words and signs, before anything calls itself for them.
///
/// # Errors
/// `bad_query`, with the place.
pub(crate) fn of_text(statement: &str) -> Result<(), QueryError> {
    let tokens = Tokenizer::new(&GenericDialect {}, statement)
        .tokenize_with_location()
        .map_err(|error| refused(error.to_string()))?;
    let mut opened = Opened::default();
    let seen = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    for (count, token) in seen.enumerate() {
        let too_much = if count == MOST_TOKENS {
            Some(format!("more than {MOST_TOKENS} words and signs"))
        } else {
            opened.too_much(token)
        };
        if let Some(what) = too_much {
            let at = token.span.start;
            return Err(refused(format!("{what} at line {}, column {}", at.line, at.column)));
        }
    }
    Ok(())
}

/// What is open at a token.
#[derive(Default)]
struct Opened<'a> {
    brackets: usize,
    /// `ARRAY<…>` and the like.
    angles: usize,
    cases: usize,
    last: Option<&'a Token>,
    repeated: usize,
    indices: usize,
}

impl<'a> Opened<'a> {
    fn too_much(&mut self, token: &'a TokenWithSpan) -> Option<String> {
        let (token, last) = (&token.token, self.last.replace(&token.token));
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => self.brackets += 1,
            Token::RParen | Token::RBracket | Token::RBrace => self.brackets = self.brackets.saturating_sub(1),
            Token::Lt if last.is_some_and(is_nested_type) => self.angles += 1,
            Token::Gt => self.angles = self.angles.saturating_sub(1),
            Token::ShiftRight => self.angles = self.angles.saturating_sub(2),
            Token::Word(word) if word.value.eq_ignore_ascii_case("case") => self.cases += 1,
            Token::Word(word) if word.value.eq_ignore_ascii_case("end") => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
        let is_index = matches!((last, token), (Some(Token::RBracket), Token::LBracket));
        self.indices += usize::from(is_index);
        let again = last.is_some_and(|last| is_same(last, token));
        self.repeated = if again { self.repeated + 1 } else { 1 };
        if self.brackets + self.angles + self.cases > MOST_OPEN {
            return Some(format!("more than {MOST_OPEN} open brackets and CASE"));
        }
        if self.repeated > MOST_REPEATED || self.indices > MOST_REPEATED {
            return Some(format!("`{token}` more than {MOST_REPEATED} times in a row"));
        }
        None
    }
}

/// Brackets and the ends of `CASE` are counted as such, and what stands between commas is no prefix of what follows.
fn is_same(last: &Token, token: &Token) -> bool {
    match (last, token) {
        (Token::Word(last), Token::Word(word)) => {
            !word.value.eq_ignore_ascii_case("end") && last.value.eq_ignore_ascii_case(&word.value)
        }
        (Token::LParen | Token::RParen | Token::LBracket | Token::RBracket | Token::LBrace | Token::RBrace, _) => false,
        (last, token) => last == token,
    }
}

fn is_nested_type(token: &Token) -> bool {
    const TYPES: [&str; 6] = ["array", "struct", "map", "nested", "nullable", "tuple"];
    matches!(token, Token::Word(word) if TYPES.iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

/// The tree of a statement, or of what it explains; none of what does not read.
pub(crate) fn tree(statement: &Parsed) -> Option<&ast::Statement> {
    match statement {
        Parsed::Statement(statement) => Some(statement),
        Parsed::Explain(explain) => tree(&explain.statement),
        _ => None,
    }
}

/// A table's name without its schema, in lower case.
pub(crate) fn table_name(table: &ObjectName) -> Option<String> {
    let name = table.0.last()?.as_ident()?;
    Some(name.value.to_lowercase())
}

/// Looks at what the parser made. Walks as deep as the tokens can make it: for a thread with a large stack.
///
/// # Errors
/// `bad_query` for what is too deep or too large to be planned.
pub(crate) fn of_tree(statement: &Parsed) -> Result<(), QueryError> {
    let Some(statement) = tree(statement) else {
        return Ok(());
    };
    let mut shape = Shape::default();
    match statement.visit(&mut shape) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(message) => Err(refused(message)),
    }
}

#[derive(Default)]
struct Shape {
    levels: usize,
    parts: usize,
    tables: usize,
}

impl Shape {
    fn part(&mut self) -> ControlFlow<String> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return ControlFlow::Break(format!(
                "the statement has more than {MOST_PARTS} operators, functions and queries"
            ));
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Shape {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.part()?;
        let mut operands = vec![(&*query.body, 0)];
        while let Some((operand, level)) = operands.pop() {
            if level > MOST_LEVELS {
                return ControlFlow::Break(format!("more than {MOST_LEVELS} UNION, INTERSECT and EXCEPT in a row"));
            }
            if let SetExpr::SetOperation { left, right, .. } = operand {
                self.part()?;
                operands.extend([(&**left, level + 1), (&**right, level + 1)]);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<String> {
        self.tables += 1;
        if self.tables > MOST_TABLES {
            return ControlFlow::Break(format!(
                "the statement reads from more than {MOST_TABLES} tables and subqueries"
            ));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.levels += 1;
        if self.levels > MOST_LEVELS {
            return ControlFlow::Break(format!(
                "an expression has more than {MOST_LEVELS} levels; operators in a row are one each"
            ));
        }
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => ControlFlow::Continue(()),
            _ => self.part(),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

/// Whatever the text is, what is let through is parsed, looked at, written and freed within the stack of a thread of
/// questions, and what is let through by the tree has no more levels than are allowed. An overflow ends the process.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_sql(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if of_text(&text).is_err() {
        return;
    }
    let judged = move || {
        let state = datafusion::prelude::SessionContext::new().state();
        let dialect = state.config_options().sql_parser.dialect;
        let Ok(parsed) = state.sql_to_statement(&text, &dialect) else {
            return;
        };
        if of_tree(&parsed).is_ok() {
            let _ = parsed.to_string();
        }
    };
    let thread = std::thread::Builder::new().stack_size(crate::query::limits::admission::STACK_BYTES);
    let ended = thread.spawn(judged).map(std::thread::JoinHandle::join);
    assert!(matches!(ended, Ok(Ok(()))), "it panicked");
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    /// Words of a refusal, of the text or of the tree; none where it is allowed.
    fn said(statement: String) -> Option<String> {
        let judged = move || {
            of_text(&statement).and_then(|()| {
                let state = SessionContext::new().state();
                let dialect = state.config_options().sql_parser.dialect;
                let parsed = state.sql_to_statement(&statement, &dialect).unwrap();
                of_tree(&parsed)
            })
        };
        let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(judged).unwrap();
        thread.join().unwrap().err().map(|error| error.to_string())
    }

    #[test]
    fn depth_is_counted_on_the_tree_and_not_by_the_bytes() {
        let chain = |with: &str, count: usize| format!("select {}", vec!["a"; count].join(with));
        for (statement, refusal) in [
            (chain("+", 99), None),
            (chain("+", 2_000), Some("levels")),
            (chain(" or ", 99), None),
            (chain(" or ", 7_000), Some("levels")),
            (chain(", ", 7_000), None),
            (chain(", ", 9_000), Some("words and signs at line 1")),
            (format!("select a{}", "::int".repeat(90)), None),
            (format!("select a{}", "::int".repeat(400)), Some("levels")),
            (vec!["select 1"; 90].join(" union all "), None),
            (vec!["select 1"; 800].join(" union all "), Some("UNION")),
            (format!("select a in ({})", vec!["1"; 5_000].join(",")), None),
            (format!("select {}", vec!["abs(a)"; 2_500].join(",")), Some("operators")),
            (format!("select 1 from {}", vec!["t"; 200].join(",")), Some("tables")),
            (
                format!("select {}1{}", "(".repeat(2_000), ")".repeat(2_000)),
                Some("open"),
            ),
            (format!("select {}1", "case when a then ".repeat(1_500)), Some("open")),
            (
                format!("select {}1", "- ".repeat(10_000)),
                Some("`-` more than 16 times"),
            ),
            (
                format!("select {}1", "not ".repeat(10_000)),
                Some("`not` more than 16 times"),
            ),
            (format!("select {}'1'", "interval ".repeat(900)), Some("in a row")),
            (format!("{}select 1", "explain ".repeat(900)), Some("in a row")),
            (
                format!("select a::{}int{}", "array<".repeat(900), ">".repeat(900)),
                Some("open"),
            ),
            (format!("select a::int{}", "[]".repeat(900)), Some("in a row")),
            (format!("select a{}", "[1]".repeat(900)), Some("in a row")),
        ] {
            let (shown, said) = (statement[..statement.len().min(60)].to_owned(), said(statement));
            match refusal {
                None => assert_eq!(said, None, "{shown}"),
                Some(words) => {
                    let told = said.unwrap_or_default();
                    assert!(told.contains(words) && told.len() < 200, "{shown}: {told}");
                }
            }
        }
    }

    #[test]
    fn the_limits_are_documented() {
        crate::documented(&[
            ("MOST_TOKENS", MOST_TOKENS as u64),
            ("MOST_OPEN", MOST_OPEN as u64),
            ("MOST_REPEATED", MOST_REPEATED as u64),
            ("MOST_LEVELS", MOST_LEVELS as u64),
            ("MOST_PARTS", MOST_PARTS as u64),
            ("MOST_TABLES", MOST_TABLES as u64),
        ]);
    }
}
