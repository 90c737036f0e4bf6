//! What is said where a file has no table.

/// Why a file has no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It is of another kind or for another machine.
    #[error("it is no 64-bit ELF file for x86-64 or arm64")]
    NotElf,
    /// It says nothing of its frames: they are walked by frame pointers alone.
    #[error("it describes no function: it has neither .eh_frame nor .debug_frame nor Go's pclntab that could be read")]
    NoUnwindInformation,
    /// Its table would be too large.
    #[error("its table would have more than the {limit} rows that one file may have")]
    TooManyRows {
        /// Rows that one file may have.
        limit: usize,
    },
    /// It has more functions than are looked at, or too many of them in one place.
    #[error("it describes more than 2,097,152 functions, or too many in one place")]
    TooManyFunctions,
    /// More bytes of it would have to be read than are read of one file.
    #[error("what it says of its functions is more than 256 MiB to read")]
    TooMuchToRead,
    /// Its content changed meanwhile: what was made of it is thrown away.
    #[error("it was written over while it was read")]
    WrittenOver,
    /// Its functions lie further apart than a table's chunks reach.
    #[error("its code spans more than 4 GiB")]
    TooManyAddresses,
}
