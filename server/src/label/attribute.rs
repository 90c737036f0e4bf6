//! Labels beyond the fixed ones: attributes that senders gave, by their names, and short names for some of them. Does
//! no I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// Bytes of an attribute's name.
pub const MAX_NAME_BYTES: usize = 128;

/// Names of the labels that each sample has a column for.
pub(crate) const FIXED: [&str; 15] = [
    "node",
    "service",
    "process",
    "tgid",
    "thread",
    "tid",
    "cpu",
    "mode",
    "container",
    "pod",
    "namespace",
    "workload",
    "cluster",
    "unit",
    "cgroup",
];

/// What stands before the name of an attribute that could be taken for a fixed label.
pub(crate) const PREFIX: &str = "attribute.";

/// An attribute's name, such as `deployment.environment.name`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeName {
    bytes: [u8; MAX_NAME_BYTES],
    length: u8,
    /// Where a series lacks it, the tag of its image is its value, else its build id: what the label [`VERSION`] means.
    or_tag: bool,
}

/// The label that is the version of a service.
const VERSION: &str = "version";

/// The attribute that tells it best.
const SERVICE_VERSION: &str = "service.version";

/// Attributes that tell an image's tag, the better first; the last is a whole name.
const TAGS: [&str; 3] = ["container.image.tag", "container.image.tags", "container.image.name"];

/// The attribute under which a series has its executable's build id, shortened, where nothing else tells its version.
pub(crate) const BUILD_ID: &str = "process.executable.build_id.gnu";

/// So many digits of a build id tell it from others.
const BUILD_ID_DIGITS: usize = 12;

/// A build id as a series has it; none where one of its other attributes tells a version.
pub(crate) fn build_version<'a>(
    build_id: &'a str,
    mut others: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<&'a str> {
    let short = &build_id[..build_id.floor_char_boundary(BUILD_ID_DIGITS)];
    let tells = |(name, value): (&str, &str)| match name {
        SERVICE_VERSION => true,
        name if name == TAGS[2] => tag_of_name(value).is_some(),
        name => TAGS.contains(&name),
    };
    (!short.is_empty() && !others.any(tells)).then_some(short)
}

/// The tag in an image's name.
fn tag_of_name(name: &str) -> Option<&str> {
    // Behind a digest there is nothing, and a colon before a slash is that of a port.
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    let (_, tag) = name.rsplit_once('/').unwrap_or(("", name)).1.split_once(':')?;
    Some(tag)
}

impl AttributeName {
    /// `None` where it is empty or too long.
    pub fn new(name: &str) -> Option<Self> {
        let length = u8::try_from(name.len()).ok()?;
        let mut bytes = [0; MAX_NAME_BYTES];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        (length > 0).then_some(Self {
            bytes,
            length,
            or_tag: false,
        })
    }

    /// The short name by which alone it can be asked for as it is.
    pub(crate) fn short(&self) -> Option<&'static str> {
        self.or_tag.then_some(VERSION)
    }

    /// Without the prefix that tells it from a fixed label.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    /// Its value among labels as a series has them, a JSON object; empty where it has none.
    pub(crate) fn value_in(self, labels: &str) -> Cow<'_, str> {
        // Mostly there is none at all.
        if labels.is_empty() {
            return Cow::Borrowed("");
        }
        self.value_of(all_in(labels))
    }

    /// The same of labels that were read.
    pub(crate) fn value_of<'l>(self, mut labels: BTreeMap<Cow<'l, str>, Cow<'l, str>>) -> Cow<'l, str> {
        match labels.remove(self.as_str()) {
            None if self.or_tag => image_tag(labels),
            value => value.unwrap_or_default(),
        }
    }
}

impl fmt::Debug for AttributeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The tag of the image that a series' container is of, else its executable's build id.
fn image_tag<'l>(mut labels: BTreeMap<Cow<'l, str>, Cow<'l, str>>) -> Cow<'l, str> {
    let [tag, tags, name] = TAGS.map(|name| labels.remove(name));
    let of_name = || tag_of_name(name.as_deref()?).map(|tag| Cow::Owned(tag.to_owned()));
    let build_id = labels.remove(BUILD_ID);
    tag.or(tags).or_else(of_name).or(build_id).unwrap_or_default()
}

/// All labels of a series beyond the fixed ones.
pub(crate) fn all_in(labels: &str) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    serde_json::from_str(labels).unwrap_or_default()
}

/// A short name of an attribute: `version=service.version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The label by which it can be asked for.
    pub name: String,
    /// The attribute that the label means.
    pub attribute: AttributeName,
}

impl std::str::FromStr for Alias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, attribute) = text
            .split_once('=')
            .ok_or("give NAME=ATTRIBUTE, such as version=service.version")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_name) {
            return Err(format!("the name {name:?}: letters, digits and _ are allowed"));
        }
        if FIXED.contains(&name) {
            return Err(format!("the name {name:?} is that of a label that there is already"));
        }
        let attribute = AttributeName::new(attribute)
            .ok_or_else(|| format!("an attribute's name has 1 to {MAX_NAME_BYTES} bytes"))?;
        Ok(Self {
            name: name.to_owned(),
            attribute,
        })
    }
}

/// Those that there are without being asked for.
const USUAL: [(&str, &str); 2] = [
    (VERSION, SERVICE_VERSION),
    ("environment", "deployment.environment.name"),
];

static ALIASES: OnceLock<Vec<Alias>> = OnceLock::new();

/// Adds short names to the usual ones, once, before the first query is read. One of a usual name takes its place.
pub fn name_attributes(more: Vec<Alias>) {
    let _ = ALIASES.set(with_usual(more));
}

fn with_usual(mut aliases: Vec<Alias>) -> Vec<Alias> {
    for (name, attribute) in USUAL {
        if let Some(mut attribute) = AttributeName::new(attribute)
            && !aliases.iter().any(|alias| alias.name == name)
        {
            attribute.or_tag = name == VERSION;
            let name = name.to_owned();
            aliases.push(Alias { name, attribute });
        }
    }
    aliases
}

pub(crate) fn aliases() -> &'static [Alias] {
    ALIASES.get_or_init(|| with_usual(Vec::new()))
}

/// The attribute that a label's name means: a short name, or its own, which has a dot, slash or dash, or a prefix.
pub(crate) fn by_label_name(name: &str) -> Option<AttributeName> {
    if let Some(alias) = aliases().iter().find(|alias| alias.name == name) {
        return Some(alias.attribute);
    }
    if let Some(plain) = name.strip_prefix(PREFIX) {
        return AttributeName::new(plain);
    }
    name.contains(['.', '/', '-'])
        .then(|| AttributeName::new(name))
        .flatten()
}

/// Under which names an attribute can be asked for: its own, and short ones.
pub(crate) fn label_names(attribute: &str) -> Vec<String> {
    let own = match by_label_name(attribute) {
        Some(of_label) if of_label.as_str() == attribute => attribute.to_owned(),
        _ => format!("{PREFIX}{attribute}"),
    };
    let is_meant = |alias: &&Alias| {
        let stands_in = TAGS.contains(&attribute) || attribute == BUILD_ID;
        alias.attribute.as_str() == attribute || (alias.attribute.or_tag && stands_in)
    };
    let short = aliases().iter().filter(is_meant);
    std::iter::once(own)
        .chain(short.map(|alias| alias.name.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_their_own_and_by_short_names() {
        let meant = |name: &str| by_label_name(name).map(|name| name.as_str().to_owned());
        assert_eq!(meant("version").unwrap(), "service.version");
        assert_eq!(meant("acme.team").unwrap(), "acme.team");
        assert_eq!(meant("attribute.team").unwrap(), "team");
        assert_eq!(meant("servce"), None);
        assert_eq!(meant(&format!("a.{}", "x".repeat(MAX_NAME_BYTES))), None);
        assert_eq!(label_names("service.version"), ["service.version", "version"]);
        assert_eq!(label_names("team"), ["attribute.team"]);
        assert_eq!(label_names("container.image.tag"), ["container.image.tag", "version"]);
        let name = AttributeName::new("a.b").unwrap();
        assert_eq!(name.value_in(r#"{"a":"1","a.b":"x\"y"}"#), "x\"y");
        assert_eq!((name.value_in("{}"), name.value_in("")), ("".into(), "".into()));
    }

    #[test]
    fn a_version_is_the_services_or_else_the_images_tag() {
        let version = by_label_name("version").unwrap();
        let own = by_label_name("service.version").unwrap();
        for (labels, right) in [
            (r#"{"service.version":"1","container.image.tag":"2"}"#, "1"),
            (r#"{"container.image.tag":"2","container.image.tags":"3"}"#, "2"),
            (r#"{"container.image.tags":"3","container.image.name":"a:4"}"#, "3"),
            (r#"{"container.image.name":"a:4"}"#, "4"),
            (
                r#"{"container.image.name":"localhost:5000/a/b:4.1-rc@sha256:00"}"#,
                "4.1-rc",
            ),
            (r#"{"container.image.name":"localhost:5000/a/b"}"#, ""),
            (r#"{"container.image.name":"a@sha256:00"}"#, ""),
            (r#"{"process.executable.build_id.gnu":"c0ffee"}"#, "c0ffee"),
            (
                r#"{"container.image.name":"a:4","process.executable.build_id.gnu":"c0ffee"}"#,
                "4",
            ),
            ("{}", ""),
            ("", ""),
        ] {
            assert_eq!(version.value_in(labels), right, "{labels}");
            assert_eq!(own.value_in(labels), if right == "1" { "1" } else { "" });
        }
    }

    #[test]
    fn a_build_id_is_a_version_where_nothing_else_is() {
        let of = |others: &[(&'static str, &'static str)]| build_version("c0ffee00c0ffee00", others.iter().copied());
        assert_eq!(of(&[("acme.team", "red")]), Some("c0ffee00c0ff"));
        assert_eq!(
            of(&[("container.image.name", "localhost:5000/a")]),
            Some("c0ffee00c0ff")
        );
        for other in [
            ("service.version", "1"),
            ("container.image.name", "a:4"),
            ("container.image.tags", "4"),
        ] {
            assert_eq!(of(&[("acme.team", "red"), other]), None, "{other:?}");
        }
        assert_eq!(build_version("", [].into_iter()), None);
        assert_eq!(build_version("ab", [].into_iter()), Some("ab"));
    }

    #[test]
    fn a_short_name_is_a_word_that_no_label_has() {
        assert_eq!(
            "team=acme.team".parse::<Alias>().unwrap().attribute.as_str(),
            "acme.team"
        );
        for wrong in [
            "team",
            "=x",
            "te am=x",
            "team=",
            "node=x",
            &format!("a={}", "x".repeat(129)),
        ] {
            assert!(wrong.parse::<Alias>().is_err(), "{wrong}");
        }
    }
}
