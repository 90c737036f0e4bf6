//! A frame of a runtime before it has a name.

use crate::frames::Frame;
use crate::kernel::RuntimeWord;
use crate::runtime::Unreadable;

/// A frame of a runtime as the kernel side tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::agent) struct RuntimePlace {
    pub(in crate::agent) frame: RuntimeWord,
    /// None where it was left out.
    pub(in crate::agent) detail: Option<u64>,
    /// It was interrupted there, which is no return address.
    pub(in crate::agent) innermost: bool,
}

impl RuntimePlace {
    /// What stands for the function of a place: it has a word that no walk tells, and the part of the detail, or all of
    /// it, that does not tell where in the function it is.
    pub(super) fn function(frame: RuntimeWord, detail: u64) -> Self {
        Self {
            frame,
            detail: Some(detail),
            innermost: false,
        }
    }
}

/// Why a frame has no name.
pub(super) enum Nameless {
    /// Something else stands there by now.
    Replaced,
    Unreadable,
    /// It has, but for a part that another time may bring.
    InPart(Vec<Frame>),
}

impl From<Unreadable> for Nameless {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Replaced => Self::Replaced,
            _ => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LANGUAGES, language_of};
    use super::*;

    fn function_of(frame: RuntimeWord, detail: u64) -> Option<RuntimePlace> {
        let place = RuntimePlace {
            frame,
            detail: Some(detail),
            innermost: true,
        };
        LANGUAGES[language_of(frame)].function_of(place)
    }

    /// Two places of one function, and one of another that lies where the first lay.
    #[test]
    fn places_of_a_function_have_it_in_common_and_no_others() {
        use RuntimeWord::{JvmInterpreted, Php, Python, Ruby, V8};
        const ADDRESS: u64 = 0x7f00_0000_1000;
        let number = |value: u64, bits: u32, number: u64| value | number << bits;
        for [one, same, other] in [
            [(5, 77), (6, 77), (5, 78)].map(|(at, hash)| (Python(ADDRESS), number(at, 20, hash))),
            [(5, 77), (6, 77), (5, 78)].map(|(at, hash)| (Php(ADDRESS), number(at, 21, hash))),
            [(5, 77), (6, 77), (5, 78)].map(|(at, hash)| (JvmInterpreted(ADDRESS), number(at, 16, hash))),
            [(5, 77), (6, 77), (5, 78)].map(|(at, hash)| (Ruby(number(ADDRESS >> 3, 44, at)), number(1, 44, hash))),
            [(5, 77), (6, 77), (5, 78)].map(|(at, hash)| (V8(number(at, 47, hash)), ADDRESS >> 3)),
        ] {
            let of = |(frame, detail)| function_of(frame, detail).unwrap();
            assert_eq!(of(one), of(same), "{one:x?}");
            assert_ne!(of(one), of(other), "{one:x?}");
            // Nothing that a walk tells.
            assert_ne!(of(one).frame, one.0);
        }
        // The main program's code is called otherwise.
        assert_ne!(function_of(Php(ADDRESS), 5), function_of(Php(ADDRESS), 5 | 1 << 20));
        // Compiled code has other inlined functions at each place; methods in C have no places.
        assert_eq!(function_of(RuntimeWord::JvmCompiled(ADDRESS), 7), None);
        assert_eq!(function_of(V8(number(ADDRESS, 57, 1)), 7), None);
        assert_eq!(function_of(Ruby(number(0, 44, 0xffff)), 7), None);
    }
}
