//! Which operations belong together. In: nothing. Out: words of the document.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Questions,
    Notes,
    Server,
    Sending,
    Machines,
    Browser,
}

impl Tag {
    pub(super) const ALL: [Tag; 6] = [
        Tag::Questions,
        Tag::Notes,
        Tag::Server,
        Tag::Sending,
        Tag::Machines,
        Tag::Browser,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tag::Questions => "questions",
            Tag::Notes => "notes",
            Tag::Server => "server",
            Tag::Sending => "sending",
            Tag::Machines => "machines",
            Tag::Browser => "browser",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Tag::Questions => "Answers about samples. A parameter that an operation does not know is refused.",
            Tag::Notes => "What people keep beside samples: markers of moments, and addresses of the page with names.",
            Tag::Server => "The server and its senders. Parameters are not looked at.",
            Tag::Sending => "What senders send; docs/wire.md has the whole.",
            Tag::Machines => "What a machine needs to run the agent.",
            Tag::Browser => "How a browser signs in and out.",
        }
    }
}
