//! Where the project lies.

use std::path::Path;

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    member.parent().unwrap_or(member)
}
