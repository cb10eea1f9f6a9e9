//! Pages of redb, as far as tests damage them.

/// First byte of a branch.
const BRANCH: u8 = 2;

/// Returns `true` if a page is a branch, which leads to other pages.
pub fn is_branch(page: &[u8]) -> bool {
    page.first() == Some(&BRANCH)
}

/// Returns the offsets of the page numbers in a branch.
pub fn children(branch: &[u8]) -> impl ExactSizeIterator<Item = usize> + use<> {
    let children = usize::from(u16::from_le_bytes([branch[2], branch[3]])) + 1;
    // The checksums of all children, of 16 bytes each, come before the numbers, of 8 bytes each.
    (0..children).map(move |child| 8 + 16 * children + 8 * child)
}

/// Lets the page number at an offset of a file lead behind the end of the file, to a region behind 4 TiB.
pub fn lead_astray(file: &mut [u8], number: usize) {
    file[number + 3] |= 0x40;
}
