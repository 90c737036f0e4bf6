//! The GNU build id of an ELF file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::elf::Image;

/// The build id in lower-case hex; none where the file has none or is no ELF file of a known machine.
pub fn gnu_build_id(file: &File) -> Option<String> {
    Image::open(|offset, into: &mut [u8]| file.read_exact_at(into, offset).is_ok())?.build_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_program_has_the_build_id_that_its_section_says() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        if let Some(id) = gnu_build_id(&file) {
            assert!(id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        let nothing = File::open("/dev/null").unwrap();
        assert_eq!(gnu_build_id(&nothing), None);
    }
}
