//! PromQL-style label selectors: `{service="kubelet",node=~"db-.*"}`.
//!
//! Text in, matchers out. An absent label has the empty value, and a regular expression is anchored at both ends,
//! both as in PromQL (<https://prometheus.io/docs/prometheus/latest/querying/basics/>). Does no I/O.

use crate::label::attribute::{self, AttributeName};
use crate::label::{Label, LabelTable};
use crate::query::limits::error::QueryError;
use regex::{Regex, RegexBuilder};
use std::fmt;

/// Longest selector, in bytes.
const MAX_SELECTOR_BYTES: usize = 16 * 1024;
/// Most matchers of one selector.
const MAX_MATCHERS: usize = 64;
/// Memory that one compiled regular expression may take, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Nesting of groups in a regular expression.
const MAX_REGEX_NESTING: u32 = 64;

/// How a matcher compares.
#[derive(Debug, Clone)]
enum Operator {
    Equal,
    NotEqual,
    Matches(Regex),
    MatchesNot(Regex),
}

/// One condition on one label.
#[derive(Debug, Clone)]
pub struct Matcher {
    label: Label,
    operator: Operator,
    value: String,
}

impl Matcher {
    /// That a label has this value, or none where it is empty.
    pub(crate) fn equal(label: Label, value: &str) -> Matcher {
        Matcher {
            label,
            operator: Operator::Equal,
            value: value.to_owned(),
        }
    }

    /// The label that is compared.
    pub fn label(&self) -> Label {
        self.label
    }

    /// Whether a label of this value (empty: absent) is selected.
    pub fn accepts(&self, value: &str) -> bool {
        match &self.operator {
            Operator::Equal => value == self.value,
            Operator::NotEqual => value != self.value,
            Operator::Matches(regex) => regex.is_match(value),
            Operator::MatchesNot(regex) => !regex.is_match(value),
        }
    }

    /// The values that alone are accepted, or refused where the second says so. None of a pattern that stands for more.
    pub(crate) fn values(&self) -> Option<(Vec<String>, bool)> {
        match self.operator {
            Operator::Equal => Some((vec![self.value.clone()], false)),
            Operator::NotEqual => Some((vec![self.value.clone()], true)),
            Operator::Matches(_) => Some((alternatives(&self.value)?, false)),
            Operator::MatchesNot(_) => Some((alternatives(&self.value)?, true)),
        }
    }

    /// The one value that is accepted, of an `=` matcher.
    pub fn equal_to(&self) -> Option<&str> {
        matches!(self.operator, Operator::Equal).then_some(self.value.as_str())
    }
}

/// Conditions that all have to hold. The default selects everything.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    matchers: Vec<Matcher>,
}

impl Selector {
    /// Reads a selector; empty text selects everything.
    ///
    /// # Errors
    /// `bad_query`, naming the position (1-based, in characters), what stands there and what was expected.
    pub fn parse(text: &str) -> Result<Selector, QueryError> {
        if text.len() > MAX_SELECTOR_BYTES {
            return Err(QueryError::bad_query(
                format!(
                    "the selector has {} bytes, at most {MAX_SELECTOR_BYTES} are allowed",
                    text.len()
                ),
                "a regular expression such as service=~\"a|b\" says several values in one matcher",
            ));
        }
        Parser { text, offset: 0 }.selector()
    }

    /// Of these conditions.
    pub(crate) fn of_matchers(matchers: Vec<Matcher>) -> Selector {
        Selector { matchers }
    }

    /// Its conditions.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }

    /// Those of its conditions that are on this label.
    #[must_use]
    pub(crate) fn on(&self, label: Label) -> Selector {
        let matchers = self.matchers.iter().filter(|matcher| matcher.label == label);
        Selector {
            matchers: matchers.cloned().collect(),
        }
    }

    /// Those of its conditions that are such.
    #[must_use]
    pub(crate) fn only(&self, is_such: impl Fn(&Matcher) -> bool) -> Selector {
        let matchers = self.matchers.iter().filter(|matcher| is_such(matcher));
        Selector {
            matchers: matchers.cloned().collect(),
        }
    }

    /// The conditions on labels of one table.
    pub fn of(&self, home: LabelTable) -> impl Iterator<Item = &Matcher> {
        self.matchers.iter().filter(move |matcher| matcher.label.home() == home)
    }

    /// Whether any condition is on a label of this table.
    pub fn has(&self, home: LabelTable) -> bool {
        self.of(home).next().is_some()
    }
}

/// The canonical text: the same for two selectors that differ in space and quotes only.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, matcher) in self.matchers.iter().enumerate() {
            let operator = match matcher.operator {
                Operator::Equal => "=",
                Operator::NotEqual => "!=",
                Operator::Matches(_) => "=~",
                Operator::MatchesNot(_) => "!~",
            };
            let comma = if index == 0 { "" } else { "," };
            f.write_str(comma)?;
            // A name that no reader of PromQL takes for one stands in quotes.
            match matcher.label {
                Label::Attribute(name) if name.short().is_some() => f.write_str(name.short().unwrap_or_default())?,
                Label::Attribute(name) => {
                    // One that could be taken for something else is named in full.
                    let is_other = Label::parse(name.as_str()).is_some_and(|other| other != matcher.label);
                    let prefix = if is_other { attribute::PREFIX } else { "" };
                    write_quoted(f, &format!("{prefix}{}", name.as_str()))?;
                }
                fixed => f.write_str(fixed.column())?,
            }
            f.write_str(operator)?;
            write_quoted(f, &matcher.value)?;
        }
        f.write_str("}")
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// The texts that a pattern such as `a|b\.c` stands for; none where it stands for more.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let (mut all, mut text) = (Vec::new(), String::new());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '|' => all.push(std::mem::take(&mut text)),
            '\\' => text.push(chars.next().filter(char::is_ascii_punctuation)?),
            '.' | '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' => return None,
            c => text.push(c),
        }
    }
    all.push(text);
    Some(all)
}

/// Compiles a pattern that users gave, within limits. `what` names it in the message, such as "the regular expression
/// of label `node`".
///
/// # Errors
/// `bad_query` when it is malformed or too large.
pub fn compile_regex(pattern: &str, what: &str) -> Result<Regex, QueryError> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .nest_limit(MAX_REGEX_NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => QueryError::bad_query(
                format!("regex too large: {what} needs more than {limit} bytes once compiled"),
                "shorten it; nested repetitions such as (a{100}){100} are what grows",
            ),
            // The library draws the pattern with a caret over several lines; its last line is what went wrong.
            other => {
                let text = other.to_string();
                let cause = text
                    .lines()
                    .last()
                    .unwrap_or("malformed")
                    .trim_start_matches("error: ")
                    .to_owned();
                QueryError::bad_query(
                    format!("{what} is malformed: {cause}"),
                    "regular expressions are RE2-like, without look-around and back-references; \
                     inside double quotes a backslash is written twice",
                )
            }
        })
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes.
    offset: usize,
}

impl Parser<'_> {
    fn selector(mut self) -> Result<Selector, QueryError> {
        let mut matchers = Vec::new();
        self.space();
        if self.peek().is_none() {
            return Ok(Selector { matchers });
        }
        if !self.take('{') {
            return Err(self.expected("`{`"));
        }
        self.space();
        while !self.take('}') {
            if matchers.len() == MAX_MATCHERS {
                return Err(self.error(format!("more than {MAX_MATCHERS} matchers")));
            }
            matchers.push(self.matcher()?);
            self.space();
            let comma = self.take(',');
            self.space();
            if !comma && self.peek() != Some('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
        self.space();
        if self.peek().is_some() {
            return Err(self.expected("the end of the selector"));
        }
        Ok(Selector { matchers })
    }

    fn matcher(&mut self) -> Result<Matcher, QueryError> {
        let start = self.offset;
        let is_quoted = matches!(self.peek(), Some('"' | '\'' | '`'));
        let quoted = if is_quoted { self.string()? } else { String::new() };
        while !is_quoted
            && self
                .peek()
                .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        {
            self.offset += 1;
        }
        let name = if is_quoted {
            quoted.as_str()
        } else {
            &self.text[start..self.offset]
        };
        if name.is_empty() {
            return Err(self.expected("a label's name or `}`"));
        }
        // In quotes any name is that of an attribute, if it is no label's.
        let attribute = || {
            is_quoted
                .then(|| AttributeName::new(name).map(Label::Attribute))
                .flatten()
        };
        let Some(label) = Label::parse(name).or_else(attribute) else {
            self.offset = start;
            return Err(QueryError::bad_query(
                format!("unknown label `{name}` at position {}", self.position()),
                format!("labels are {}", Label::names()),
            ));
        };
        self.space();
        let operator_text = ["=~", "!~", "!=", "="]
            .into_iter()
            .find(|o| self.text[self.offset..].starts_with(o));
        let Some(operator_text) = operator_text else {
            return Err(self.expected("one of `=`, `!=`, `=~`, `!~`"));
        };
        self.offset += operator_text.len();
        self.space();
        let value = self.string()?;
        let regex = || {
            let what = format!("the regular expression of label `{name}`");
            // Alone first: `a)|(b` must not become well-formed by the anchors' parentheses.
            compile_regex(&value, &what)?;
            compile_regex(&format!("^(?s:{value})$"), &what)
        };
        let operator = match operator_text {
            "=" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "=~" => Operator::Matches(regex()?),
            _ => Operator::MatchesNot(regex()?),
        };
        Ok(Matcher { label, operator, value })
    }

    fn string(&mut self) -> Result<String, QueryError> {
        let start = self.offset;
        let Some(quote @ ('"' | '\'' | '`')) = self.peek() else {
            return Err(self.expected("a value in quotes"));
        };
        self.offset += 1;
        let mut value = String::new();
        while let Some(c) = self.peek() {
            self.offset += c.len_utf8();
            if c == quote {
                return Ok(value);
            }
            if c != '\\' || quote == '`' {
                value.push(c);
                continue;
            }
            let escaped = self.peek();
            value.push(match escaped {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(c @ ('\\' | '"' | '\'')) => c,
                _ => {
                    return Err(self.expected(
                        "one of \\\\ \\\" \\' \\n \\t \\r after a backslash (write it twice in a regular expression)",
                    ));
                }
            });
            self.offset += 1;
        }
        self.offset = start;
        Err(self.error("the quoted value that starts here does not end".to_owned()))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.offset..].chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let taken = self.peek() == Some(c);
        if taken {
            self.offset += c.len_utf8();
        }
        taken
    }

    fn space(&mut self) {
        while let Some(c) = self.peek().filter(|c| c.is_whitespace()) {
            self.offset += c.len_utf8();
        }
    }

    fn position(&self) -> usize {
        self.text[..self.offset].chars().count() + 1
    }

    fn expected(&self, what: &str) -> QueryError {
        let found = match self.peek() {
            Some(c) => format!("found `{c}`"),
            None => "the selector ends there".to_owned(),
        };
        self.error(format!("expected {what}, {found}"))
    }

    fn error(&self, message: String) -> QueryError {
        QueryError::bad_query(
            format!("selector, position {}: {message}", self.position()),
            "a selector looks like {service=\"kubelet\",node=~\"db-.*\"}",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = Selector::parse(text).unwrap_err();
        format!("{error} | {}", error.hint())
    }

    #[test]
    fn reads_every_operator_and_quote() {
        let selector =
            Selector::parse(" { service = \"a\\\"b\" , node != 'x', process=~`r\\d+`,tgid!~\"1.*\", } ").unwrap();
        assert_eq!(
            selector.to_string(),
            r#"{service="a\"b",node!="x",process=~"r\\d+",tgid!~"1.*"}"#
        );
        let [service, node, process, tgid] = selector.matchers() else {
            panic!("four matchers")
        };
        assert!(service.accepts("a\"b") && !service.accepts("a"));
        assert_eq!(service.equal_to(), Some("a\"b"));
        assert!(!node.accepts("x") && node.accepts(""));
        assert!(
            process.accepts("r12") && !process.accepts("xr12") && !process.accepts("r12x"),
            "anchored at both ends"
        );
        assert!(!tgid.accepts("12") && tgid.accepts("21"));
        assert!(selector.has(LabelTable::Processes) && !selector.has(LabelTable::Samples));
    }

    #[test]
    fn canonical_text_reads_back_the_same() {
        for text in ["", "{}", "{mode=\"kernel\"}", "{unit=~'a|b\\n'}", "{pod!=\"\"}"] {
            let once = Selector::parse(text).unwrap().to_string();
            assert_eq!(Selector::parse(&once).unwrap().to_string(), once);
        }
    }

    #[test]
    fn alternation_is_anchored_as_a_whole() {
        let selector = Selector::parse("{service=~\"a|bc\"}").unwrap();
        assert!(selector.matchers()[0].accepts("bc") && !selector.matchers()[0].accepts("ax"));
    }

    #[test]
    fn values_are_told_of_all_but_patterns() {
        let values = |text: &str| Selector::parse(text).unwrap().matchers()[0].values();
        let told =
            |texts: &[&str], not: bool| Some((texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), not));
        assert_eq!(values("{pod=\"a.*\"}"), told(&["a.*"], false));
        assert_eq!(values("{pod!=\"\"}"), told(&[""], true));
        assert_eq!(values("{pod=~`a|b\\.c|`}"), told(&["a", "b.c", ""], false));
        assert_eq!(values("{pod!~\"a-b\"}"), told(&["a-b"], true));
        for pattern in ["a.c", "a.*", "(a|b)", r"\d", "[ab]", "a?", "a{2}", "^a"] {
            assert_eq!(values(&format!("{{pod=~`{pattern}`}}")), None, "{pattern}");
        }
    }

    #[test]
    fn errors_name_position_and_expectation() {
        assert!(error("service=\"a\"").contains("position 1: expected `{`, found `s`"));
        assert!(error("{service}").contains("position 9: expected one of `=`, `!=`, `=~`, `!~`, found `}`"));
        assert!(error("{service=a}").contains("position 10: expected a value in quotes, found `a`"));
        assert!(error("{service=\"ä\" node=\"b\"}").contains("position 14: expected `,` or `}`, found `n`"));
        assert!(error("{service=\"a\"").contains("expected `,` or `}`, the selector ends there"));
        assert!(error("{service=\"a}").contains("position 10: the quoted value that starts here does not end"));
        assert!(error("{service=\"a\"} x").contains("expected the end"));
        assert!(error("{servcie=\"a\"}").contains("unknown label `servcie` at position 2"));
        assert!(error("{servcie=\"a\"}").contains("labels are node, service, process"));
        assert!(error("{,}").contains("expected a label's name"));
    }

    #[test]
    fn attributes_are_named_bare_in_quotes_and_in_full() {
        for (text, written) in [
            ("{acme.team=\"red\"}", "{\"acme.team\"=\"red\"}"),
            ("{\"team\"!~\"a|b\"}", "{\"team\"!~\"a|b\"}"),
            ("{version=\"1\"}", "{version=\"1\"}"),
            ("{service.version=\"1\"}", "{\"service.version\"=\"1\"}"),
            ("{\"attribute.node\"=\"x\"}", "{\"attribute.node\"=\"x\"}"),
            ("{host.name=\"n\"}", "{node=\"n\"}"),
        ] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(selector.to_string(), written);
            let again = Selector::parse(written).unwrap();
            assert_eq!(again.matchers()[0].label(), selector.matchers()[0].label(), "{text}");
        }
    }

    #[test]
    fn a_bad_regex_is_explained_and_a_large_one_is_refused() {
        assert!(error("{node=~\"(\"}").contains("the regular expression of label `node` is malformed: unclosed group"));
        assert!(error("{node=~\"((a{100}){100}){100}\"}").contains("regex too large"));
        assert!(error(&format!("{{node=~\"{}\"}}", "a".repeat(20_000))).contains("at most"));
        let deep = format!("{{node=~\"{}a{}\"}}", "(".repeat(500), ")".repeat(500));
        assert!(error(&deep).contains("malformed"));
        assert!(
            error("{node=~\"a)|(b\"}").contains("malformed"),
            "anchors cannot be escaped from"
        );
    }

    #[test]
    fn no_text_makes_the_parser_panic() {
        let pieces = [
            "{",
            "}",
            "\"",
            "'",
            "`",
            "\\",
            "=",
            "~",
            "!",
            ",",
            " ",
            "service",
            "node",
            "ä",
            "\u{10ffff}",
            ".*",
            "(",
            "\n",
            "a",
        ];
        let mut state = 0x5eed_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            if let Ok(selector) = Selector::parse(&text) {
                let canonical = selector.to_string();
                assert_eq!(Selector::parse(&canonical).unwrap().to_string(), canonical, "{text}");
            }
        }
    }
}
