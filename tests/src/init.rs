//! Stage `init`: process 1 inside. When it ends the kernel kills every other process inside, so it lives exactly as
//! long as `parts`. Meanwhile it reaps the orphans that containerd's shims become.

use anyhow::Context;
use rustix::{io::Errno, process::WaitOptions};

use crate::{folder::Folder, stage};

pub(crate) fn run(folder: &Folder) -> anyhow::Result<i32> {
    let parts = stage::command("parts", folder)?.spawn().context("start the stage `parts`")?;
    let parts = i32::try_from(parts.id())?;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == parts => {
                return Ok(status.exit_status().unwrap_or(1));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("wait for processes"),
        }
    }
}
