//! The query endpoints: questions to answers to responses.

use super::AppState;
use super::error::{ApiError, Code};
use super::openapi::format::TreeFormat;
use super::openapi::operation::{
    GET_DIFF, GET_FACETS, GET_FLAMEGRAPH, GET_HEATMAP, GET_LABEL_VALUES, GET_LABELS, GET_RUN_QUEUE, GET_SEARCH,
    GET_SERIES, GET_THREAD_TIME, GET_TIMELINE, GET_TOP, POST_SQL,
};
use super::openapi::parameter::{CRITERIA, MATCH, VIEW};
use super::parameters::Parameters;
use crate::api::answers::respond::{attachment, json_of, json_of_unit, marked, rendered};
use crate::api::answers::tags::Tables;
use crate::api::bodies::asked::{body_of, is_json};
use crate::label::Label;
use crate::query::time::{Window, parse_duration, rfc3339};
use crate::query::{
    self, By, Chart, Engine, Facets, Grid, Limits, MAX_STEPS, QueryError, Question, Spread, Steps, least_step,
    of_whole_hours,
};
use crate::render;
use crate::store::Snapshot;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Path, RawQuery};
use axum::http::Request;
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;

/// Steps of waits for a CPU that nobody chose are no shorter: they come with batches, of which there would be none in
/// most shorter ones.
const LEAST_QUEUE_STEP_NS: i64 = 10_000_000_000;

/// Longest body of an SQL request, in bytes: the longest statement with every byte escaped.
const MAX_SQL_BYTES: usize = 512 << 10;

/// Routes of everything that reads, of a store whose queries may take so much memory and are counted by these servers,
/// and `others` that ask as they do.
pub(super) fn router(memory_bytes: usize, spread: Spread, others: Router<AppState>) -> Router<AppState> {
    routes(Engine::new(Limits::within(memory_bytes)).spreading(spread), others)
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
        .route("/api/v1/run_queue", get(run_queue))
        .route("/api/v1/facets", get(facets))
        .route("/api/v1/thread_time", get(thread_time))
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
            QueryError::TooLarge { .. } | QueryError::TooManyGroups { .. } => Code::TooLarge,
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
        steps: chart_steps(&tables, &parameters, question.window)?,
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

async fn run_queue(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_RUN_QUEUE.parameters)?;
    let (selector, window) = (parameters.selector()?, parameters.window()?);
    let steps = match parameters.get("step") {
        Some(_) => chart_steps(&tables, &parameters, window)?,
        None => Steps::chart(window, query::usual_step(window).max(LEAST_QUEUE_STEP_NS)),
    };
    let chart = (parameters.label()?, steps, parameters.number("limit")?);
    let answer = answered(&engine, &tables, move |_, tables| async move {
        let queues = query::run_queues(&tables, selector, chart).await?;
        rendered(&tables, move |to| render::run_queues(&queues, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

/// The steps of a chart.
fn chart_steps(tables: &Snapshot, parameters: &Parameters, window: Window) -> Result<Steps, QueryError> {
    let step_ns = match parameters.get("step") {
        Some(text) => parse_duration(text, "step")?,
        None => query::usual_step(window).max(least_step(tables, window)),
    };
    let steps = Steps::chart(window, step_ns);
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
    let steps = (parts != "top").then(|| chart_steps(&tables, &parameters, question.window));
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

async fn thread_time(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_THREAD_TIME.parameters)?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let steps = chart_steps(&tables, &parameters, question.window)?;
    let wanted = (parameters.label()?, steps, parameters.number("limit")?);
    let answer = answered(&engine, &tables, move |engine, tables| async move {
        let told = query::thread_time(&engine, &tables, question, wanted).await?;
        rendered(&tables, move |to| render::thread_time(&told, to)).await
    })
    .await?;
    json_of(&tables, answer)
}

async fn flamegraph(
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_FLAMEGRAPH.parameters)?;
    let format = parameters.tree_format()?;
    let question = of_whole_hours(&tables, parameters.question()?);
    let (mut view, min_share) = (parameters.view()?, parameters.min_share()?);
    view.group = parameters.labels("group")?;
    view.sorted = format != TreeFormat::Json;
    view.stacks = format == TreeFormat::Pprof;
    let of_wakers = parameters.word("stacks")? == "wakers";
    let (name, whose) = match of_wakers {
        true => ("wakers", "who ended "),
        false => ("flamegraph", ""),
    };
    let (title, about) = (format!("{whose}{}", title(&question)), question.clone());
    let unit = parameters.unit()?;
    let (answer, choice) = answered(&engine, &tables, move |engine, tables| async move {
        let ([question], choice) = query::of_one_unit(&engine, &tables, [question], unit.as_deref()).await?;
        let graph = match of_wakers {
            true => query::woken_by(&engine, &tables, question, view).await?,
            false => query::flamegraph(&engine, &tables, question, view).await?,
        };
        let answer = rendered(&tables, move |to| match format {
            TreeFormat::Json => render::flamegraph(&graph, min_share, to),
            TreeFormat::Svg => render::svg(&graph, &title, &graph.words(), to),
            TreeFormat::Collapsed => render::collapsed(&graph, to),
            TreeFormat::Pprof => render::pprof(&graph, to),
            TreeFormat::Speedscope => render::speedscope(&graph, &title, to),
        });
        Ok((answer.await?, choice))
    })
    .await?;
    let Some((content_type, extension)) = format.file() else {
        return json_of_unit(&tables, (answer, choice));
    };
    let saved = attachment(answer, content_type, name, &about, extension);
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
    let with_waits = parameters.word("waits")? == "true";
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
            let timeline = query::timeline(&engine, &tables, question, (limit, with_waits)).await?;
            Ok((
                rendered(&tables, move |to| render::timeline(&timeline, to)).await?,
                choice,
            ))
        })
        .await?;
        return json_of_unit(&tables, answer);
    };
    if with_waits {
        return Err(QueryError::BadParameter {
            message: "`waits` with `before`".to_owned(),
            hint: "give the one or the other: what ran before is a tree of one type".to_owned(),
        }
        .into());
    }
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
    let format = parameters.tree_format()?;
    let comparison = of_whole_hours(&tables, parameters.question()?);
    let base = parameters.base_question()?.ok_or_else(without_base)?;
    let base = of_whole_hours(&tables, base);
    let criteria = parameters.criteria(&base, &comparison)?;
    let (mut view, min_share) = (parameters.view()?, parameters.min_share()?);
    view.group = parameters.labels("group")?;
    view.sorted = format != TreeFormat::Json;
    view.min_share = (format == TreeFormat::Json).then_some(min_share);
    let about = comparison.clone();
    let unit = parameters.unit()?;
    let (answer, choice) = answered(&engine, &tables, move |engine, tables| async move {
        let sides = query::of_one_unit(&engine, &tables, [base, comparison], unit.as_deref()).await?;
        let ([base, comparison], choice) = sides;
        let difference = query::difference(&engine, &tables, base, comparison, criteria, view).await?;
        let answer = rendered(&tables, move |to| match format {
            TreeFormat::Svg => render::diff_svg(&difference, "Difference of two windows", to),
            TreeFormat::Collapsed => render::differential(&difference, to),
            // The last two are no words of a difference's `format`.
            TreeFormat::Json | TreeFormat::Pprof | TreeFormat::Speedscope => render::diff(&difference, to),
        });
        Ok((answer.await?, choice))
    })
    .await?;
    let Some((content_type, extension)) = format.file() else {
        return json_of_unit(&tables, (answer, choice));
    };
    let saved = attachment(answer, content_type, "diff", &about, extension);
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
