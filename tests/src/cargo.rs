//! cargo, as a person would call it.

use std::process::Command;

/// cargo, without what another one has told this process of the package that it runs or tests: build scripts that ask for
/// it (ring's does) would run again at each change of caller, and everything that rests on them be built again.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let told =
            name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if told {
            command.env_remove(name);
        }
    }
    command
}
