//! Whether a program runs by itself, by its ELF header (System V ABI; 64 bits, little-endian).

/// The type of the entry that names a loader, `PT_INTERP`.
const LOADER: usize = 3;

/// Whether these are a program that needs no loader, and so no library.
pub(crate) fn is_static(program: &[u8]) -> bool {
    program.starts_with(b"\x7fELF\x02\x01") && names_a_loader(program) == Some(false)
}

/// None where the table of the program's parts cannot be read.
fn names_a_loader(program: &[u8]) -> Option<bool> {
    let number = |at: usize, length: usize| {
        let bytes = program.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let types = (0..count).map(|index| number(table.checked_add(index * size)?, 4));
    types.collect::<Option<Vec<_>>>().map(|types| types.contains(&LOADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with these parts.
    fn program(types: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x20], bytes[0x36], bytes[0x38]) = (0x40, 0x38, u8::try_from(types.len()).unwrap());
        for type_ in types {
            bytes.extend([[*type_].as_slice(), &[0; 0x37]].concat());
        }
        bytes
    }

    #[test]
    fn a_program_that_names_a_loader_is_not_static() {
        assert!(is_static(&program(&[6, 1, 1])));
        assert!(!is_static(&program(&[6, 3, 1])));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&own), "Rust links tests with the C library");
    }

    #[test]
    fn what_is_cut_or_no_program_at_all_is_not_static() {
        assert!(!is_static(&program(&[6, 1])[..0x60]));
        assert!(!is_static(b"#!/bin/sh\n"));
    }
}
