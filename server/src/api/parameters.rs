//! The parameters of the query endpoints: text to questions. What is wrong with one is said with its name and what is
//! allowed.

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
use crate::query::{FrameMatch, MOST_PATH, QueryError, Question, View};
use regex::Regex;
use std::collections::BTreeMap;

/// Longest query string, in bytes.
const MAX_QUERY_BYTES: usize = 64 * 1024;
/// Most rows of a table, and lines of a chart.
const MAX_LIMIT: usize = 10_000;
/// Parameters that endpoints share: what is asked for, side A of a difference, and how a tree is looked at.
pub(super) const COMMON: [&str; 4] = ["type", "query", "from", "until"];
pub(super) const BASE: [&str; 3] = ["base_query", "base_from", "base_until"];
/// Which values of a type with several units.
pub(super) const UNIT: [&str; 1] = ["unit"];
/// Time that is left out, of side B and of side A.
pub(super) const EXCEPT: [&str; 2] = ["except_from", "except_until"];
pub(super) const BASE_EXCEPT: [&str; 2] = ["base_except_from", "base_except_until"];
/// How a difference is judged.
pub(super) const CRITERIA: [&str; 3] = ["normalize", "measure", "confidence"];
pub(super) const VIEW: [&str; 3] = ["min_share", "root", "transform"];
/// Which frames are looked for: by a pattern, a function, or a place.
pub(super) const MATCH: [&str; 3] = ["match", "match_frame", "match_path"];

/// The parameters of one request, each given once and known to the endpoint.
#[derive(Debug)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    now_ns: i64,
}

impl Parameters {
    pub(super) fn read(query: Option<String>, allowed: &[&[&str]]) -> Result<Parameters, QueryError> {
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
        let names = || allowed.concat().join(", ");
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let bad = |what: &str, hint: String| {
                let name: String = name.chars().take(80).collect();
                QueryError::BadParameter {
                    message: format!("{what} parameter `{name}`"),
                    hint,
                }
            };
            if !allowed.iter().any(|names| names.contains(&name.as_ref())) {
                return Err(bad("unknown", format!("this endpoint takes {}", names())));
            }
            // An empty value is the same as none: forms send them.
            if !value.is_empty() && values.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(bad("repeated", "give it once".to_owned()));
            }
        }
        Ok(Parameters {
            values,
            now_ns: now_ns(),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(super) fn or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], default: T) -> Result<T, QueryError> {
        let Some(given) = self.get(name) else {
            return Ok(default);
        };
        words
            .iter()
            .find(|(word, _)| *word == given)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.bad(name, format!("one of {}", allowed.join(", ")))
            })
    }

    pub(super) fn number(&self, name: &str, default: usize) -> Result<usize, QueryError> {
        self.number_up_to(name, default, MAX_LIMIT)
    }

    pub(super) fn number_up_to(&self, name: &str, default: usize, most: usize) -> Result<usize, QueryError> {
        let Some(given) = self.get(name) else {
            return Ok(default);
        };
        let number = given.parse().ok().filter(|n| (1..=most).contains(n));
        number.ok_or_else(|| self.bad(name, format!("a number from 1 to {most}")))
    }

    pub(super) fn bad(&self, name: &str, allowed: String) -> QueryError {
        let given: String = self.or(name, "").chars().take(80).collect();
        QueryError::BadParameter {
            message: format!("`{name}` cannot be `{given}`"),
            hint: format!("`{name}` is {allowed}"),
        }
    }

    pub(super) fn question(&self) -> Result<Question, QueryError> {
        let window = Window::parse(
            self.or("from", "now-1h"),
            self.or("until", "now"),
            ["from", "until"],
            self.now_ns,
        )?;
        Ok(Question {
            profile: self.profile()?,
            selector: Selector::parse(self.or("query", "{}"))?,
            window,
            except: self.except(EXCEPT, window)?,
            unit: None,
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
        if BASE.iter().chain(&BASE_EXCEPT).all(|name| self.get(name).is_none()) {
            return Ok(None);
        }
        let from = self.or("base_from", self.or("from", "now-1h"));
        let until = self.or("base_until", self.or("until", "now"));
        let window = Window::parse(from, until, ["base_from", "base_until"], self.now_ns)?;
        let selector = Selector::parse(self.or("base_query", self.or("query", "{}")))?;
        Ok(Some(Question {
            profile: self.profile()?,
            selector,
            window,
            except: self.except(BASE_EXCEPT, window)?,
            unit: None,
        }))
    }

    pub(super) fn profile(&self) -> Result<String, QueryError> {
        let profile = self.or("type", "cpu");
        if profile_type::is_allowed(profile) {
            Ok(profile.to_owned())
        } else {
            Err(self.bad("type", profile_type::ALLOWED.to_owned()))
        }
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
        let measures = [Measure::Total, Measure::Own].map(|m| (m.name(), m));
        Ok(Criteria {
            normalize: self.normalize(base, comparison)?,
            measure: self.word("measure", &measures, Measure::Total)?,
            confidence: self.confidence()?,
        })
    }

    fn confidence(&self) -> Result<Confidence, QueryError> {
        let Some(given) = self.get("confidence") else {
            return Ok(Confidence::default());
        };
        let confidence = given.parse().ok().and_then(Confidence::new);
        let (least, most) = (Confidence::LEAST, Confidence::MOST);
        confidence.ok_or_else(|| self.bad("confidence", format!("a share from {least} to {most}, such as 0.95")))
    }

    fn normalize(&self, base: &Question, comparison: &Question) -> Result<Normalize, QueryError> {
        let same = base.selector.to_string() == comparison.selector.to_string();
        let default = if same { Normalize::Rate } else { Normalize::Share };
        let words = [Normalize::Rate, Normalize::Share, Normalize::Absolute].map(|n| (n.name(), n));
        self.word("normalize", &words, default)
    }

    /// A regular expression that is searched for anywhere in a text.
    pub(super) fn regex(&self, name: &str) -> Result<Option<Regex>, QueryError> {
        self.get(name)
            .map(|pattern| compile_regex(pattern, &format!("the regular expression of `{name}`")))
            .transpose()
    }

    /// The frames that are looked for, if any are.
    pub(super) fn matching(&self) -> Result<Option<FrameMatch>, QueryError> {
        let given: Vec<&str> = MATCH.into_iter().filter(|name| self.get(name).is_some()).collect();
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
        let shape = "KIND,MODULE,FUNCTION such as native,kubelet,main.main";
        let path = format!("frames KIND,MODULE,FUNCTION from the root on, at most {MOST_PATH}, with `;` between");
        Ok(match self.regex("match")? {
            Some(pattern) => Some(FrameMatch::Pattern(pattern)),
            None => read("match_frame", FrameMatch::frame, shape)?.or(read("match_path", FrameMatch::path, &path)?),
        })
    }

    pub(super) fn view(&self) -> Result<View, QueryError> {
        let merge_recursion = self.word("transform", &[("merge_recursion", true)], false)?;
        Ok(View {
            shape: Shape {
                root: self.regex("root")?,
                merge_recursion,
            },
            matching: self.matching()?,
            ..View::default()
        })
    }

    pub(super) fn min_share(&self) -> Result<f64, QueryError> {
        let share = self
            .or("min_share", "0")
            .parse::<f64>()
            .ok()
            .filter(|share| (0.0..1.0).contains(share));
        share.ok_or_else(|| self.bad("min_share", "a share from 0 to below 1, such as 0.001".to_owned()))
    }

    pub(super) fn label(&self, default: &str) -> Result<Label, QueryError> {
        Label::parse(self.or("by", default)).ok_or_else(|| self.bad("by", format!("one of {}", Label::names())))
    }
}

/// All that the endpoints read of a query string, by [`crate::fuzz`].
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_parameters(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes).into_owned();
    let own: &[&str] = &["by", "step", "limit", "format"];
    let known: [&[&str]; 8] = [&COMMON, &EXCEPT, &BASE, &BASE_EXCEPT, &CRITERIA, &VIEW, &MATCH, own];
    let Ok(parameters) = Parameters::read(Some(query), &known) else {
        return;
    };
    let _ = (parameters.view(), parameters.min_share(), parameters.label("service"));
    if let Ok(limit) = parameters.number("limit", 20) {
        assert!((1..=MAX_LIMIT).contains(&limit));
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
