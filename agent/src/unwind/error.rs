//! What is said where a file has no table.

/// Why a file has no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    #[error("it is no 64-bit ELF file for x86-64 or arm64")]
    NotElf,
    #[error("it describes no function: it has neither .eh_frame nor .debug_frame nor Go's pclntab that could be read")]
    NoUnwindInformation,
    #[error("its table would have more than the {limit} rows that one file may have")]
    TooManyRows { limit: usize },
    #[error("it describes more than 2,097,152 functions, or too many in one place")]
    TooManyFunctions,
    #[error("what it says of its functions is more than 256 MiB to read")]
    TooMuchToRead,
    #[error("it was written over while it was read")]
    WrittenOver,
    #[error("its code spans more than 4 GiB")]
    TooManyAddresses,
}
