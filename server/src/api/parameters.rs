//! The parameters of the query endpoints: text to questions. What is wrong with one is said with its name and what is
//! allowed.

use super::openapi::format::TreeFormat;
use super::openapi::parameter::{BASE, BASE_EXCEPT, MATCH, Parameter, Table, Takes};
#[cfg(any(test, fuzzing))]
use super::openapi::parameter::{COMMON, CRITERIA, EXCEPT, FLAMEGRAPH, SERIES, VALUE, VIEW};
use crate::label::Label;
use crate::profile_type;
use crate::query::judge::{Confidence, Criteria, Measure, Normalize};
use crate::query::nodes::Shape;
use crate::query::selector::{Selector, compile_regex};
use crate::query::time::Window;
#[cfg(any(test, fuzzing))]
use crate::query::time::parse_duration;
#[cfg(any(test, fuzzing))]
use crate::query::{self, MAX_STEPS, Steps};
use crate::query::{FrameMatch, MOST_PATH, QueryError, Question, RuntimeFrames, ValueRange, View};
use regex::Regex;
use std::collections::BTreeMap;

/// Longest query string, in bytes.
const MAX_QUERY_BYTES: usize = 64 * 1024;

/// The parameters of one request, each given once and known to the endpoint.
#[derive(Debug)]
pub(super) struct Parameters {
    known: &'static [Table],
    values: BTreeMap<String, String>,
    now_ns: i64,
}

impl Parameters {
    pub(super) fn read(query: Option<String>, known: &'static [Table]) -> Result<Parameters, QueryError> {
        let query = query.unwrap_or_default();
        if query.len() > MAX_QUERY_BYTES {
            return Err(QueryError::BadParameter {
                message: format!(
                    "the query string has {} bytes, at most {MAX_QUERY_BYTES} are allowed",
                    query.len()
                ),
                hint: "shorten the selector".to_owned(),
            });
        }
        let names = || {
            let names: Vec<&str> = known.iter().copied().flatten().map(|one| one.name).collect();
            names.join(", ")
        };
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let bad = |what: &str, hint: String| {
                let name: String = name.chars().take(80).collect();
                QueryError::BadParameter {
                    message: format!("{what} parameter `{name}`"),
                    hint,
                }
            };
            if !known.iter().copied().flatten().any(|one| one.name == name) {
                return Err(bad("unknown", format!("this endpoint takes {}", names())));
            }
            // An empty value is the same as none: forms send them.
            if !value.is_empty() && values.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(bad("repeated", "give it once".to_owned()));
            }
        }
        Ok(Parameters {
            known,
            values,
            now_ns: now_ns(),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// What is given of a table, in its order.
    pub(super) fn given(&self, table: Table) -> impl Iterator<Item = &'static str> {
        let names = table.iter().map(|one| one.name);
        names.filter(|name| self.get(name).is_some())
    }

    /// What is given, or what it is without; empty where that is nothing.
    pub(super) fn usual(&self, name: &str) -> &str {
        let usual = || self.declared(name)?.usual;
        self.get(name).or_else(usual).unwrap_or_default()
    }

    fn declared(&self, name: &str) -> Option<&'static Parameter> {
        self.known.iter().copied().flatten().find(|one| one.name == name)
    }

    fn takes(&self, name: &str) -> Takes {
        self.declared(name).map_or(Takes::Text, |one| one.takes)
    }

    /// One of a few words; empty where none is given, nor usual.
    pub(super) fn word(&self, name: &str) -> Result<&'static str, QueryError> {
        let Takes::Words(words) = self.takes(name) else {
            return Err(undeclared(name));
        };
        match self.usual(name) {
            "" => Ok(""),
            given => words
                .iter()
                .find(|word| **word == given)
                .copied()
                .ok_or_else(|| self.bad(name, format!("one of {}", words.join(", ")))),
        }
    }

    /// The form of a tree.
    pub(super) fn tree_format(&self) -> Result<TreeFormat, QueryError> {
        TreeFormat::of(self.word("format")?).ok_or_else(|| undeclared("format"))
    }

    pub(super) fn number(&self, name: &str) -> Result<usize, QueryError> {
        let Takes::Count { usual, most } = self.takes(name) else {
            return Err(undeclared(name));
        };
        let Some(given) = self.get(name) else {
            return Ok(usual);
        };
        let number = given.parse().ok().filter(|n| (1..=most).contains(n));
        number.ok_or_else(|| self.bad(name, format!("a number from 1 to {most}")))
    }

    pub(super) fn bad(&self, name: &str, allowed: String) -> QueryError {
        let given: String = self.usual(name).chars().take(80).collect();
        QueryError::BadParameter {
            message: format!("`{name}` cannot be `{given}`"),
            hint: format!("`{name}` is {allowed}"),
        }
    }

    pub(super) fn window(&self) -> Result<Window, QueryError> {
        Window::parse(self.usual("from"), self.usual("until"), ["from", "until"], self.now_ns)
    }

    pub(super) fn selector(&self) -> Result<Selector, QueryError> {
        Selector::parse(self.usual("query"))
    }

    pub(super) fn question(&self) -> Result<Question, QueryError> {
        let window = self.window()?;
        Ok(Question {
            profile: self.profile()?,
            selector: self.selector()?,
            window,
            except: self.except(["except_from", "except_until"], window)?,
            unit: None,
            runtime_frames: self.runtime_frames()?,
            values: self.values()?,
            lengths: self.lengths()?,
        })
    }

    /// The time of a window that is left out.
    fn except(&self, names: [&str; 2], window: Window) -> Result<Option<Window>, QueryError> {
        let bad = |message: String, hint: &str| QueryError::BadParameter {
            message,
            hint: hint.to_owned(),
        };
        let (from, until) = match names.map(|name| self.get(name)) {
            [None, None] => return Ok(None),
            [Some(from), Some(until)] => (from, until),
            given => {
                let missing = names[usize::from(given[0].is_some())];
                return Err(bad(
                    format!("`{missing}` is missing"),
                    "what is left out has a start and an end",
                ));
            }
        };
        let except = Window::parse(from, until, names, self.now_ns)?;
        if except.from_ns <= window.from_ns && window.until_ns <= except.until_ns {
            return Err(bad(
                format!("`{}` and `{}` leave nothing of the window", names[0], names[1]),
                "leave out less, or ask for a longer window",
            ));
        }
        // Of it counts what lies in the window.
        let (from_ns, until_ns) = (except.from_ns.max(window.from_ns), except.until_ns.min(window.until_ns));
        Ok((from_ns < until_ns).then_some(Window { from_ns, until_ns }))
    }

    /// Side A of a difference, if any of its parameters is given: what is absent is as in side B.
    pub(super) fn base_question(&self) -> Result<Option<Question>, QueryError> {
        if self.given(BASE).chain(self.given(BASE_EXCEPT)).next().is_none() {
            return Ok(None);
        }
        let side = |base: &str, name| self.get(base).unwrap_or_else(|| self.usual(name));
        let (from, until) = (side("base_from", "from"), side("base_until", "until"));
        let window = Window::parse(from, until, ["base_from", "base_until"], self.now_ns)?;
        let selector = Selector::parse(side("base_query", "query"))?;
        Ok(Some(Question {
            profile: self.profile()?,
            selector,
            window,
            except: self.except(["base_except_from", "base_except_until"], window)?,
            unit: None,
            runtime_frames: self.runtime_frames()?,
            values: self.values()?,
            lengths: self.lengths()?,
        }))
    }

    pub(super) fn profile(&self) -> Result<String, QueryError> {
        let profile = match self.declared("type") {
            None => "cpu",
            Some(_) => self.usual("type"),
        };
        if profile_type::is_allowed(profile) {
            Ok(profile.to_owned())
        } else {
            Err(self.bad("type", profile_type::ALLOWED.to_owned()))
        }
    }

    /// What becomes of runtimes' own frames; a question that tells none can't say.
    fn runtime_frames(&self) -> Result<RuntimeFrames, QueryError> {
        let is_shown = self.get("runtime_frames").is_some() && self.word("runtime_frames")? == "show";
        Ok(if is_shown {
            RuntimeFrames::Show
        } else {
            RuntimeFrames::Fold
        })
    }

    /// Which values samples have that count.
    fn values(&self) -> Result<ValueRange, QueryError> {
        self.range("min_value", "max_value")
    }

    /// How long waits were that count; types that tell of none have no lengths.
    fn lengths(&self) -> Result<ValueRange, QueryError> {
        self.range("min_wait", "max_wait")
    }

    fn range(&self, least: &str, most: &str) -> Result<ValueRange, QueryError> {
        let given = |name: &str| {
            // An endpoint without such a range declares none.
            let number = self.get(name).map(|_| self.number(name)).transpose()?;
            Ok::<_, QueryError>(number.map(|number| number as i64))
        };
        let all = ValueRange::default();
        let range = ValueRange {
            least: given(least)?.unwrap_or(all.least),
            most: given(most)?.unwrap_or(all.most),
        };
        if range.least > range.most {
            return Err(self.bad(most, format!("no less than `{least}`")));
        }
        Ok(range)
    }

    /// In which unit the values of a type are wanted that has several.
    pub(super) fn unit(&self) -> Result<Option<String>, QueryError> {
        match self.get("unit") {
            Some(unit) if !profile_type::is_allowed(unit) => {
                Err(self.bad("unit", profile_type::ALLOWED_UNIT.to_owned()))
            }
            unit => Ok(unit.map(str::to_owned)),
        }
    }

    pub(super) fn criteria(&self, base: &Question, comparison: &Question) -> Result<Criteria, QueryError> {
        Ok(Criteria {
            normalize: self.normalize(base, comparison)?,
            measure: match self.word("measure")? {
                "self" => Measure::Own,
                _ => Measure::Total,
            },
            confidence: self.confidence()?,
        })
    }

    fn confidence(&self) -> Result<Confidence, QueryError> {
        let confidence = self.usual("confidence").parse().ok().and_then(Confidence::new);
        let (least, most) = (Confidence::LEAST, Confidence::MOST);
        confidence.ok_or_else(|| self.bad("confidence", format!("a share from {least} to {most}, such as 0.95")))
    }

    fn normalize(&self, base: &Question, comparison: &Question) -> Result<Normalize, QueryError> {
        Ok(match self.word("normalize")? {
            "rate" => Normalize::Rate,
            "share" => Normalize::Share,
            "absolute" => Normalize::Absolute,
            _ if base.selector.to_string() == comparison.selector.to_string() => Normalize::Rate,
            _ => Normalize::Share,
        })
    }

    /// A regular expression that is searched for anywhere in a text.
    pub(super) fn regex(&self, name: &str) -> Result<Option<Regex>, QueryError> {
        self.get(name)
            .map(|pattern| compile_regex(pattern, &format!("the regular expression of `{name}`")))
            .transpose()
    }

    /// The frames that are looked for, if any are.
    pub(super) fn matching(&self) -> Result<Option<FrameMatch>, QueryError> {
        let given: Vec<&str> = self.given(MATCH).collect();
        if let [one, other, ..] = given[..] {
            return Err(QueryError::BadParameter {
                message: format!("`{one}` and `{other}` at once"),
                hint: "give the one or the other: a pattern, a function, or a place".to_owned(),
            });
        }
        let read = |name: &str, of: fn(&str) -> Result<FrameMatch, String>, shape: &str| {
            let fault = |why| self.bad(name, format!("{shape}, and this is not: {why}"));
            self.get(name).map(|text| of(text).map_err(fault)).transpose()
        };
        let shape = "KIND,MODULE,FUNCTION such as native,kubelet,main.main, or a LANGUAGE such as cpython for KIND";
        let path = format!("frames KIND,MODULE,FUNCTION from the root on, at most {MOST_PATH}, with `;` between");
        Ok(match self.regex("match")? {
            Some(pattern) => Some(FrameMatch::Pattern(pattern)),
            None => read("match_frame", FrameMatch::frame, shape)?.or(read("match_path", FrameMatch::path, &path)?),
        })
    }

    pub(super) fn view(&self) -> Result<View, QueryError> {
        let merge_recursion = self.word("transform")? == "merge_recursion";
        Ok(View {
            shape: Shape {
                root: self.regex("root")?,
                merge_recursion,
            },
            matching: self.matching()?,
            ..View::default()
        })
    }

    /// The labels of a list with commas between, each once.
    pub(super) fn labels(&self, name: &str) -> Result<Vec<Label>, QueryError> {
        let Takes::Labels { most } = self.takes(name) else {
            return Err(undeclared(name));
        };
        let mut labels = Vec::new();
        let given = Some(self.usual(name)).filter(|given| !given.is_empty());
        for text in given.into_iter().flat_map(|given| given.split(',')) {
            let label = Label::parse(text.trim())
                .ok_or_else(|| self.bad(name, format!("labels with commas between: {}", Label::names())))?;
            if labels.contains(&label) || labels.len() >= most {
                return Err(self.bad(name, format!("at most {most} labels, each once")));
            }
            labels.push(label);
        }
        Ok(labels)
    }

    pub(super) fn min_share(&self) -> Result<f64, QueryError> {
        let share = self
            .usual("min_share")
            .parse::<f64>()
            .ok()
            .filter(|share| (0.0..1.0).contains(share));
        share.ok_or_else(|| self.bad("min_share", "a share from 0 to below 1, such as 0.001".to_owned()))
    }

    pub(super) fn label(&self) -> Result<Label, QueryError> {
        Label::parse(self.usual("by")).ok_or_else(|| self.bad("by", format!("one of {}", Label::names())))
    }
}

/// A parameter that is read as what its table does not say: tests of each endpoint would meet it.
fn undeclared(name: &str) -> QueryError {
    QueryError::internal("read the parameters", format!("`{name}` is declared otherwise"))
}

/// All that the endpoints read of a query string, by [`crate::fuzz`].
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_parameters(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes).into_owned();
    const KNOWN: &[Table] = &[
        COMMON,
        VALUE,
        EXCEPT,
        BASE,
        BASE_EXCEPT,
        CRITERIA,
        VIEW,
        MATCH,
        SERIES,
        FLAMEGRAPH,
    ];
    let Ok(parameters) = Parameters::read(Some(query), KNOWN) else {
        return;
    };
    let _ = (parameters.view(), parameters.min_share(), parameters.label());
    if let Ok(limit) = parameters.number("limit") {
        assert!((1..=10_000).contains(&limit));
    }
    let Ok(question) = parameters.question() else { return };
    if let Ok(Some(base)) = parameters.base_question() {
        let _ = parameters.criteria(&base, &question);
    }
    let step_ns = match parameters.get("step") {
        Some(step) => parse_duration(step, "step").ok(),
        None => Some(query::usual_step(question.window)),
    };
    if let Some(step_ns) = step_ns {
        let steps = Steps::chart(question.window, step_ns);
        assert!(steps.count >= 1 && (parameters.get("step").is_some() || steps.count <= MAX_STEPS));
    }
}

fn now_ns() -> i64 {
    chrono::Utc::now().timestamp_nanos_opt().unwrap_or(i64::MAX)
}
