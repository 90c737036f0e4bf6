//! The query endpoints: questions to answers to responses.

use super::AppState;
use super::error::{ApiError, Code};
use super::openapi::operation::{
    GET_DIFF, GET_FACETS, GET_FLAMEGRAPH, GET_HEATMAP, GET_LABEL_VALUES, GET_LABELS, GET_SEARCH, GET_SERIES,
    GET_TIMELINE, GET_TOP, POST_SQL,
};
use super::openapi::parameter::{CRITERIA, MATCH, VIEW};
use super::parameters::Parameters;
use crate::api::answers::body::body;
use crate::api::answers::tags::{CACHING, DAMAGED, Tables};
use crate::label::Label;
use crate::query::time::{parse_duration, rfc3339};
use crate::query::{
    self, By, Chart, Engine, Facets, Grid, Limits, MAX_STEPS, QueryError, Question, Reservation, Steps, least_step,
    of_whole_hours,
};
use crate::render::{self, Answer, RenderError, Writer};
use crate::store::Snapshot;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Path, RawQuery};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::Duration;

/// Most damaged files that an answer names.
const MAX_DAMAGED: usize = 100;

/// Longest body of an SQL request, in bytes: the longest statement with every byte escaped.
const MAX_SQL_BYTES: usize = 512 << 10;

/// An SQL request's body must have come within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Routes of everything that reads, of a store whose queries may take so much memory, and `others` that ask as they do.
pub(super) fn router(memory_bytes: usize, others: Router<AppState>) -> Router<AppState> {
    routes(Engine::new(Limits::within(memory_bytes)), others)
}

/// The same without others, with limits of the caller's choice.
pub fn router_with(engine: Engine) -> Router<AppState> {
    routes(engine, Router::new())
}

fn routes(engine: Engine, others: Router<AppState>) -> Router<AppState> {
    Router::new()
        .route("/api/v1/labels", get(labels))
        .route("/api/v1/labels/{name}/values", get(label_values))
        .route("/api/v1/search", get(search))
        .route("/api/v1/series", get(series))
        .route("/api/v1/facets", get(facets))
        .route("/api/v1/flamegraph", get(flamegraph))
        .route("/api/v1/heatmap", get(heatmap))
        .route("/api/v1/timeline", get(timeline))
        .route("/api/v1/diff", get(diff))
        .route("/api/v1/top", get(top))
        .route("/api/v1/sql", post(sql).layer(DefaultBodyLimit::max(MAX_SQL_BYTES)))
        .merge(others)
        .layer(Extension(Arc::new(engine)))
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let code = match &error {
            QueryError::BadQuery { .. } => Code::BadQuery,
            QueryError::BadTime { .. } => Code::BadTime,
            QueryError::BadParameter { .. } => Code::BadParameter,
            QueryError::TooLarge { .. } => Code::TooLarge,
            QueryError::Overloaded { .. } => Code::Overloaded,
            QueryError::NoMemory { .. } if error.is_temporary() => Code::Overloaded,
            QueryError::NoMemory { .. } => Code::TooLarge,
            QueryError::Timeout { .. } => Code::Timeout,
            QueryError::Internal { .. } => Code::Internal,
        };
        let api = ApiError::new(code, error.to_string()).hint(error.hint());
        if error.is_temporary() {
            return api.retry_after(2);
        }
        match error {
            QueryError::Internal { what, cause } => api.cause(format!("{what}: {cause}")),
            _ => api,
        }
    }
}

fn json(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, CACHING),
    ];
    (headers, body).into_response()
}

/// An answer from tables whose damaged files were left out says so: in a header, and JSON with their names.
fn json_of(tables: &Snapshot, answer: Answer) -> Result<Response, ApiError> {
    json_of_unit(tables, (answer, None))
}

/// The same of an answer that says which of several units it is of.
fn json_of_unit(tables: &Snapshot, (answer, choice): (Answer, Option<String>)) -> Result<Response, ApiError> {
    let mut left_out = tables.left_out();
    if left_out.is_empty() && choice.is_none() {
        return Ok(json(body(answer)));
    }
    // Every answer is an object with fields: these are put before them, whoever has written them.
    let mut head = String::from("{");
    if !left_out.is_empty() {
        left_out.truncate(MAX_DAMAGED);
        let names = serde_json::to_string(&left_out).map_err(ApiError::internal)?;
        head.push_str(&format!("\"damaged_files\":{names},"));
    }
    if let Some(words) = &choice {
        let words = serde_json::to_string(words).map_err(ApiError::internal)?;
        head.push_str(&format!("\"unit_choice\":{words},"));
    }
    Ok(marked(tables, choice, json(body(answer.with_head(head.into_bytes())))))
}

/// The headers of an answer from which damaged files were left out (how many), and of one of several units (in words).
fn marked(tables: &Snapshot, choice: Option<String>, mut response: Response) -> Response {
    if let Some(words) = choice.and_then(|words| HeaderValue::from_bytes(words.as_bytes()).ok()) {
        response.headers_mut().insert("stakeout-unit-choice", words);
    }
    let count = tables.left_out().len();
    if count > 0 {
        response.headers_mut().insert(DAMAGED, HeaderValue::from(count));
    }
    response
}

/// A file to be saved under a name that says what it holds.
fn attachment(
    answer: Answer,
    content_type: &'static str,
    name: &str,
    question: &Question,
    extension: &str,
) -> Response {
    let time = |ns: i64| {
        chrono::DateTime::from_timestamp_nanos(ns)
            .format("%Y%m%dT%H%M%SZ")
            .to_string()
    };
    let window = question.window;
    // A type may have what a header or a file's name must not.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let profile = question.profile.replace(|c| !is_plain(c), "_");
    let disposition = format!(
        "attachment; filename=\"stakeout-{name}-{}-{}-{}.{extension}\"",
        profile,
        time(window.from_ns),
        time(window.until_ns)
    );
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, CACHING.to_owned()),
    ];
    (headers, body(answer)).into_response()
}

/// Rendering large answers is work too, apart from the threads that serve requests, and a part of the query: it is
/// done in the query's turn, and on the account of queries.
async fn rendered(
    tables: &Snapshot,
    work: impl FnOnce(&mut Writer) -> Result<(), RenderError> + Send + 'static,
) -> Result<Answer, QueryError> {
    let mut to = Writer::new(Reservation::new(tables, "answers as they are written"));
    let written = tokio::task::spawn_blocking(move || {
        let done = work(&mut to);
        to.finish(done)
    });
    written
        .await
        .map_err(|error| QueryError::internal("write the answer", error))?
}

/// Answers a question of these tables on the threads of questions, in its turn.
pub(super) async fn answered<T, F>(
    engine: &Arc<Engine>,
    tables: &Snapshot,
    question: impl FnOnce(Arc<Engine>, Snapshot) -> F,
) -> Result<T, QueryError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, QueryError>> + Send + 'static,
{
    engine.run(question(Arc::clone(engine), tables.clone())).await
}

async fn labels(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let question = Parameters::read(query, GET_LABELS.parameters)?.question()?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let types = query::profile_types(&engine, &tables, question.window).await?;
        let names = query::label_names(&tables, &question).await?;
        rendered(&tables, move |to| render::labels(&names, &types, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

async fn label_values(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_LABEL_VALUES.parameters)?;
    let (question, limit) = (parameters.question()?, parameters.number("limit")?);
    let word = parameters.get("search").map(str::to_owned);
    let label = Label::parse(&name).ok_or_else(|| {
        let name: String = name.chars().take(80).collect();
        ApiError::new(Code::NotFound, format!("unknown label `{name}`")).hint(format!("labels are {}", Label::names()))
    })?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let wanted = (word.as_deref(), limit);
        let values = query::label_values(&engine, &tables, &question, label, wanted).await?;
        rendered(&tables, move |to| render::label_values(label, &values, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

async fn search(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_SEARCH.parameters)?;
    let (question, limit) = (parameters.question()?, parameters.number("limit")?);
    let word = parameters.usual("search").to_owned();
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let found = query::search(&engine, &tables, &question, &word, limit).await?;
        rendered(&tables, move |to| render::found(&word, &found, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

async fn series(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_SERIES.parameters)?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let by = parameters.label()?;
    let chart = Chart {
        by,
        steps: chart_steps(&tables, &parameters, &question)?,
        limit: parameters.number("limit")?,
        matching: parameters.matching()?,
    };
    let unit = parameters.unit()?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let series = query::series(&engine, &tables, question, chart).await?;
        Ok((rendered(&tables, move |to| render::series(&series, to)).await?, choice))
    })
    .await?;
    json_of_unit(&tables, answer)
}

/// The steps of a chart.
fn chart_steps(tables: &Snapshot, parameters: &Parameters, question: &Question) -> Result<Steps, QueryError> {
    let step_ns = match parameters.get("step") {
        Some(text) => parse_duration(text, "step")?,
        None => query::usual_step(question.window).max(least_step(tables, question.window)),
    };
    let steps = Steps::chart(question.window, step_ns);
    if steps.count > MAX_STEPS {
        return Err(QueryError::BadParameter {
            message: format!(
                "`step` cuts the window into {} steps, at most {MAX_STEPS} are allowed",
                steps.count
            ),
            hint: "give a longer `step`, or none".to_owned(),
        });
    }
    Ok(steps)
}

async fn facets(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_FACETS.parameters)?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let parts = parameters.word("parts")?;
    let steps = (parts != "top").then(|| chart_steps(&tables, &parameters, &question));
    let wanted = Facets {
        by: parameters.labels("by")?,
        steps: steps.transpose()?,
        tables: parts != "series",
        limit: parameters.number("limit")?,
        matching: parameters.matching()?,
    };
    let unit = parameters.unit()?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let facets = query::facets(&engine, &tables, question.clone(), wanted).await?;
        let answer = rendered(&tables, move |to| render::facets(&question, &facets, to));
        Ok((answer.await?, choice))
    })
    .await?;
    json_of_unit(&tables, answer)
}

async fn flamegraph(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_FLAMEGRAPH.parameters)?;
    let format = parameters.word("format")?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let (mut view, min_share) = (parameters.view()?, parameters.min_share()?);
    view.group = parameters.labels("group")?;
    view.sorted = format != "json";
    view.stacks = format == "pprof";
    let (title, about) = (title(&question), question.clone());
    let unit = parameters.unit()?;
    let (answer, choice) = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let graph = query::flamegraph(&engine, &tables, question, view).await?;
        let answer = rendered(&tables, move |to| match format {
            "svg" => render::svg(&graph, &title, &graph.summary.words(), to),
            "collapsed" => render::collapsed(&graph, to),
            "pprof" => render::pprof(&graph, to),
            "speedscope" => render::speedscope(&graph, &title, to),
            _ => render::flamegraph(&graph, min_share, to),
        });
        Ok((answer.await?, choice))
    })
    .await?;
    let (content_type, extension) = match format {
        "svg" => ("image/svg+xml", "svg"),
        "collapsed" => ("text/plain; charset=utf-8", "collapsed.txt"),
        "pprof" => ("application/octet-stream", "pb.gz"),
        "speedscope" => ("application/json", "speedscope.json"),
        _ => return json_of_unit(&tables, (answer, choice)),
    };
    let saved = attachment(answer, content_type, "flamegraph", &about, extension);
    Ok(marked(&tables, choice, saved))
}

fn title(question: &Question) -> String {
    let window = question.window;
    format!(
        "{} {} {} to {}",
        question.profile,
        question.selector,
        rfc3339(window.from_ns),
        rfc3339(window.until_ns)
    )
}

async fn heatmap(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_HEATMAP.parameters)?;
    let question = parameters.question()?;
    let grid = Grid {
        columns: Steps::of(question.window, parse_duration(parameters.usual("step"), "step")?),
        rows: parameters.number("rows")?,
    };
    let unit = parameters.unit()?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let map = query::heatmap(&engine, &tables, question, grid).await?;
        Ok((rendered(&tables, move |to| render::heatmap(&map, to)).await?, choice))
    })
    .await?;
    json_of_unit(&tables, answer)
}

async fn timeline(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_TIMELINE.parameters)?;
    let (question, mut view, min_share) = (parameters.question()?, parameters.view()?, parameters.min_share()?);
    let unit = parameters.unit()?;
    let Some(before) = parameters.get("before") else {
        if let Some(name) = parameters.given(VIEW).chain(parameters.given(MATCH)).next() {
            return Err(QueryError::BadParameter {
                message: format!("`{name}` without `before`"),
                hint: "with `before` and `match` the answer is a flamegraph of what ran before; without, samples one by one".to_owned(),
            }
            .into());
        }
        let limit = parameters.number("limit")?;
        let answer = answered(&engine, &tables, move |engine, tables| async move {
            let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
            let timeline = query::timeline(&engine, &tables, question, limit).await?;
            Ok((
                rendered(&tables, move |to| render::timeline(&timeline, to)).await?,
                choice,
            ))
        })
        .await?;
        return json_of_unit(&tables, answer);
    };
    let before_ns = parse_duration(before, "before")?;
    let Some(wanted) = view.matching.take() else {
        return Err(QueryError::BadParameter {
            message: "`before` without `match`".to_owned(),
            hint: "`match` is a regular expression (or `match_frame`, `match_path`): shown is what ran up to `before` \
                   before samples with such a frame"
                .to_owned(),
        }
        .into());
    };
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let graph = query::before(&engine, &tables, question, &wanted, before_ns, view).await?;
        let answer = rendered(&tables, move |to| render::flamegraph(&graph, min_share, to));
        Ok((answer.await?, choice))
    })
    .await?;
    json_of_unit(&tables, answer)
}

fn without_base() -> QueryError {
    QueryError::BadParameter {
        message: "nothing to compare with: none of `base_query`, `base_from`, `base_until` is given".to_owned(),
        hint: "base_from and base_until name the window before, base_query another selector".to_owned(),
    }
}

async fn diff(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_DIFF.parameters)?;
    let format = parameters.word("format")?;
    let comparison = of_whole_hours(&tables, parameters.question()?);
    let base = parameters.base_question()?.ok_or_else(without_base)?;
    let base = of_whole_hours(&tables, base);
    let criteria = parameters.criteria(&base, &comparison)?;
    let (mut view, min_share) = (parameters.view()?, parameters.min_share()?);
    view.group = parameters.labels("group")?;
    view.sorted = format != "json";
    view.min_share = (format == "json").then_some(min_share);
    let about = comparison.clone();
    let unit = parameters.unit()?;
    let (answer, choice) = answered(&engine, &tables, move |engine, tables| async move {
        let sides = query::of_one_unit(&engine, &tables, [base, comparison], unit.as_deref()).await?;
        let ([base, comparison], choice) = sides;
        let difference = query::difference(&engine, &tables, base, comparison, criteria, view).await?;
        let answer = rendered(&tables, move |to| match format {
            "svg" => render::diff_svg(&difference, "Difference of two windows", to),
            "collapsed" => render::differential(&difference, to),
            _ => render::diff(&difference, to),
        });
        Ok((answer.await?, choice))
    })
    .await?;
    let saved = match format {
        "svg" => attachment(answer, "image/svg+xml", "diff", &about, "svg"),
        "collapsed" => attachment(answer, "text/plain; charset=utf-8", "diff", &about, "collapsed.txt"),
        _ => return json_of_unit(&tables, (answer, choice)),
    };
    Ok(marked(&tables, choice, saved))
}

async fn top(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_TOP.parameters)?;
    let format = parameters.word("format")?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let by = match parameters.usual("by") {
        "function" => By::Function,
        name => By::Label(
            Label::parse(name)
                .ok_or_else(|| parameters.bad("by", format!("function, or one of {}", Label::names())))?,
        ),
    };
    let limit = parameters.number("limit")?;
    let about = question.clone();
    let base = match parameters.base_question()? {
        Some(base) => {
            let base = of_whole_hours(&tables, base);
            let criteria = parameters.criteria(&base, &question)?;
            Some((base, criteria))
        }
        None if parameters.given(CRITERIA).next().is_some() => return Err(without_base().into()),
        None => None,
    };
    let matching = parameters.matching()?;
    if let (Some(_), Some(name)) = (&base, parameters.given(MATCH).next()) {
        return Err(QueryError::BadParameter {
            message: format!("`{name}` with `base_*`"),
            hint: "samples with a frame are ranked of one window; a difference is of all samples".to_owned(),
        }
        .into());
    }
    let unit = parameters.unit()?;
    let (answer, choice) = answered(&engine, &tables, move |engine, tables| async move {
        let unit = unit.as_deref();
        let (table, choice) = match base {
            Some((base, criteria)) => {
                let sides = query::of_one_unit(&engine, &tables, [base, question], unit).await?;
                let ([base, question], choice) = sides;
                let table = query::top_difference(&engine, &tables, base, question, criteria, by, limit).await?;
                (table, choice)
            }
            None => {
                let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit).await?;
                (
                    query::top(&engine, &tables, question, by, limit, matching).await?,
                    choice,
                )
            }
        };
        let answer = rendered(&tables, move |to| match format {
            "csv" => render::top_csv(&table, to),
            _ => render::top(&table, to),
        });
        Ok((answer.await?, choice))
    })
    .await?;
    if format == "csv" {
        let saved = attachment(answer, "text/csv; charset=utf-8", "top", &about, "csv");
        return Ok(marked(&tables, choice, saved));
    }
    json_of_unit(&tables, (answer, choice))
}

/// A page of another site can send any text without being asked, but not JSON.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let kind: String = kind.chars().take(80).collect();
    Err(
        ApiError::new(Code::UnsupportedMediaType, format!("the content type is {kind:?}"))
            .hint("send JSON, with `Content-Type: application/json`"),
    )
}

async fn sql(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
    asked: Request<Body>,
) -> Result<Response, ApiError> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sql {
        query: String,
    }
    Parameters::read(query, POST_SQL.parameters)?;
    is_json(asked.headers())?;
    let body = body_of(asked, MAX_SQL_BYTES).await?;
    let request: Sql = serde_json::from_slice(&body).map_err(|error| {
        ApiError::new(Code::BadParameter, format!("the body is no SQL request: {error}"))
            .hint("send JSON such as {\"query\":\"SELECT count(*) FROM samples\"}")
    })?;
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let rows = query::sql(&engine.admission, &tables, &request.query).await?;
        rendered(&tables, move |to| render::sql(&rows, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

/// The body of a request that may have so many bytes, as its route has it.
pub(super) async fn body_of(asked: Request<Body>, most: usize) -> Result<Bytes, ApiError> {
    let body = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(asked, &()))
        .await
        .map_err(|_| {
            ApiError::new(
                Code::BadParameter,
                format!("the body did not come within {} s", BODY_TIMEOUT.as_secs()),
            )
            .status(StatusCode::REQUEST_TIMEOUT)
            .hint("send it at once")
        })?;
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
            Code::TooLarge,
            format!("the body has more than {most} bytes, the most that such a request may have"),
        )
        .hint("shorten it"),
        _ => ApiError::new(Code::BadParameter, format!("the body cannot be read: {rejection}")).hint("send it again"),
    })
}
