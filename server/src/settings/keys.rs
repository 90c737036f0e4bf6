//! Which flags are keys of the file, and what values they take.

use clap::{Arg, ArgAction, Command};
use std::any::TypeId;

/// Ids of the flags that are about the file, and no keys of it.
const ABOUT_THE_FILE: [&str; 2] = ["config", "print_config"];

/// The flags that are keys of the file, with these.
pub(super) fn keys(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let keys = command.get_arguments().filter(|arg| {
        let asks = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !asks && !ABOUT_THE_FILE.contains(&arg.get_id().as_str())
    });
    keys.filter_map(|arg| Some((arg.get_long()?, arg)))
}

/// Whether a flag is on or off, and takes no value.
pub(super) fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Whether a flag may be given several times.
pub(super) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Whether a flag's value is a number, which needs no quotes. One with a unit does.
pub(super) fn is_number(arg: &Arg) -> bool {
    let of = arg.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
    ];
    numbers.iter().any(|number| of == *number)
}
