//! A command line as it is shown: secrets cut out, or none at all. Pure.
//!
//! What is cut is decided by names (`--password`, `API_KEY=`, `Authorization:`), by places where everybody puts
//! secrets (`user:secret@` in a URL, `-pSECRET` of mysql) and by the looks of well-known tokens. In doubt more is cut
//! than need be.

use clap::ValueEnum;

/// How much of command lines is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CommandLines {
    /// Without what looks like a secret.
    #[default]
    Cut,
    /// Whole, secrets as well.
    Whole,
    /// None.
    Off,
}

/// Stands for what was cut.
const CUT: &str = "***";
/// Longer ones end here: arguments can be megabytes.
const LONGEST_BYTES: usize = 1024;

/// Parts of names that name a secret.
const SECRETS: [&str; 24] = [
    "apikey",
    "apitoken",
    "auth",
    "authorization",
    "authtoken",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "creds",
    "key",
    "keys",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "token",
];
/// The same within words that are written together.
const WITHIN: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "token",
    "authorization",
    "cookie",
];
/// With these as its last part a name is of something about the secret. Where the secret is, is none.
const ABOUT: [&str; 27] = [
    "algorithm",
    "bits",
    "count",
    "dir",
    "directory",
    "enabled",
    "endpoint",
    "expiry",
    "file",
    "files",
    "folder",
    "format",
    "jar",
    "length",
    "lifetime",
    "limit",
    "method",
    "mode",
    "name",
    "path",
    "plugin",
    "server",
    "size",
    "timeout",
    "ttl",
    "type",
    "url",
];
/// And with these as its first.
const NEITHER: [&str; 9] = ["ask", "disable", "max", "min", "no", "num", "prompt", "skip", "without"];

/// How tokens of well-known services begin.
const TOKENS: [&str; 17] = [
    "AKIA",
    "ASIA",
    "AIza",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "hvs.",
    "npm_",
    "pypi-",
    "sk-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
];
const SHORTEST_TOKEN: usize = 16;

/// Programs whose short flags take a secret, and whether it may be in the same word.
const SHORT_FLAGS: [(&[&str], &str, bool); 7] = [
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlsh",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        "-p",
        true,
    ),
    (&["sshpass"], "-p", true),
    (&["7z", "7za", "7zr", "7zz"], "-p", true),
    (&["redis-cli", "valkey-cli"], "-a", false),
    (
        &[
            "ldapsearch",
            "ldapmodify",
            "ldapadd",
            "ldapdelete",
            "ldappasswd",
            "ldapwhoami",
        ],
        "-w",
        true,
    ),
    (&["zip", "unzip", "mosquitto_pub", "mosquitto_sub"], "-P", false),
    (&["rdesktop"], "-p", false),
];
/// Takes /proc/PID/cmdline, of which `is_whole` says whether it ends there.
pub(super) fn shown(bytes: &[u8], is_whole: bool, how: CommandLines) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut arguments: Vec<String> = bytes[..end].split(|byte| *byte == 0).map(text).collect();
    let line = match how {
        CommandLines::Off => return String::new(),
        CommandLines::Whole => arguments.join(" "),
        CommandLines::Cut => {
            // Of the last one the sign may be missing by which a secret is known.
            if !is_whole && end == bytes.len() {
                arguments.pop();
            }
            without_secrets(&arguments)
        }
    };
    let end = (0..=LONGEST_BYTES.min(line.len()))
        .rev()
        .find(|end| line.is_char_boundary(*end));
    line[..end.unwrap_or(0)].to_owned()
}

fn without_secrets(arguments: &[String]) -> String {
    let program = arguments.first().map(String::as_str).unwrap_or_default();
    // A shell has it as the first word of what it is to do.
    let program = program.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut cutter = Cutter {
        flags: SHORT_FLAGS
            .into_iter()
            .filter(|(programs, ..)| programs.contains(&program))
            .collect(),
        next: Next::Nothing,
    };
    let shown: Vec<String> = arguments.iter().map(|argument| cutter.argument(argument)).collect();
    shown.join(" ")
}

/// What the word before says of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    IsSecret,
    /// `user:secret`.
    HasSecret,
}

struct Cutter {
    flags: Vec<(&'static [&'static str], &'static str, bool)>,
    next: Next,
}

impl Cutter {
    fn argument(&mut self, argument: &str) -> String {
        // It is one value, whatever is in it.
        if self.next != Next::Nothing && !argument.starts_with("--") {
            return self.value(argument);
        }
        self.next = Next::Nothing;
        if let Some(at) = secret_name_end(argument) {
            return format!("{}{CUT}", &argument[..at]);
        }
        // A command of a shell's, or a title that the process gave itself, is words once more.
        let mut shown = String::with_capacity(argument.len());
        let mut rest = argument;
        while !rest.is_empty() {
            let blank = rest.len() - rest.trim_start().len();
            shown.push_str(&rest[..blank]);
            rest = &rest[blank..];
            let end = word_end(rest);
            let word = &rest[..end];
            rest = &rest[end..];
            if word.is_empty() {
                continue;
            }
            let starts_command = matches!(word, "|" | "||" | "&&" | ";");
            let shown_word = if self.next != Next::Nothing && !word.starts_with("--") && !starts_command {
                self.value(word)
            } else {
                self.next = Next::Nothing;
                self.word(word)
            };
            shown.push_str(&shown_word);
        }
        shown
    }

    fn value(&mut self, value: &str) -> String {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::HasSecret => user_and_secret(value),
            _ if matches!(value, "Bearer" | "Basic" | "bearer" | "basic") => {
                self.next = Next::IsSecret;
                value.into()
            }
            _ => CUT.into(),
        }
    }

    fn word(&mut self, word: &str) -> String {
        // A program that a shell starts.
        let program = word.rsplit('/').next().unwrap_or_default();
        let known = SHORT_FLAGS
            .into_iter()
            .filter(|(programs, ..)| programs.contains(&program));
        self.flags.extend(known);
        for (_, flag, joined) in &self.flags {
            let Some(rest) = word.strip_prefix(flag) else { continue };
            if rest.is_empty() {
                self.next = Next::IsSecret;
                return word.into();
            }
            if *joined {
                return format!("{flag}{CUT}");
            }
        }
        if let Some(at) = secret_name_end(word) {
            // `TOKEN:` and the value behind a blank.
            if at == word.len() {
                self.next = Next::IsSecret;
                return word.into();
            }
            return format!("{}{CUT}{}", &word[..at], closing_quote(word));
        }
        if matches!(word, "-u" | "-U" | "--user" | "--proxy-user" | "--basic-auth") {
            self.next = Next::HasSecret;
            return word.into();
        }
        let is_flag = word.starts_with('-') && !word.contains(['=', ':', '/']);
        if is_flag && is_secret(word) || matches!(word, "Bearer" | "Basic") {
            self.next = Next::IsSecret;
            return word.into();
        }
        if let Some((flag, value)) = word.split_once('=')
            && matches!(flag, "--user" | "--proxy-user" | "--basic-auth")
        {
            return format!("{flag}={}", user_and_secret(value));
        }
        without_tokens(&without_url_secrets(word))
    }
}

/// The end of a word: a blank that is in no quotes.
fn word_end(text: &str) -> usize {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, _) if character.is_whitespace() => return at,
            _ => {}
        }
    }
    // A quote without its end is an apostrophe.
    if quote.is_some() {
        return text.find(char::is_whitespace).unwrap_or(text.len());
    }
    text.len()
}

fn closing_quote(word: &str) -> &str {
    let is_quoted = word.starts_with('"') && word.ends_with('"') || word.starts_with('\'') && word.ends_with('\'');
    if is_quoted && word.len() > 1 {
        &word[word.len() - 1..]
    } else {
        ""
    }
}

/// Where the value begins of the first secret in `NAME=VALUE`, `NAME: VALUE`, lists and JSON of them: behind its name
/// and sign.
fn secret_name_end(text: &str) -> Option<usize> {
    let mut begin = 0;
    for (at, character) in text.char_indices() {
        let is_in_name = character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        // A blank, a quote or a bracket between name and sign is as good as none: `"password" : "x"`,
        // `form[password]=x`.
        let is_passed_over = matches!(character, '"' | '\'' | ']' | ' ');
        if matches!(character, '=' | ':') {
            let name = text[begin..at].trim_end_matches(['"', '\'', ']', ' ']);
            let name = &name[name.rfind([' ', '"', '\'']).map_or(0, |at| at + 1)..];
            // A name before `://` is a scheme.
            let is_scheme = text[at..].starts_with("://");
            if !is_scheme && is_secret(name) {
                let behind = &text[at + 1..];
                let blank = behind.len() - behind.trim_start_matches([' ', '"', '\'']).len();
                return Some(at + 1 + blank);
            }
            begin = at + 1;
        } else if !is_in_name && !is_passed_over {
            begin = at + character.len_utf8();
        }
    }
    None
}

/// By its parts: `--db-password`, `AWS_SECRET_ACCESS_KEY`, `authToken`, `spring.datasource.password`.
fn is_secret(name: &str) -> bool {
    let parts = parts_of(name);
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return false;
    };
    if NEITHER.contains(&first.as_str()) || parts.len() > 1 && ABOUT.contains(&last.as_str()) {
        return false;
    }
    let names = |part: &String| SECRETS.contains(&part.as_str()) || WITHIN.iter().any(|word| part.contains(word));
    parts.iter().any(names) || WITHIN.iter().any(|word| parts.concat().contains(word))
}

/// In lower case. A new one begins behind what is no letter or digit, and at a capital behind a small letter.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for character in name.chars() {
        let begins = character.is_uppercase() && before.is_lowercase();
        if begins || !character.is_alphanumeric() {
            parts.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(character.to_lowercase());
        }
        before = character;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// `user:secret`, but two numbers, which are a user's and a group's.
fn user_and_secret(value: &str) -> String {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match value.split_once([':', '%']) {
        Some((user, secret)) if !(number(user) && number(secret)) => {
            format!("{user}{}{CUT}", &value[user.len()..=user.len()])
        }
        _ => value.into(),
    }
}

/// `SCHEME://USER:SECRET@HOST`, and of HTTP also `SCHEME://TOKEN@HOST`.
fn without_url_secrets(word: &str) -> String {
    let mut shown = String::new();
    let mut rest = word;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        shown.push_str(before);
        let authority = &behind[..behind.find(['/', '?', '#', '"', '\'', ',']).unwrap_or(behind.len())];
        rest = behind;
        let Some((user, _)) = authority.rsplit_once('@') else {
            continue;
        };
        rest = &behind[user.len()..];
        match user.split_once(':') {
            Some((name, _)) => shown.extend([name, ":", CUT]),
            None if before.to_ascii_lowercase().contains("http") => shown.push_str(CUT),
            None => shown.push_str(user),
        }
    }
    shown.push_str(rest);
    shown
}

/// Cuts what looks like a token, whatever it is called.
fn without_tokens(word: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let mut shown = String::new();
    let mut rest = word;
    while let Some(begin) = rest.find(is_part) {
        let end = rest[begin..]
            .find(|character| !is_part(character))
            .map_or(rest.len(), |end| begin + end);
        let run = &rest[begin..end];
        let is_web_token = run.starts_with("eyJ") && run.matches('.').count() >= 2;
        let is_known = TOKENS.iter().any(|begin| run.starts_with(begin));
        let is_token =
            run.len() >= SHORTEST_TOKEN && (is_web_token || is_known && run.bytes().any(|byte| byte.is_ascii_digit()));
        shown.push_str(&rest[..begin]);
        shown.push_str(if is_token { CUT } else { run });
        rest = &rest[end..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests;
